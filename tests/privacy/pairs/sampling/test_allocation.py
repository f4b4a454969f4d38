"""Steps that are drawn at random, against enumeration, quadrature and simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    BallsInBins,
    BlockBound,
    DiscretePair,
    Gaussian,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PostProcessed,
    Precision,
    PrivacyLoss,
    PureDP,
    RandomAllocation,
    SeparatedPoisson,
    loss_from_json,
)
from sfumato.privacy._outward import UNIT
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.sampling.allocation import AllocationPair, TwoSidedPair, _bins
from sfumato.privacy.pairs.sampling.likelihood_ratios import RatioDistribution, Side, joined, thinned
from tests.cases import cases
from tests.chance import accepts_only, mean_at_most

P = (Fraction(7, 10), Fraction(1, 5), Fraction(1, 10))
Q = (Fraction(1, 10), Fraction(3, 10), Fraction(3, 5))
LOPSIDED = (Fraction(1, 2), Fraction(1, 2), Fraction(0))
EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.5)
COARSE = Precision(relative=0.05)

Schedule = Iterable[tuple[frozenset[int], Fraction]]


def allocated(steps: int, selected: int) -> Schedule:
    """All sets of steps, alike."""
    sets = list(itertools.combinations(range(steps), selected))
    return [(frozenset(chosen), Fraction(1, len(sets))) for chosen in sets]


def thrown(bins: int, epochs: int) -> Schedule:
    """One bin for all epochs."""
    return [(frozenset(b + bins * e for e in range(epochs)), Fraction(1, bins)) for b in range(bins)]


def rested(p: Fraction, separation: int, steps: int) -> Schedule:
    """Poisson steps with a rest after each."""
    sets: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for step in range(steps):
        more: dict[tuple[int, ...], Fraction] = {}
        for chosen, weight in sets.items():
            may = not chosen or step - chosen[-1] >= separation
            for taken, share in ((False, 1 - p), (True, p)) if may else ((False, Fraction(1)),):
                key = (*chosen, step) if taken else chosen
                more[key] = more.get(key, Fraction(0)) + weight * share
        sets = more
    return [(frozenset(chosen), weight) for chosen, weight in sets.items()]


def enumerated(
    schedule: Schedule, steps: int, p: tuple[Fraction, ...], q: tuple[Fraction, ...]
) -> tuple[float, ...]:
    """Return the exact delta at each of `EPSILONS`, the greater of both orders."""
    chances = list(schedule)
    with_unit, without = [], []
    for outcome in itertools.product(range(len(p)), repeat=steps):
        distributions = [(p[o], q[o]) for o in outcome]
        with_unit.append(
            sum(
                w * math.prod(a if i in s else b for i, (a, b) in enumerate(distributions))
                for s, w in chances
            )
        )
        without.append(math.prod(b for _, b in distributions))
    found = []
    for epsilon in EPSILONS:
        factor = Fraction(math.exp(epsilon))
        pairs = list(zip(with_unit, without, strict=True))
        there = sum(max(Fraction(0), a - factor * b) for a, b in pairs)
        back = sum(max(Fraction(0), b - factor * a) for a, b in pairs)
        found.append(float(max(there, back)))
    return tuple(found)


CASES: dict[str, tuple[PrivacyLoss, Schedule, int]] = {
    **{f"1 of {t}": (RandomAllocation(DiscretePair(P, Q), t), allocated(t, 1), t) for t in (1, 2, 3, 6)},
    **{
        f"{k} of {t}": (RandomAllocation(DiscretePair(P, Q), t, k), allocated(t, k), t)
        for t, k in ((3, 3), (4, 2), (5, 2), (6, 3))
    },
    **{
        f"{n} bins, {e} epochs": (BallsInBins(DiscretePair(P, Q), n, e), thrown(n, e), n * e)
        for n, e in ((2, 2), (3, 2), (2, 3), (1, 3))
    },
    **{
        f"p={p}, b={b}, T={t}": (
            SeparatedPoisson(DiscretePair(P, Q), float(p), b, t),
            rested(p, b, t),
            t,
        )
        for p, b, t in (
            (Fraction(1, 4), 3, 3),
            (Fraction(1, 4), 9, 4),
            (Fraction(1, 4), 2, 5),
            (Fraction(1, 2), 3, 6),
            (Fraction(1, 2), 1, 4),
            (Fraction(1), 2, 5),
        )
    },
}


@cases("name", CASES)
def test_exact_laws_lie_inside(name: str) -> None:
    loss, schedule, steps = CASES[name]
    for epsilon, truth in zip(EPSILONS, enumerated(schedule, steps, P, Q), strict=True):
        lower, upper, tight = loss.delta_interval(epsilon)
        assert lower <= truth * (1 + 1e-12) <= upper * (1 + 1e-9) + 1e-300
        if tight:
            assert upper - lower <= 1e-8 * upper
        else:
            assert lower == 0
            assert upper < 1.15 * truth + 0.02


@pytest.mark.parametrize("order", [False, True])
def test_outcomes_that_only_one_law_has(order: bool) -> None:
    """What only the unit causes is told for certain; what it rules out, only in all steps at once."""
    p, q = (LOPSIDED, Q) if order else (Q, LOPSIDED)
    for steps in (2, 4):
        loss = RandomAllocation(DiscretePair(p, q), steps)
        truths = enumerated(allocated(steps, 1), steps, p, q)
        for epsilon, truth in zip(EPSILONS, truths, strict=True):
            lower, upper, _ = loss.delta_interval(epsilon, precision=COARSE)
            assert lower <= truth * (1 + 1e-12) <= upper * (1 + 1e-9)
            assert upper - lower <= 1e-8


def test_many_values_are_still_enclosed() -> None:
    """Where atoms must be put together, the exact law is that of a binomial number of yeses."""
    steps, e0 = 400, 1.0
    yes = math.exp(e0) / (1 + math.exp(e0))
    number = np.arange(steps + 1)
    log_choose = np.array(
        [math.lgamma(steps + 1) - math.lgamma(k + 1) - math.lgamma(steps - k + 1) for k in number]
    )
    q = np.exp(log_choose + number * math.log(1 - yes) + (steps - number) * math.log(yes))
    ratio = (number * math.exp(e0) + (steps - number) * math.exp(-e0)) / steps
    for epsilon in (0.05, 0.1, 0.2):
        s = math.exp(epsilon)
        truth = max(float(q @ np.maximum(0, ratio - s)), float(q @ np.maximum(0, 1 - s * ratio)))
        lower, upper, _ = RandomAllocation(PureDP(e0), steps).delta_interval(epsilon, precision=COARSE)
        assert lower <= truth * (1 + 1e-9) <= upper * (1 + 2e-9)
        assert upper - lower <= 0.03 * upper


def call(mu: float, k: np.ndarray) -> np.ndarray:
    """Mean of (R - k)_+ for the ratio R of N(mu, 1) to N(0, 1)."""
    level = np.log(np.maximum(k, 1e-300)) / mu
    return np.where(k > 0, ndtr(mu / 2 - level) - k * ndtr(-mu / 2 - level), 1 - k)


def normal_delta(mu: float, weights: tuple[float, ...], constant: float, epsilon: float) -> float:
    """Integrate over all steps but the last, whose mean is in closed form; the greater of both orders."""
    x, step = np.linspace(-12, 14, 4001 if len(weights) == 2 else 801, retstep=True)
    w = step * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    ratio = np.exp(mu * x - mu * mu / 2)
    total, mass = np.full(1, constant), np.ones(1)
    for weight in weights[:-1]:
        total, mass = np.add.outer(total, weight * ratio).ravel(), np.multiply.outer(mass, w).ravel()
    s, last = math.exp(epsilon), weights[-1]
    there = float(mass @ call(mu, (s - total) / last)) * last
    k = (1 / s - total) / last
    back = float(mass @ np.where(k > 0, call(mu, k) - 1 + k, 0.0)) * last * s
    return max(there, back)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("steps", [2, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_normal_steps_against_quadrature(sigma: float, steps: int) -> None:
    for epsilon in (0.05, 0.5, 2.0):
        truth = normal_delta(1 / sigma, (1 / steps,) * steps, 0.0, epsilon)
        lower, upper, tight = RandomAllocation(Gaussian(sigma), steps).delta_interval(
            epsilon, precision=COARSE
        )
        assert tight
        if truth > 1e-9:
            assert lower <= truth * (1 + 1e-7)
            assert truth <= upper * (1 + 1e-7)
            assert upper - lower < 0.05 * upper


def test_a_block_without_rest_against_quadrature() -> None:
    p, epsilon = 0.3, 0.4
    truth = normal_delta(1.0, (p, p * (1 - p), p * (1 - p) ** 2), (1 - p) ** 3, epsilon)
    lower, upper, tight = SeparatedPoisson(Gaussian(1.0), p, separation=7, steps=3).delta_interval(
        epsilon, precision=COARSE
    )
    assert tight
    assert lower <= truth * (1 + 1e-7) <= upper * (1 + 2e-7)
    assert upper - lower < 0.02 * upper


def test_the_published_case_is_narrower() -> None:
    """PLD_accounting 2.0 finds 0.60851 to 0.63565."""
    lower, upper, tight = RandomAllocation(Gaussian(1.0), steps=100).epsilon_interval(1e-5)
    assert tight
    assert 0.6208 < lower < upper < 0.6212
    assert upper - lower < 1e-3 * upper


@pytest.mark.parametrize("delta", [1e-10, pytest.param(1e-30, marks=pytest.mark.exhaustive)])
def test_small_deltas_and_many_steps(delta: float) -> None:
    before = math.inf
    for steps in (2, 100):
        lower, upper, _ = RandomAllocation(Gaussian(1.0), steps).epsilon_interval(
            delta, precision=Precision(relative=5e-3)
        )
        assert 0 < lower < upper < before
        assert upper - lower < 5e-3 * upper
        before = lower


@pytest.mark.parametrize("steps", [100, 1000])
def test_simulation_of_many_steps(steps: int) -> None:
    rng = np.random.default_rng(20261121)
    epsilon, mu, draws = 0.05, 1.0, 40
    values = []
    for _ in range(draws):
        noise = rng.standard_normal((2000, steps))
        # Under P one step, of all alike the first, has the unit.
        noise[:, 0] += mu
        average = np.exp(mu * noise - mu * mu / 2).mean(axis=1)
        values.append(np.maximum(0.0, 1 - math.exp(epsilon) / average))
    sample = np.concatenate(values)

    def check(interval: tuple[float, float]) -> None:
        lower, upper = interval
        mean_at_most(sample)(upper)
        mean_at_most(-sample)(-lower)

    lower, upper, _ = RandomAllocation(Gaussian(1 / mu), steps).delta_interval(epsilon, precision=COARSE)
    accepts_only(
        check,
        (lower, upper),
        tenth_more=(1.1 * lower, 1.1 * upper),
        tenth_less=(0.9 * lower, 0.9 * upper),
    )


def test_against_poisson_samples() -> None:
    """One step of t hides more than a chance of 1/t in each; one block, more than its steps alone."""
    base = Gaussian(1.0)
    for steps in (10, 100):
        poisson = (PoissonSubsampled(base, 1 / steps) * steps).epsilon_interval(1e-8)
        assert RandomAllocation(base, steps).epsilon_interval(1e-8).upper < poisson.lower
    p = SeparatedPoisson(base, 0.01, separation=1, steps=500)
    assert p.epsilon_interval(1e-6) == (PoissonSubsampled(base, 0.01) * 500).epsilon_interval(1e-6)
    alone = SeparatedPoisson(base, 0.01, separation=20, steps=20)
    assert alone.epsilon(1e-6) < (PoissonSubsampled(base, 0.01) * 20).epsilon(1e-6)
    # The bound by blocks counts at most one step in each.
    assert SeparatedPoisson(base, 0.01, separation=20, steps=400).epsilon(1e-6) < p.epsilon(1e-6)


def test_allocations_of_allocations() -> None:
    """One of five steps, each of them one of four, is one of twenty."""
    nested = RandomAllocation(RandomAllocation(Gaussian(1.0), 4), 5).epsilon_interval(1e-6)
    at_once = RandomAllocation(Gaussian(1.0), 20).epsilon_interval(1e-6)
    assert nested.tight
    assert max(nested.lower, at_once.lower) <= min(nested.upper, at_once.upper)
    assert nested.upper == pytest.approx(at_once.upper, rel=1e-3)


def test_the_greatest_loss_is_that_of_a_step() -> None:
    lower, upper, tight = RandomAllocation(Laplace(2.0), 20).epsilon_interval(0.0)
    assert tight
    assert 0.4995 <= lower <= upper <= 0.5 * (1 + 1e-12)


def test_epochs() -> None:
    """Gaussian epochs on one bin are one step with less noise; other mechanisms multiply their ratios."""
    one = BallsInBins(Gaussian(2.0), 20, epochs=4).epsilon_interval(1e-6)
    same = RandomAllocation(Gaussian(1.0), 20).epsilon_interval(1e-6)
    assert one.upper == pytest.approx(same.upper, rel=1e-9)
    lower, upper, tight = BallsInBins(Laplace(2.0), 20, epochs=4).epsilon_interval(1e-6)
    assert tight
    assert upper - lower < 2e-3 * upper
    assert upper > (RandomAllocation(Laplace(2.0), 20) * 4).epsilon_interval(1e-6).lower


@pytest.mark.parametrize(
    "make",
    [
        lambda base: RandomAllocation(base, 16),
        lambda base: BallsInBins(base, 8, epochs=2),
        lambda base: SeparatedPoisson(base, 0.05, 16, 16),
    ],
)
def test_views_bound_the_intervals(make: Callable[[PrivacyLoss], PrivacyLoss]) -> None:
    for base in (Laplace(1.0), PureDP(0.7), ApproximateDP(0.5, 1e-6), Gaussian(1.5)):
        loss = make(base)
        if not isinstance(base, Gaussian):
            epsilon, delta = loss.pure()
            assert loss.delta_interval(epsilon, precision=COARSE).lower <= delta * (1 + 1e-9) + 1e-300
            # All steps may show the greatest loss at once.
            assert isinstance(loss, SeparatedPoisson) == (epsilon < base.pure().epsilon)
        rdp = loss.rdp_curve(np.array([1.5, 2.0, 8.0]))
        worst = base if not isinstance(loss, BallsInBins) else base * 2
        if not isinstance(base, ApproximateDP):
            assert (rdp < worst.rdp_curve(np.array([1.5, 2.0, 8.0]))).all()


def test_second_moments() -> None:
    """The mean of A squared is 1 + V / t, and that of R in place of A is the base's."""
    for steps in (2, 50):
        for one in (NormalPair(1.0), Laplace(1.0).dominating_pair()):
            found = float(renyi(AllocationPair(one, steps, whole=True), np.array([2.0]))[0])
            truth = math.log1p(math.expm1(float(renyi(one, np.array([2.0]))[0])) / steps)
            assert found >= truth * (1 - 1e-9)
            if one.variance:
                assert found <= truth * 1.001


