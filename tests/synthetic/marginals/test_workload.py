"""Workloads: which tables they name."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Marginals, TableDomain
from sfumato.synthetic.marginals.workload import subsets
from tests.cases import cases

DOMAIN = TableDomain({name: [0, 1] for name in "abcd"})


@cases(
    ("workload", "cliques"),
    [
        (Marginals.every(0), [()]),
        (Marginals.every(3), [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]),
        (Marginals.every(2, target="c"), [(0, 2), (1, 2), (2, 3)]),
        (Marginals.up_to(2, target="a"), [(0,), (0, 1), (0, 2), (0, 3)]),
        (Marginals([("d", "a"), (), ["b"]]), [(0, 3), (), (1,)]),
    ],
)
def test_tables_are_named_by_number(workload: Marginals, cliques: list[tuple[int, ...]]) -> None:
    assert workload.cliques(DOMAIN) == tuple(cliques)


def test_subsets_are_there_once() -> None:
    assert subsets([(0, 1), (1, 2)]) == ((), (0,), (1,), (2,), (0, 1), (1, 2))
    assert subsets([]) == ()


@cases(
    "tables",
    [None, "ab", [], ["ab"], [("a", "a")], [("a", "b"), ("b", "a")], 3],
)
def test_what_names_no_tables_is_refused(tables: Any) -> None:
    with pytest.raises(ParameterError, match="tables must be"):
        Marginals(tables)


def test_columns_and_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="weights must be one for each table"):
        Marginals([("a",), ("b",)], weights=[1.0])
    with pytest.raises(ParameterError, match="weights must be positive"):
        Marginals([("a",)], weights=[0.0])
    for wrong in (Marginals([("x",)]), Marginals.every(1, target="x")):
        with pytest.raises(ParameterError, match=r"column must be one of \['a', 'b', 'c', 'd'\], got 'x'"):
            wrong.cliques(DOMAIN)
    with pytest.raises(ParameterError, match="columns must be at most the domain's 4"):
        Marginals.every(5).cliques(DOMAIN)
    with pytest.raises(ParameterError, match="columns must be at least 1 where a target is given"):
        Marginals.every(0, target="a").cliques(DOMAIN)
    many = TableDomain({str(i): [0, 1] for i in range(60)})
    for wide in (Marginals.every(60), Marginals([list(many)])):
        with pytest.raises(ParameterError, match="columns must be at most 32 in each table, got 60"):
            wide.cliques(many)
    with pytest.raises(ParameterError, match="columns must be at most 32, got"):
        Marginals.up_to(10**9)
    for target in (None, "3"):
        with pytest.raises(ParameterError, match="columns must make at most 65536 tables"):
            Marginals.every(20, target=target).cliques(many)
