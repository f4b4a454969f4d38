"""At the edges of every parameter no view is below the answer, and a loss of nothing costs nothing."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest

from sfumato.errors import UnsupportedView
from sfumato.numerics.rounding import log_down
from sfumato.privacy import (
    CDP,
    ZCDP,
    ApproximateDP,
    DiscretePair,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    PoissonSubsampled,
    PrivacyLoss,
    Profile,
    PureDP,
    RandomizedResponse,
    RDPCurve,
    SupportResponse,
    TradeOff,
    gdp_delta,
    gdp_epsilon,
    zcdp_delta,
    zcdp_epsilon,
)
from sfumato.privacy.best_bound import minimum_epsilon
from sfumato.privacy.catalog import LOSS_CLASSES
from tests.privacy.edges import ONE, leaves, nodes

DELTAS = (0.0, 1e-300, 1e-30, 1e-6, 0.5)
FEW_DELTAS = (1e-300, 1e-6, 0.5)
EPSILONS = (0.0, 1e-9, 1.0, 500.0)
ORDERS = (1 + 2.0**-40, 1.5, 2.0, 100.0, 1e6, 1e12)
# Readings search for the best order or root: equal in theory, they may differ by this much.
CLOSE = 1 + 1e-8

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")


def kinds(folder: str) -> list[str]:
    """Name the classes of a folder of losses."""
    inside = f"sfumato.privacy.{folder}."
    return sorted(kind.__name__ for kind in LOSS_CLASSES if kind.__module__.startswith(inside))


def of_kind(kind: str) -> list[PrivacyLoss]:
    """Return the losses of a class at the edges of its parameters."""
    found = [loss for loss in (*leaves(), *nodes()) if type(loss).__name__ == kind]
    assert found, f"no {kind} is among the edges"
    return found


def epsilons(loss: PrivacyLoss, delta: float) -> Iterator[tuple[str, float]]:
    """Convert every view of a loss by itself."""
    if (view := viewed(loss, "zcdp")) and delta >= view[1] and view[0] < math.inf:
        yield "zcdp", zcdp_epsilon(view[0], delta - view[1])
    if (view := viewed(loss, "gdp")) and delta >= view[1]:
        yield "gdp", gdp_epsilon(view[0], delta - view[1])
    if (view := viewed(loss, "pure")) and delta >= view[1]:
        yield "pure", view[0]
    if delta == 0:
        return
    with contextlib.suppress(UnsupportedView):
        yield "profile", minimum_epsilon(loss.log_profile, log_down(delta), start=1.0)
    if loss.numeric:
        return
    try:
        for order in (*ORDERS, *getattr(loss, "orders", ())):
            gap = order - 1
            share = (-math.log(delta) - math.log(order)) / gap
            yield f"rdp({order})", max(0.0, loss.rdp(order) + share - math.log1p(1 / gap)) + 1e-15
    except UnsupportedView:
        pass


def deltas(loss: PrivacyLoss, epsilon: float) -> Iterator[tuple[str, float]]:
    """Convert the views that add."""
    if (view := viewed(loss, "zcdp")) and view[0] < math.inf:
        yield "zcdp", min(1.0, zcdp_delta(view[0], epsilon) + view[1])
    if view := viewed(loss, "gdp"):
        yield "gdp", min(1.0, gdp_delta(view[0], epsilon) + view[1])
    if (view := viewed(loss, "pure")) and epsilon >= view[0]:
        yield "pure", view[1]


def viewed(loss: PrivacyLoss, view: str) -> tuple[float, float] | None:
    try:
        return getattr(loss, view)()  # type: ignore[no-any-return]
    except UnsupportedView:
        return None


def holds(loss: PrivacyLoss, at: Sequence[float]) -> None:
    for delta in at:
        try:
            answer = loss.epsilon(delta)
        except UnsupportedView:
            assert not list(epsilons(loss, delta))
            continue
        for view, number in epsilons(loss, delta):
            assert answer <= number * CLOSE, (loss, delta, view)
    for epsilon in EPSILONS:
        for view, number in deltas(loss, epsilon):
            assert loss.delta(epsilon) <= number * CLOSE + 1e-300, (loss, epsilon, view)


@pytest.mark.parametrize("kind", [kind for kind in kinds("leaves") if kind != "GroupPrivacy"])
def test_no_view_of_a_leaf_is_below_its_answer(kind: str) -> None:
    for loss in of_kind(kind):
        holds(loss, DELTAS)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "kind", sorted({*kinds("nodes"), "GroupPrivacy"} - {"BlockBound", "PoissonReplaceOne"})
)
def test_no_view_of_a_node_is_below_its_answer(kind: str) -> None:
    for loss in of_kind(kind):
        holds(loss, FEW_DELTAS)


def test_divergences_of_every_node_are_numbers() -> None:
    for loss in nodes():
        try:
            bound = loss.rdp(2.0)
        except UnsupportedView:
            continue
        assert bound >= 0


NOTHING: list[PrivacyLoss] = [
    PureDP(0.0),
    ApproximateDP(0.0, 0.0),
    ZCDP(0.0),
    CDP(0.0, 0.0),
    CDP(0.0, 1.0),
    CDP(1.0, 0.0),
    GaussianDP(0.0),
    RDPCurve([2.0, 8.0], [0.0, 1.0]),
    RDPCurve([1.5, 8.0], [0.0, 0.0]),
    Profile([0.0], [0.0]),
    TradeOff([0, 1], [1, 0]),
    DiscretePair([Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 3), Fraction(2, 3)]),
    RandomizedResponse(0.0, 5, neighboring=ONE),
    SupportResponse(0.0, Fraction(1, 4), neighboring=ONE),
    Exponential(0.0),
]


@pytest.mark.parametrize("loss", NOTHING, ids=repr)
def test_a_loss_of_nothing_costs_nothing(loss: PrivacyLoss) -> None:
    for whole in (loss, loss * 7, PoissonSubsampled(loss, 0.5), loss + PoissonSubsampled(loss, 0.25)):
        assert [whole.epsilon(delta) for delta in DELTAS] == [0.0] * len(DELTAS)
        assert [whole.delta(epsilon) for epsilon in EPSILONS] == [0.0] * len(EPSILONS)
    assert {tuple(view) for view in (loss.zcdp(), loss.gdp(), loss.pure())} == {(0.0, 0.0)}
    if not isinstance(loss, ApproximateDP):
        assert (loss * 3).rdp(2.0) < 1e-300


@pytest.mark.parametrize("loss", NOTHING, ids=repr)
def test_nothing_beside_a_loss_changes_no_number(loss: PrivacyLoss) -> None:
    for other in (
        Gaussian(1.0),
        Laplace(2.0),
        PureDP(0.5),
        ZCDP(0.25),
        PoissonSubsampled(Gaussian(1.0), 0.1),
    ):
        for delta in (1e-300, 1e-6):
            whole, alone = (loss + other).epsilon_interval(delta), other.epsilon_interval(delta)
            assert whole.lower <= alone.upper
            assert alone.lower <= whole.upper <= alone.upper * (1 + 1.1e-3)


@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-6, 0.1])
def test_a_curve_is_converted_at_the_best_of_its_own_orders(delta: float) -> None:
    # The greatest curve has a corner at every declared order, and ends at the last.
    for orders, rates in (
        ([2.0, 4.0, 8.0, 16.0, 32.0, 64.0], [0.1, 0.2, 0.45, 0.9, 2.0, 4.0]),
        ([1.5, 2.0, 1e6], [1.0, 1.0, 2.0]),
        ([1.1, 3.0], [1e-9, 1e-8]),
    ):
        found = [
            rate + (-math.log(delta) - math.log(order)) / (order - 1) - math.log1p(1 / (order - 1))
            for order, rate in zip(orders, rates, strict=True)
        ]
        assert RDPCurve(orders, rates).epsilon(delta) <= max(0.0, min(found)) * (1 + 1e-9)


def test_half_of_the_least_square_is_not_nothing() -> None:
    # The square of tau is nearly 5 of the least floats; half of it lies between two and three of them.
    tau = 4.92e-162
    square = Fraction(tau) ** 2
    assert 4 < square / Fraction(5e-324) < 5
    assert Fraction(CDP(5e-324, tau).zcdp().rho) >= square / 2
