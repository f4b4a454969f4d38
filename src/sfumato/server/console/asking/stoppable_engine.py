"""An engine that looks before and after each job whether its run may go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, final

from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.query import AggregationJob
from sfumato.queries.plan.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StoppableEngine"]


@final
class StoppableEngine:
    """Another engine's tables, for one run that may be stopped.

    A session draws no noise for an answer before the last of its jobs has ended, but where bounds are
    searched for. So a run that is stopped here has drawn nothing, or has searched for bounds: which of both
    follows from the plan, and so does whether asking again is charged anew.

    Parameters
    ----------
    engine : Engine
    go_on : callable
        Raises where the run is to stop.
    """

    def __init__(self, engine: Engine, go_on: Callable[[], None]) -> None:
        self._engine, self._go_on = engine, go_on

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The tables by name, with their columns."""
        return self._engine.schemas

    @property
    def schema_text(self) -> str:
        """Canonical text of all tables, columns and types."""
        return self._engine.schema_text

    def fingerprint(self, key: bytes) -> str:
        """Return the keyed fingerprint of the content of all tables."""
        return self._engine.fingerprint(key)

    def unite(self, columns: Mapping[str, tuple[str, ...]]) -> None:
        """Give tables a column more, as the engine does."""
        self._engine.unite(columns)

    def check(self, job: AggregationJob) -> None:
        """Refuse a job that cannot run."""
        self._engine.check(job)

    def aggregate(self, job: AggregationJob, secret: bytes) -> pa.Table:
        """Compute the job, unless the run is to stop before or after it."""
        self._go_on()
        made = self._engine.aggregate(job, secret)
        self._go_on()
        return made

    def cancel(self) -> bool:
        """Make the job that is computed now end."""
        return self._engine.cancel()

    def public_rows(self, table: str) -> pa.Table:
        """Return the rows of a public table."""
        return self._engine.public_rows(table)

    def close(self) -> None:
        """Leave the engine open, for it is another's."""
