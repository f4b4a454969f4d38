"""Continual sums: exact measurements, the loss of what is drawn, streams, errors and intervals that hold."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import (
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    ContinualSum,
    Grid,
    LowerTriangular,
    Participation,
    SquareRoot,
    Strategy,
)
from sfumato.mechanisms.factorization.strategies.integer_strategy import IntegerStrategy
from sfumato.mechanisms.factorization.strategies.integer_toeplitz import IntegerToeplitz
from sfumato.privacy import DiscreteGaussianVector, Neighboring, analytic_gaussian_stddev
from tests.cases import cases
from tests.chance import accepts_only, moments, rate

STRATEGIES: list[Strategy] = [
    BinaryTree(steps=11),
    SquareRoot(steps=11),
    BandedToeplitz(steps=11, bands=[1.0]),
    BandedToeplitz(steps=11, bands=[1.0, 0.7, 0.4]),
    BufferedToeplitz(steps=11, decays=(0.9, 0.3), weights=(0.4, 0.3)),
    LowerTriangular.optimal(steps=11),
]
PARTICIPATIONS = [
    Participation(),
    Participation(max_participations=2),
    Participation(max_participations=3, separation=3),
    Participation(max_participations=None, separation=4),
]


def whole_matrix(code: IntegerStrategy, steps: int) -> np.ndarray:
    return code.measure(np.eye(steps, dtype=np.int64))


@cases("strategy", STRATEGIES, ids=repr)
@cases("participation", PARTICIPATIONS, ids=repr)
def test_sensitivity_covers_every_pattern_of_whole_moves(
    strategy: Strategy, participation: Participation
) -> None:
    """All patterns, all moves of -2 to 2 in each of their steps: the claimed square is never exceeded."""
    mechanism = ContinualSum(strategy=strategy, sensitivity=2, stddev=5, participation=participation, bits=6)
    matrix = whole_matrix(strategy.in_integers(6), 11).astype(object)
    greatest = 0
    for count in range(1, participation.max_steps(11) + 1):
        for pattern in itertools.combinations(range(11), count):
            if (np.diff(pattern) < participation.separation).any():
                continue
            for moves in itertools.product((-2, 1, 2), repeat=count):
                moved = matrix[:, list(pattern)] @ np.array(moves, dtype=object)
                greatest = max(greatest, int((moved**2).sum()))
    assert greatest <= mechanism.l2_squared
    if not isinstance(strategy, BinaryTree | LowerTriangular) or participation.max_participations == 1:
        assert greatest == mechanism.l2_squared
    loss = mechanism.privacy_loss
    assert loss == DiscreteGaussianVector(5 * 64, mechanism.l2_squared)


@cases("strategy", STRATEGIES, ids=repr)
def test_replacement_may_move_a_unit_to_other_steps(strategy: Strategy) -> None:
    """A unit's values at up to two steps in one dataset, and others at up to two other steps in the next."""
    mechanism = ContinualSum(
        strategy=strategy,
        sensitivity=1,
        stddev=5,
        participation=Participation(max_participations=2),
        neighboring=Neighboring.REPLACE_ONE,
        bits=6,
    )
    matrix = whole_matrix(strategy.in_integers(6), 11)
    units = [steps for count in (1, 2) for steps in itertools.combinations(range(11), count)]
    moved = np.zeros((2 * len(units), 11), dtype=np.int64)
    for row, steps in enumerate(units):
        moved[row, list(steps)] = 1
        moved[len(units) + row, list(steps)] = -1
    images = moved @ matrix.T
    squares = np.square(images[:, None, :] - images[None, :, :]).sum(axis=2)
    assert mechanism.l2_squared / 4 < squares.max() <= mechanism.l2_squared


@cases("participation", [Participation(), Participation(max_participations=2)])
@cases("epsilon", [0.3, 1.0, 2.0])
def test_the_loss_covers_the_exact_distribution_of_what_is_measured(
    participation: Participation, epsilon: float
) -> None:
    """Two steps, entries 1 and 1, noise of one step and a half; values of either sign for every pattern."""
    strategy = BandedToeplitz(steps=2, bands=[1.0, 1.0])
    stddev = Fraction(3, 2)
    mechanism = ContinualSum(
        strategy=strategy, sensitivity=1, stddev=stddev, participation=participation, bits=0
    )
    reach = range(-14, 15)
    mass = {k: math.exp(-k * k / (2 * stddev * stddev)) for k in range(-20, 21)}
    total = math.fsum(mass.values())
    moves = [
        u
        for u in itertools.product((-1, 0, 1), repeat=2)
        if 0 < abs(u[0]) + abs(u[1]) <= participation.max_steps(2)
    ]
    greatest = 0.0
    for move in moves:
        a, b = (strategy.in_integers(0).measure(np.array(move))).tolist()
        truth = math.fsum(
            max(0.0, mass[i] * mass[j] - math.exp(epsilon) * mass[i - a] * mass[j - b]) / total**2
            for i, j in itertools.product(reach, repeat=2)
        )
        greatest = max(greatest, truth)
    assert 0 < greatest <= mechanism.privacy_loss.delta(epsilon)


