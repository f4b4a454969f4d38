"""The compiled kernels refuse whatever could leave their memory, and all variants give the same bits."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.numerics import _kernels
from sfumato.numerics.randomness.source import SimulatedSource
from tests.cases import cases

LEAST = 65536


def words(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def plain_direct(thresholds: list[int], given_words: list[int]) -> tuple[int, list[int]]:
    """What `direct` must do, a word at a time."""
    made: list[int] = []
    for word in given_words:
        uniform = word >> 1
        if uniform < LEAST or uniform in thresholds:
            break
        k = sum(t > uniform for t in thresholds)
        made.append(-k if word & 1 else k)
    return len(made), made


TABLES = st.lists(st.one_of(st.integers(1, 2**63 - 1), st.integers(1, 2**20)), max_size=60).map(
    lambda values: sorted(values, reverse=True)
)


@given(
    table=TABLES, seed=st.integers(0, 2**32), near=st.lists(st.integers(-2, 2), max_size=20), data=st.data()
)
@settings(max_examples=60)
def test_every_variant_searches_any_table(
    table: list[int], seed: int, near: list[int], data: st.DataObject
) -> None:
    uniforms = [int(w) >> 1 for w in SimulatedSource(seed).words(300)]
    uniforms += [u >> (i % 63) for i, u in enumerate(uniforms)]
    for shift in near if table else []:
        uniforms.append(min(2**63 - 1, max(0, data.draw(st.sampled_from(table)) + shift)))
    given_words = [u << 1 | (i & 1) for i, u in enumerate(uniforms)]
    given_words = given_words[data.draw(st.integers(0, 5)) :]
    capsule = _kernels.table(np.array(table, np.uint64))
    for variant in _kernels.variants():
        _kernels.use(variant)
        at = 0
        while at < len(given_words):
            out = np.full(len(given_words) - at, 99, np.int64)
            used, made = _kernels.direct(capsule, words(*given_words[at:]), out)
            expected_used, expected = plain_direct(table, given_words[at:])
            assert (used, made) == (expected_used, expected_used)
            assert out[:made].tolist() == expected
            at += used + 1


@cases("count", [0, 1, 2, 255, 256, 257, 5000])
def test_variants_agree_on_cells(count: int) -> None:
    table = _kernels.table(np.floor(2.0**62 * np.exp(-np.arange(1, 2000) / 100)).astype(np.uint64))
    drawn = SimulatedSource(3).words(2 * count)
    seen = []
    for variant in _kernels.variants():
        _kernels.use(variant)
        out = np.zeros(count, np.int64)
        seen.append((_kernels.cells(table, drawn, out, 13, 1e-12, 1e-13, 1e-6), out.tolist()))
    assert all(one == seen[0] for one in seen)


def test_the_widest_table_is_accepted_and_no_wider() -> None:
    rows = np.arange(1 << 20, 0, -1, dtype=np.uint64) << np.uint64(20)
    table = _kernels.table(rows)
    out = np.empty(2, np.int64)
    assert _kernels.direct(table, words(2**64 - 1, 2**30 + 2), out) == (2, 2)
    assert out.tolist() == [0, int((rows > np.uint64(2**29 + 1)).sum())]
    with pytest.raises(ValueError, match="thresholds must number at most 1048576"):
        _kernels.table(np.ones((1 << 20) + 1, np.uint64))


@cases("rows", [[0], [2**63], [5, 6], [6, 5, 0], [2**64 - 1]])
def test_refuses_tables_that_are_none(rows: list[int]) -> None:
    with pytest.raises(ValueError, match="thresholds must be positive, below"):
        _kernels.table(np.array(rows, np.uint64))


def test_refuses_buffers_that_do_not_fit() -> None:
    table, out = _kernels.table(words(2**62)), np.empty(4, np.int64)
    with pytest.raises(ValueError, match="thresholds must hold whole"):
        _kernels.table(b"123")
    raw = np.zeros(41, np.uint8)
    shifted = raw[1:] if raw.ctypes.data % 8 == 0 else raw[:40]
    with pytest.raises(ValueError, match="words must hold whole, aligned"):
        _kernels.direct(table, shifted, out)
    with pytest.raises(ValueError, match="out must have room"):
        _kernels.direct(table, words(1, 2, 3, 4, 5), out)
    with pytest.raises(ValueError, match="out must have room"):
        _kernels.cells(table, words(1, 2, 3), out, 1, 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="out must have room"):
        _kernels.cells(table, words(*range(10)), out, 1, 0.0, 0.0, 0.0)
    with pytest.raises((ValueError, BufferError, TypeError)):
        _kernels.direct(table, words(1, 2, 3, 4)[::2], out)
    frozen = np.empty(4, np.int64)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError, TypeError)):
        _kernels.direct(table, words(1), frozen)


EDGES = np.array([0.5, 1.0, 1.0, 2.0])


@cases(
    ("edges", "deviation", "sizes", "same"),
    [
        (EDGES, 0.1, (3, 2, 3, 3, 6), False),
        (EDGES, 0.1, (3, 3, 3, 2, 6), False),
        (EDGES, 0.1, (3, 3, 3, 3, 7), False),
        (EDGES, 0.1, (3, 3, 3, 3, 8), False),
        (EDGES, 0.1, (3, 3, 3, 3, 0), False),
        (EDGES, 0.1, (3, 3, 2, 2, 6), True),
        (EDGES, 0.0, (3, 3, 3, 3, 6), False),
        (EDGES, math.nan, (3, 3, 3, 3, 6), False),
        (EDGES[::-1].copy(), 0.1, (3, 3, 3, 3, 6), False),
        (EDGES - 0.5, 0.1, (3, 3, 3, 3, 6), False),
        (EDGES * math.inf, 0.1, (3, 3, 3, 3, 6), False),
        (EDGES * math.nan, 0.1, (3, 3, 3, 3, 6), False),
    ],
)
def test_refuses_sums_that_do_not_fit(
    edges: NDArray[np.float64], deviation: float, sizes: tuple[int, ...], same: bool
) -> None:
    a, p, b, q, sums = (np.ones(size) for size in sizes)
    with pytest.raises(ValueError, match="values and masses must be as many"):
        _kernels.pair_sums(edges, deviation, a, p, b, q, False, same, sums)
    assert (sums == 1).all()


@cases("deviation", [1e-9, 0.01, 0.1, 3.0, 1e6])
@cases("low", [1e-300, 0.3, 0.75, 1.0, 7.0])
def test_sums_go_to_the_cells_that_comparisons_say(deviation: float, low: float) -> None:
    rng = np.random.default_rng(5)
    inside = low * np.exp(np.abs(rng.normal(0, min(deviation, 30.0), 400)))
    inside = np.sort(inside)
    edges = np.concatenate([[low], inside[::3], [inside[-1]]])
    sums, mass = np.zeros((len(edges) - 1, 2)), rng.random(400)
    _kernels.pair_sums(edges, deviation, np.zeros(1), np.ones(1), inside, mass, False, False, sums)
    cell = np.clip(np.searchsorted(edges, inside, "right") - 1, 0, len(sums) - 1)
    np.testing.assert_allclose(sums[:, 0], np.bincount(cell, mass, len(sums)), rtol=1e-13)


@cases("deviation", [1e-200, 1e-18, 1e-17, 3e-17, 2e-16, 1e-15])
def test_a_distance_from_one_that_is_rounded_moves_no_value_to_another_cell(deviation: float) -> None:
    near = np.unique(1 + 2.0**-53 * np.arange(-60, 120))
    values = np.concatenate([[0.2, 0.5, 0.7], near, [1.5, 4.0]])
    edges = np.concatenate([[0.1, 0.3], np.repeat(near, 40), [2.0, 9.0]])
    sums, mass = np.zeros((len(edges) - 1, 2)), np.arange(1.0, len(values) + 1)
    _kernels.pair_sums(edges, deviation, np.zeros(1), np.ones(1), values, mass, False, False, sums)
    cell = np.searchsorted(edges, values, "right") - 1
    assert sums[:, 0].tolist() == np.bincount(cell, mass, len(sums)).tolist()


def test_values_beyond_all_edges_go_to_the_first_and_the_last_cell() -> None:
    values, sums = np.array([0.0, 5e-324, 0.4, 2.0, 1e300, math.inf]), np.zeros((3, 2))
    _kernels.pair_sums(EDGES, 0.1, np.zeros(1), np.ones(1), values, np.ones(6), False, False, sums)
    assert sums[:, 0].tolist() == [3.0, 0.0, 3.0]


@cases("nothing", [None, 1, "table", b"", threading])
def test_refuses_tables_of_others(nothing: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        _kernels.direct(nothing, words(1), np.empty(1, np.int64))
    with pytest.raises((ValueError, TypeError)):
        _kernels.cells(nothing, words(1, 2), np.empty(1, np.int64), 1, 0.0, 0.0, 0.0)


@cases(
    "cell",
    [
        (-1, 0.0, 0.0, 0.0),
        (41, 0.0, 0.0, 0.0),
        (4, -1e-9, 0.0, 0.0),
        (4, 0.0, float("nan"), 0.0),
        (4, 0.0, 0.0, 0.009),
        (4, 0.0, 0.0, float("inf")),
        (4, 0.01, 0.0, 0.0),
    ],
)
def test_refuses_cells_outside_the_proof(cell: tuple[int, float, float, float]) -> None:
    table = _kernels.table(words(2**62, 2**61))
    with pytest.raises(ValueError, match="the exponent of a cell must stay within"):
        _kernels.cells(table, words(1, 2), np.empty(1, np.int64), *cell)


def test_refuses_an_unknown_variant() -> None:
    with pytest.raises(ValueError, match="no such variant"):
        _kernels.use("vax")
    assert _kernels.variants()[0] == "portable"


def test_one_table_serves_many_threads() -> None:
    table = _kernels.table(np.floor(2.0**62 * np.exp(-np.arange(1, 2000) / 100)).astype(np.uint64))
    drawn = SimulatedSource(3).words(100_000)
    results: list[np.ndarray] = []

    def work() -> None:
        out = np.empty(drawn.size, np.int64)
        _kernels.direct(table, drawn, out)
        results.append(out)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all((one == results[0]).all() for one in results)
