"""Continual sums without a delta: the L1 norm of every pattern, the exact distribution, errors that hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import BinaryTree, Grid, Participation, PureContinualSum, SquareRoot
from sfumato.privacy import DiscreteLaplace, Neighboring, PureDP
from tests.cases import cases
from tests.chance import accepts_only, moments

PARTICIPATIONS = [
    Participation(),
    Participation(max_participations=2),
    Participation(max_participations=3, separation=3),
]


@cases("steps", [1, 2, 7, 8, 11])
@cases("participation", PARTICIPATIONS, ids=repr)
@cases("neighboring", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
def test_no_pattern_moves_more_than_is_paid_for(
    steps: int, participation: Participation, neighboring: Neighboring
) -> None:
    mechanism = PureContinualSum(
        strategy=BinaryTree(steps=steps),
        sensitivity=2,
        scale=5,
        participation=participation,
        neighboring=neighboring,
    )
    units = [np.zeros(steps, dtype=np.int64)]
    for count in range(1, participation.max_steps(steps) + 1):
        for pattern in itertools.combinations(range(steps), count):
            if (np.diff(pattern) >= participation.separation).all():
                for signs in itertools.product((-2, 2), repeat=count):
                    units.append(np.zeros(steps, dtype=np.int64))
                    units[-1][list(pattern)] = signs
    images = np.array(units) @ mechanism.strategy.matrix().T.astype(np.int64) * 1024
    greatest = int(np.abs(images).sum(axis=1).max())
    if neighboring is Neighboring.REPLACE_ONE:
        greatest *= 2  # a unit and its opposite, in the same steps
    assert greatest <= mechanism.l1
    assert greatest == mechanism.l1 or participation.separation > 1
    assert mechanism.privacy_loss.epsilon() == pytest.approx(mechanism.l1 / 5 / 1024)


def test_what_the_loss_is() -> None:
    tree = BinaryTree(steps=365)
    assert (
        PureContinualSum(strategy=tree, sensitivity=3, scale=30).privacy_loss
        == DiscreteLaplace(30 << 10, 3 << 10) * 9
    )
    arrays = PureContinualSum(strategy=tree, sensitivity=3, scale=30, l0=2)
    assert arrays.privacy_loss == PureDP(0.9)
    often = PureContinualSum(strategy=tree, sensitivity=3, scale=30, participation=PARTICIPATIONS[1])
    assert often.privacy_loss == PureDP(1.8)
    real = PureContinualSum(strategy=tree, sensitivity=3.0, scale=30, l0=2, grid=Grid(exponent=0))
    assert real.l1 == 9 * 5 << 10


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_exact_distribution_of_two_steps(epsilon: float) -> None:
    """Three blocks, enumerated: the greatest log-ratio over all moves of one step's value is the claim."""
    mechanism = PureContinualSum.calibrated(strategy=BinaryTree(steps=2), sensitivity=1, epsilon=epsilon)
    scale = float(mechanism.scale)
    greatest = 0.0
    for move in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        moved = mechanism.strategy.matrix() @ np.array(move)
        for output in itertools.product(range(-3, 4), repeat=3):
            ratio = (np.abs(np.array(output) - moved).sum() - np.abs(output).sum()) / scale
            greatest = max(greatest, float(ratio))
    assert greatest <= epsilon
    assert greatest == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_calibration(delta: float) -> None:
    mechanism = PureContinualSum.calibrated(
        strategy=BinaryTree(steps=1000), sensitivity=1, epsilon=1.0, delta=delta
    )
    assert mechanism.privacy_loss.epsilon(delta) <= 1.0
    assert mechanism.scale == 10 if delta == 0 else float(mechanism.scale) < 10.001
    real = PureContinualSum.calibrated(
        strategy=BinaryTree(steps=1000), sensitivity=0.3, epsilon=1.0, delta=delta
    )
    assert real.privacy_loss.epsilon(delta) <= 1.0
    assert float(real.scale) == pytest.approx(3, rel=1e-3)


def test_stated_errors() -> None:
    """10,000 runs as columns; sums of Laplace noise have a kurtosis of at most 6."""
    mechanism = PureContinualSum(strategy=BinaryTree(steps=21), sensitivity=1, scale=6)
    release = mechanism.release(np.full((21, 10_000), 3), rng=20261121)
    noise = release.value - 3 * np.arange(1, 22)[:, None]
    np.testing.assert_allclose(release.stddev, mechanism.stddevs, rtol=1e-12)
    variance = mechanism.stddevs**2
    accepts_only(
        moments(noise.T, kurtosis=6.0),
        (0, variance),
        wider=(0, 1.25 * variance),
        narrower=(0, variance / 1.25),
        one_step_late=(0, np.roll(variance, 1)),
    )
    for level in (0.5, 0.95, 0.999):
        lower, upper, _ = release.interval(level)
        inside = (np.abs(noise) <= (upper - lower)[:, :1] / 2).mean(axis=1)
        assert (np.abs(inside - level) < 7 * math.sqrt(level * (1 - level) / 10_000) + 1e-3).all()


def test_streams() -> None:
    mechanism = PureContinualSum.calibrated(strategy=BinaryTree(steps=200), sensitivity=1, epsilon=1.0)
    stream = mechanism.stream(rng=4)
    releases = [stream.send(5) for _ in range(200)]
    for time in (1, 7, 128, 200):
        release = releases[time - 1]
        assert release.stddev == pytest.approx(mechanism.stddevs[time - 1])
        lower, upper, _ = release.interval(1 - 1e-9)
        assert isinstance(lower, float)
        assert lower < 5 * time < upper
    assert releases[0].loss == mechanism.privacy_loss
    large = PureContinualSum(strategy=BinaryTree(steps=20_000), sensitivity=1, scale=20)
    lower, upper, _ = large.release(np.ones(20_000, dtype=np.int64), rng=4).interval(0.9999, joint=True)
    assert ((lower < np.arange(1, 20_001)) & (np.arange(1, 20_001) < upper)).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e300])
def test_edge_values_are_answered(value: float) -> None:
    mechanism = PureContinualSum.calibrated(strategy=BinaryTree(steps=4), sensitivity=0.5, epsilon=1.0)
    release = mechanism.release(np.array([value, 0.0]), rng=2)
    assert np.isfinite(release.value).all()
    assert release.loss == mechanism.privacy_loss


@cases(
    ("make", "message"),
    [
        (
            lambda: PureContinualSum(strategy=SquareRoot(steps=4), sensitivity=1, scale=1),  # type: ignore[arg-type]
            "strategy must be a BinaryTree",
        ),
        (
            lambda: PureContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, scale=0),
            "scale must be positive",
        ),
        (
            lambda: PureContinualSum(strategy=BinaryTree(steps=4), sensitivity=1, scale=2.0**41),
            "scale must be from",
        ),
        (
            lambda: PureContinualSum(strategy=BinaryTree(steps=4), sensitivity=-1, scale=1),
            "sensitivity must be",
        ),
        (
            lambda: PureContinualSum.calibrated(strategy=BinaryTree(steps=4), sensitivity=1, epsilon=0),
            "epsilon must be positive",
        ),
        (
            lambda: PureContinualSum(strategy=BinaryTree(steps=2), sensitivity=1, scale=1).release(
                np.zeros(3, dtype=int)
            ),
            "value must have from 1 to 2 steps",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]


def test_an_infinite_sensitivity() -> None:
    with pytest.raises(UnboundedSensitivity):
        PureContinualSum.calibrated(strategy=BinaryTree(steps=4), sensitivity=math.inf, epsilon=1.0)