@cases("strategy", [*STRATEGIES, SquareRoot(steps=700), BinaryTree(steps=700)], ids=repr)
def test_streamed_measurements_equal_the_dense_product_to_the_bit(strategy: Strategy) -> None:
    steps = strategy.steps
    code = strategy.in_integers(12)
    values = np.random.default_rng(1).integers(-(10**9), 10**9, (steps, 2))
    whole = np.rint(strategy.matrix() * 2**12).astype(np.int64).astype(object)
    dense = whole @ values.astype(object)
    stream = code.stream()
    streamed = np.concatenate([stream.measure(value) for value in values])
    assert (streamed == dense).all()
    at_once = code.measure(values)
    assert sorted(at_once.tolist()) == sorted(streamed.tolist())
    if not isinstance(strategy, BinaryTree):
        assert (at_once == streamed).all()


@cases("strategy", STRATEGIES, ids=repr)
@cases("steps", [1, 2, 6, 11])
def test_estimates_are_exact_without_noise(strategy: Strategy, steps: int) -> None:
    values = np.random.default_rng(2).integers(-1000, 1000, (steps, 3))
    code = strategy.in_integers(20)
    np.testing.assert_allclose(
        code.estimate(code.measure(values), steps), np.cumsum(values, axis=0), atol=1e-8
    )
    stream = code.stream()
    for value, total in zip(values, np.cumsum(values, axis=0), strict=True):
        np.testing.assert_allclose(stream.estimate(stream.measure(value)), total, atol=1e-8)


@pytest.mark.parametrize(
    "strategy",
    [BinaryTree(steps=20_000), SquareRoot(steps=20_000), BandedToeplitz.optimal(steps=20_000, bands=20)],
    ids=lambda strategy: type(strategy).__name__,
)
def test_floats_lose_less_than_is_allowed(strategy: Strategy) -> None:
    code = strategy.in_integers(16)
    generator = np.random.default_rng(3)
    for values in (np.full(20_000, 10**6), generator.integers(-(10**6), 10**6, 20_000)):
        measured = code.measure(values)
        lost = np.abs(code.estimate(measured, 20_000) - np.cumsum(values)).max()
        assert lost <= code.floats * float(np.abs(measured).max()) * 2.0**-16
        assert code.floats < 1e-7


