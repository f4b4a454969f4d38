"""What epsilon means on the screen that sets it: odds on the safe side, and a count's exact interval."""

from __future__ import annotations

import math

from sfumato.privacy import PureDP
from sfumato.report import compare
from sfumato.server.console.screens.epsilon import mark_of
from tests.cases import cases
from tests.server.console.office import MEMBERS, Office


def test_half_means_what_the_literature_says(office: Office) -> None:
    page = office.get("carl", "/epsilon?epsilon=0.5").text
    assert "at most 62.3 in 100" in page
    assert "at most 69.7 in 100" in page
    assert "within 6 of the truth" in page
    assert page.count('<th scope="row">') == 8
    assert office.get("carl", "/epsilon?epsilon=0.3").text.count('<th scope="row">') == 9


@cases("epsilon", [1e-3, 0.01, 0.3, 0.5, 1.0, math.log(3), 4.0, 8.0, 50.0])
def test_the_interval_of_a_count_is_the_smallest(epsilon: float) -> None:
    rate, width = math.exp(-epsilon), mark_of(epsilon).half_width
    assert 2 * rate ** (width + 1) / (1 + rate) <= 0.05
    if width:
        assert 2 * rate**width / (1 + rate) > 0.05


@cases("epsilon", ["0", "-1", "nan", "51", "1e-300", "x"])
def test_what_is_no_choice_is_refused(office: Office, epsilon: str) -> None:
    refused = office.get("carl", f"/epsilon?epsilon={epsilon}")
    assert refused.status == 400
    assert "epsilon must be" in refused.text


def test_records_of_the_same_unit_stand_beside_it(office: Office) -> None:
    page = office.get("carl", "/epsilon?epsilon=0.5&unit=person").text
    assert "Assistive AI" in page
    assert "<option selected>person</option>" in page
    placed = [each.record.name for each in compare(PureDP(0.5), unit="person").placed]
    assert page.count('<th scope="row"><bdi>') == len(placed)
    assert "Movement Ranges Map" not in page  # whose unit is a day of a person
    assert "Assistive AI" not in office.get("carl", "/epsilon?epsilon=0.5").text
    refused = office.get("carl", "/epsilon?epsilon=0.5&unit=galaxy")
    assert (refused.status, "unit must be one of" in refused.text) == (400, True)


def test_only_a_curator_sees_it(office: Office) -> None:
    for name in ("", *MEMBERS):
        assert office.get(name, "/epsilon").status == {"": 303, "carl": 200}.get(name, 403)
