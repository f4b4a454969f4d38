"""The sparse vector technique, right and wrong, against the anchors and against mpmath's integrals."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit import exact_audit, sparse_vector_distribution, sparse_vector_ratio
from sfumato.errors import ParameterError
from tests.cases import cases

RIGHT = {1: 0.3958, 4: 0.8337, 8: 0.98086, 16: 0.99982}
NO_CUTOFF = {1: 0.7367, 4: 3.185, 8: 6.608, 16: 13.61, 32: 27.80}


@pytest.mark.parametrize(("k", "ratio"), RIGHT.items())
def test_the_right_algorithm_approaches_its_epsilon_and_never_passes_it(k: int, ratio: float) -> None:
    """Epsilon 1, one positive: k below and one above, on queries that trade places."""
    run, first, second = [False] * k + [True], [0] * k + [1], [1] * k + [0]
    found = sparse_vector_ratio(run, first, second, threshold_scale=2, query_scale=4)
    assert abs(found - ratio) <= 0.6 * 10 ** -len(str(ratio).split(".")[1])
    assert found <= 1


@cases(("k", "ratio"), NO_CUTOFF.items())
def test_without_a_cutoff_every_positive_costs(k: int, ratio: float) -> None:
    """Algorithm 6 of Lyu, Su and Li at epsilon 1: (below, above) k times over."""
    found = sparse_vector_ratio([False, True] * k, [0, 1] * k, [1, 0] * k, threshold_scale=2, query_scale=2)
    assert abs(found - ratio) <= 0.6 * 10 ** -len(f"{ratio}".split(".")[1])


@cases("k", [1, 4, 8, 16, 32])
def test_without_noise_on_the_queries_it_is_infinite(k: int) -> None:
    """Algorithm 5: an order of answers that the other input cannot give."""
    run = [False] * k + [True]
    args = {"threshold_scale": 2.0, "query_scale": 0.0}
    assert sparse_vector_ratio(run, [0] * k + [1], [1] * k + [0], **args) == math.inf
    assert sparse_vector_ratio(run, [1] * k + [0], [0] * k + [1], **args) == -math.inf


def test_k_32_is_next_to_epsilon() -> None:
    run, first, second = [False] * 32 + [True], [0] * 32 + [1], [1] * 32 + [0]
    assert 1 - 1e-7 < sparse_vector_ratio(run, first, second, threshold_scale=2, query_scale=4) <= 1


def test_long_runs_keep_their_digits() -> None:
    """Against a rule with pieces and nodes of its own, of the same integral."""
    found = sparse_vector_ratio(
        [False, True] * 32, [0, 1] * 32, [1, 0] * 32, threshold_scale=2, query_scale=2
    )
    assert abs(found - 27.79632615635319) < 1e-10


def by_mpmath(run: tuple[bool, ...], queries: list[float], wide: float, narrow: float) -> mpmath.mpf:
    def at_most(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

    def integrand(z: mpmath.mpf) -> mpmath.mpf:
        value = mpmath.exp(-abs(z) / wide) / (2 * wide)
        for above, query in zip(run, queries, strict=False):
            value *= at_most((query - z if above else z - query) / narrow)
        return value

    with mpmath.workdps(25):
        kinks = sorted({0.0, *queries})
        ends = [kinks[0] - 90 * wide, *kinks, kinks[-1] + 90 * wide]
        points = [ends[0], *(e - 8 * wide for e in ends[1:2]), *ends[1:-1], ends[-2] + 8 * wide, ends[-1]]
        return mpmath.quad(integrand, sorted(points))


@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=4),
    st.floats(0.5, 4.0),
    st.floats(0.5, 4.0),
    st.data(),
)
def test_probabilities_are_those_of_another_quadrature(
    queries: list[float], wide: float, narrow: float, data: st.DataObject
) -> None:
    distribution = sparse_vector_distribution(queries, threshold_scale=wide, query_scale=narrow)
    run = data.draw(st.sampled_from(sorted(distribution)))
    assert math.isclose(distribution[run], by_mpmath(run, queries, wide, narrow), rel_tol=1e-10)
    assert math.isclose(sum(distribution.values()), 1, rel_tol=1e-11)


def test_queries_next_to_each_other_on_the_floats() -> None:
    """The piece between them has no middle of its own."""
    found = sparse_vector_distribution([0.0, 5e-324], threshold_scale=1.0, query_scale=0.5)
    same = sparse_vector_distribution([0.0, 0.0], threshold_scale=1.0, query_scale=0.5)
    assert found == pytest.approx(same, rel=1e-12)


def test_the_distribution_of_a_run_that_ends() -> None:
    distribution = sparse_vector_distribution([0.0] * 5, threshold_scale=2.0, query_scale=4.0, positives=2)
    assert math.isclose(sum(distribution.values()), 1, rel_tol=1e-11)
    assert all(sum(run) <= 2 and (sum(run) < 2 or run[-1]) for run in distribution)
    shifted = sparse_vector_distribution(
        [3.0] * 5, threshold=3.0, threshold_scale=2.0, query_scale=4.0, positives=2
    )
    assert shifted == pytest.approx(distribution)


def test_the_right_algorithm_holds_at_every_place_of_its_threshold() -> None:
    """Its worst case, over where the queries lie, is epsilon itself."""

    def distribution(queries: list[float]) -> dict[tuple[bool, ...], float]:
        return sparse_vector_distribution(queries, threshold_scale=2.0, query_scale=4.0, positives=1)

    pairs = [
        ([a] * 8 + [b], [a + 1] * 8 + [b + s])
        for a in range(-12, 13, 6)
        for b in (-12, 0, 12)
        for s in (1, -1)
    ]
    found = exact_audit(distribution, epsilon=1.0, pairs=pairs)
    assert 0.999 < found.epsilon_lower <= found.epsilon_upper <= 1 + 1e-10
    assert not exact_audit(distribution, epsilon=1.0 + 1e-9, pairs=pairs).violated


def test_lee_and_clifton_pay_for_one_positive_only() -> None:
    """Algorithm 4 with c = 4: at most (1 + 6 c) / 4 epsilon, and more than epsilon."""

    def distribution(queries: list[float]) -> dict[tuple[bool, ...], float]:
        return sparse_vector_distribution(queries, threshold_scale=4.0, query_scale=4 / 3, positives=4)

    found = exact_audit(distribution, epsilon=1.0, pairs=[([0, 1] * 4, [1, 0] * 4)])
    assert found.violated
    assert 1 < found.epsilon_lower <= (1 + 6 * 4) / 4


def test_bad_input() -> None:
    for bad in (
        lambda: sparse_vector_distribution([0.0] * 13, threshold_scale=1.0, query_scale=1.0),
        lambda: sparse_vector_distribution([0.0] * 100, threshold_scale=1.0, query_scale=1.0, positives=50),
        lambda: sparse_vector_distribution([0.0], threshold_scale=0.0, query_scale=1.0),
        lambda: sparse_vector_distribution([0.0], threshold_scale=1.0, query_scale=-1.0),
        lambda: sparse_vector_ratio([True] * 2, [0.0], [1.0], threshold_scale=1.0, query_scale=1.0),
    ):
        with pytest.raises(ParameterError, match=" must "):
            bad()
