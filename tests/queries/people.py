"""The tables that tests of the front end ask about; no rows are behind them."""

from __future__ import annotations

from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
from sfumato.queries.sql.catalog import Catalog

PEOPLE = Schema(
    (
        Column("person_id", ColumnType.INTEGER),
        Column("state", ColumnType.TEXT),
        Column("sex", ColumnType.TEXT),
        Column("age", ColumnType.INTEGER),
        Column("Income", ColumnType.FLOAT),
        Column("married", ColumnType.BOOLEAN),
        Column("born", ColumnType.DATE),
        Column("seen", ColumnType.TIMESTAMP),
        Column("photo", None, element=ColumnType.INTEGER),
    )
)
STATES = Schema(
    (
        Column("State", ColumnType.TEXT),
        Column("code", ColumnType.TEXT),
        Column("size", ColumnType.FLOAT),
        Column("years", ColumnType.INTEGER),
    )
)
CATALOG = Catalog(
    {
        "data": Scan("data", PEOPLE, "person_id"),
        "visits": Scan("visits", PEOPLE, "person_id"),
        "lines": Scan("lines", PEOPLE, None),
    },
    {"states": STATES},
)
