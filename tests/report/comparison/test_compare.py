"""Comparisons: never across units or relations, against sums by hand, and decided only where it is proven."""

from __future__ import annotations

import math

import pytest

from sfumato import report
from sfumato.errors import ParameterError
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    Composed,
    Gaussian,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PureDP,
)
from sfumato.report.comparison.compare import Comparison, Placed
from sfumato.report.comparison.deployment_records import deployment_records, record_units
from tests.cases import cases
from tests.drawings import line, new_axes


def found(comparison: Comparison, name: str) -> Placed:
    return next(each for each in comparison.records if each.record.name == name)


@cases("unit", lambda: list(record_units()))
def test_only_records_of_the_same_unit_are_there(unit: str) -> None:
    comparison = report.compare(PureDP(1.0), unit=unit)
    assert {each.record.unit for each in comparison.records} == {unit}
    assert len(comparison.records) + comparison.other_units == len(deployment_records())
    rights = [each.standing.right for each in comparison.placed if each.standing is not None]
    assert rights == sorted(rights)
    assert comparison.stronger == sum(right < comparison.own.right for right in rights)
    reasons = {each.why for each in comparison.records if each.standing is None}
    assert reasons <= {"parameters", "relation"}


def test_pure_and_approximate_records_have_the_odds_that_a_hand_computes() -> None:
    comparison = report.compare(PureDP(1.0), unit="user-day")
    for each in comparison.placed:
        epsilon, delta = each.record.epsilon, each.record.delta or 0.0
        assert epsilon is not None
        assert each.standing is not None
        # The best guess against the worst (epsilon, delta) mechanism (Kairouz, Oh, Viswanath 2015).
        right = 0.5 + 0.5 * (delta + (1 - delta) * math.tanh(epsilon / 2))
        assert each.standing.right == pytest.approx(right, rel=1e-9)
        assert each.standing.right >= right - 1e-15
        belief = None if delta else math.exp(epsilon) / (1 + math.exp(epsilon))
        assert each.standing.belief == (None if belief is None else pytest.approx(belief, rel=1e-9))
        assert 0.01 < each.standing.reconstruction <= min(1.0, 1.01 * (math.exp(epsilon) / 100 + delta))


def test_a_guarantee_meets_what_it_implies_and_nothing_else() -> None:
    pure = report.compare(PureDP(2.0), unit="user-day")
    assert found(pure, "COVID-19 Search Trends Symptoms").meets is False
    assert found(pure, "Movement Ranges Map").meets is True
    assert found(pure, "Vaccine Search Insights").meets is True
    # With a delta no pure epsilon follows, however large it is.
    approximate = report.compare(ApproximateDP(2.0, 1e-6), unit="event")
    assert {each.meets for each in approximate.placed} == {False}
    assert (
        found(report.compare(ApproximateDP(2.0, 1e-4), unit="user-day"), "Vaccine Search Insights").meets
        is False
    )
    # Noise of Gaussians: 1.68-DP never, (2.19, 1e-5) from a noise of about 2.0 on.
    for multiplier, meets in ((2.1, True), (1.7, False)):
        comparison = report.compare(Gaussian(multiplier), unit="user-day")
        assert found(comparison, "Vaccine Search Insights").meets is meets
        assert found(comparison, "COVID-19 Search Trends Symptoms").meets is False


def test_a_stated_rho_is_met_refuted_or_left_open() -> None:
    name = "Current Pageviews"  # rho .015 of a device's day
    for loss, meets in (
        (ZCDP(0.015), True),
        (ZCDP(0.0151), None),
        (Gaussian(math.sqrt(0.5 / 0.0149)), True),
        (Gaussian(3.0), False),
        (PureDP(0.15), True),
        (ApproximateDP(0.1, 1e-3), False),
    ):
        assert found(report.compare(loss, unit="device-day"), name).meets is meets, loss


def test_what_is_about_another_relation_is_not_placed() -> None:
    own = report.compare(PureDP(1.0), unit="person")
    replaced = report.compare(PureDP(1.0, neighboring=Neighboring.REPLACE_ONE), unit="person")
    name = "Disclosure Avoidance System for Redistricting Data"
    assert (found(own, name).standing, found(own, name).why) == (None, "relation")
    placed = found(replaced, name)
    assert placed.record.rho == 2.56  # of its person tables: 2.63 is of both kinds of tables together
    assert placed.standing is not None
    assert found(replaced, "Broadband Coverage").why == "relation"
    household = report.compare(PureDP(1.0, neighboring=Neighboring.REPLACE_ONE), unit="household")
    assert {each.record.rho for each in household.placed} == {0.07, 7.7}


def test_the_error_is_that_of_noise_that_has_the_guarantee() -> None:
    assert report.compare(PureDP(0.5), unit="event").own.error == pytest.approx(math.sqrt(2) / 0.5)
    assert report.compare(Laplace(2.0), unit="event").own.error == pytest.approx(math.sqrt(2) * 2)
    assert report.compare(Gaussian(3.0), unit="event").own.error == pytest.approx(3.0)
    assert report.compare(ZCDP(0.5), unit="event").own.error == pytest.approx(1.0)
    approximate = report.compare(ApproximateDP(0.5, 0.1), unit="event").own.error
    assert approximate is not None
    assert approximate < math.sqrt(2) / 0.5
    assert Gaussian(approximate * 1.0001).delta(0.5) <= 0.1
    sampled = PoissonSubsampled(Gaussian(1.0), sampling_probability=0.01)
    assert report.compare(sampled, unit="event").own.error is None


@cases(
    "loss",
    lambda: [
        PureDP(5e-324),
        PureDP(1e-300),
        PureDP(700.0),
        ApproximateDP(1e-9, 1e-300),
        ZCDP(1e-300),
        Composed(()),
    ],
)
def test_extreme_guarantees_are_placed(loss: PureDP) -> None:
    comparison = report.compare(loss, unit="user-day")
    assert 0.5 <= comparison.own.right <= 1
    assert report.comparison_page(comparison).html


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="unit must be one of account-month, birth"):
        report.compare(PureDP(1.0), unit="row of mine")
    with pytest.raises(ParameterError, match="loss must be"):
        report.compare(1.0, unit="person")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="comparison must be"):
        report.comparison_page(PureDP(1.0))  # type: ignore[arg-type]


def test_placed_records_are_drawn_at_their_chances() -> None:
    comparison = report.compare(PureDP(1.0), unit="user-day")
    ax = comparison.plot(new_axes())
    for at, met in enumerate((True, False)):
        own = [(p, each) for p, each in enumerate(comparison.placed) if (each.meets is True) is met]
        rights = [each.standing.right for _, each in own if each.standing is not None]
        assert line(ax, at) == (rights, [place for place, _ in own])
    assert line(ax, 2)[0] == [comparison.own.right] * 2
    assert [each.get_text() for each in ax.get_yticklabels()] == [p.record.name for p in comparison.placed]
    assert ax.yaxis_inverted()  # the strongest on top