@pytest.mark.parametrize("order", [2, 5, 16, 30])
def test_high_moments_of_normal_steps(order: int) -> None:
    """Of two steps the moments are sums over the binomial theorem; the tail of the base counts in them."""
    logs = [
        math.log(math.comb(order, j)) + 0.5 * j * (j - 1) + 0.5 * (order - j) * (order - j - 1)
        for j in range(order + 1)
    ]
    truth = (float(np.logaddexp.reduce(logs)) - order * math.log(2)) / (order - 1)
    found = float(renyi(AllocationPair(NormalPair(1.0), 2, whole=True), np.array([float(order)]))[0])
    assert truth * (1 - 1e-12) <= found <= truth * 1.05
    assert RandomAllocation(Gaussian(1.0), 2).rdp(order) <= min(found, order / 2) * 1.001


@pytest.mark.parametrize("side", Side)
def test_thinning_moves_to_one_side(side: Side) -> None:
    rng = np.random.default_rng(7)
    value = np.sort(np.exp(rng.normal(size=2000)))
    distribution = RatioDistribution(value, np.full(2000, 1 / 2000), 0.0, 0.0, 1e-12, 0.0, 0.0, 0.0)
    one = thinned(distribution, side)
    for made, exact in (
        (one, value),
        (joined(one, one, (0.5, 0.5), 0.7, side), (0.5 * np.add.outer(value, value)).ravel()),
    ):
        assert len(made.value) < 1500
        for level in (0.2, 0.7, 1.0, 3.0):
            for sign in (1, -1):
                got = float(made.mass @ np.maximum(0, sign * (made.value - level)))
                truth = float(np.maximum(0, sign * (exact - level)).mean())
                if side is Side.LOWER:
                    assert got <= truth * (1 + 1e-9)
                elif side.value == sign:
                    assert got >= truth * (1 - 1e-9)
                assert got == pytest.approx(truth, rel=5e-3)


