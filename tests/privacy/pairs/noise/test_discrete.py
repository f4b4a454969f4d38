"""The pairs of lattice noise against exact sums over the lattice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sfumato.privacy import DiscreteGaussian, DiscreteLaplace, PoissonSubsampled, Precision, PrivacyLoss
from sfumato.privacy.pairs.noise.wide_discrete_gaussian import log_tilted_tail, log_upper_tail
from tests.cases import cases

BITS = 500
Law = tuple[list[int], int]


@pytest.fixture(autouse=True)
def _digits() -> object:
    with mp.workdps(60):
        yield


@cache
def gaussian_masses(stddev: int) -> Law:
    """Masses of the centred law in fixed point, and the first integer."""
    with mp.workdps(180):
        far = 18 * stddev
        weights = [mpmath.exp(-(mpf(x) ** 2) / (2 * stddev**2)) for x in range(-far, far + 1)]
        norm = mpmath.fsum(weights)
        return [int(w / norm * 2**BITS) for w in weights], -far


@cache
def power(masses: tuple[int, ...], count: int) -> list[int]:
    total = np.array([1 << BITS], dtype=object)
    for _ in range(count):
        total = np.array([value >> BITS for value in np.convolve(total, np.array(masses, dtype=object))])
    return [int(value) for value in total]


def hockey_stick(losses: Sequence[mpf], masses: Sequence[int], epsilon: float) -> mpf:
    return mpmath.fsum(
        mpf(mass) / 2**BITS * -mpmath.expm1(mpf(epsilon) - loss)
        for loss, mass in zip(losses, masses, strict=True)
        if loss > epsilon
    )


def gaussian_delta(stddev: int, shift: int, count: int, epsilon: float) -> mpf:
    masses, first = gaussian_masses(stddev)
    total = power(tuple(masses), count)
    # The loss at x, of which x - shift has the centred law.
    losses = [
        mpf(shift * (2 * (x + count * first) + count * shift)) / (2 * stddev**2) for x in range(len(total))
    ]
    return hockey_stick(losses, total, epsilon)


def laplace_delta(scale: int, shift: int, count: int, epsilon: float) -> mpf:
    with mp.workdps(180):
        r = mpmath.exp(-mpf(1) / scale)
        inner = [(1 - r) / (1 + r) * r ** (shift - y) for y in range(1, shift)]
        masses = [r**shift / (1 + r), *inner, 1 / (1 + r)]
        total = power(tuple(int(mass * 2**BITS) for mass in masses), count)
    losses = [mpf(2 * y - count * shift) / scale for y in range(len(total))]
    return hockey_stick(losses, total, epsilon)


@pytest.mark.sharpest("DiscreteGaussian-1-2-10-41.0", "DiscreteLaplace-10-5-8-3.1")
@pytest.mark.parametrize(
    ("kind", "noise", "shift", "count", "epsilon"),
    [
        (DiscreteGaussian, 1, 1, 1, 0.2),
        (DiscreteGaussian, 1, 1, 1, 4.43),
        (DiscreteGaussian, 1, 1, 3, 2.5),
        (DiscreteGaussian, 1, 2, 10, 41.0),
        (DiscreteGaussian, 1, 1, 40, 52.0),
        (DiscreteGaussian, 3, 1, 12, 11.0),
        (DiscreteGaussian, 2, 5, 2, 0.0),
        (DiscreteGaussian, 20, 30, 2, 17.0),
        (DiscreteGaussian, 66, 1, 2, 0.1),
        (DiscreteGaussian, 66, 40, 2, 3.0),
        (DiscreteGaussian, 70, 7, 1, 0.55),
        (DiscreteLaplace, 1, 1, 20, 12.0),
        (DiscreteLaplace, 10, 5, 8, 3.1),
        (DiscreteLaplace, 10, 5, 8, 3.99),
        (DiscreteLaplace, 3, 7, 3, 0.0),
        (DiscreteLaplace, 2, 40, 4, 75.0),
        (DiscreteLaplace, 2, 2049, 2, 2000.0),
    ],
)
def test_lattice_noise_holds_the_exact_sum(
    kind: type[DiscreteGaussian | DiscreteLaplace], noise: int, shift: int, count: int, epsilon: float
) -> None:
    exact = gaussian_delta if kind is DiscreteGaussian else laplace_delta
    truth = exact(noise, shift, count, epsilon)
    lower, upper, tight = (kind(noise, shift) * count).delta_interval(epsilon)
    assert tight
    assert lower <= truth <= upper
    assert upper - lower <= 1e-3 * upper


def test_known_epsilons_lie_inside_and_those_of_peers_do_not() -> None:
    hundred = DiscreteGaussian(1) * 100
    lower, upper, _ = hundred.epsilon_interval(1e-10, Precision(1e-7))
    assert lower - 6e-6 <= 112.84263 <= upper + 6e-6
    assert lower > 112.84259 + 5e-6
    lower, upper, _ = (DiscreteLaplace(1) * 100).epsilon_interval(1e-10, Precision(1e-8))
    # Of sensitivity 1 it is randomized response; the exact binomial sum gives 93.457559.
    assert lower - 6e-7 <= 93.457559 <= upper + 6e-7


def test_every_bin_of_a_wide_gaussian_has_its_exact_mass_and_loss() -> None:
    stddev, shift = 66, 30
    masses, first = gaussian_masses(stddev)
    pair = DiscreteGaussian(stddev, shift).dominating_pair()
    cuts = pair.cuts(6.0)
    cuts = pair.snapped(np.linspace(cuts[0], cuts[-1], 150))
    bins = pair.bins(cuts, swapped=False)
    assert len(bins.points.loss) == len(cuts) - 1
    for k, (left, right) in enumerate(zip(cuts[:-1].astype(int), cuts[1:].astype(int), strict=True)):
        q = mpf(sum(masses[left - first : right - first])) / 2**BITS
        p = mpf(sum(masses[left - first - shift : right - first - shift])) / 2**BITS
        assert abs(bins.points.log_p[k] - mpmath.log(p)) <= bins.points.mass_error[k]
        assert abs(bins.points.loss[k] - mpmath.log(p / q)) <= bins.points.loss_error[k] < 1e-8
        least, most = (mpf(shift * (2 * int(x) - shift)) / (2 * stddev**2) for x in (left, right - 1))
        assert (
            bins.edges[k] - bins.edge_error[k] <= least <= most <= bins.edges[k + 1] + bins.edge_error[k + 1]
        )
    below = sum(masses[: int(cuts[0]) - first]), sum(masses[: int(cuts[0]) - first - shift])
    above = sum(masses[int(cuts[-1]) - first :]), sum(masses[int(cuts[-1]) - first - shift :])
    for mass, (q_mass, p_mass) in ((bins.low, below), (bins.high, above)):
        assert 0 <= mass.log_q - mpmath.log(mpf(q_mass) / 2**BITS) < 1e-9
        assert 0 <= mass.log_p - mpmath.log(mpf(p_mass) / 2**BITS) < 1e-9


def test_single_integers_lose_nothing_to_their_bin() -> None:
    pair = DiscreteGaussian(66, 30).dominating_pair()
    ends = pair.cuts(5.0)
    cuts = np.arange(ends[0], ends[-1] + 1)
    bins = pair.bins(cuts, swapped=False)
    assert np.abs(bins.points.loss - bins.edges[:-1]).max() < 1e-9
    upper, lower = bins.split(), bins.merged()
    assert np.exp(upper.log_mass).sum() <= np.exp(lower.log_mass).sum() + 1e-5
    assert np.exp(upper.log_mass[1:-1]) == pytest.approx(np.exp(lower.log_mass[1:]), rel=1e-5, abs=1e-9)


def test_every_bin_of_a_wide_laplace_has_its_exact_mass_and_loss() -> None:
    scale, shift = 500, 3000
    pair = DiscreteLaplace(scale, shift).dominating_pair()
    cuts = pair.snapped(np.linspace(1, shift, 37))
    bins = pair.bins(cuts, swapped=False)
    r = mpmath.exp(-mpf(1) / scale)
    unit = (1 - r) / (1 + r)
    for k, (left, right) in enumerate(zip(cuts[:-1].astype(int), cuts[1:].astype(int), strict=True)):
        p = unit * mpmath.fsum(r ** (shift - int(y)) for y in range(left, right))
        q = unit * mpmath.fsum(r ** int(y) for y in range(left, right))
        assert abs(bins.points.log_p[k] - mpmath.log(p)) <= bins.points.mass_error[k] < 1e-13
        assert abs(bins.points.loss[k] - mpmath.log(p / q)) <= bins.points.loss_error[k] < 1e-13
        least, most = (mpf(2 * int(y) - shift) / scale for y in (left, right - 1))
        assert (
            bins.edges[k] - bins.edge_error[k] <= least <= most <= bins.edges[k + 1] + bins.edge_error[k + 1]
        )
    assert np.exp(np.concatenate([bins.points.log_p, bins.atoms.log_p])).sum() == pytest.approx(
        1.0, abs=1e-12
    )


@pytest.mark.parametrize(
    ("stddev", "shift", "start"), [(1, 1, 4), (5, 3, 9), (66, 30, 200), (Fraction(1, 3), 1, 2)]
)
def test_tails_are_bounded_from_above(stddev: Fraction | int, shift: int, start: int) -> None:
    scale = mpf(Fraction(stddev).numerator) / Fraction(stddev).denominator
    far = math.ceil(40 * float(stddev)) + 40 * shift
    norm = mpmath.fsum(mpmath.exp(-(mpf(x) ** 2) / (2 * scale**2)) for x in range(-far, far))
    terms = [mpmath.exp(-(mpf(x) ** 2) / (2 * scale**2)) / norm for x in range(start, far)]
    assert 0 <= log_upper_tail(Fraction(stddev), start) - mpmath.log(mpmath.fsum(terms)) < 1e-9
    for c, bound in zip(
        (0.1, 1.0, 20.0),
        log_tilted_tail(Fraction(stddev), shift, start, np.array([0.1, 1.0, 20.0])),
        strict=True,
    ):
        truth = mpmath.fsum(
            mpmath.exp(
                -((x - shift) ** 2 / (2 * scale**2)) + c * mpf(shift * (2 * x - shift)) / (2 * scale**2)
            )
            for x in range(start, far)
        )
        assert 0 <= bound - mpmath.log(truth / norm) < 3


def test_one_subsampled_discrete_gaussian_holds_the_exact_sum() -> None:
    for stddev, shift, q, epsilon in ((2, 1, 0.1, 0.05), (66, 20, 0.2, 0.05), (66, 20, 0.01, 0.004)):
        masses, _ = gaussian_masses(stddev)
        distribution = [mpf(mass) / 2**BITS for mass in masses]
        absent, there = distribution[shift:] + [mpf(0)] * shift, distribution
        mixed = [(1 - mpf(q)) * a + mpf(q) * b for a, b in zip(absent, there, strict=True)]
        scale = mpmath.exp(mpf(epsilon))
        truth = max(
            mpmath.fsum(max(a - scale * b, mpf(0)) for a, b in zip(x, y, strict=True))
            for x, y in ((mixed, absent), (absent, mixed))
        )
        loss = PoissonSubsampled(DiscreteGaussian(stddev, shift), q)
        lower, upper, _ = loss.delta_interval(epsilon)
        assert lower <= truth * (1 + mpf(10) ** -40)
        assert truth * (1 - mpf(10) ** -40) <= upper
        assert upper - lower <= 1e-3 * upper


@cases(
    "loss",
    [
        DiscreteGaussian(Fraction(1, 1000), 1),
        DiscreteGaussian(1, 5000),
        DiscreteGaussian(10**20, 3),
        DiscreteGaussian(100, 10**5),
        DiscreteLaplace(1, 2**60),
        DiscreteLaplace(Fraction(10**300), 1),
        DiscreteLaplace(Fraction(1, 10**300), 1),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
def test_extremes_have_right_if_wide_intervals(loss: PrivacyLoss) -> None:
    quick = loss.quick_epsilon(1e-6)
    lower, upper, _ = loss.epsilon_interval(1e-6)
    assert 0 <= lower <= upper <= quick


def test_atoms_and_tails_of_a_narrow_gaussian_are_exact() -> None:
    stddev, shift = 3, 2
    masses, first = gaussian_masses(stddev)
    pair = DiscreteGaussian(stddev, shift).dominating_pair()
    cuts = pair.cuts(3.0)
    last = int(cuts[-1])
    bins = pair.bins(cuts, swapped=False)
    for k, x in enumerate(range(shift - last, last + 1)):
        p, q = (mpf(masses[y - first]) / 2**BITS for y in (x - shift, x))
        assert abs(bins.atoms.log_p[k] - mpmath.log(p)) <= bins.atoms.mass_error[k] < 1e-13
        assert abs(bins.atoms.loss[k] - mpmath.log(p / q)) <= bins.atoms.loss_error[k] < 1e-13
    near, far = (mpf(sum(masses[x - first :])) / 2**BITS for x in (last + 1 - shift, last + 1))
    for found, mass in ((bins.high, (near, far)), (bins.low, (far, near))):
        assert 0 <= found.log_p - mpmath.log(mass[0]) < 1e-9
        assert 0 <= found.log_q - mpmath.log(mass[1]) < 1e-9
    assert bins.edges[0] >= float(shift * (2 * (shift - last - 1) - shift)) / (2 * stddev**2) - 1e-12


def test_integer_cuts_can_be_refined() -> None:
    lower, upper, _ = (DiscreteGaussian(65, 20) * 1000).epsilon_interval(1e-10, Precision(1e-6))
    assert upper - lower <= 1e-6 * upper
