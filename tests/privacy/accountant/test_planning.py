"""Pairs of a kind are cut and composed side by side, and give what each gives by itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.numerics.interval import Interval
from sfumato.privacy import (
    ApproximateDP,
    DiscretePair,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    Precision,
    PrivacyLoss,
    PureDP,
    RandomizedResponse,
    compose,
)
from sfumato.privacy.accountant import certified, planning
from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.pair import Pair
from tests.cases import cases

KINDS: dict[str, list[PrivacyLoss]] = {
    "normal": [Gaussian(noise) for noise in (0.7, 1.0, 4.0)],
    "sampled": [PoissonSubsampled(Gaussian(noise), q) for noise, q in ((0.7, 0.01), (1.0, 0.3), (4.0, 1e-5))],
    "twice": [PoissonSubsampled(PoissonSubsampled(Gaussian(2.0), q), q) for q in (0.5, 0.25)],
    "atoms": [RandomizedResponse(epsilon, 3) for epsilon in (0.1, 1.0, 3.0)],
    "told": [ApproximateDP(0.1 * k, 1e-3 * k) for k in (1, 2, 3)],
    "sampled and told": [PoissonSubsampled(ApproximateDP(0.1 * k, 1e-3 * k), 0.1 * k) for k in (1, 2, 3)],
}


def together(pairs: list[Pair]) -> Pair:
    parameters = np.array([pair.parameters for pair in pairs], float)
    return pairs[0].stacked(parameters.T[..., None])


def numbers(thing: object) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """List all numbers in bins or laws, in their order."""
    if isinstance(thing, bool | float | np.ndarray):
        return [np.asarray(thing)]
    return [number for field in fields(thing) for number in numbers(getattr(thing, field.name))]  # type: ignore[arg-type]


@cases("swapped", [False, True])
@cases("kind", KINDS)
@cases("what", [lambda bins: bins, Bins.merged, Bins.split])
def test_rows_are_what_each_pair_gives(kind: str, swapped: bool, what: Callable[[Bins], object]) -> None:
    pairs = [loss.dominating_pair() for loss in KINDS[kind]]
    assert len({pair.kind for pair in pairs}) == 1
    both = together(pairs)
    assert both.kind == pairs[0].kind
    cuts = both.cuts(9.0)
    if both.continuous:
        cuts = both.finer(cuts, 1.3)
    found = numbers(what(both.bins(cuts, swapped=swapped)))
    for row, pair in enumerate(pairs):
        alone = numbers(what(pair.bins(cuts[row] if both.continuous else cuts, swapped=swapped)))
        for many, one in zip(found, alone, strict=True):
            mine = many[row] if many.ndim > 1 else many
            np.testing.assert_allclose(np.ravel(mine), np.ravel(one), rtol=1e-14, atol=1e-300)


def test_pairs_of_other_kinds_are_not_mixed() -> None:
    losses = [Gaussian(1.0), PoissonSubsampled(Gaussian(1.0), 0.1), PureDP(1.0), ApproximateDP(1.0, 0.1)]
    assert len({loss.dominating_pair().kind for loss in losses}) == 4


@cases("swapped", [False, True])
@cases("told", [Gaussian(1.0), Laplace(1.0)])
@cases("q", [1.0, 0.3])
def test_bins_tell_whether_they_run_against_their_cuts(told: PrivacyLoss, q: float, swapped: bool) -> None:
    pair = PoissonSubsampled(told, q).dominating_pair()
    cuts = pair.cuts(6.0)
    bins, first = pair.bins(cuts, swapped=swapped), pair.bins(cuts[:2], swapped=swapped)
    np.testing.assert_allclose(first.edges, bins.edges[-2:] if bins.against else bins.edges[:2], rtol=1e-12)


def alone(monkeypatch: pytest.MonkeyPatch, read: Callable[..., Interval], *arguments: object) -> Interval:
    monkeypatch.setattr(planning, "_ROWS", 1)
    return read(*arguments)


@pytest.mark.parametrize("relative", [1e-3, 1e-5])
def test_intervals_meet_those_of_pairs_one_by_one(relative: float, monkeypatch: pytest.MonkeyPatch) -> None:
    losses: list[PrivacyLoss] = [PoissonSubsampled(Gaussian(0.8 + 0.1 * k), 0.05 / k) for k in range(1, 14)]
    losses += [RandomizedResponse(0.01 * k, 4) for k in range(1, 8)]
    losses += [PoissonSubsampled(ApproximateDP(0.1, 1e-8 * k), 0.2) for k in range(1, 5)]
    pairs = [(loss.dominating_pair(), 7 * k + 1) for k, loss in enumerate(losses)]
    precision = Precision(relative, 0.0)
    for read, at in ((certified.epsilon_interval, 1e-5), (certified.delta_interval, 1.0)):
        many, one = read(pairs, at, precision), alone(monkeypatch, read, pairs, at, precision)
        monkeypatch.undo()
        assert many.upper - many.lower <= relative * many.upper
        assert max(many.lower, one.lower) <= min(many.upper, one.upper)


def test_many_responses_hold_the_exact_sum() -> None:
    with mpmath.workdps(40):
        epsilons, chance = [mpmath.mpf(k) / 64 for k in range(1, 12)], mpmath.mpf(2) ** -20
        distribution = {mpmath.mpf(0): mpmath.mpf(1)}
        for e in epsilons:
            p = 1 / (1 + mpmath.exp(-e))
            after: dict[mpmath.mpf, mpmath.mpf] = {}
            for loss, mass in distribution.items():
                for more, share in ((e, p), (-e, 1 - p)):
                    after[loss + more] = after.get(loss + more, 0) + mass * share
            distribution = after
        selected = (1 - chance) ** len(epsilons)
        loss = compose(ApproximateDP(float(e), float(chance)) for e in epsilons)
        for epsilon in (0.0, 0.25, 0.8):
            inside = sum(p * (1 - mpmath.exp(epsilon - x)) for x, p in distribution.items() if x > epsilon)
            lower, upper, _ = loss.delta_interval(epsilon)
            assert lower <= 1 - selected + selected * inside <= upper <= lower * 1.001


def test_a_mass_of_total_failure_counts_for_each_row() -> None:
    masses = [10.0**-k for k in range(3, 9)]
    certain = -math.expm1(sum(math.log1p(-mass) for mass in masses))
    pairs = [(ApproximateDP(0.1, mass).dominating_pair(), 1) for mass in masses]
    found = certified.delta_interval(pairs, 5.0, Precision(1e-6))
    assert found.lower <= certain * (1 + 1e-12)
    assert certain * (1 - 1e-12) <= found.upper <= certain * (1 + 1e-6)


@pytest.mark.sharpest("False")
@pytest.mark.parametrize("swapped", [False, True])
def test_what_only_one_law_has_keeps_pairs_apart(swapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of two common outcomes each, beside one that neither, one or both laws have alone."""
    losses = []
    for lone in itertools.product((Fraction(0), Fraction(1, 64)), repeat=2):
        first, second = ((1 - mass) / 4 for mass in lone)
        p, q = [3 * first, first, lone[0], Fraction(0)], [second, 3 * second, Fraction(0), lone[1]]
        losses.append(DiscretePair(*((q, p) if swapped else (p, q))))
    assert len({loss.dominating_pair().kind for loss in losses}) == 4
    pairs = [(PoissonSubsampled(loss, 0.5).dominating_pair(), 1) for loss in losses]
    found = certified.delta_interval(pairs, 0.5, Precision(1e-6))
    one = alone(monkeypatch, certified.delta_interval, pairs, 0.5, Precision(1e-6))
    assert found.lower == pytest.approx(one.lower, rel=1e-9)
    assert found.upper == pytest.approx(one.upper, rel=1e-9)
    assert 0 < found.upper < 1


@cases("error", [0.01, 0.001])
def test_the_bounds_of_a_plan_are_no_further_apart_than_its_error(error: float) -> None:
    """What smoothing uses up of the error is not there for the bins."""
    log_delta = math.log(1e-5)
    pairs = [(PoissonSubsampled(Gaussian(1.0), 0.01).dominating_pair(), 1000)]
    look = planning.survey(pairs, 1e-5)
    order = certified.Order(look.plan(look.saddle_at_delta(log_delta), error), error)
    lower, upper = (order.bound(error, upper=side).solve(log_delta) for side in (False, True))
    assert 0.5 * error < upper - lower < error