def test_several_steps_are_blocks() -> None:
    base = Gaussian(1.0)
    loss = RandomAllocation(base, steps=11, selected=3)
    assert loss * 1 == BlockBound(RandomAllocation(base, 4)) * 2 + BlockBound(RandomAllocation(base, 3))
    assert RandomAllocation(base, 5, selected=5) * 2 == base * 10
    assert loss.epsilon(1e-6) == (loss * 1).epsilon(1e-6)
    assert loss.gdp() == (base * 3).gdp()
    assert loss.rdp(2.0) < base.rdp(2.0) * 3
    rest = SeparatedPoisson(base, 0.1, 4, steps=10)
    whole, shorter = (BlockBound(SeparatedPoisson(base, 0.1, b, b)) for b in (4, 2))
    assert rest + ZCDP(0.1) == whole * 2 + shorter + ZCDP(0.1)
    assert SeparatedPoisson(base, 1.0, 4, steps=10) * 1 == base * 3
    assert SeparatedPoisson(base, 0.0, 4, steps=10).epsilon(0.0) == 0


def test_round_trip_and_composition() -> None:
    for loss, _, _ in CASES.values():
        assert loss_from_json(loss.to_json()) == loss
        run = loss * 2 + Laplace(3.0)
        assert loss_from_json(run.to_json()) == run
        assert run.epsilon(1e-3) >= loss.epsilon(1e-3)


