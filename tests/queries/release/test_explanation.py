"""What is said of a query before it is asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato import connect
from sfumato.errors import SqlSyntaxError, UnsupportedSql
from sfumato.ledger import Budget
from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
from sfumato.queries.pricing.price import price
from sfumato.queries.release.explanation import explain
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases

_SCHEMA = Schema((Column("id", ColumnType.INTEGER), Column("g", ColumnType.TEXT)))
_CATALOG = Catalog({"data": Scan("data", _SCHEMA, "id")})


@cases(
    ("options", "budget", "remedy"),
    [
        ("epsilon=0.5, delta=1e-7", Budget.approximate(epsilon=2.0, delta=1e-7), "a delta of at most 5e-08"),
        ("epsilon=0.5, delta=1e-9", Budget.pure(epsilon=2.0), "a delta of at most 0"),
        ("epsilon=3, delta=5e-8", Budget.approximate(epsilon=2.0, delta=1e-7), "a smaller epsilon"),
        ("epsilon=0.5, delta=5e-8", Budget.approximate(epsilon=2.0, delta=1e-7), None),
        ("epsilon=0.5, delta=1e-8", Budget.zcdp(rho=0.5, delta=1e-8), None),
    ],
)
def test_a_query_that_never_fits_is_told_so(options: str, budget: Budget, remedy: str | None) -> None:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}, max_groups_contributed=1) "
    priced = price(read(text + "g, COUNT(*) AS n FROM data GROUP BY g", _CATALOG))
    said = explain(priced, privacy_unit="id", budget=budget).removeprefix(explain(priced, privacy_unit="id"))
    charged, *misfit = said.removeprefix("\n").split("\n")
    assert charged.startswith("Charged to the budget: ")
    expected = f"Budget: this answer alone does not fit into {budget}; ask for {remedy}."
    assert misfit == ([expected] if remedy else [])


def test_explain_may_be_written_before_the_query_and_costs_nothing() -> None:
    people = pa.table({"id": range(50), "g": ["a"] * 50})
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
    with connect(people, privacy_unit="id", epsilon=1.0, rng=1) as session:
        assert session.explain(f" explain\n{text}") == session.explain(text)
        with pytest.raises(UnsupportedSql, match=r"session\.explain"):
            session.sql(f"EXPLAIN {text}")
        with pytest.raises(SqlSyntaxError, match="must begin with SELECT"):
            session.explain(3)  # type: ignore[arg-type]
        assert session.ledger.entries() == ()
