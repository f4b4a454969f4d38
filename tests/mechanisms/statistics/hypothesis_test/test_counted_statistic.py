"""Signed ranks, rank correlations and two samples: sensitivity by enumeration, null distributions, size."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import NeighboringMismatch, ParameterError, UnboundedSensitivity
from sfumato.mechanisms import (
    Gaussian,
    KendallTau,
    Laplace,
    SpearmanRho,
    TwoSampleKolmogorovSmirnov,
    WilcoxonSignedRank,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_most, frequencies, moments

ADD, REPLACE = Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE
SIGNED, TAU, RHO, DISTANCE = WilcoxonSignedRank(), KendallTau(), SpearmanRho(), TwoSampleKolmogorovSmirnov()
QUERIES = [SIGNED, TAU, RHO, DISTANCE]
Pair = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def tables(query: Any, size: int) -> Iterator[tuple[np.ndarray[Any, Any], list[Any]]]:
    """All data sets of so many records that ranks tell apart, and all records that may be put there."""
    places = np.arange(-0.5, size)
    if query is SIGNED:
        for signs in itertools.product((-1, 1), repeat=size):
            yield np.array(signs) * np.arange(1.0, size + 1), [s * (p + 1) for s in (-1, 1) for p in places]
    elif query is DISTANCE:
        for groups in itertools.product((0, 1), repeat=size):
            rows = np.column_stack([groups, np.arange(float(size))])
            yield rows, [(g, p) for g in (0, 1) for p in places]
    else:
        for order in itertools.permutations(range(size)):
            yield np.column_stack([np.arange(float(size)), order]), list(itertools.product(places, places))


def moves(query: Any, size: int, *, replaced: bool) -> Iterator[np.ndarray[Any, Any]]:
    for data, records in tables(query, size):
        before = query.steps(data)
        for record in records:
            if not replaced:
                yield np.abs(query.steps(np.concatenate([data, [record]])) - before)
                continue
            for place in range(size):
                other = data.copy()
                other[place] = record
                yield np.abs(query.steps(other) - before)


@cases("query", QUERIES)
@cases("relation", [ADD, REPLACE])
def test_a_record_moves_each_answer_by_no_more_than_is_claimed(query: Any, relation: Neighboring) -> None:
    size = 5 if query in (SIGNED, DISTANCE) else 3 if relation is REPLACE else 4
    bound = query.shift(relation)
    found = np.array(list(moves(query, size, replaced=relation is REPLACE)))
    assert (found.sum(axis=1) <= bound.l1).all()
    assert ((found.astype(object) ** 2).sum(axis=1) <= bound.l2_squared).all()
    assert ((found > 0).sum(axis=1) <= bound.l0).all()
    assert found.max() <= bound.linf
    assert found[:, 0].max() >= 0.5 * bound.linf


def farthest(query: Any, size: int) -> dict[Neighboring, Pair]:
    """The neighbors that are farthest apart."""
    rising = np.arange(1.0, size + 1)
    if query is SIGNED:
        replaced = np.append(rising[:-1], -2.0 * size)
        return {ADD: (-rising, np.append(-rising, 2.0 * size)), REPLACE: (rising, replaced)}
    if query is DISTANCE:
        second = np.column_stack([np.ones(size), rising])
        first = second.copy()
        first[0, 0] = 0
        return {ADD: (second, np.vstack([second, [0, 0]])), REPLACE: (second, first)}
    falling, highest = np.column_stack([rising, -rising]), [2.0 * size, 2.0 * size]
    with_it = np.vstack([np.column_stack([rising, rising]), highest])
    without = with_it.copy()
    without[-1, 1] = -1.0
    return {ADD: (falling, np.vstack([falling, highest])), REPLACE: (with_it, without)}


@cases("query", QUERIES)
def test_bounds_are_met_in_the_limit(query: Any) -> None:
    for relation, (one, other) in farthest(query, 400).items():
        bound, move = query.shift(relation), np.abs(query.steps(other) - query.steps(one))
        assert 0.98 * bound.linf < move[0] <= bound.linf
        assert move.sum() <= bound.l1
    assert query.shift(Neighboring.ZERO_OUT) == query.shift(ADD)


def test_the_statistics_are_those_of_the_books() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 7, 64, 333):
        data = rng.normal(size=(n, 2)) + rng.normal(size=(n, 1))
        assert TAU(data)[0] * 2 / (n - 1) == pytest.approx(stats.kendalltau(*data.T).statistic, abs=1e-4)
        assert RHO(data)[0] / (n - 1) == pytest.approx(stats.spearmanr(*data.T).statistic, abs=1e-4)
        signed = float((stats.rankdata(np.abs(data[:, 0])) * np.sign(data[:, 0])).sum())
        assert SIGNED(data[:, 0])[0] * (n + 1) == pytest.approx(signed, abs=1e-3)
        group = np.arange(n) % 3 > 0
        largest = stats.ks_2samp(data[~group, 1], data[group, 1]).statistic
        table, sizes = np.column_stack([group, data[:, 1]]), (int((~group).sum()), int(group.sum()))
        assert DISTANCE(table)[0] * n / math.prod(sizes) == pytest.approx(largest, abs=1e-5)
        assert (DISTANCE(table)[1:] * 4).tolist() == list(sizes)


@cases("query", QUERIES)
def test_estimates_are_those_of_the_data_where_there_is_hardly_noise(query: Any) -> None:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(500, 2)) + rng.normal(size=(500, 1))
    group = np.arange(500) % 2
    given = {SIGNED: data[:, 0] + 0.5, DISTANCE: np.column_stack([group, data[:, 0] + group])}
    expected = {
        SIGNED: 4 * stats.wilcoxon(data[:, 0] + 0.5, alternative="greater").statistic / (500 * 501) - 1,
        TAU: stats.kendalltau(*data.T).statistic,
        RHO: stats.spearmanr(*data.T).statistic,
        DISTANCE: stats.ks_2samp(data[group == 0, 0], data[group == 1, 0] + 1).statistic,
    }
    release = Laplace.for_query(query, epsilon=1e5).release(given.get(query, data), rng=1)
    assert query.estimate(release) == pytest.approx(expected[query], abs=0.005)


def test_ties_and_zeros_are_broken_by_all_orders_alike() -> None:
    count, same = 1500, np.zeros((3, 2))
    signed = Counter(round(float(SIGNED(np.zeros(3))[0] * 4)) for _ in range(count))
    totals = [a + 2 * b + 3 * c for a, b, c in itertools.product((-1, 1), repeat=3)]
    law = {total: totals.count(total) / 8 for total in set(totals)}
    accepts_only(frequencies(signed), law, left_at_zero={0: 1.0})
    tau = Counter(round(float(TAU(same)[0] * 3)) for _ in range(count))
    accepts_only(frequencies(tau), {3: 1 / 6, 1: 1 / 3, -1: 1 / 3, -3: 1 / 6}, left_at_zero={0: 1.0})
    table = np.column_stack([[0, 0, 1, 1], np.ones(4)])
    seen = Counter(round(float(DISTANCE(table)[0] * 2)) for _ in range(count))
    accepts_only(frequencies(seen), {1: 2 / 3, 2: 1 / 3}, left_at_zero={0: 1.0})


@cases("query", QUERIES)
@cases("size", [6, 40])
def test_drawn_statistics_are_those_of_random_data(query: Any, size: int) -> None:
    """What stands for the null hypothesis has the moments of the statistic on data that follow it."""
    rng, count = np.random.default_rng(size), 500
    counts = np.tile([size // 2, size - size // 2] if query is DISTANCE else [size], (count, 1))
    drawn = query._drawn(counts, rng)
    group = np.arange(size) >= size // 2
    data = [rng.normal(size=(size, 2)) for _ in range(count)]
    if query is SIGNED:
        found = np.array([query(rows[:, 0])[0] for rows in data])
    else:
        rows_of = (lambda x: np.column_stack([group, x[:, 0]])) if query is DISTANCE else (lambda x: x)
        found = np.array([query(rows_of(rows))[0] for rows in data])
    error = math.sqrt(float(found.var() + drawn.var()) / count)
    assert abs(float(found.mean() - drawn.mean())) < 6 * error
    assert 0.75 < float(found.std() / drawn.std()) < 1.33
    if query is not DISTANCE:
        law = (0.0, float(query._variance(counts[:1].astype(float))[0]))
        accepts_only(moments(drawn), law, half_as_wide=(0.0, law[1] / 4))


@cases("query", QUERIES)
def test_many_records_are_drawn_by_the_limit(query: Any) -> None:
    rng = np.random.default_rng(2)
    sizes = [256, 256] if query is DISTANCE else [512]
    few = query._drawn(np.tile(sizes, (2000, 1)), rng)
    many = query._drawn(np.vstack([np.tile(sizes, (2000, 1)), np.add(sizes, 1)]), rng)[:-1]
    for share in (0.5, 0.8, 0.95):
        below = float((many <= np.quantile(few, share)).mean())
        assert abs(below - share) < 6 * math.sqrt(2 * share * (1 - share) / 2000)


def test_two_groups_of_public_sizes_are_compared_exactly() -> None:
    query, rng, count = TwoSampleKolmogorovSmirnov(sizes=(2, 3)), np.random.default_rng(5), 200
    worst = 0
    for order in itertools.permutations(range(5)):
        data = np.array(order, dtype=float)
        for record, place in itertools.product(range(5), np.arange(-0.5, 5, 2.0)):
            other = data.copy()
            other[record] = place
            worst = max(worst, abs(int(query.steps(data)) - int(query.steps(other))))
    assert worst == query.shift(REPLACE).linf == 3
    noisy = Laplace.for_query(query, epsilon=1.0, neighboring=REPLACE)
    found = [
        query.test(noisy.release(rng.poisson(1.0, 5), rng), draws=49, rng=rng).p_value for _ in range(count)
    ]
    accepts_only(at_most(sum(value <= 0.3 for value in found), count), 0.3, much_rarer=0.01)
    large = TwoSampleKolmogorovSmirnov(sizes=(200, 100))
    measured = Laplace.for_query(large, epsilon=1.0, neighboring=REPLACE)
    data = np.append(rng.normal(size=200), rng.normal(1, 1, 100))
    release, book = measured.release(data, rng=1), stats.ks_2samp(data[:200], data[200:])
    assert large(data) == round(book.statistic * 20_000)
    assert large.estimate(release) == pytest.approx(book.statistic, abs=0.1)
    assert large.test(release, draws=199, rng=1).p_value == 0.005
    assert 0 < query.test(noisy.release(np.zeros(0), rng=1), draws=19, rng=1).p_value <= 1
    with pytest.raises(UnboundedSensitivity, match="neighboring must be replace-one"):
        query.shift(ADD)
    with pytest.raises(ParameterError, match="sizes must"):
        TwoSampleKolmogorovSmirnov(sizes=(3, 0))


def null_data(query: Any, rng: np.random.Generator, size: int) -> Any:
    """Independent records, with ties."""
    if query is SIGNED:
        return rng.integers(-3, 4, size)
    return np.column_stack([rng.integers(0, 2, size), rng.poisson(2.0, size)])


@cases("query", QUERIES)
def test_true_hypotheses_are_refused_about_as_rarely_as_promised(query: Any) -> None:
    rng, count = np.random.default_rng(4), 120
    noisy = Laplace.for_query(query, epsilon=1.0)
    found = [
        query.test(noisy.release(null_data(query, rng, 60), rng), draws=99, rng=rng).p_value
        for _ in range(count)
    ]
    assert sum(value <= 0.05 for value in found) <= 30
    hits = sum(value <= 0.3 for value in found)
    accepts_only(at_most(hits, count), 0.35, much_rarer=0.01)


@cases("query", [SIGNED, TAU, RHO])
def test_with_a_public_number_of_records_true_hypotheses_are_refused_as_promised(query: Any) -> None:
    rng, count = np.random.default_rng(8), 200
    noisy = Laplace.for_query(query, epsilon=1.0, neighboring=REPLACE)
    found = [
        query.test(noisy.release(null_data(query, rng, 7), rng), n=7, draws=49, rng=rng).p_value
        for _ in range(count)
    ]
    accepts_only(at_most(sum(value <= 0.3 for value in found), count), 0.3, much_rarer=0.01)
    joining = Laplace.for_query(query, epsilon=1.0).release(null_data(query, rng, 7), rng=1)
    with pytest.raises(NeighboringMismatch, match="replace-one or zero-out where n is public"):
        query.test(joining, n=7)


@cases("query", QUERIES)
@cases("kind", [Laplace, Gaussian])
def test_false_hypotheses_are_refused(query: Any, kind: Any) -> None:
    delta = {"delta": 1e-6} if kind is Gaussian else {}
    noisy, rng = kind.for_query(query, epsilon=2.0, **delta), np.random.default_rng(1)
    x = rng.normal(size=700)
    data = {SIGNED: x - 1, DISTANCE: np.column_stack([x > 0, x + (x > 0)])}
    release = noisy.release(data.get(query, np.column_stack([x, -x])), rng=2)
    assert query.test(release, draws=199, rng=3).p_value <= 0.01
    if query is not DISTANCE:
        found = [query.test(release, alternative=side, rng=3).p_value for side in ("less", "greater")]
        assert found[0] < 0.01
        assert found[1] > 0.99


@cases("query", QUERIES)
def test_odd_data_is_answered(query: Any) -> None:
    noisy = Laplace.for_query(query, epsilon=1.0)
    for rows in (np.zeros((0, 2)), np.full((9, 2), np.nan), np.array([[np.inf, -np.inf]])):
        release = noisy.release(rows[:, 0] if query is SIGNED else rows, rng=1)
        assert 0 < query.test(release, draws=19, rng=1).p_value <= 1
        assert -1 <= query.estimate(release) <= 1
    with pytest.raises(ParameterError, match="draws must"):
        query.test(release, draws=3)
    with pytest.raises(ParameterError, match="release must be of this query"):
        query.test(3)
    with pytest.raises(ParameterError, match="data must be"):
        query.steps(np.zeros((3, 5)))
    if query is not DISTANCE:
        with pytest.raises(ParameterError, match="alternative must"):
            query.test(release, alternative="more")
