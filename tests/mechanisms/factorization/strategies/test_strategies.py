"""Strategies: they factor the prefix sums; sensitivity is that of the worst pattern, and errors are known."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import BandedToeplitz, LowerTriangular, SquareRoot, optimal_strategy
from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
from sfumato.mechanisms.factorization.strategies.buffered_toeplitz import BufferedToeplitz
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.strategy import Array, Strategy
from sfumato.privacy import Neighboring, matrix_mechanism
from tests.cases import cases
from tests.chance import accepts_only

STEPS = (1, 2, 3, 7, 8, 13)
PARTICIPATIONS = [
    Participation(),
    Participation(max_participations=2),
    Participation(max_participations=3, separation=2),
    Participation(max_participations=None, separation=3),
    Participation(max_participations=None, separation=1),
    Participation(max_participations=None, separation=3, fixed_order=True),
]


def strategies(steps: int) -> list[Strategy]:
    bands = [1.0, 0.5, 0.25][:steps]
    return [
        BinaryTree(steps=steps),
        SquareRoot(steps=steps),
        BandedToeplitz(steps=steps, bands=[1.0]),
        BandedToeplitz(steps=steps, bands=bands),
        BandedToeplitz.optimal(steps=steps, bands=min(3, steps)),
        BufferedToeplitz(steps=steps, decays=(0.9, 0.2), weights=(0.4, 0.3)),
        BufferedToeplitz.optimal(steps=steps, buffers=2),
        LowerTriangular.optimal(steps=steps),
        LowerTriangular(
            rows=np.tril(np.random.default_rng(1).uniform(-1, 1, (steps, steps)), -1) + np.eye(steps)
        ),
    ]


EVERY = [strategy for steps in STEPS for strategy in strategies(steps)]


def patterns(steps: int, participation: Participation) -> Iterator[tuple[int, ...]]:
    most = participation.max_steps(steps)
    for count in range(1, most + 1):
        for pattern in itertools.combinations(range(steps), count):
            gaps = np.diff(pattern)
            if participation.fixed_order:
                start, gap = pattern[0], participation.separation
                if start < gap and pattern == tuple(range(start, steps, gap)):
                    yield pattern
            elif (gaps >= participation.separation).all():
                yield pattern


def decoded(strategy: Strategy) -> Array:
    """B, column by column: the prefix sums of the noise that each row's z alone makes."""
    columns = []
    for unit in np.eye(strategy.entries):
        draws = iter(unit)

        def draw(rest: Iterator[np.float64] = draws) -> Array:
            return np.array(next(rest))

        stream = strategy.noise()
        columns.append(np.cumsum([float(stream.send(draw)) for _ in range(strategy.steps)]))
    return np.array(columns).T


@cases("strategy", EVERY, ids=repr)
def test_it_factors_the_prefix_sums(strategy: Strategy) -> None:
    spread = decoded(strategy)
    np.testing.assert_allclose(
        spread @ strategy.matrix(), np.tril(np.ones((strategy.steps,) * 2)), atol=1e-12
    )
    np.testing.assert_allclose(strategy.variances(), np.square(spread).sum(axis=1), rtol=1e-10)


@functools.cache
def all_patterns(steps: int, participation: Participation) -> np.ndarray:
    """A column of zeros and ones for each pattern."""
    return np.array([np.isin(range(steps), pattern) for pattern in patterns(steps, participation)], float).T


@cases("strategy", EVERY, ids=repr)
@cases("participation", PARTICIPATIONS, ids=repr)
def test_sensitivity_is_that_of_the_worst_pattern(strategy: Strategy, participation: Participation) -> None:
    matrix = strategy.matrix()
    worst = float(np.linalg.norm(matrix @ all_patterns(strategy.steps, participation), axis=0).max())
    bounds = strategy.sensitivity(participation)
    assert bounds.lower <= worst * (1 + 1e-14)
    assert worst * (1 - 1e-14) <= bounds.upper
    if isinstance(strategy, LowerTriangular) and (strategy.rows < 0).any():
        return  # units whose inputs move in opposite directions may do worse
    if not isinstance(strategy, BinaryTree | LowerTriangular) or participation.max_participations == 1:
        assert bounds.upper == pytest.approx(worst, rel=1e-12)


def test_rising_coefficients_take_the_dense_bound() -> None:
    strategy = BandedToeplitz(steps=6, bands=[1.0, -0.5, 0.75])
    columns = strategy.matrix()
    for signs in itertools.product((-1, 1), repeat=2):
        for pattern in itertools.combinations(range(6), 2):
            moved = np.linalg.norm(columns[:, list(pattern)] @ np.array(signs))
            assert moved <= strategy.sensitivity(Participation(max_participations=2)).upper
    with pytest.raises(ParameterError, match="steps must be at most 2048 for such coefficients"):
        BandedToeplitz(steps=5000, bands=[1.0, 2.0]).sensitivity()


