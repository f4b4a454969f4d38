"""Products over the axes of a table: the dense mechanism's numbers, exact sensitivities, stated errors."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import KroneckerMechanism, optimal_strategy
from sfumato.mechanisms.factorization.kronecker_mechanism import _multiply_exactly
from sfumato.mechanisms.factorization.strategies.optimal_strategy import total_squared_error
from sfumato.privacy import DiscreteGaussianVector, Neighboring
from tests.cases import cases
from tests.chance import accepts_only, moments, rate

PREFIXES = np.tril(np.ones((5, 5)))
TOTAL = np.ones((1, 4))
CASES = {
    "prefixes by cell": [PREFIXES, np.eye(3)],
    "a marginal": [np.eye(3), TOTAL, np.eye(2)],
    "a total of ranges": [np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]), TOTAL],
    "real weights": [np.array([[0.3, 0.7, 0.1]]), PREFIXES],
    "one axis": [PREFIXES],
}


@cases("name", CASES)
@cases("neighboring", list(Neighboring))
def test_the_sensitivity_is_that_of_the_dense_product(name: str, neighboring: Neighboring) -> None:
    mechanism = KroneckerMechanism(factors=CASES[name], stddev=3, neighboring=neighboring)
    dense = reduce(np.kron, [axis.whole.astype(object) for axis in mechanism._axes])
    columns = dense.T
    greatest = max(int((column**2).sum()) for column in columns)
    if neighboring is Neighboring.REPLACE_ONE:
        for one, other in itertools.combinations(columns, 2):
            greatest = max(greatest, int(((one - other) ** 2).sum()))
        assert greatest <= mechanism.l2_squared <= 4 * greatest
    else:
        assert mechanism.l2_squared == greatest
    noise = 3 << mechanism._total_bits
    assert mechanism.privacy_loss == DiscreteGaussianVector(
        noise, mechanism.l2_squared, neighboring=neighboring
    )


def test_columns_that_point_apart_cost_more_when_one_replaces_the_other() -> None:
    apart = [np.array([[0.75, -0.75], [0.5, 0.5]])] * 2
    mechanism = KroneckerMechanism(
        factors=[np.eye(2)] * 2, strategies=apart, stddev=3, neighboring=Neighboring.REPLACE_ONE
    )
    columns = np.kron(*(axis.whole for axis in mechanism._axes)).T
    moved = max(int(np.square(one - other).sum()) for one, other in itertools.combinations(columns, 2))
    single = max(int(np.square(column).sum()) for column in columns)
    assert 2 * single < moved <= mechanism.l2_squared


@cases("name", CASES)
def test_the_product_of_the_best_strategies_is_best(name: str) -> None:
    """Total squared error against the bound for the dense workload."""
    mechanism = KroneckerMechanism(factors=CASES[name], stddev=1)
    dense = optimal_strategy(reduce(np.kron, CASES[name]))
    moved = mechanism.l2_squared / 4.0**mechanism._total_bits
    error = float(np.square(mechanism.stddevs).sum()) * moved
    assert dense.bound * (1 - 1e-6) <= error
    assert error <= dense.bound * 1.01
    parts = [np.ldexp(axis.whole.astype(float), -mechanism._bits) for axis in mechanism._axes]
    strategy = reduce(lambda a, b: np.asarray(np.kron(a, b)), parts)
    assert error == pytest.approx(
        total_squared_error(reduce(np.kron, CASES[name]), strategy) * moved, rel=1e-6
    )


@cases("name", CASES)
def test_noise_has_no_bias_and_the_stated_spread(name: str) -> None:
    mechanism = KroneckerMechanism.calibrated(factors=CASES[name], epsilon=1.0, delta=1e-6)
    assert mechanism.privacy_loss.epsilon(1e-6) <= 1.0
    shape = tuple(np.shape(factor)[1] for factor in CASES[name])
    generator = np.random.default_rng(1)
    counts = generator.integers(0, 1000, shape)
    truth = (reduce(np.kron, CASES[name]) @ counts.reshape(-1)).reshape(mechanism.stddevs.shape)
    releases = [mechanism.release(counts, generator) for _ in range(500)]
    noise = np.array([release.value for release in releases]) - truth
    deviation = mechanism.stddevs
    accepts_only(
        moments(noise),
        (0, deviation**2),
        moved=(deviation / 2, deviation**2),
        wider=(0, 2 * deviation**2),
        narrower=(0, deviation**2 / 2),
    )
    lower, upper, _ = releases[0].interval(0.9)
    for held in (np.abs(noise) <= (upper - lower) / 2).sum(axis=0).ravel().tolist():
        accepts_only(rate(held, 500), 0.9, always=1.0, rarer=0.75)


def test_measurements_are_exact_whole_numbers() -> None:
    """With counts near the limit, noise aside: the answers of Python's integers, to float accuracy."""
    mechanism = KroneckerMechanism(factors=[PREFIXES, np.eye(3)], stddev=1)
    counts = np.random.default_rng(2).integers(0, 1 << 31, (5, 3))
    exact = np.cumsum(counts.astype(object), axis=0).astype(float)
    np.testing.assert_allclose(mechanism.release(counts, rng=1).value, exact, rtol=1e-8)
    huge = mechanism.release(np.full((5, 3), 1 << 62), rng=1)  # wraps, and is answered
    assert np.isfinite(huge.value).all()


