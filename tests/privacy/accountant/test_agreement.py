"""Proofs that contradict each other are told of, and the bounds that hold if either is right are returned."""

from __future__ import annotations

import math

import pytest

from sfumato.errors import ContradictionWarning
from sfumato.numerics.interval import Interval
from sfumato.privacy import Gaussian, Laplace
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.agreement import intersection
from sfumato.privacy.accountant.precision import STANDARD
from sfumato.privacy.interpretation.one_direction import OneDirection
from sfumato.privacy.views import GDPView, PureView

MESSAGE = (
    "two proofs of epsilon contradict each other: one says at least .*, another at most .*please report it"
)


class TooGoodGaussian(Gaussian):  # type: ignore[misc]
    """A closed view that is below the truth, as a wrong theorem would be."""

    __slots__ = ()

    def gdp(self) -> GDPView:
        return GDPView(0.5 * Gaussian(self.noise_multiplier).gdp().mu, 0.0)

    def dominating_pair(self):  # type: ignore[no-untyped-def]
        return Gaussian(self.noise_multiplier).dominating_pair()


class TooGoodLaplace(Laplace):  # type: ignore[misc]
    """The same of a pure view."""

    __slots__ = ()

    def pure(self) -> PureView:
        return PureView(0.25, 0.0)

    def pure_epsilon(self) -> float:
        return 0.25

    def dominating_pair(self):  # type: ignore[no-untyped-def]
        return Laplace(self.noise_multiplier).dominating_pair()


def test_a_closed_view_below_the_truth_is_told_of_and_the_wider_bounds_are_returned() -> None:
    truth = Gaussian(1.0).epsilon_interval(1e-5)
    with pytest.warns(ContradictionWarning, match=MESSAGE):
        found = TooGoodGaussian(1.0).epsilon_interval(1e-5)
    assert found.lower == 0.0
    assert found.upper >= truth.lower
    with pytest.warns(ContradictionWarning, match="two proofs of delta"):
        assert TooGoodGaussian(1.0).delta_interval(1.0).upper >= Gaussian(1.0).delta(1.0)


def test_a_greatest_loss_above_a_pure_view_is_told_of() -> None:
    with pytest.warns(ContradictionWarning, match=MESSAGE):
        assert TooGoodLaplace(1.0).epsilon_interval(0.0).upper >= 1.0


@pytest.mark.parametrize(
    ("lower", "upper"), [(0.5, 0.4999), (math.inf, 1.0), (1.0, math.nextafter(1.0, 0.0))]
)
def test_one_computation_whose_ends_exclude_each_other_proves_nothing(lower: float, upper: float) -> None:
    reading = intervals._EPSILON._replace(certified=lambda *_: Interval(lower, upper))
    with pytest.warns(ContradictionWarning, match=MESSAGE):
        assert intervals._attempt(reading, [], 1e-5, STANDARD, math.inf)[:2] == (0.0, math.inf)


@pytest.mark.parametrize("ends", [(math.nan, 1.0), (0.5, math.nan), (math.nan, math.nan)])
def test_what_leaves_the_range_of_floats_proves_nothing(ends: tuple[float, float]) -> None:
    reading = intervals._EPSILON._replace(certified=lambda *_: Interval(*ends))
    assert intervals._attempt(reading, [], 1e-5, STANDARD, math.inf)[:2] == (0.0, math.inf)


def test_shares_that_exclude_each_other_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    rising = iter([Interval(0.5, 0.5), Interval(0.1, 0.1), Interval(0.1, 0.1)])  # not convex
    monkeypatch.setattr(OneDirection, "divergence", lambda *_: next(rising))
    with pytest.warns(ContradictionWarning, match="a tail of the loss"):
        assert OneDirection(()).upper_tail(0.0, 0.1, 1e-3)[:2] == (0.0, 1.0)


def test_what_agrees_is_narrowed_in_silence() -> None:
    assert intersection("x", Interval(0.0, 1.0), Interval(1.0, 2.0, tight=False)) == (1.0, 1.0, False)
    assert intersection("x", Interval(0.0, 3.0), Interval(1.0, math.inf), Interval(0.5, 2.0)) == (
        1.0,
        2.0,
        True,
    )
    with pytest.warns(ContradictionWarning, match="of x contradict each other: one says at least 2.0"):
        assert intersection("x", Interval(2.0, 3.0), Interval(0.0, 1.0)) == (0.0, 3.0, False)
