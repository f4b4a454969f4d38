"""sfumato: differential privacy for Python; the picture stays, no single outline can be found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato import (
        adaptive,
        anonymity,
        attacks,
        audit,
        bounds,
        crypto,
        errors,
        federated,
        frames,
        games,
        learning,
        ledger,
        local,
        location,
        mechanisms,
        numerics,
        privacy,
        pufferfish,
        queries,
        report,
        server,
        session,
        synthetic,
    )
    from sfumato.privacy.neighboring import Neighboring
    from sfumato.queries.builder.aggregate_calls import (
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
    from sfumato.queries.builder.columns import col
    from sfumato.queries.builder.key_set import KeySet
    from sfumato.queries.engines.postgres.source import PostgresSource
    from sfumato.queries.engines.spark.source import SparkSource
    from sfumato.queries.planner.targets import relative
    from sfumato.queries.release.consistency import consistent
    from sfumato.session.connection import connect
    from sfumato.session.session import Session
    from sfumato.session.units import ROW

__all__ = [
    "ROW",
    "KeySet",
    "Neighboring",
    "PostgresSource",
    "Session",
    "SparkSource",
    "adaptive",
    "anonymity",
    "attacks",
    "audit",
    "bounds",
    "col",
    "connect",
    "consistent",
    "count",
    "count_distinct",
    "crypto",
    "errors",
    "federated",
    "frames",
    "games",
    "learning",
    "ledger",
    "local",
    "location",
    "max",
    "mean",
    "mechanisms",
    "median",
    "min",
    "numerics",
    "privacy",
    "pufferfish",
    "quantile",
    "quantiles",
    "queries",
    "relative",
    "report",
    "server",
    "session",
    "stddev",
    "sum",
    "synthetic",
    "variance",
]

__version__ = "0.1.0"

__getattr__, __dir__ = attach(
    __name__,
    {
        "ROW": "sfumato.session.units",
        "KeySet": "sfumato.queries.builder.key_set",
        "Neighboring": "sfumato.privacy.neighboring",
        "PostgresSource": "sfumato.queries.engines.postgres.source",
        "Session": "sfumato.session.session",
        "SparkSource": "sfumato.queries.engines.spark.source",
        "adaptive": "",
        "anonymity": "",
        "attacks": "",
        "audit": "",
        "bounds": "",
        "col": "sfumato.queries.builder.columns",
        "connect": "sfumato.session.connection",
        "consistent": "sfumato.queries.release.consistency",
        "count": "sfumato.queries.builder.aggregate_calls",
        "count_distinct": "sfumato.queries.builder.aggregate_calls",
        "crypto": "",
        "errors": "",
        "federated": "",
        "frames": "",
        "games": "",
        "learning": "",
        "ledger": "",
        "local": "",
        "location": "",
        "max": "sfumato.queries.builder.aggregate_calls",
        "mean": "sfumato.queries.builder.aggregate_calls",
        "mechanisms": "",
        "median": "sfumato.queries.builder.aggregate_calls",
        "min": "sfumato.queries.builder.aggregate_calls",
        "numerics": "",
        "privacy": "",
        "pufferfish": "",
        "quantile": "sfumato.queries.builder.aggregate_calls",
        "quantiles": "sfumato.queries.builder.aggregate_calls",
        "queries": "",
        "relative": "sfumato.queries.planner.targets",
        "report": "",
        "server": "",
        "session": "",
        "stddev": "sfumato.queries.builder.aggregate_calls",
        "sum": "sfumato.queries.builder.aggregate_calls",
        "synthetic": "",
        "variance": "sfumato.queries.builder.aggregate_calls",
    },
)
