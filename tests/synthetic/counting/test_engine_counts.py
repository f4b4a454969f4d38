"""Counts of an engine: the same as those of rows in memory, and moved by a unit as little as is charged."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.nodes import Scan
from sfumato.synthetic import Categorical, ColumnOrder, Ordered, TableDomain
from sfumato.synthetic.counting.counting_job import counting_job
from sfumato.synthetic.counting.engine_counts import EngineCounts, count_tables
from sfumato.synthetic.marginals.residual_plan import l2_squared_shift
from sfumato.synthetic.marginals.table_counts import TableCounts, table_counts
from sfumato.synthetic.marginals.workload import maximal
from tests.cases import cases
from tests.synthetic.counting.cells import cells, rows_of
from tests.synthetic.marginals.residuals import integer_residual


def counted_of(
    engine: Engine, domain: TableDomain, cliques: Sequence[tuple[int, ...]], table: str = "data", **given: Any
) -> EngineCounts:
    scan = Scan(table, engine.schemas[table], given.pop("unit", None))
    secret = given.pop("secret", bytes(32))
    return count_tables(engine, scan, domain, cliques, random_bytes=lambda _: secret, **given)


def counted(
    table: pa.Table, domain: TableDomain, cliques: Sequence[tuple[int, ...]], **given: Any
) -> EngineCounts:
    with DuckDBEngine(open_source(table)) as engine:
        return counted_of(engine, domain, cliques, **given)


def test_an_engine_puts_each_value_into_the_cell_of_rows_in_memory() -> None:
    tables = {name.replace(" ", "_"): rows_of(column) for name, _, column in cells()}
    with DuckDBEngine(open_source(tables)) as engine:
        for (name, table), (_, attribute, _) in zip(tables.items(), cells(), strict=True):
            domain = TableDomain(value=attribute)
            expected = table_counts(domain, table).counts((0,)).tolist()
            for together in (False, True):
                found = counted_of(engine, domain, [(0,)], name, together=together).counts((0,)).tolist()
                assert found == expected, name


def test_an_engine_takes_hundreds_of_structural_zeros() -> None:
    """Each was nested in the one before: from some 200 on no session took them."""
    domain = TableDomain(start=Ordered.integers(0, 300), end=Ordered.integers(0, 300))
    domain = domain.with_constraints(ColumnOrder("start", "end"))
    assert len(domain.structural_zeros) == 300
    rng = np.random.default_rng(1)
    start = rng.integers(0, 298, 200)
    table = pa.table({"start": start, "end": start + rng.integers(-1, 3, 200)})
    expected = table_counts(domain, table).counts((0,))
    assert 100 < expected.sum() < 200
    assert (counted(table, domain, [(0, 1)]).counts((0,)) == expected).all()
    assert TableDomain.from_json(domain.to_json()) == domain


def test_unsigned_integers_are_distinguished_to_the_last_digit() -> None:
    table = rows_of(pa.array([2**64 - 1, 2**63, 2**53 + 1, 5, None], pa.uint64()))
    for attribute in (Categorical([5, 2**64 - 1], other=True), Categorical([*range(0, 140, 2), 2**63, 5])):
        domain = TableDomain(value=attribute)
        expected = table_counts(domain, table).counts((0,)).tolist()
        assert counted(table, domain, [(0,)]).counts((0,)).tolist() == expected


def people(rows: int, seed: int = 3) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table({
        "u": generator.integers(0, max(1, rows // 3), rows),
        "a": generator.choice(["x", "y", "z"], rows),
        "b": generator.integers(-1, 5, rows),
        "c": generator.random(rows),
        "d": generator.choice([True, False], rows),
    })  # fmt: skip


DOMAIN = TableDomain(
    a=Categorical(["x", "y"], other=True), b=Ordered.integers(0, 3), c=Ordered(0, 1, bins=5), d=[False, True]
).with_structural_zeros({"a": ["x", "(other)"], "d": [True], "b": [0, 2]})
EVERY = [clique for k in range(5) for clique in combinations(range(4), k)]


@cases("cliques", [[(0, 1, 2, 3)], [(0, 1), (2, 3), (0, 3), ()], [*combinations(range(4), 2)], [()], EVERY])
@cases("together", [False, True])
def test_tables_are_those_of_rows_in_memory(cliques: Any, together: bool) -> None:
    table = people(2000)
    found, reference = counted(table, DOMAIN, cliques, together=together), table_counts(DOMAIN, table)
    assert isinstance(found, TableCounts)
    for clique in {(), *cliques}:
        assert np.array_equal(found.counts(clique), reference.counts(clique))
        held = found.cells(clique)
        dense = np.zeros([DOMAIN.sizes[place] for place in clique], np.int64)
        for cell, many in zip(map(tuple, held.cells), held.counts, strict=True):
            dense[cell] += many
        assert np.array_equal(dense, reference.counts(clique))
    if len(cliques) == 1:
        with pytest.raises(ParameterError, match="clique must be columns of a table that was counted"):
            EngineCounts(DOMAIN.sizes, {(0,): found.cells(())}).counts((0, 1))


def test_many_whole_numbers_in_a_row_are_counted_without_a_list_of_them() -> None:
    domain = TableDomain(shop=Categorical(range(-5, 100_000)), a=["x", "y"])
    table = pa.table(
        {"shop": [-6, -5, 0, 0, 99_999, 100_000, None], "a": ["x", "x", "y", "y", "x", "x", "x"]}
    )
    held = counted(table, domain, [(0, 1)]).cells((0, 1))
    assert held.cells.tolist() == [[0, 0], [5, 1], [100_004, 0]]
    assert held.counts.tolist() == [1, 2, 1]


def test_many_columns_are_counted_together_although_no_integer_tells_their_cells_apart() -> None:
    generator = np.random.default_rng(1)
    wide = {f"c{i}": generator.integers(0, 900, 60) for i in range(9)}
    table, domain = pa.table(wide), TableDomain({name: Ordered.integers(0, 899) for name in wide})
    assert domain.cells > 2**63
    found, reference = counted(table, domain, [tuple(range(9))]), table_counts(domain, table)
    for clique in combinations(range(9), 2):
        assert np.array_equal(found.counts(clique), reference.counts(clique))
    held = found.cells(tuple(range(9)))
    assert sorted(map(tuple, held.cells.tolist())) == sorted(map(tuple, domain.encode(table).tolist()))


VALUES = [*product([0, 1, None], ["x", "q", "y"])]
SMALL = TableDomain(a=["x", "y"], b=[0, 1])


def rows(units: Any) -> pa.Table:
    flat = [(u, text, number) for u, own in enumerate(units) for number, text in own]
    kinds = (pa.int64(), pa.string(), pa.int64())
    columns = zip(("u", "a", "b"), kinds, strict=True)
    return pa.table(
        {name: pa.array([row[i] for row in flat], kind) for i, (name, kind) in enumerate(columns)}
    )


@pytest.mark.sharpest("False-2", "True-2")
@pytest.mark.parametrize(("together", "most"), [(False, 2), (True, 2), (False, 1), (True, 1)])
def test_a_unit_that_leaves_moves_every_table_by_its_own_few_rows_the_same_in_all(
    together: bool, most: int
) -> None:
    """Units of up to three rows of all kinds, leaving two tables: counts, and residuals as charged."""
    cliques, parts = [(0,), (1,), (0, 1), ()], [(0,), (1,), (0, 1)]
    owned = [*[*combinations(VALUES, 3)][::9], ((1, "x"),) * 3, ((0, "x"),), ((None, "x"), (0, "x")), ()]
    others = [(((0, "x"),) * 5, ((1, "y"), (0, "q"))), ()]
    worst = dict.fromkeys(parts, 0)
    given = {"unit": "u", "max_rows_contributed": most, "secret": os.urandom(32), "together": together}
    for rest in others:
        tables = {f"t{number}": rows((*rest, own)) for number, own in enumerate(owned)}
        with DuckDBEngine(open_source(tables)) as engine:
            found = [counted_of(engine, SMALL, cliques, name, **given) for name in tables]
        for after, own in zip(found, owned, strict=True):
            may_count = sum(number is not None and text != "q" for number, text in own)
            moved = {clique: after.counts(clique) - found[-1].counts(clique) for clique in cliques}
            assert moved[()] == min(most, may_count), "no row of another unit, and all that may count"
            for clique in parts:
                assert moved[clique].min() >= 0
                assert moved[clique].sum() == moved[()], "the same rows in every table"
                worst[clique] = max(worst[clique], int((integer_residual(moved[clique]) ** 2).sum()))
            assert np.array_equal(moved[0, 1].sum(axis=1), moved[0,])
            assert np.array_equal(moved[0, 1].sum(axis=0), moved[1,])
    for clique, squared in worst.items():
        charged = most**2 * l2_squared_shift([SMALL.sizes[place] for place in clique], two=False)
        assert squared == charged, "and some unit moves residuals by as much as is charged"


def test_rows_that_are_not_counted_are_left_out_before_a_units_rows_are_chosen() -> None:
    table = rows([[(None, "x")] * 50 + [(0, "x")] for _ in range(30)])
    found = counted(table, SMALL, [(0, 1)], unit="u", secret=os.urandom(32))
    assert found.counts((0, 1)).tolist() == [[30, 0], [0, 0]]


def test_which_rows_of_a_unit_count_depends_on_the_secret() -> None:
    table = rows([[(0, "x"), (1, "y")] for _ in range(200)])
    secrets = [bytes([number] * 32) for number in range(3)]
    found = [counted(table, SMALL, [(0, 1)], unit="u", secret=each).counts((0, 1)) for each in secrets]
    for each in found:
        assert each.sum() == 200
        assert 60 < each[0, 0] < 140
    assert not np.array_equal(found[0], found[1])
    again = counted(table, SMALL, [(0, 1)], unit="u", secret=secrets[2])
    assert np.array_equal(found[2], again.counts((0, 1)))


@cases(
    ("attribute", "column", "part"),
    [
        (Categorical(["f"]), [1], "be a column of texts, as its declared values are, but it is of INT64"),
        (Categorical([1]), ["f"], "be a column of whole numbers"),
        (Categorical([1]), [1.5], "be a column of whole numbers"),
        (Categorical([True]), [1], "be a column of truth values"),
        (Ordered.integers(0, 9), ["1"], "be of numbers, as its edges are, but it is of STRING"),
        (Ordered.integers(0, 9), [True], "be of numbers"),
        (Ordered(edges=[dt.date(2020, 1, 1), dt.date(2021, 1, 1)]), [1], "be of dates"),
        (Ordered.integers(0, 9), [dt.time(1)], "a type that no query computes with"),
        (Categorical(range(0, 200_000, 2)), [1], "values of 'value' must have at most 65536 values"),
        (Ordered(0, 1, bins=5000), [1.0], "edges of 'value' must have at most 2048 edges"),
    ],
)
def test_what_no_engine_counts_is_refused_by_types_alone(attribute: Any, column: Any, part: str) -> None:
    kind = pa.array(column).type
    tables = {"full": pa.table({"value": column}), "empty": pa.table({"value": pa.array([], kind)})}
    with DuckDBEngine(open_source(tables)) as engine:
        for table in tables:
            with pytest.raises(ParameterError, match=part):
                counted_of(engine, TableDomain(value=attribute), [(0,)], table)


def test_unknown_columns_and_limits_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"column must be one of the table's .*; did you mean 'value'"):
        counted(pa.table({"value": [1]}), TableDomain(valeu=[1]), [(0,)])
    with DuckDBEngine(open_source(pa.table({"value": [1]}))) as engine:
        scan = Scan("data", engine.schemas["data"], None)
        with pytest.raises(ParameterError, match="max_rows_contributed must be"):
            counting_job(TableDomain(value=[1]), scan, [(0,)], max_rows_contributed=0)
    assert maximal([(), (0,)]) == ((0,),)