@cases("strategy", STRATEGIES, ids=repr)
def test_stated_errors_are_those_of_the_weights(strategy: Strategy) -> None:
    """Variances, magnitudes and numbers of draws, from the estimates of each measurement alone."""
    code = strategy.in_integers(16)
    entries = len(code.measure(np.zeros(11, dtype=np.int64)))
    weights = np.array([code.estimate(row << 16, 11) for row in np.eye(entries, dtype=np.int64)]).T
    np.testing.assert_allclose(code.variances, np.square(weights).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(code.magnitudes, np.abs(weights).sum(axis=1), rtol=1e-9)
    assert (code.draws >= (np.abs(weights) > 1e-12).sum(axis=1)).all()
    np.testing.assert_allclose(code.variances, strategy.variances(), rtol=1e-3)


@pytest.mark.parametrize("strategy", [BinaryTree(steps=64), SquareRoot(steps=64)], ids=repr)
def test_noise_has_the_stated_covariance_and_coverage(strategy: Strategy) -> None:
    """20,000 runs as columns; each entry within 7 standard errors."""
    runs = 20_000
    mechanism = ContinualSum(strategy=strategy, sensitivity=1, stddev=3)
    release = mechanism.release(np.full((64, runs), 10), rng=20261121)
    noise = release.value - 10 * np.arange(1, 65)[:, None]
    variance = mechanism.stddevs**2
    accepts_only(
        moments(noise.T),
        (0, variance),
        wider=(0, 1.1 * variance),
        narrower=(0, variance / 1.1),
        one_step_late=(0, np.roll(variance, 1)),
    )
    code = strategy.in_integers(mechanism.bits)
    entries = len(code.measure(np.zeros(64, dtype=np.int64)))
    weights = code.estimate(np.eye(entries, dtype=np.int64) << mechanism.bits, 64)
    truth = 9 * weights @ weights.T

    def covariance(truth: np.ndarray) -> None:
        error = np.sqrt((np.outer(variance, variance) + truth**2) / runs)
        assert (np.abs(noise @ noise.T / runs - truth) < 7 * error).all()

    accepts_only(covariance, truth, independent=np.diag(variance), backwards=truth[::-1, ::-1])
    for level in (0.5, 0.95):
        lower, upper, _ = release.interval(level)
        exact = 10 * np.arange(1, 65)[:, None]
        for held in ((lower <= exact) & (exact <= upper)).sum(axis=1).tolist():
            accepts_only(rate(held, runs), level, more_often=level + 0.04, rarer=level - 0.04)


def test_intervals_hold_on_a_coarse_lattice() -> None:
    """Noise of two steps, far from normal: exact coverage by enumeration."""
    mechanism = ContinualSum(strategy=BandedToeplitz(steps=2, bands=[1.0]), sensitivity=1, stddev=2, bits=0)
    reach = range(-16, 17)
    mass = np.exp(-(np.array(reach) ** 2) / 8)
    mass /= mass.sum()
    lower, upper, _ = mechanism.release(np.zeros(2, dtype=np.int64), rng=1).interval(0.9)
    half = (upper - lower) / 2
    assert mass[np.abs(np.array(reach)) <= half[0]].sum() >= 0.9
    both = sum(
        mass[i] * mass[j]
        for (i, a), (j, b) in itertools.product(enumerate(reach), repeat=2)
        if abs(a + b) <= half[1]
    )
    assert both >= 0.9
    assert half[1] < 2 * math.sqrt(2) * 3
    assert mechanism.release(np.zeros(2, dtype=np.int64), rng=1).interval(0.99).upper[0] == math.inf


def test_joint_intervals_are_wider() -> None:
    mechanism = ContinualSum(strategy=BinaryTree(steps=100), sensitivity=1, stddev=3)
    release = mechanism.release(np.zeros(100, dtype=np.int64), rng=5)
    alone, joint = release.interval(0.95), release.interval(0.95, joint=True)
    assert (joint.lower < alone.lower).all()
    assert (joint.lower <= 0).all()
    assert (joint.upper >= 0).all()


@cases("strategy", STRATEGIES, ids=repr)
@cases("neighboring", list(Neighboring))
def test_calibration_meets_the_request_tightly(strategy: Strategy, neighboring: Neighboring) -> None:
    mechanism = ContinualSum.calibrated(
        strategy=strategy,
        sensitivity=3,
        epsilon=0.7,
        delta=1e-7,
        participation=Participation(max_participations=2),
        neighboring=neighboring,
    )
    assert mechanism.neighboring is mechanism.privacy_loss.neighboring is neighboring
    assert mechanism.privacy_loss.epsilon(1e-7) <= 0.7
    noise = Fraction(mechanism.stddev) / mechanism.grid.step * 2**mechanism.bits
    less = DiscreteGaussianVector(noise * Fraction(99_999, 100_000), mechanism.l2_squared)
    assert less.epsilon(1e-7) > 0.7
    # On so fine a lattice this is the continuous mechanism's noise.
    replaced = 2 if neighboring is Neighboring.REPLACE_ONE else 1
    moved = 3 * replaced * strategy.sensitivity(Participation(max_participations=2)).upper
    least = analytic_gaussian_stddev(sensitivity=moved, epsilon=0.7, delta=1e-7)
    assert least * (1 - 2e-4) < float(mechanism.stddev) < least * (1 + 2e-4)


def test_streams_and_arrays_have_one_distribution() -> None:
    """Sums of many streams against the stated variance."""
    mechanism = ContinualSum(strategy=SquareRoot(steps=5), sensitivity=1, stddev=2)
    stream = mechanism.stream(rng=9)
    noise = np.array([stream.send(np.zeros(20_000, dtype=np.int64)).value for _ in range(5)])
    variance = mechanism.stddevs**2
    accepts_only(moments(noise.T), (0, variance), wider=(0, 1.1 * variance), narrower=(0, variance / 1.1))
    assert stream.sent == 5
    with pytest.raises(ParameterError, match=r"stream must have at most \d+ steps, but all were sent"):
        stream.send(np.zeros(20_000, dtype=np.int64))


def test_a_single_release_of_a_stream() -> None:
    mechanism = ContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, stddev=2)
    release = mechanism.stream(rng=1).send(7)
    assert isinstance(release.value, float)
    assert release.stddev == 2.0
    assert release.simulated
    assert release.loss == mechanism.privacy_loss
    lower, upper, _ = release.interval(0.999)
    assert lower < 7 < upper
    assert not mechanism.stream().send(7).simulated