def test_wrapped_pairs_bound_from_above() -> None:
    inner = RandomAllocation(Gaussian(1.0), 10)
    for loss in (PostProcessed(inner), PoissonSubsampled(inner, 0.5)):
        assert loss.epsilon_interval(1e-6).lower == 0
        assert loss.epsilon(1e-6) <= inner.epsilon(1e-6)
    assert inner.group(2).epsilon(1e-6) > inner.epsilon(1e-6)
    assert inner.under(Neighboring.REPLACE_ONE).epsilon(1e-6) > inner.epsilon(1e-6)


def test_refused() -> None:
    replaced = Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE)
    zeroed = Gaussian(1.0, neighboring=Neighboring.ZERO_OUT)
    for make in (
        lambda loss: RandomAllocation(loss, 4),
        lambda loss: BallsInBins(loss, 4),
        lambda loss: SeparatedPoisson(loss, 0.1, 2, 4),
    ):
        with pytest.raises(NeighboringMismatch, match="under add/remove or zero-out"):
            make(replaced)
        assert make(zeroed).neighboring is Neighboring.ZERO_OUT
        assert make(zeroed).epsilon(1e-6) == make(Gaussian(1.0)).epsilon(1e-6)
    with pytest.raises(ParameterError, match="selected must be at most steps"):
        RandomAllocation(Gaussian(1.0), 3, selected=4)
    with pytest.raises(ParameterError, match="steps"):
        RandomAllocation(Gaussian(1.0), 0)
    with pytest.raises(ParameterError, match="bins"):
        BallsInBins(Gaussian(1.0), 0)
    with pytest.raises(ParameterError, match="sampling_probability"):
        SeparatedPoisson(Gaussian(1.0), 1.5, 2, 4)
    with pytest.raises(ParameterError, match="one mechanism"):
        RandomAllocation(Gaussian(1.0) * 2, 4)
    with pytest.raises(ParameterError, match="one mechanism"):
        PoissonSubsampled(RandomAllocation(Gaussian(1.0), 6, selected=2), 0.1)
    blocks = RandomAllocation(Gaussian(1.0), 6, selected=2)
    for loss in (blocks, blocks * 1):
        with pytest.raises(UnsupportedView, match="group"):
            loss.group(2)
    with pytest.raises(UnsupportedView):
        RandomAllocation(ZCDP(0.1), 4).dominating_pair()
    assert RandomAllocation(ZCDP(0.1), 4).zcdp().rho == 0.1


