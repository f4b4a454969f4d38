"""Rank tests and analysis of variance: sensitivity by enumeration, null distributions, size and power."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError, UnboundedSensitivity
from sfumato.mechanisms import (
    Gaussian,
    KendallTau,
    KruskalWallis,
    Laplace,
    MannWhitney,
    Norm,
    OneWayAnova,
    Query,
    SpearmanRho,
    Stability,
    TwoSampleKolmogorovSmirnov,
    WilcoxonSignedRank,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_most, frequencies

REPLACE = Neighboring.REPLACE_ONE


def neighbors(size: int) -> Any:
    """All orders of distinct records, each with every record put in every other place."""
    for order in itertools.permutations(range(size)):
        data = np.array(order, dtype=float)
        for record, place in itertools.product(range(size), np.arange(-0.5, size, 2.0)):
            other = data.copy()
            other[record] = place
            yield data, other


@cases(
    "query",
    [
        KruskalWallis(sizes=(2, 3)),
        MannWhitney(sizes=(2, 3)),
        MannWhitney(sizes=(1, 4)),
        KruskalWallis(sizes=(2, 2, 1)),
    ],
)
def test_ranks_move_by_no_more_than_is_claimed(query: Any) -> None:
    claimed = query.sensitivity(REPLACE, Norm.L1)
    worst = max(abs(query.steps(data) - query.steps(other)) for data, other in neighbors(5))
    # The largest moves of all: those of three groups' mean ranks need more records to be met.
    assert worst == claimed if len(query.sizes) == 2 else 0.7 * claimed < worst <= claimed


def test_sums_of_differences_move_by_no_more_than_is_claimed() -> None:
    query = OneWayAnova(sizes=(2, 1, 2), bounds=(0.0, 2.0))
    bound = query.shift(REPLACE)
    moves = []
    for data in itertools.product((0.0, 0.7, 2.0), repeat=5):
        before = query.steps(np.array(data))
        for record, value in itertools.product(range(5), (0.0, 1.3, 2.0)):
            other = np.array(data)
            other[record] = value
            moves.append(np.abs(query.steps(other) - before))
    largest = np.array(moves).max(axis=0)
    first, second = bound.l1 - query.weight * 2**16, query.weight * 2**16
    assert 0.7 * first < largest[0] <= first
    assert largest[1] == second
    assert (np.array(moves).sum(axis=1) <= bound.l1).all()
    assert ((np.array(moves) ** 2).sum(axis=1) <= bound.l2_squared).all()


def test_the_statistics_are_those_of_the_books() -> None:
    data = np.array([1.1, 4.0, 2.2, 3.3, 9.0, 7.5, 8.1])
    first, second = data[:3], data[3:]
    assert MannWhitney(sizes=(3, 4)).steps(data) == (first[:, None] > second).sum()
    ranks = data.argsort().argsort() + 1.0
    parts = np.split(ranks, [3, 5])
    absolute = 2 * sum(len(part) * abs(part.mean() - 4) for part in parts)
    assert KruskalWallis(sizes=(3, 2, 2)).steps(data) == pytest.approx(absolute)
    query = OneWayAnova(sizes=(3, 2, 2), bounds=(0.0, 10.0))
    exact = Laplace.for_query(query, epsilon=1e6, neighboring=REPLACE).release(data)
    parts = np.split(data, [3, 5])
    between = sum(len(part) * abs(part.mean() - data.mean()) for part in parts)
    within = sum(np.abs(part - np.median(part)).sum() for part in parts)
    found = query.estimate(exact)
    assert found == pytest.approx((between, within, between / 2 / (within / 4)), abs=0.01)


def test_ties_are_broken_by_all_orders_alike() -> None:
    query, count = MannWhitney(sizes=(2, 2)), 4000
    seen = Counter(query.steps(np.array([3.0, 3.0, 3.0, 3.0])) for _ in range(count))
    orders = [
        sum(a > b for a in pair for b in {1, 2, 3, 4} - {*pair})
        for pair in itertools.combinations(range(1, 5), 2)
    ]
    accepts_only(
        frequencies(seen),
        {u: orders.count(u) / 6 for u in set(orders)},
        in_the_order_of_the_data={0: 1.0},
        even=dict.fromkeys(range(5), 0.2),
    )


@cases(
    "query",
    [
        MannWhitney(sizes=(5, 7)),
        KruskalWallis(sizes=(3, 4, 5)),
        TwoSampleKolmogorovSmirnov(sizes=(5, 7)),
        TwoSampleKolmogorovSmirnov(),
        WilcoxonSignedRank(),
        KendallTau(),
        SpearmanRho(),
        KendallTau().after(stability=Stability(replace_one=1)),
    ],
)
def test_a_seed_breaks_ties_too(query: Query) -> None:
    alone = query.entries == 1 or isinstance(query, WilcoxonSignedRank)
    data = np.zeros(12) if alone else np.zeros((12, 2))
    if isinstance(query, TwoSampleKolmogorovSmirnov) and not alone:
        data[:5, 0] = 1
    noisy = Laplace.for_query(query, epsilon=1e6, neighboring=REPLACE)

    def answer(seed: Any) -> Any:
        return np.asarray(noisy.release(data, rng=seed).value).tolist()

    first = [answer(seed) for seed in range(12)]
    assert [answer(seed) for seed in range(12)] == first
    assert [answer(np.random.default_rng(3))] == [answer(np.random.default_rng(3))]
    assert any(found != first[0] for found in first)
    assert query.draws


def null_p_values(query: Any, count: int, draw: Any) -> list[float]:
    noisy = Laplace.for_query(query, epsilon=1.0, neighboring=REPLACE)
    rng = np.random.default_rng(4)
    return [query.test(noisy.release(draw(rng), rng), draws=99, rng=rng).p_value for _ in range(count)]


@pytest.mark.sharpest("MannWhitney")
@pytest.mark.parametrize(
    "query", [MannWhitney(sizes=(6, 9)), KruskalWallis(sizes=(5, 5, 5))], ids=["MannWhitney", "KruskalWallis"]
)
def test_common_distributions_are_refused_as_rarely_as_promised(query: Any) -> None:
    count = 800
    # With ties: few different values.
    found = np.array(null_p_values(query, count, lambda rng: rng.poisson(1.0, 15).astype(float)))
    hits = int((found <= 0.3).sum())
    accepts_only(at_most(hits, count), 0.3, much_rarer=0.1)


@pytest.mark.exhaustive
def test_normal_groups_of_one_mean_are_refused_about_as_rarely_as_promised() -> None:
    query, count = OneWayAnova(sizes=(40, 30, 50), bounds=(-6.0, 6.0)), 1000
    found = np.array(null_p_values(query, count, lambda rng: rng.normal(0.5, 1.0, 120)))
    hits = int((found <= 0.1).sum())
    accepts_only(at_most(hits, count), 0.13, much_rarer=0.03)


@cases(
    "query",
    [
        MannWhitney(sizes=(150, 150)),
        KruskalWallis(sizes=(150, 150)),
        OneWayAnova(sizes=(150, 150), bounds=(-5.0, 5.0)),
    ],
)
@cases("kind", [Laplace, Gaussian])
def test_different_groups_are_noticed(query: Any, kind: Any) -> None:
    delta = {"delta": 1e-6} if kind is Gaussian else {}
    noisy = kind.for_query(query, epsilon=2.0, neighboring=REPLACE, **delta)
    rng = np.random.default_rng(1)
    data = rng.normal(size=300) + np.repeat([0.0, 2.0], 150)
    assert query.test(noisy.release(data, rng=2), draws=199, rng=3).p_value <= 0.01
    one_sided = [MannWhitney(sizes=(150, 150)).test] if isinstance(query, MannWhitney) else []
    for test in one_sided:
        release = noisy.release(data, rng=2)
        assert test(release, alternative="less", rng=3).p_value < 0.01
        assert test(release, alternative="greater", rng=3).p_value > 0.99


def test_odd_data_is_answered() -> None:
    odd = (np.zeros(0), np.full(40, np.nan), np.array([np.inf, -np.inf, 1.0]))
    for query in (
        MannWhitney(sizes=(2, 3)),
        KruskalWallis(sizes=(2, 3)),
        OneWayAnova(sizes=(2, 3), bounds=(0.0, 1.0)),
    ):
        noisy = Laplace.for_query(query, epsilon=1.0, neighboring=REPLACE)
        for data in odd:
            assert 0 < query.test(noisy.release(data, rng=1), draws=19, rng=1).p_value <= 1


@cases(
    ("make", "error", "message"),
    [
        (lambda: MannWhitney(sizes=cast("Any", (1, 2, 3))), ParameterError, "sizes must hold 2"),
        (lambda: KruskalWallis(sizes=(3,)), ParameterError, "sizes must hold at least two"),
        (lambda: KruskalWallis(sizes=(3, 0)), ParameterError, "sizes must be an integer of at least 1"),
        (lambda: KruskalWallis(sizes=(3, 2**20)), ParameterError, "sizes must add up to at most"),
        (lambda: OneWayAnova(sizes=(1, 1), bounds=(0.0, 1.0)), ParameterError, "sizes must have a group"),
        (lambda: OneWayAnova(sizes=(2, 1), bounds=(1.0, 1.0)), ParameterError, "bounds must"),
        (
            lambda: Laplace.for_query(MannWhitney(sizes=(2, 3)), epsilon=1.0),
            UnboundedSensitivity,
            "neighboring must be replace-one",
        ),
        (
            lambda: MannWhitney(sizes=(2, 3)).test(Laplace(sensitivity=1, scale=1).release(3)),
            NeighboringMismatch,
            "release must be under replace-one",
        ),
        (lambda: KruskalWallis(sizes=(2, 3)).test(3), ParameterError, "release must be of this query"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_wrong_options_of_tests_are_refused() -> None:
    query = MannWhitney(sizes=(2, 3))
    release = Laplace.for_query(query, epsilon=1.0, neighboring=REPLACE).release(np.arange(5.0), rng=1)
    with pytest.raises(ParameterError, match="alternative must"):
        query.test(release, alternative="more")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="draws must"):
        query.test(release, draws=3)
    assert query.test(release, draws=19, rng=1).p_value >= Fraction(1, 20)
