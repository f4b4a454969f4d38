import pytest

from sfumato.anonymity.hierarchies.dates import Dates
from sfumato.errors import ParameterError


def test_each_unit_holds_the_one_before() -> None:
    found = Dates(("day", "month", "quarter", "year", "decade")).hierarchy(
        ["2020-04-01 12:30:00", "2019-12-31"]
    )
    assert [labels[0] for labels in found.labels[1:]] == [
        "2020-04-01",
        "2020-04",
        "2020-Q2",
        "2020",
        "2020s",
        "*",
    ]
    assert [labels[1] for labels in found.labels[1:6]] == [
        "2019-12-31",
        "2019-12",
        "2019-Q4",
        "2019",
        "2010s",
    ]


def test_units_that_do_not_grow_are_refused() -> None:
    given: list[tuple[str, ...]] = [(), ("week",), ("year", "month"), ("year", "year")]
    for units in given:
        with pytest.raises(ParameterError, match="units must be some of day, month"):
            Dates(units)


def test_a_text_is_no_date() -> None:
    with pytest.raises(ParameterError, match="got '31/12/2019'"):
        Dates().hierarchy(["31/12/2019"])