@cases("strategy", EVERY, ids=repr)
def test_the_loss_is_that_of_the_dense_matrix_mechanism(strategy: Strategy) -> None:
    for participation in PARTICIPATIONS:
        loss = strategy.loss(2.0, participation=participation, neighboring=Neighboring.ZERO_OUT)
        matrix = strategy.matrix()
        dense = matrix_mechanism(
            matrix,
            2.0,
            separation=participation.separation,
            max_participations=participation.max_participations,
            fixed_order=participation.fixed_order,
            adaptive=matrix.shape[0] == matrix.shape[1],
            neighboring=Neighboring.ZERO_OUT,
        )
        assert loss.neighboring is dense.neighboring
        if isinstance(strategy, BinaryTree):
            # The one bound may be wider, or the other.
            assert loss.noise_multiplier == pytest.approx(dense.noise_multiplier, rel=0.2)
        else:
            assert dense.noise_multiplier * (1 - 1e-12) <= loss.noise_multiplier
    with pytest.raises(ParameterError, match="noise_multiplier must be non-negative"):
        strategy.loss(-1.0)


@pytest.mark.parametrize("steps", [16, 1024, 100_000])
def test_the_square_root_has_the_published_error(steps: int) -> None:
    """(ln n + gamma + 4 ln 2) / pi, and between the bounds of Matousek et al. and Fichtenberger et al."""
    error = SquareRoot(steps=steps).max_error()
    assert error == pytest.approx(
        (math.log(steps) + np.euler_gamma + 4 * math.log(2)) / math.pi, abs=1 / steps
    )
    assert math.log(2 * steps + 1) / math.pi <= error <= 1 + math.log(steps) / math.pi + 0.1


def test_errors_of_the_strategies_compare_as_published() -> None:
    root, tree = SquareRoot(steps=4096), BinaryTree(steps=4096)
    assert tree.max_error() / root.max_error() == pytest.approx(
        math.sqrt(13 * tree.variances().max()) / root.max_error()
    )
    assert 2.5 < tree.max_error() / root.max_error() < 2.7
    assert BufferedToeplitz.optimal(steps=4096, buffers=4).max_error() < 1.001 * root.max_error()
    assert tree.variances()[4094] == pytest.approx(sum(2**h / (2 ** (h + 1) - 1) for h in range(12)))
    epochs = Participation(max_participations=8, separation=512)
    banded = BandedToeplitz.optimal(steps=4096, bands=512, participation=epochs)
    assert banded.mean_error(epochs) < 0.8 * root.mean_error(epochs)


def test_optimal_bands_are_near_the_best_lower_triangular_factor() -> None:
    """For two steps the best Toeplitz factor is known in closed form by a scan."""
    found = BandedToeplitz.optimal(steps=2, bands=2)
    scan = min(BandedToeplitz(steps=2, bands=[1.0, c]).mean_error() for c in np.linspace(0, 0.99, 2000))
    assert found.mean_error() == pytest.approx(scan, rel=1e-6)


def test_the_best_of_all_strategies_is_causal() -> None:
    """The lower triangular factor has the error that no strategy beats, and its column norms are 1."""
    best = LowerTriangular.optimal(steps=40)
    bound = optimal_strategy(np.tril(np.ones((40, 40)))).bound
    assert bound / 40 * (1 - 1e-9) <= best.mean_error() ** 2 <= bound / 40 * (1 + 2e-4)
    for other in (SquareRoot(steps=40), BandedToeplitz.optimal(steps=40, bands=40), BinaryTree(steps=40)):
        assert best.mean_error() < other.mean_error()
    weights = 0.8 ** np.arange(40)
    decayed = LowerTriangular.optimal(steps=40, workload=weights)
    assert decayed.mean_error(workload=weights) < best.mean_error(workload=weights)


def test_a_weighted_workload() -> None:
    """Sums that forget: w[t] = 0.9**t."""
    weights = 0.9 ** np.arange(12)
    strategy = SquareRoot(steps=12)
    dense = np.linalg.solve(strategy.matrix().T, BandedToeplitz(steps=12, bands=weights).matrix().T).T
    np.testing.assert_allclose(strategy.variances(weights), np.square(dense).sum(axis=1), rtol=1e-9)
    better = BandedToeplitz.optimal(steps=12, bands=6, workload=weights)
    assert better.mean_error(workload=weights) < strategy.mean_error(workload=weights)
    with pytest.raises(ParameterError, match="workload must be left out for a tree"):
        BinaryTree(steps=4).variances(weights)


