"""Poisson samples of records of which a unit owns several: exact references, enumeration and laws."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import mpmath
import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.privacy import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianDP,
    GroupPrivacy,
    Laplace,
    Neighboring,
    PoissonRecords,
    PoissonSubsampled,
    PureDP,
    loss_from_json,
)
from sfumato.privacy.pairs.noise.normal_mixture import NormalMixturePair, log_binomial
from tests.cases import cases

mpmath.mp.dps = 40


def weights(records: int, q: float) -> list[mpmath.mpf]:
    p = mpmath.mpf(q)
    return [mpmath.binomial(records, j) * p**j * (1 - p) ** (records - j) for j in range(records + 1)]


def divergence(records: int, q: float, noise: float, epsilon: float, *, swapped: bool) -> mpmath.mpf:
    """Return the divergence of the mixture of normal laws: both tails end where the loss is epsilon."""
    mass, mu = weights(records, q), 1 / mpmath.mpf(noise)
    selected = [(j, w) for j, w in enumerate(mass) if w > mpmath.mpf(10) ** -60]
    s, wanted = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(-epsilon if swapped else epsilon)
    if swapped and -mpmath.log(mass[0]) <= epsilon:
        return mpmath.mpf(0)
    low, high = mpmath.mpf(-80), mpmath.mpf(120)
    for _ in range(130):
        x = (low + high) / 2
        ratio = mpmath.fsum(w * mpmath.exp(j * mu * x - (j * mu) ** 2 / 2) for j, w in selected)
        low, high = (x, high) if mpmath.log(ratio) < wanted else (low, x)
    sign = 1 if swapped else -1
    first = mpmath.fsum(w * mpmath.ncdf(sign * (x - j * mu)) for j, w in selected)
    second = mpmath.ncdf(sign * x)
    return second - s * first if swapped else first - s * second


@pytest.mark.parametrize(
    ("records", "q", "noise"),
    [(2, 0.1, 1.0), (3, 0.01, 1.0), (20, 0.05, 3.0), (10, 0.5, 1.0), (200, 0.01, 2.0), (64, 1e-4, 0.5)],
)
def test_one_run_meets_the_mixture(records: int, q: float, noise: float) -> None:
    loss = PoissonRecords(Gaussian(noise), q, records)
    for epsilon in (0.01, 0.3, 1.0, 4.0):
        exact = max(divergence(records, q, noise, epsilon, swapped=order) for order in (False, True))
        lower, upper, tight = loss.delta_interval(epsilon)
        assert lower <= exact <= upper <= exact * mpmath.mpf(1.005)
        assert lower >= exact * mpmath.mpf(0.995)
        assert tight


@pytest.mark.parametrize(("records", "q", "noise"), [(2, 1e-15, 0.1), (3, 1e-14, 0.2), (5, 1e-6, 2.0)])
def test_far_laws_of_tiny_weight_are_seen(records: int, q: float, noise: float) -> None:
    # Where ratios of single laws are beyond the digits of a float, and still next to nothing in the mean.
    for epsilon in (0.05, 0.3):
        exact = max(divergence(records, q, noise, epsilon, swapped=order) for order in (False, True))
        lower, upper, _ = PoissonRecords(Gaussian(noise), q, records).delta_interval(epsilon)
        assert exact * mpmath.mpf(0.99) <= lower <= exact <= upper <= exact * mpmath.mpf(1.01)


@pytest.mark.parametrize("swapped", [False, True])
def test_each_order_meets_the_mixture(swapped: bool) -> None:
    pair = NormalMixturePair(0.7, *log_binomial(5, 0.2))
    distribution = pair.bins(pair.finer(pair.cuts(12.0), 10.0), swapped=swapped)
    for epsilon in (0.05, 0.5):
        exact = divergence(5, 0.2, float(1 / mpmath.mpf(0.7)), epsilon, swapped=swapped)
        for atoms, above in ((distribution.split(), True), (distribution.merged(), False)):
            gain = np.maximum(0, -np.expm1(epsilon - atoms.loss))
            found = float((np.exp(atoms.log_mass) * gain).sum() + atoms.infinite)
            assert (found >= exact) == above
            assert found == pytest.approx(float(exact), rel=1e-3)


@pytest.mark.parametrize(("records", "q", "noise"), [(3, 0.01, 1.0), (8, 0.1, 2.0), (30, 0.5, 20.0)])
def test_divergences_of_whole_orders_are_exact_sums(records: int, q: float, noise: float) -> None:
    bounds = PoissonRecords(Gaussian(noise), q, records).rdp_curve(np.array([2.0, 3.0]))
    mass, square = weights(records, q), 1 / mpmath.mpf(noise) ** 2
    for order, bound in zip((2, 3), bounds, strict=True):
        moment = mpmath.fsum(
            mpmath.fprod(mass[j] for j in several)
            * mpmath.exp(square * sum(a * b for a, b in itertools.combinations(several, 2)))
            for several in itertools.product(range(records + 1), repeat=order)
        )
        exact = mpmath.log(moment) / (order - 1)
        assert exact <= float(bound) <= exact * (1 + 1e-4)


def test_tails_are_bounded_from_above() -> None:
    mu, mass = mpmath.mpf(0.7), weights(5, 0.2)
    pair, cuts = NormalMixturePair(0.7, *log_binomial(5, 0.2)), np.linspace(-1.0, 2.0, 200)

    def ratio(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.fsum(w * mpmath.exp(j * mu * x - (j * mu) ** 2 / 2) for j, w in enumerate(mass))

    bins = pair.bins(cuts, swapped=False)
    above = mpmath.fsum(w * mpmath.ncdf(j * mu - 2) for j, w in enumerate(mass))
    below = mpmath.fsum(w * mpmath.ncdf(-1 - j * mu) for j, w in enumerate(mass))
    for tail, exact in ((bins.high, (above, mpmath.ncdf(-2))), (bins.low, (below, mpmath.ncdf(-1)))):
        for found, wanted in zip((tail.log_p, tail.log_q), exact, strict=True):
            assert mpmath.log(wanted) <= found <= mpmath.log(wanted) + 1e-7
    for tilt in (0.5, 1.0, 6.0):
        ends = [2, 2 + tilt * 4, 2 + tilt * 4 + 40]
        with mpmath.workdps(15):
            exact = mpmath.quad(lambda x, c=tilt: mpmath.npdf(x) * ratio(x) ** (1 + c), ends)
        found = float(pair.log_tail(np.array([tilt]), cuts, swapped=False)[0])
        assert mpmath.log(exact) <= found <= mpmath.log(exact) + 3 * (1 + tilt)
        with mpmath.workdps(15):
            exact = mpmath.quad(lambda x, c=tilt: mpmath.npdf(x) * ratio(x) ** -c, [-41, -1])
        found = float(pair.log_tail(np.array([tilt]), cuts, swapped=True)[0])
        assert mpmath.log(exact) <= found <= mpmath.log(exact) + 3 * (1 + tilt)


def test_one_record_is_a_poisson_sample_and_all_records_are_a_group() -> None:
    single = PoissonSubsampled(Gaussian(1.0), 0.01)
    assert PoissonRecords(Gaussian(1.0), 0.01, 1).epsilon(1e-6) == single.epsilon(1e-6)
    pair = NormalMixturePair(1.0, *log_binomial(1, 0.01))
    alike = single.dominating_pair()
    for swapped in (False, True):
        ours, theirs = (p.bins(p.finer(p.cuts(12.0), 20.0), swapped=swapped).merged() for p in (pair, alike))
        for tilt in (0.5, 3.0):
            moments = [
                float(np.exp(tilt * distribution.loss + distribution.log_mass).sum())
                for distribution in (ours, theirs)
            ]
            assert moments[0] == pytest.approx(moments[1], rel=1e-5)
    whole = PoissonRecords(Gaussian(6.0), 1.0, 3).epsilon(1e-6)
    assert whole == pytest.approx(Gaussian(2.0).epsilon(1e-6), rel=1e-5)
    assert PoissonRecords(Gaussian(6.0), 0.0, 3).epsilon(0.0) == 0
    for noise in (0.0, 0.05):
        silent = PoissonRecords(Gaussian(noise), 0.1, 4).delta(1.0)
        assert silent == pytest.approx(1 - 0.9**4, rel=1e-3)


@cases("angle", [0.0, 0.9, math.pi / 2, 2.5, math.pi])
def test_records_that_move_in_any_directions_lie_below(angle: float) -> None:
    q, mu, step = 0.3, 1.2, 0.02
    axis = np.arange(-9, 11, step)
    x, y = np.meshgrid(axis, axis)
    moves = {(1, 0): (mu, 0.0), (0, 1): (mu * math.cos(angle), mu * math.sin(angle))}
    moves[1, 1] = (sum(v[0] for v in moves.values()), sum(v[1] for v in moves.values()))
    moves[0, 0] = (0.0, 0.0)
    gone = np.exp(-0.5 * (x * x + y * y)) / (2 * math.pi)
    there = np.zeros_like(gone)
    for drawn, (a, b) in moves.items():
        chance = math.prod(q if d else 1 - q for d in drawn)
        there += chance * np.exp(-0.5 * ((x - a) ** 2 + (y - b) ** 2)) / (2 * math.pi)
    loss = PoissonRecords(Gaussian(1 / mu), q, 2)
    for epsilon in (0.1, 0.4, 1.0):
        for one, other in ((there, gone), (gone, there)):
            true = np.maximum(0, one - math.exp(epsilon) * other).sum() * step**2
            assert true <= loss.delta(epsilon) * (1 + 1e-3)
    # Where both go one way, it is met.
    true = np.maximum(0, there - math.exp(0.4) * gone).sum() * step**2
    assert (true > 0.99 * loss.delta(0.4)) == (angle == 0)


def test_enumerated_sums_of_any_base_lie_below() -> None:
    q, scale, own = 0.4, 2, 3
    loss = PoissonRecords(DiscreteLaplace(scale), q, own)
    share = math.exp(-1 / scale)

    def distribution(records: list[int]) -> dict[int, float]:
        out: dict[int, float] = defaultdict(float)
        for drawn in itertools.product((0, 1), repeat=len(records)):
            chance = math.prod(q if d else 1 - q for d in drawn)
            total = sum(r for r, d in zip(records, drawn, strict=True) if d)
            for value in range(-80, 81):
                out[value] += chance * (1 - share) / (1 + share) * share ** abs(value - total)
        return out

    for unit in ([1, 1, 1], [1, 1, -1], [1, -1, 0]):
        there, gone = distribution([1, -1, *unit]), distribution([1, -1])
        for one, other in ((there, gone), (gone, there)):
            for epsilon in (0.0, 0.2, 0.6, 1.0):
                true = sum(max(0.0, one[v] - math.exp(epsilon) * other[v]) for v in one)
                assert true <= loss.delta(epsilon) + 1e-13
                assert epsilon < loss.pure().epsilon or true <= 1e-13


def test_pure_losses_are_those_of_a_group_of_samples() -> None:
    for base, q, records in ((PureDP(0.5), 0.1, 7), (Laplace(3.0), 0.9, 2)):
        loss = PoissonRecords(base, q, records)
        epsilon = mpmath.mpf(base.pure().epsilon)
        exact = records * mpmath.log(1 + mpmath.mpf(q) * mpmath.expm1(epsilon))
        assert exact <= loss.pure().epsilon <= exact * (1 + 1e-12)
        assert loss.epsilon(1e-12) <= loss.pure().epsilon * (1 + 1e-9)
        assert loss.pure() == pytest.approx(PoissonSubsampled(base, q).group(records).pure())
    # Whatever set of records is drawn, its group's mass is there.
    lossy, chances = PoissonRecords(ApproximateDP(0.5, 1e-6), 0.2, 4), weights(4, 0.2)
    masses = (sum(1e-6 * mpmath.exp(i / mpmath.mpf(2)) for i in range(j)) for j in range(5))
    mass = mpmath.fsum(w * m for w, m in zip(chances, masses, strict=True))
    assert mass <= lossy.pure().delta <= mass * (1 + 1e-12)


def test_it_lies_between_its_simpler_bounds() -> None:
    base, q = Gaussian(2.0), 0.02
    loss = PoissonRecords(base, q, 5) * 200
    chained = (PoissonSubsampled(base, q) * 200).group(5)
    lower, upper, tight = loss.epsilon_interval(1e-6)
    assert tight
    assert (PoissonSubsampled(base, q) * 200).epsilon(1e-6) < lower
    assert upper <= chained.epsilon(1e-6)
    # A unit that is drawn with all its records or none is seen more easily.
    assert upper < (PoissonSubsampled(base.group(5), q) * 200).epsilon(1e-6)
    epsilons = [(PoissonRecords(base, q, k) * 200).epsilon(1e-6) for k in (1, 2, 3, 10, 100)]
    assert all(less < more for less, more in itertools.pairwise(epsilons))
    rates = [(PoissonRecords(base, p, 4) * 200).epsilon(1e-6) for p in (1e-4, 1e-3, 0.1, 0.9, 1.0)]
    assert all(less < more for less, more in itertools.pairwise(rates))


def test_many_records_of_any_base_end_in_a_bound() -> None:
    for base in (Laplace(20.0), GaussianDP(0.1), DiscreteGaussian(10)):
        loss = PoissonRecords(base, 0.01, 80)
        lower, upper, tight = loss.epsilon_interval(1e-9)
        assert lower == 0
        assert not tight
        assert PoissonRecords(base, 0.01, 20).epsilon(1e-9) < upper < base.group(80).epsilon(1e-9)


def test_what_is_known_by_its_trade_off_only_is_not_below_its_worst_case() -> None:
    for mu, q, records in ((0.5, 0.05, 6), (2.0, 0.3, 3)):
        known, declared = (
            PoissonRecords(Gaussian(1 / mu), q, records),
            PoissonRecords(GaussianDP(mu), q, records),
        )
        for epsilon in (0.05, 0.3, 1.0):
            assert declared.delta(epsilon) >= known.delta_interval(epsilon).lower
        assert declared.rdp(2.0) >= known.rdp(2.0) * (1 - 1e-3)


def test_groups_own_more_records() -> None:
    loss = PoissonRecords(Gaussian(1.0), 0.1, 2)
    assert loss.group(3) == PoissonRecords(Gaussian(1.0), 0.1, 6)
    replaced = loss.under(Neighboring.REPLACE_ONE)
    assert isinstance(replaced, GroupPrivacy)
    assert replaced.epsilon(1e-6) > loss.epsilon(1e-6)


def test_text_and_refusals() -> None:
    loss = PoissonRecords(Laplace(1.0), 0.1, 3)
    assert loss_from_json(loss.to_json()) == loss
    with pytest.raises(NeighboringMismatch):
        PoissonRecords(Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE), 0.1, 2)
    with pytest.raises(ParameterError, match="records must be at most 100 for this loss"):
        PoissonRecords(Laplace(1.0), 0.1, 101)
    for records in (0, 1.5, True, 1001):
        with pytest.raises(ParameterError, match="records must be"):
            PoissonRecords(Gaussian(1.0), 0.1, records)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="sampling_probability must be from 0 to 1"):
        PoissonRecords(Gaussian(1.0), 1.1, 2)


def test_a_group_fails_with_a_probability_of_at_most_1() -> None:
    loss = PoissonRecords(ApproximateDP(1.0, 1e-3), 0.5, 50)
    assert loss.pure().delta == 1
    assert loss.quick_delta(100.0) == 1