@cases("value", [math.nan, math.inf, -math.inf, 1e300, 0.0])
def test_edge_values_are_answered(value: float) -> None:
    mechanism = ContinualSum.calibrated(
        strategy=BinaryTree(steps=4), sensitivity=0.5, epsilon=1.0, delta=1e-6
    )
    release = mechanism.release(np.array([value, 0.0, value]), rng=2)
    clamped = 0.0 if math.isnan(value) else max(-mechanism.limit, min(mechanism.limit, value))
    assert abs(release.value[0] - clamped) < 100 + 1e-9 * abs(clamped)
    assert release.loss == mechanism.privacy_loss
    assert mechanism.limit > 1e6


@cases("strategy", STRATEGIES, ids=repr)
def test_values_at_the_limit_do_not_overflow(strategy: Strategy) -> None:
    mechanism = ContinualSum(strategy=strategy, sensitivity=1, stddev=2)
    values = np.full(11, int(mechanism.limit))
    release = mechanism.release(values, rng=3)
    np.testing.assert_allclose(release.value, np.cumsum(values.astype(float)), rtol=1e-9)
    stream = mechanism.stream(rng=3)
    assert stream.send(2**63 - 1).value == pytest.approx(mechanism.limit, rel=1e-9)


def test_rounding_is_in_the_sensitivity() -> None:
    """A grid of step 1: a move of 0.7 may become one of 1, of 2.0 stays, of 3.0 may become 4."""
    for sensitivity, steps in ((0.7, 1), (2.0, 2), (3.0, 4)):
        mechanism = ContinualSum(
            strategy=BinaryTree(steps=1), sensitivity=sensitivity, stddev=5, grid=Grid(exponent=0), bits=0
        )
        assert mechanism.l2_squared == steps**2
    arrays = ContinualSum(
        strategy=BinaryTree(steps=1), sensitivity=3.0, stddev=5, l0=4, grid=Grid(exponent=0), bits=0
    )
    assert arrays.l2_squared == 25
    assert (
        ContinualSum(
            strategy=BinaryTree(steps=1), sensitivity=1.5, stddev=5, integral=True, bits=0
        ).l2_squared
        == 2
    )


@cases(
    ("make", "message"),
    [
        (lambda: ContinualSum(strategy=8, sensitivity=1, stddev=1), "strategy must be a Strategy"),  # type: ignore[arg-type]
        (
            lambda: ContinualSum(
                strategy=BandedToeplitz(steps=4, bands=[1.0, -0.5]), sensitivity=1, stddev=1
            ),
            "strategy must have non-negative coefficients that decrease",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=4), sensitivity=0, stddev=1),
            "sensitivity must be positive",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, stddev=0),
            "stddev must be positive",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, stddev=2.0**50),
            "stddev must be from 1 to",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, stddev=1, bits=61),
            "stddev must be from 1 to|bits must leave room",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, stddev=1, neighboring="x"),  # type: ignore[arg-type]
            "neighboring must be a Neighboring",
        ),
        (
            lambda: ContinualSum.calibrated(strategy=BinaryTree(steps=4), sensitivity=1, epsilon=1, delta=0),
            "delta must be strictly between 0 and 1",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=2), sensitivity=1, stddev=1).release(
                np.zeros(3, dtype=int)
            ),
            "value must have from 1 to 2 steps",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=2), sensitivity=1, stddev=1).release(
                np.zeros(0, dtype=int)
            ),
            "value must have from 1 to 2 steps",
        ),
        (
            lambda: ContinualSum(strategy=BinaryTree(steps=2), sensitivity=1, stddev=1).release(np.zeros(2)),
            "value must be an int or a numpy array of integers",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]


def test_an_infinite_sensitivity_and_another_shape() -> None:
    with pytest.raises(UnboundedSensitivity):
        ContinualSum(strategy=BinaryTree(steps=4), sensitivity=math.inf, stddev=1)
    stream = ContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, stddev=1).stream(rng=1)
    stream.send(np.zeros(2, dtype=np.int64))
    with pytest.raises(ParameterError, match=r"value must have the shape \(2,\)"):
        stream.send(1)
    assert stream.sent == 1


@pytest.mark.parametrize("power", [22, 23, 24, 30])
def test_noise_of_so_few_steps_that_entries_are_not_multiplied_exactly_is_refused(power: int) -> None:
    """At 2**-22 steps the entries are 2**42 of the noise's; beyond, products would be wrong."""

    def made() -> ContinualSum:
        stddev = Fraction(1, 2**power)
        return ContinualSum(strategy=SquareRoot(steps=300), sensitivity=1, stddev=stddev, integral=True)

    if power > 22:
        with pytest.raises(ParameterError, match=r"entries within 2\*\*42"):
            made()
        return
    values = np.random.default_rng(1).integers(0, 1000, 300)
    code = made()._integers
    assert isinstance(code, IntegerToeplitz)
    weights = [int(weight) for weight in code.weights]
    exact = [sum(weights[t - i] * int(values[i]) for i in range(t + 1)) for t in range(300)]
    assert code.measure(values).tolist() == exact