@cases(
    ("strategy", "memory"),
    [
        (BinaryTree(steps=1000), 11),
        (BandedToeplitz(steps=1000, bands=[1.0, 0.5, 0.2]), 2),
        (BufferedToeplitz.optimal(steps=1000, buffers=3), 3),
        (SquareRoot(steps=1000), 999),
        (LowerTriangular(rows=np.eye(100)), 99),
    ],
    ids=repr,
)
def test_memory_and_end_of_a_stream(strategy: Strategy, memory: int) -> None:
    stream = strategy.noise()
    assert stream.memory == memory
    generator = np.random.default_rng(1)
    noise = [stream.send(lambda: generator.normal(size=(2, 2))) for _ in range(strategy.steps)]
    assert {part.shape for part in noise} == {(2, 2)}
    with pytest.raises(ParameterError, match=r"stream must have at most \d+ steps, but all were sent"):
        stream.send(lambda: np.zeros((2, 2)))


def test_buffers_serve_arrays_of_any_size() -> None:
    """Longer than a part, and of several axes: each entry as if it were alone."""
    strategy = BufferedToeplitz(steps=4, decays=(0.9, 0.3), weights=(0.4, 0.3))
    fresh = np.random.default_rng(2).normal(size=(4, 30, 1000))
    stream = strategy.noise()
    draws = iter(fresh)
    together = np.array([stream.send(lambda: next(draws)) for _ in range(4)])
    alone = np.linalg.solve(strategy.matrix(), fresh.reshape(4, -1)).reshape(fresh.shape)
    np.testing.assert_allclose(together, alone, atol=1e-12)


@pytest.mark.parametrize(
    ("strategy"),
    [SquareRoot(steps=8), BinaryTree(steps=8), BufferedToeplitz.optimal(steps=8, buffers=2)],
    ids=repr,
)
def test_noise_has_the_covariance_of_its_factor(strategy: Strategy) -> None:
    """Each entry of the sample covariance of 20,000 runs is within 7 standard errors: false alarm < 1e-9."""
    generator, runs = np.random.default_rng(20261121), 20_000
    stream = strategy.noise()
    noise = np.cumsum([stream.send(lambda: generator.normal(size=runs)) for _ in range(8)], axis=0)
    spread = decoded(strategy)

    def covariance(truth: np.ndarray) -> None:
        error = np.sqrt((np.outer(np.diag(truth), np.diag(truth)) + truth**2) / runs)
        assert (np.abs(noise @ noise.T / runs - truth) < 7 * error).all()

    truth = spread @ spread.T
    accepts_only(
        covariance,
        truth,
        wider=1.1 * truth,
        one_step_late=truth[::-1, ::-1],
        independent=np.diag(np.diag(truth)),
    )


@cases(
    ("make", "message"),
    [
        (lambda: SquareRoot(steps=0), "steps must be an integer of at least 1"),
        (lambda: BinaryTree(steps=2**21), "steps must be at most 1048576"),
        (lambda: BandedToeplitz(steps=3, bands=[0.5]), "bands must be at most 3 finite numbers, the first 1"),
        (lambda: BandedToeplitz(steps=1, bands=[1.0, 0.5]), "bands must be at most 1"),
        (lambda: BandedToeplitz(steps=3, bands=[1.0, math.nan]), "bands must be"),
        (
            lambda: BandedToeplitz.optimal(steps=3, bands=2, objective="sum"),
            "objective must be 'mean' or 'max'",
        ),
        (
            lambda: BufferedToeplitz(steps=3, decays=(1.0,), weights=(0.1,)),
            "decays must be from 0 to below 1",
        ),
        (
            lambda: BufferedToeplitz(steps=3, decays=(0.5,), weights=(1.1,)),
            "weights must be as many as decays",
        ),
        (lambda: BufferedToeplitz.optimal(steps=3, buffers=11), "buffers must be at most 10"),
        (lambda: LowerTriangular(rows=np.ones((2, 2))), "rows must be finite and lower triangular"),
        (lambda: LowerTriangular(rows=np.ones((2, 3))), "rows must be square"),
        (lambda: LowerTriangular.optimal(steps=4096), "steps must be at most 2048, got 4096"),
        (lambda: LowerTriangular(rows=100 * np.eye(2)), "rows must have entries of at most 16"),
        (lambda: LowerTriangular(rows=np.diag([1.0, 0.0])), "with a positive diagonal"),
        (lambda: Participation(max_participations=0), "max_participations must be an integer of at least 1"),
        (lambda: Participation(separation=0), "separation must be an integer of at least 1"),
        (lambda: Participation(fixed_order=True), "max_participations must be None with fixed_order"),
        (lambda: SquareRoot(steps=3).variances([0.0, 1.0]), "workload must be finite weights by age"),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]
