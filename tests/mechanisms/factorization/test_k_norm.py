"""K-norm noise: the exact distribution of what is drawn, its cost, bodies by facets and points."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaincc

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Grid, KNorm, KNormRelease, Laplace, facets_around
from sfumato.mechanisms.factorization.k_norm_noise import (
    _below_exp_of_root,
    ball_noise,
    cube_noise,
    eulerian,
    polytope_noise,
)
from sfumato.mechanisms.factorization.polytope import reach_of, whole_facets
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, Integers
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.randomness.uniform import UniformBits
from sfumato.privacy import Neighboring, PureDP
from tests.cases import cases
from tests.chance import FALSE_ALARM, accepts_only, at_least, moments

HEXAGON = [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]
SKEW = [[0.3, 0.1, 0.0], [0.0, 0.7, 0.2], [0.4, 0.0, 0.5], [0.1, 0.1, 0.1]]


class Fixed:
    """A source whose every word is the same."""

    simulated = True

    def __init__(self, word: int) -> None:
        self._word = word

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, self._word, dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        return self.words(-(-count // 8)).tobytes()[:count]


def chi_square(draws: Integers) -> Callable[[dict[tuple[int, ...], float]], None]:
    """Return a check of draws against a distribution cut to a box; rare points are put together."""
    counts = Counter(map(tuple, draws.tolist()))

    def check(distribution: dict[tuple[int, ...], float]) -> None:
        expected = np.array([distribution[point] * len(draws) for point in distribution])
        observed = np.array([counts[point] for point in distribution])
        often = expected >= 10
        rest = len(draws) - expected[often].sum()
        statistic = float(((observed - expected)[often] ** 2 / expected[often]).sum())
        statistic += (len(draws) - observed[often].sum() - rest) ** 2 / max(rest, 1e-9)
        assert float(gammaincc(often.sum() / 2, statistic / 2)) > FALSE_ALARM

    return check


def exact_norm(facets: list[list[Fraction]], point: Iterable[float]) -> Fraction:
    entries = [Fraction(z) for z in point]
    return max(
        abs(sum((a * z for a, z in zip(facet, entries, strict=True)), Fraction(0))) for facet in facets
    )


@cases("dimension", [1, 2, 3, 7, 40])
@cases("scale", [0.3, 2.0])
def test_the_series_behind_the_radius(dimension: int, scale: float) -> None:
    """sum (2r+1)^d q^r = sum B_j q^j / (1-q)^(d+1), summed in fractions."""
    q = Fraction(math.exp(-1 / scale)).limit_denominator(1000)
    right = sum(b * q**j for j, b in enumerate(eulerian(dimension))) / (1 - q) ** (dimension + 1)
    left = sum((2 * r + 1) ** dimension * q**r for r in range(900))
    assert float(left / right) == pytest.approx(1, rel=1e-12)
    assert sum(eulerian(dimension)) == 2**dimension * math.factorial(dimension)


@pytest.mark.parametrize(("dimension", "reach"), [(1, 40), (2, 18), (3, 9)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2)])
def test_cube_noise_follows_its_distribution(dimension: int, reach: int, scale: Fraction) -> None:
    source = SimulatedSource(20261121)
    draws = np.array(
        [cube_noise(dimension, scale, source) for _ in range(8_000 if dimension == 3 else 4_000)]
    )
    box = list(itertools.product(range(-reach, reach + 1), repeat=dimension))

    def distribution(scale: float) -> dict[tuple[int, ...], float]:
        layers = math.fsum((2 * r + 1) ** dimension * math.exp(-r / scale) for r in range(200))
        total = layers * -math.expm1(-1 / scale)
        return {point: math.exp(-max(map(abs, point)) / scale) / total for point in box}

    right = float(scale)
    accepts_only(
        chi_square(draws),
        distribution(right),
        wider=distribution(1.25 * right),
        narrower=distribution(0.8 * right),
    )


@pytest.mark.parametrize(
    "facets", [HEXAGON, [[0.5, 0.5], [0.5, -0.5]], [[0.25, 0.75], [1.0, -0.5], [0.5, 0.5]]]
)
def test_polytope_noise_follows_its_distribution(facets: list[list[float]]) -> None:
    rows, divisor, off = whole_facets(facets)
    assert off == 0
    scale, reach = Fraction(3, 2), reach_of(rows, divisor)
    source = SimulatedSource(5)
    draws = np.array([polytope_noise(rows, divisor, reach, scale, source) for _ in range(2_000)])
    side = range(-60, 61)
    norms = {p: max(abs(a * p[0] + b * p[1]) for a, b in facets) for p in itertools.product(side, repeat=2)}

    def distribution(scale: float) -> dict[tuple[int, ...], float]:
        total = math.fsum(math.exp(-norm / scale) for norm in norms.values())
        return {p: math.exp(-norm / scale) / total for p, norm in norms.items() if max(map(abs, p)) <= 15}

    right = float(scale)
    accepts_only(
        chi_square(draws),
        distribution(right),
        wider=distribution(1.25 * right),
        narrower=distribution(0.8 * right),
    )


@pytest.mark.parametrize(("dimension", "reach"), [(1, 40), (2, 16), (3, 8)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2)])
def test_ball_noise_follows_its_distribution(dimension: int, reach: int, scale: Fraction) -> None:
    source = SimulatedSource(20261121)
    draws = np.array(
        [ball_noise(dimension, scale, source) for _ in range(5_000 if dimension == 3 else 2_500)]
    )
    far = {1: 80, 2: 60, 3: 28}[dimension]
    axes = np.meshgrid(*[np.arange(-far, far + 1)] * dimension)
    lengths = np.sqrt(sum(axis.astype(float) ** 2 for axis in axes))
    box = list(itertools.product(range(-reach, reach + 1), repeat=dimension))

    def distribution(scale: float) -> dict[tuple[int, ...], float]:
        total = float(np.exp(-lengths / scale).sum())
        return {point: math.exp(-math.hypot(*point) / scale) / total for point in box}

    right = float(scale)
    accepts_only(
        chi_square(draws),
        distribution(right),
        wider=distribution(1.25 * right),
        narrower=distribution(0.8 * right),
    )


def test_open_coins_are_decided_with_more_bits() -> None:
    """A uniform that starts just where the chance lies is not decided by its first word."""
    chance = math.exp(-(math.sqrt(2) - 1) / 3)
    with mpmath.workdps(60):
        exact = mpmath.exp(-(mpmath.sqrt(2) - 1) / 3)
        first = int(mpmath.floor(exact * 2**64))
        rest = exact * 2**64 - first
    assert first / 2**64 == pytest.approx(chance)
    for word, expected in ((0, True), (2**64 - 1, False)):
        uniform = UniformBits(first, 64, Fixed(word))
        assert _below_exp_of_root(uniform, 2, 1, Fraction(1, 3)) is expected
        assert uniform.width > 64
    assert 0 < rest < 1


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_exact_ratio_of_the_ball(epsilon: float) -> None:
    mechanism = KNorm.calibrated(dimension=2, sensitivity=2.5, epsilon=epsilon, euclidean=True, integral=True)
    assert float(mechanism.shift) == pytest.approx(math.sqrt(6))
    assert epsilon * (1 - 1e-8) < mechanism.privacy_loss.epsilon() <= epsilon
    side, greatest = list(itertools.product(range(-7, 8), repeat=2)), 0.0
    for move in side:
        if 0 < math.hypot(*move) <= 2.5:
            ratios = (math.hypot(a - move[0], b - move[1]) - math.hypot(a, b) for a, b in side)
            greatest = max(greatest, max(ratios) / float(mechanism.scale))
    assert 0.9 * epsilon < greatest <= epsilon
    real = KNorm(dimension=2, sensitivity=3.0, scale=2, euclidean=True, grid=Grid(exponent=0))
    assert float(real.shift) ** 2 == pytest.approx(19)  # the floor of (3 + sqrt(2))^2
    assert real.norm((3, 4)) == 5
    assert not isinstance(real.release(np.zeros(2), rng=1), KNormRelease)


@pytest.mark.parametrize("facets", [None, HEXAGON])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_exact_ratio_is_the_claim(facets: list[list[float]] | None, epsilon: float) -> None:
    """Over all moves of norm at most 2 and all outputs nearby, the greatest log-ratio is epsilon."""
    mechanism = KNorm.calibrated(dimension=2, sensitivity=2, epsilon=epsilon, facets=facets)
    assert mechanism.privacy_loss == PureDP(epsilon)
    scale = Fraction(mechanism.scale)
    side = list(itertools.product(range(-6, 7), repeat=2))
    greatest = Fraction(0)
    for move in side:
        if 0 < mechanism.norm(move) <= 2:
            for out in side:
                shifted = (out[0] - move[0], out[1] - move[1])
                greatest = max(greatest, (mechanism.norm(shifted) - mechanism.norm(out)) / scale)
    assert float(greatest) == pytest.approx(epsilon, rel=1e-9)
    assert greatest <= Fraction(epsilon)


@pytest.mark.parametrize("facets", [HEXAGON, SKEW, [[2.0]], [[1 / 3, 1 / 7], [1 / 11, -1 / 3]]])
def test_rounded_facets_and_the_reach_are_made_up_for(facets: list[list[float]]) -> None:
    """Moves of norm at most 5 by the facets as given, exactly, stay within the claimed shift."""
    dimension = len(facets[0])
    mechanism = KNorm(dimension=dimension, sensitivity=5, scale=3, facets=facets)
    rows, divisor, _ = whole_facets(facets)
    reach = reach_of(rows, divisor)
    exact = [[Fraction(a) for a in facet] for facet in facets]
    tight = Fraction(0)
    for move in itertools.product(range(-40, 41), repeat=min(dimension, 2)):
        point = (*move, *[move[0]] * (dimension - 2)) if dimension > 2 else move
        given = exact_norm(exact, point)
        assert max(map(abs, point)) <= reach * mechanism.norm(point)
        if given <= 5:
            assert mechanism.norm(point) <= mechanism.shift
            tight = max(tight, mechanism.norm(point) / mechanism.shift)
    assert tight > 0.7
    assert mechanism.shift <= Fraction(5) * Fraction(1_000_100, 1_000_000)


def test_rounding_of_values_is_in_the_shift() -> None:
    cube = KNorm(dimension=3, sensitivity=0.7, scale=2.0, grid=Grid(exponent=0))
    assert cube.shift == 1
    hexagon = KNorm(dimension=2, sensitivity=0.7, scale=2.0, facets=HEXAGON, grid=Grid(exponent=0))
    generator = np.random.default_rng(1)
    for _ in range(3000):
        move = generator.uniform(-0.7, 0.7, 2)
        if max(abs(move[0]), abs(move[1]), abs(move[0] - move[1])) <= 0.7:
            start = generator.uniform(-5, 5, 2)
            moved = np.rint(start + move) - np.rint(start)
            assert hexagon.norm(moved) <= hexagon.shift


def test_the_body_around_points_holds_them() -> None:
    """The sensitivity polytope of three queries on six cells: all columns inside, some on the border."""
    columns = np.random.default_rng(3).normal(size=(6, 3))
    facets = facets_around(columns)
    exact = [[Fraction(a) for a in facet] for facet in facets.tolist()]
    norms = [exact_norm(exact, column) for column in columns.tolist()]
    assert max(norms) <= 1
    assert max(norms) > 1 - Fraction(1, 10**9)
    assert facets_around([[2.0], [-4.0]]).tolist()[0][0] == pytest.approx(0.25)
    mechanism = KNorm.calibrated(dimension=3, sensitivity=1.0, epsilon=1.0, facets=facets)
    assert mechanism.privacy_loss.epsilon(0.0) <= 1.0
    assert mechanism.release(np.zeros(3), rng=1).value.shape == (3,)


@pytest.mark.parametrize(("dimension", "scale"), [(1, 0.4), (2, 1.3), (6, 20.0), (60, 3.0)])
def test_stated_errors(dimension: int, scale: float) -> None:
    """2,500 releases; intervals at least as wide as promised."""
    mechanism = KNorm(dimension=dimension, sensitivity=1, scale=scale)
    source = SimulatedSource(11)
    releases = [mechanism.release(np.full(dimension, 100), source) for _ in range(2500)]
    noise: Array = np.array([release.value for release in releases]) - 100.0
    first = noise[:, 0]
    fourth = np.mean(first**4) / mechanism.stddev**4
    variance = mechanism.stddev**2
    accepts_only(
        moments(first, kurtosis=float(fourth)),
        (0, variance),
        wider=(0, 2 * variance),
        narrower=(0, variance / 2),
    )
    release = releases[0]
    assert isinstance(release, KNormRelease)
    for level in (0.5, 0.95):
        lower, upper, _ = release.interval(level)
        held = int((np.abs(first) <= (upper - lower)[0] / 2).sum())
        accepts_only(at_least(held, 2500), level, always=1.0)
        if scale == 20:
            assert held < 2500 * (level + 0.1)
        lower, upper, _ = release.interval(level, joint=True)
        held = int((np.abs(noise).max(axis=1) <= (upper - lower)[0] / 2).sum())
        accepts_only(at_least(held, 2500), level, always=1.0)


@cases("joint", [False, True])
@cases("level", [0.3, 0.95, 0.999])
@cases(("dimension", "scale"), [(1, 0.4), (2, 1.3), (3, 2.0)])
def test_intervals_are_the_narrowest_of_whole_steps(
    dimension: int, scale: float, level: float, joint: bool
) -> None:
    """By enumeration of the distribution on the points of a large cube."""
    release = KNorm(dimension=dimension, sensitivity=1, scale=scale).release(np.full(dimension, 7), rng=3)
    assert isinstance(release, KNormRelease)
    lower, upper, _ = release.interval(level, joint=joint)
    half = (upper - lower)[0] / 2
    assert half == int(half)
    assert ((lower + upper) / 2 == release.value).all()
    axis = np.arange(-45, 46)
    points = np.abs(np.stack(np.meshgrid(*[axis] * dimension), axis=-1).reshape(-1, dimension))
    weights = np.exp(-points.max(axis=1) / scale)
    reach = points.max(axis=1) if joint else points[:, 0]
    coverage = [weights[reach <= t].sum() / weights.sum() for t in (half - 1, half)]
    assert coverage[0] < level <= coverage[1]


def test_its_largest_error_is_below_that_of_laplace_noise() -> None:
    source = SimulatedSource(2)
    dimension = 200
    cube = KNorm.calibrated(dimension=dimension, sensitivity=1, epsilon=1.0)
    laplace = Laplace.calibrated(sensitivity=1, l0=dimension, epsilon=1.0)
    zeros = np.zeros(dimension, dtype=np.int64)
    mine = np.mean([np.abs(cube.release(zeros, source).value).max() for _ in range(50)])
    plain = np.mean([np.abs(laplace.release(zeros, source).value).max() for _ in range(50)])
    assert mine < plain / 4


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_edge_values_are_answered(value: float) -> None:
    mechanism = KNorm.calibrated(dimension=2, sensitivity=0.5, epsilon=1.0, neighboring=Neighboring.ZERO_OUT)
    release = mechanism.release(np.array([value, 0.0]), rng=1)
    assert release.loss == mechanism.privacy_loss
    assert release.neighboring is mechanism.neighboring is Neighboring.ZERO_OUT
    assert np.isfinite(release.value).all()
    assert release.simulated
    assert not mechanism.release(np.array([value, 0.0])).simulated


@cases(
    ("make", "message"),
    [
        (lambda: KNorm(dimension=0, sensitivity=1, scale=1), "dimension must be an integer of at least 1"),
        (lambda: KNorm(dimension=2000, sensitivity=1, scale=1), "dimension must be at most 1024"),
        (lambda: KNorm(dimension=2, sensitivity=-1, scale=1), "sensitivity must be positive"),
        (lambda: KNorm(dimension=2, sensitivity=1, scale=0), "scale must be positive"),
        (lambda: KNorm(dimension=2, sensitivity=1, scale=2.0**41), r"scale must be from 2\*\*-40 to 2\*\*40"),
        (
            lambda: KNorm(dimension=2, sensitivity=1, scale=1, facets=[[1.0, 0.0]]),
            "facets must bound the body",
        ),
        (
            lambda: KNorm(dimension=3, sensitivity=1, scale=1, facets=HEXAGON),
            r"facets must have a shape of \(facets, 3\)",
        ),
        (
            lambda: KNorm(dimension=2, sensitivity=1, scale=1, facets=[[math.inf, 0.0]]),
            "facets must be a finite",
        ),
        (
            lambda: KNorm(dimension=2, sensitivity=1, scale=1, facets=[[1.0, 0.0], [1.0, 2.8e-6]]),
            "facets must survive rounding",
        ),
        (
            lambda: KNorm(dimension=9, sensitivity=1, scale=1, euclidean=True),
            "euclidean must have no facets, and at most 8 dimensions",
        ),
        (lambda: facets_around(np.ones((3, 2))), "points must span all entries"),
        (
            lambda: KNorm(dimension=2, sensitivity=1, scale=1).release(np.zeros(3, dtype=int)),
            "value must have",
        ),
        (lambda: KNorm(dimension=2, sensitivity=1, scale=1).release(np.zeros(2)), "value must be an int or"),
        (lambda: KNorm(dimension=2, sensitivity=1, scale=1, neighboring="x"), "neighboring must be"),  # type: ignore[arg-type]
        (
            lambda: KNorm(dimension=2, sensitivity=1, scale=1, facets=HEXAGON).stddev,
            "facets must be left out",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]


def test_an_infinite_sensitivity() -> None:
    with pytest.raises(UnboundedSensitivity):
        KNorm(dimension=2, sensitivity=math.inf, scale=1)