@cases("steps", [1, 2, 7])
@cases("only", [Fraction(3, 8), Fraction(1)])
def test_the_mass_without_the_unit_is_enclosed_exactly(only: Fraction, steps: int) -> None:
    """What one step shows only without the unit, all steps show with the power of its chance."""
    half, rest = Fraction(1, 2), (1 - only) / 2
    base = DiscretePair((half, half, Fraction(0)), (rest, rest, only)).dominating_pair()
    pair = AllocationPair(base, steps)
    forth, back = (pair.bins(pair.cuts(12.0), swapped=order) for order in (False, True))
    assert isinstance(forth, TwoSidedPair)
    assert isinstance(back, TwoSidedPair)
    for lower, upper in ((forth.below.only_q, forth.above.only_q), (back.below.only_p, back.above.only_p)):
        assert 0 <= Fraction(float(lower)) <= only**steps <= Fraction(float(upper)) <= 1
        assert upper - lower <= 1e-12 * upper


@cases("zero", [0.3, 1.0])
@cases("error", [16 * UNIT, 1e-3, 2.0])
@cases("swapped", [False, True])
def test_the_error_of_a_mass_moves_the_mass_of_zero_outward(zero: float, error: float, swapped: bool) -> None:
    distribution = RatioDistribution(np.array([2.0]), np.array([0.25]), zero, 0.0, 0.0, 0.0, error, 0.0)
    lower, upper = (_bins(distribution, swapped=swapped, upper=side) for side in (False, True))
    least, most = (Fraction(float(bins.only_p if swapped else bins.only_q)) for bins in (lower, upper))
    exact, moved, room = Fraction(zero), Fraction(error), 16 * Fraction(UNIT)
    assert exact * max(Fraction(0), 1 - moved - room) <= least <= exact * max(Fraction(0), 1 - moved + room)
    assert min(Fraction(1), exact * (1 + moved - room)) <= most
    assert most <= min(Fraction(1), exact * (1 + moved + room))


