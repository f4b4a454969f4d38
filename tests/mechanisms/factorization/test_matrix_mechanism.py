"""The matrix mechanism: strategies against their bounds, answers without bias, errors that hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BandedToeplitz,
    Count,
    Gaussian,
    Histogram,
    Laplace,
    LinearWorkload,
    MatrixMechanism,
    SquareRoot,
    optimal_strategy,
    p_identity,
    svd_bound,
)
from sfumato.mechanisms.factorization.laplace_sum_tail import chernoff_reach, laplace_reach
from sfumato.mechanisms.factorization.linear_error import LaplaceError, NormalError
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.optimal_strategy import total_squared_error
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most, moments, rate

PREFIXES = np.tril(np.ones((24, 24)))


def ranges(cells: int) -> Array:
    ends = [(i, j) for i in range(cells) for j in range(i, cells)]
    return np.array([[float(i <= k <= j) for k in range(cells)] for i, j in ends])


def marginals(sizes: tuple[int, ...], order: int) -> Array:
    blocks = []
    for retained in itertools.combinations(range(len(sizes)), order):
        block: Array = np.ones((1, 1))
        for attribute, size in enumerate(sizes):
            factor = np.eye(size) if attribute in retained else np.ones((1, size))
            block = np.asarray(np.kron(block, factor), dtype=np.float64)
        blocks.append(block)
    return np.concatenate(blocks)


WORKLOADS = {
    "identity": np.eye(7),
    "total": np.ones((1, 6)),
    "prefixes": PREFIXES,
    "ranges": ranges(12),
    "two-way marginals": marginals((2, 3, 4), 2),
    "random": np.random.default_rng(1).normal(size=(9, 6)),
    "few": np.random.default_rng(2).integers(0, 2, size=(4, 15)).astype(float),
    "an idle cell": np.hstack([PREFIXES[:5, :5], np.zeros((5, 1))]),
    "unlike weights": np.diag([1.0, 10.0, 1000.0]),
}


@cases("name", WORKLOADS)
def test_strategies_meet_the_bound_that_is_proven_beside_them(name: str) -> None:
    workload = WORKLOADS[name]
    found = optimal_strategy(workload)
    assert np.linalg.norm(found.strategy, axis=0).max() <= 1 + 1e-12
    assert found.bound * (1 - 1e-9) <= found.error <= found.bound * (1 + 3e-4)
    assert found.bound >= svd_bound(workload) * (1 - 1e-9)
    assert found.error == pytest.approx(total_squared_error(workload, found.strategy), rel=1e-9)
    np.testing.assert_allclose(
        np.linalg.pinv(found.strategy) @ found.strategy, np.eye(workload.shape[1]), atol=1e-7
    )


@pytest.mark.parametrize("name", ["identity", "total", "two-way marginals"])
def test_the_singular_value_bound_is_attained_where_it_can_be(name: str) -> None:
    assert optimal_strategy(WORKLOADS[name]).error == pytest.approx(svd_bound(WORKLOADS[name]), rel=3e-6)


def test_no_other_strategy_is_better() -> None:
    """Brute force: a general search over all strategies of three columns, from many starts."""
    workload = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2.0, 0.0, 0.0]])

    def error(flat: Array) -> float:
        strategy = flat.reshape(3, 3)
        strategy = strategy / np.linalg.norm(strategy, axis=0)
        return total_squared_error(workload, strategy)

    generator = np.random.default_rng(3)
    least = min(
        minimize(
            error, generator.normal(size=9), method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-10}
        ).fun
        for _ in range(4)
    )
    assert optimal_strategy(workload, tolerance=1e-8).error == pytest.approx(least, rel=1e-5)


def test_prefix_sums_compare_with_the_streaming_strategies() -> None:
    steps = 64
    found = optimal_strategy(np.tril(np.ones((steps, steps))))
    root, banded = SquareRoot(steps=steps), BandedToeplitz.optimal(steps=steps, bands=steps)
    mean = math.sqrt(found.error / steps)
    assert mean < banded.mean_error() <= root.mean_error()
    assert root.mean_error() < 1.07 * mean


@cases("name", WORKLOADS)
def test_p_identity_beats_the_cells_alone(name: str) -> None:
    workload = WORKLOADS[name]
    strategy = p_identity(workload)
    np.testing.assert_allclose(np.abs(strategy).sum(axis=0), 1, rtol=1e-12)
    error = total_squared_error(workload, strategy)
    assert error <= total_squared_error(workload, np.eye(workload.shape[1])) * (1 + 1e-9)
    if name == "total":
        assert error < 1.1
    if name == "prefixes":
        assert error < 0.75 * total_squared_error(workload, np.eye(24))


def test_the_gradient_of_p_identity() -> None:
    """At the found place a small step in any direction that stays non-negative gains next to nothing."""
    workload = np.tril(np.ones((16, 16)))
    best = p_identity(workload, rows=2)
    least = total_squared_error(workload, best)
    theta = best[16:] / np.diag(best[:16])
    generator = np.random.default_rng(4)
    for _ in range(30):
        moved = np.maximum(theta + 1e-3 * generator.normal(size=theta.shape), 0)
        other = np.concatenate([np.eye(16), moved])
        assert total_squared_error(workload, other / other.sum(axis=0)) >= least * (1 - 1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("name", "neighboring"), list(zip(["prefixes", "few", "two-way marginals"], Neighboring, strict=True))
)
def test_the_whole_mechanism(name: str, neighboring: Neighboring, delta: float) -> None:
    """400 runs: no bias, the stated variance, and coverage."""
    matrix = WORKLOADS[name]
    cells, runs = matrix.shape[1], 400
    mechanism = MatrixMechanism.calibrated(
        workload=LinearWorkload(matrix=matrix), epsilon=1.0, delta=delta, neighboring=neighboring
    )
    assert mechanism.privacy_loss.epsilon(delta) <= 1.0
    assert mechanism.neighboring is mechanism.privacy_loss.neighboring is neighboring
    data = np.random.default_rng(5).integers(0, cells, 5000)
    truth = matrix @ np.bincount(data, minlength=cells)
    generator = np.random.default_rng(6)
    releases = [mechanism.release(data, generator) for _ in range(runs)]
    noise = np.array([release.value for release in releases]) - truth
    deviation = mechanism.stddevs
    # A weighted sum of Laplace noise has a kurtosis of at most 6.
    accepts_only(
        moments(noise, kurtosis=6.0),
        (0, deviation**2),
        moved=(deviation / 2, deviation**2),
        thrice=(0, 9 * deviation**2),
        half=(0, deviation**2 / 4),
    )
    for level in (0.5, 0.95):
        lower, upper, _ = releases[0].interval(level)
        inside = (np.abs(noise) <= (upper - lower) / 2).mean(axis=0)
        for held in np.rint(inside * runs).astype(int).tolist():
            at_least(held, runs)(level)
            # On whole counts the lattice of the noise widens intervals.
            if delta or name != "two-way marginals":
                accepts_only(at_least(held, runs), level, always=1.0)
                accepts_only(at_most(held, runs), level, rarely=level / 2)


def test_less_noise_than_answering_directly() -> None:
    workload = LinearWorkload(matrix=ranges(16))
    for delta, kind in ((0.0, Laplace), (1e-6, Gaussian)):
        mechanism = MatrixMechanism.calibrated(workload=workload, epsilon=1.0, delta=delta)
        plain = kind.for_query(workload, epsilon=1.0, delta=delta).mechanism.distribution.stddev
        assert np.sqrt(np.square(mechanism.stddevs).mean()) < 0.6 * plain


def test_without_a_record_and_with_categories() -> None:
    histogram = Histogram(categories=("a", "b", "c"))
    workload = LinearWorkload(matrix=[[1.0, 1.0, 0.0], [0.5, 0.25, 1.0]], histogram=histogram)
    mechanism = MatrixMechanism.calibrated(workload=workload, epsilon=1.0, delta=1e-6)
    empty = mechanism.release(np.array([], dtype="U1"), rng=1)
    assert empty.loss == mechanism.privacy_loss
    many = mechanism.release(np.array(["a", "b", "x"] * 10_000), rng=1)
    np.testing.assert_allclose(many.value, [20_000, 7500], atol=100)
    assert many.simulated


def test_a_query_of_nothing() -> None:
    for delta in (0.0, 1e-6):
        workload = LinearWorkload(matrix=[[0.0, 0.0], [1.0, 0.0]])
        release = MatrixMechanism.calibrated(workload=workload, epsilon=1.0, delta=delta).release(
            np.zeros(5, dtype=int), rng=1
        )
        lower, upper, _ = release.interval(0.9)
        assert abs(release.value[0]) < 1e-6
        assert lower[0] <= 0 <= upper[0] < 1e-6


def test_a_strategy_of_ones_own() -> None:
    workload = LinearWorkload(matrix=PREFIXES)
    mechanism = MatrixMechanism.calibrated(workload=workload, epsilon=1.0, delta=1e-6, strategy=np.eye(24))
    variances = np.square(mechanism.stddevs)
    np.testing.assert_allclose(variances / variances[0], np.arange(1, 25), rtol=1e-9)


def test_the_reach_of_laplace_sums() -> None:
    """Against closed forms: one variable, two and three of one scale; and by simulation of unlike ones."""
    one = np.ones(1)

    def tail(count: int, x: float) -> float:
        return math.exp(-x) * {1: 1.0, 2: 1 + x / 2, 3: 1 + 5 * x / 8 + x * x / 8}[count]

    for outside in (0.7, 0.1, 1e-3, 1e-8):
        for count in (1, 2, 3):
            x = laplace_reach(one, np.array([float(count)]), outside)
            assert tail(count, x) <= outside
            assert tail(count, x * 0.999) > outside * (1 - 2e-3) or outside < 1e-6
            assert tail(count, chernoff_reach(one, np.array([float(count)]), outside)) <= outside
    sizes, counts = np.array([0.3, 2.0, 1.0]), np.array([40.0, 1.0, 3.0])
    generator = np.random.default_rng(8)
    draws = sum(
        generator.laplace(0, size, (int(c), 200_000)).sum(axis=0)
        for size, c in zip(sizes, counts, strict=True)
    )
    for outside in (0.5, 0.05, 0.001):
        beyond = int((np.abs(draws) > laplace_reach(sizes, counts, outside)).sum())
        accepts_only(rate(beyond, 200_000), outside, rarer=outside / 2, more_often=2 * outside - 1e-9)


def test_the_reach_covers_discrete_noise() -> None:
    """One weight: the exact tail of the discrete distribution at scales of a few steps."""
    for scale in (0.4, 1.0, 5.0):
        error = LaplaceError(
            terms=[(np.ones(1), np.ones(1))], scale=scale, lattice=np.ones(1), floats=np.zeros(1)
        )
        for outside in (0.3, 0.05, 1e-6):
            reach = math.floor(error.reach(outside)[0])
            assert 2 * DiscreteLaplaceDistribution(scale).upper_tail(reach + 1).lower <= outside


def test_normal_reach_is_infinite_where_nothing_is_proven() -> None:
    error = NormalError(stddev=1.0, slack=0.0, missed=0.01)
    assert error.reach(0.01) == math.inf
    assert 2.5 < error.reach(0.02) < 2.6


@cases(
    ("make", "message"),
    [
        (
            lambda: optimal_strategy(np.zeros((2, 2))),
            "workload must be a matrix of finite numbers, not all 0",
        ),
        (lambda: optimal_strategy([[math.nan]]), "workload must be a matrix of finite numbers"),
        (lambda: optimal_strategy(np.ones(3)), "workload must be a matrix"),
        (lambda: optimal_strategy(np.ones((1, 2049))), "workload must have at most 2048 cells"),
        (lambda: optimal_strategy(np.eye(2), tolerance=0), "tolerance must be positive"),
        (lambda: p_identity(np.eye(2), rows=0), "rows must be an integer of at least 1"),
        (
            lambda: MatrixMechanism.calibrated(workload=Count(), epsilon=1),  # type: ignore[arg-type]
            "workload must be a LinearWorkload",
        ),
        (
            lambda: MatrixMechanism.calibrated(
                workload=LinearWorkload(matrix=np.eye(3)), epsilon=1, strategy=np.ones((1, 3))
            ),
            "measurement must determine all cells",
        ),
        (
            lambda: MatrixMechanism(
                workload=LinearWorkload(matrix=np.eye(3)), measurement=Laplace.for_query(Count(), epsilon=1)
            ),
            "measurement must be of the workload's cells",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]
