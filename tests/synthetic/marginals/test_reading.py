"""What is counted and how it is read: columns of any name, labels of any type."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, Marginals, MarginalsRelease, ResidualMechanism, TableDomain
from sfumato.synthetic.marginals.table_counts import CountedRows, table_counts
from tests.drawings import bars, line, new_axes, written
from tests.run_time import run_time

if run_time(__name__):
    import pandas as pd


def test_a_column_named_counts_is_a_column() -> None:
    """A pandas frame shows its columns as attributes: it is no source of counts by that."""
    domain = TableDomain(counts=[0, 1])
    frame = pd.DataFrame({"counts": [0, 1, 1]})
    assert table_counts(domain, frame).counts((0,)).tolist() == [1, 2]
    counted = CountedRows(np.zeros((4, 1), np.int64), (2,))
    assert table_counts(domain, counted) is counted


def test_numbers_and_others_are_in_one_column_of_labels() -> None:
    mechanism = ResidualMechanism(
        domain=TableDomain(code=Categorical([7, 9], other=True)), workload=Marginals.every(1), scale=1
    )
    released = mechanism.release(pa.table({"code": [7, 8]}), rng=1)
    assert released.marginal("code").to_arrow()["code"].to_pylist() == ["7", "9", "(other)"]


def test_several_marginals_are_no_single_table() -> None:
    mechanism = ResidualMechanism(domain=TableDomain(a=[0, 1]), workload=Marginals.every(1), scale=1)
    released = mechanism.release(pa.table({"a": [0, 1]}), rng=1)
    asks: list[Any] = [released.table, released.to_pandas]
    for ask in asks:
        with pytest.raises(
            ParameterError, match="value must map to numbers, for a table, but it maps to arrays"
        ):
            ask()


def test_weights_and_tables_are_lists() -> None:
    odd: Any = 2
    with pytest.raises(
        ParameterError, match="weights must be a number for each table, got a value of type int"
    ):
        Marginals([("a",)], weights=odd)
    assert Marginals([("a",), ("b",)], weights=np.array([1.0, 2.0])).weights == (1.0, 2.0)  # type: ignore[arg-type]
    nested: Any = [[["a"]]]
    with pytest.raises(ParameterError, match="tables must be a list of lists of columns"):
        Marginals(nested)


def test_a_document_has_each_residual_of_its_tables() -> None:
    domain = TableDomain(a=[0, 1], b=[0, 1])
    mechanism = ResidualMechanism(domain=domain, workload=Marginals.every(2), scale=1)
    released = mechanism.release(pa.table({"a": [0, 1], "b": [0, 0]}), rng=1)
    document = json.loads(released.to_json())
    again = MarginalsRelease.from_json(released.to_json())
    assert again.marginal("a").counts.tolist() == released.marginal("a").counts.tolist()
    for lost in range(3):
        residuals = [each for place, each in enumerate(document["residuals"]) if place != lost]
        with pytest.raises(ParameterError, match="text must have the residuals of fewer columns"):
            MarginalsRelease.from_json(json.dumps({**document, "residuals": residuals}))


def test_a_table_is_drawn_with_its_intervals() -> None:
    domain = TableDomain(a=[0, 1], b=["x", "y", "z"])
    mechanism = ResidualMechanism(domain=domain, workload=Marginals.every(2), scale=1)
    released = mechanism.release(pa.table({"a": [0, 1] * 30, "b": ["x", "y", "z"] * 20}), rng=1)
    ax = released.plot(new_axes(), level=0.9, columns=["b", "a"])
    rows = released.marginal("b", "a").to_arrow(0.9).to_pylist()
    assert written(ax) == [f"{row['b']}, {row['a']}" for row in rows]
    heights, ends = bars(ax)
    assert heights == [row["count"] for row in rows]
    np.testing.assert_allclose(ends, [(row["lower"], row["upper"]) for row in rows])
    few = released.marginal("b").plot(new_axes(), most=2)
    assert (len(few.patches), few.get_title()) == (2, "the first 2 of 3 rows")
    assert released.marginal().to_arrow()["count"].to_pylist() == [released.total]
    assert line(released.marginal().plot(new_axes()))[1] == [released.total]
    with pytest.raises(ParameterError, match=r"columns must be named for a plot.*columns=\['a'\]"):
        released.plot(new_axes())