def test_no_epsilon_is_proven_below_a_mass_that_is_told() -> None:
    """Beside a mass that tells all, laws that are equal prove nothing at a smaller delta."""
    told = ApproximateDP(0.0, 0.125)
    for loss, mass in (
        (RandomAllocation(told, 4), 1 / 8),
        (RandomAllocation(told, 4) + ZCDP(0.0), 1 / 8),
        (RandomAllocation(told, 4) * 2, 15 / 64),
        (BallsInBins(told, 4, epochs=2), 15 / 64),
    ):
        assert loss.quick_epsilon(0.99 * mass) == loss.epsilon(0.99 * mass) == math.inf
        assert loss.epsilon(1.1 * mass) == 0
    assert SeparatedPoisson(told, 0.5, separation=2, steps=2).epsilon(0.09) == math.inf
    half, rest, only = Fraction(1, 2), Fraction(5, 16), Fraction(3, 8)
    p, q = (half, half, Fraction(0)), (rest, rest, only)
    loss = RandomAllocation(DiscretePair(p, q), 4)
    for epsilon, truth in zip(EPSILONS, enumerated(allocated(4, 1), 4, p, q), strict=True):
        assert loss.epsilon(0.999 * truth) > epsilon


def test_sides_are_counted_once_and_only_where_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, sides = AllocationPair._counted, []

    def noted(pair: AllocationPair, cut: Any, *, swapped: bool, upper: bool) -> Bins:
        sides.append((swapped, upper))
        return counted(pair, cut, swapped=swapped, upper=upper)

    monkeypatch.setattr(AllocationPair, "_counted", noted)
    found = RandomAllocation(Gaussian(3.25), 9).epsilon_interval(1e-5)
    assert 0 < found.upper - found.lower <= 1e-3 * found.upper
    assert sorted(sides) == [(False, False), (False, True), (True, True)]
