"""sfumato: differential privacy for Python; the picture stays, no single outline can be found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato import (
        attacks,
        audit,
        errors,
        learning,
        ledger,
        local,
        mechanisms,
        numerics,
        privacy,
        queries,
        server,
    )
    from sfumato.privacy.neighboring import Neighboring
    from sfumato.queries.clusters import SparkSource
    from sfumato.queries.columns import col
    from sfumato.queries.connecting import connect
    from sfumato.queries.databases import PostgresSource
    from sfumato.queries.hierarchy import consistent
    from sfumato.queries.requests import (
        count,
        count_distinct,
        max,  # noqa: A004
        mean,
        median,
        min,  # noqa: A004
        quantile,
        quantiles,
        stddev,
        sum,  # noqa: A004
        variance,
    )
    from sfumato.queries.session import Session
    from sfumato.queries.sources import ROW
    from sfumato.queries.targets import relative

__all__ = [
    "ROW",
    "Neighboring",
    "PostgresSource",
    "Session",
    "SparkSource",
    "attacks",
    "audit",
    "col",
    "connect",
    "consistent",
    "count",
    "count_distinct",
    "errors",
    "learning",
    "ledger",
    "local",
    "max",
    "mean",
    "mechanisms",
    "median",
    "min",
    "numerics",
    "privacy",
    "quantile",
    "quantiles",
    "queries",
    "relative",
    "server",
    "stddev",
    "sum",
    "variance",
]

__version__ = "0.1.0"

__getattr__, __dir__ = attach(
    __name__,
    {
        "ROW": "sfumato.queries.sources",
        "Neighboring": "sfumato.privacy.neighboring",
        "PostgresSource": "sfumato.queries.databases",
        "Session": "sfumato.queries.session",
        "SparkSource": "sfumato.queries.clusters",
        "attacks": "",
        "audit": "",
        "col": "sfumato.queries.columns",
        "connect": "sfumato.queries.connecting",
        "consistent": "sfumato.queries.hierarchy",
        "count": "sfumato.queries.requests",
        "count_distinct": "sfumato.queries.requests",
        "errors": "",
        "learning": "",
        "ledger": "",
        "local": "",
        "max": "sfumato.queries.requests",
        "mean": "sfumato.queries.requests",
        "mechanisms": "",
        "median": "sfumato.queries.requests",
        "min": "sfumato.queries.requests",
        "numerics": "",
        "privacy": "",
        "quantile": "sfumato.queries.requests",
        "quantiles": "sfumato.queries.requests",
        "queries": "",
        "relative": "sfumato.queries.targets",
        "server": "",
        "stddev": "sfumato.queries.requests",
        "sum": "sfumato.queries.requests",
        "variance": "sfumato.queries.requests",
    },
)