@cases("bits", [1, 8, 25])
def test_products_of_whole_numbers_are_exact_for_any_table(bits: int) -> None:
    """Over the whole range of 64 bits, against Python's integers."""
    generator = np.random.default_rng(bits)
    matrix = generator.integers(-(2**bits), 2**bits, (7, 300), endpoint=True)
    columns = generator.integers(-(2**63), 2**63 - 1, (300, 4), endpoint=True)
    columns[0], columns[1] = -(2**63), 2**63 - 1
    exact = matrix.astype(object) @ columns.astype(object)
    wrapped = [[(entry + 2**63) % 2**64 - 2**63 for entry in row] for row in exact.tolist()]
    assert _multiply_exactly(matrix, columns).tolist() == wrapped


@cases("neighboring", list(Neighboring))
def test_norms_at_the_limit_are_exact(neighboring: Neighboring) -> None:
    """Columns of norm 2 with entries of all 24 bits: the sums of floats against Python's integers."""
    generator = np.random.default_rng(3)
    strategy = generator.normal(size=(90, 90))
    strategy *= 2 / np.linalg.norm(strategy, axis=0) * (1 - 1e-12)
    mechanism = KroneckerMechanism(
        factors=[np.eye(90)], strategies=[strategy], stddev=3, neighboring=neighboring
    )
    whole = np.rint(np.ldexp(strategy, 24)).astype(np.int64).astype(object)
    gram = whole.T @ whole
    largest = int(np.diagonal(gram).max())
    if neighboring is Neighboring.REPLACE_ONE:
        assert gram.min() < 0
        assert mechanism.l2_squared == 2 * largest - 2 * int(gram.min())
    else:
        assert mechanism.l2_squared == largest


def test_what_is_calibrated_is_what_its_parameters_make() -> None:
    made = KroneckerMechanism.calibrated(factors=[PREFIXES, np.eye(3)], epsilon=1.0, delta=1e-6)
    again = KroneckerMechanism(factors=made.factors, strategies=made.strategies, stddev=made.stddev)
    assert again.privacy_loss == made.privacy_loss
    assert (again.stddevs == made.stddevs).all()
    with pytest.raises(ParameterError, match="stddev must be from 1 to"):
        KroneckerMechanism.calibrated(factors=[PREFIXES], epsilon=1e-9, delta=1e-6)


def test_a_large_table() -> None:
    mechanism = KroneckerMechanism.calibrated(
        factors=[np.tril(np.ones((50, 50))), np.eye(20), np.ones((1, 30))], epsilon=1.0, delta=1e-6
    )
    release = mechanism.release(np.ones((50, 20, 30), dtype=np.int64), rng=1)
    assert release.value.shape == (50, 20, 1)
    lower, upper, _ = release.interval(0.999, joint=True)
    truth = 30.0 * np.arange(1, 51)[:, None, None]
    assert ((lower < truth) & (truth < upper)).all()


@cases(
    ("make", "message"),
    [
        (lambda: KroneckerMechanism(factors=[], stddev=1), "factors must hold one matrix for each axis"),
        (lambda: KroneckerMechanism(factors=[np.zeros((2, 2))], stddev=1), "workload must be a matrix"),
        (lambda: KroneckerMechanism(factors=[PREFIXES], stddev=0), "stddev must be positive"),
        (lambda: KroneckerMechanism(factors=[PREFIXES], stddev=2.0**30), "stddev must be from 1 to"),
        (lambda: KroneckerMechanism(factors=[PREFIXES], stddev=1, neighboring="x"), "neighboring must be"),  # type: ignore[arg-type]
        (
            lambda: KroneckerMechanism(factors=[PREFIXES], stddev=1, strategies=[np.eye(5), np.eye(5)]),
            "strategies must be 1, one for each factor",
        ),
        (
            lambda: KroneckerMechanism(factors=[PREFIXES], stddev=1, strategies=[np.eye(4)]),
            r"strategies must be finite, of a shape of \(rows, 5\)",
        ),
        (
            lambda: KroneckerMechanism(factors=[PREFIXES], stddev=1, strategies=[3 * np.eye(5)]),
            "strategies must have columns of an L2 norm of about 1",
        ),
        (
            lambda: KroneckerMechanism(factors=[PREFIXES], stddev=1, strategies=[np.ones((1, 5)) / 2]),
            "strategies must determine the answers",
        ),
        (
            lambda: KroneckerMechanism(factors=[PREFIXES], stddev=1).release(np.zeros(4, dtype=int)),
            r"value must have the shape \(5,\)",
        ),
        (
            lambda: KroneckerMechanism(factors=[PREFIXES], stddev=1).release(np.zeros(5)),
            "value must be an int or",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]
