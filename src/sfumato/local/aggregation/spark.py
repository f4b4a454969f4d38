"""Count the reports in a Spark frame where they are stored, and merge the states on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from sfumato import _check
from sfumato.errors import SchemaError, SourceError
from sfumato.local.aggregation.arrow import add_column
from sfumato.local.base.aggregator import Aggregator
from sfumato.local.base.protocol import LocalProtocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["aggregate_spark"]

Result = TypeVar("Result")

_STATES: Final = 8
"""States that come back to the driver, at most."""
_PIECES: Final = pa.schema([("piece", pa.int32()), ("state", pa.binary())])
_FAILED: Final = (
    "Spark must count the reports to the end, got a failure; check that its session is alive and that its "
    "workers have this version of sfumato, then count again"
)


def aggregate_spark(
    protocol: LocalProtocol[Any, Result], frame: DataFrame, column: str = "report"
) -> Aggregator[Result]:
    """Return an aggregator of a column of reports, counted inside Spark.

    Parameters
    ----------
    protocol : LocalProtocol
        What made the reports.
    frame : pyspark.sql.DataFrame
        Of a classic session or a Connect one; read once.
    column : str
        Of type BINARY, with one report a row.

    Returns
    -------
    Aggregator
        The same, bit by bit, as one that all reports were added to.

    Raises
    ------
    SchemaError
        If there is no such column, or it is not binary.
    SourceError
        If Spark fails; what it says of that, which may quote values, is not in the error.

    Notes
    -----
    Each partition is counted in constant memory (``mapInArrow``) and gives the bytes of an aggregator. Those
    are merged in at most 8 tasks, and what they give is merged here: neither a worker nor the driver ever
    holds more than a few states, however many partitions there are. Sums of whole numbers do not depend on
    their order. A task that is lost with its worker is run again by Spark, and only one run of a task
    counts: so nothing is lost or counted twice, if the frame gives the same rows whenever Spark reads it.
    The workers must have sfumato installed.

    Examples
    --------
    It needs a Spark session; anything else is refused:

    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["a", "b"]))
    >>> aggregate_spark(oracle, pa.table({"report": [oracle.randomize("b", 1)]}))
    Traceback (most recent call last):
        ...
    sfumato.errors.ParameterError: frame must be a DataFrame of Spark, got a value of type Table;
        use aggregate_arrow
    """
    if not hasattr(type(frame), "mapInArrow"):
        _check.refuse_type("frame", "be a DataFrame of Spark", frame, "use aggregate_arrow")
    types: list[str] | None = None
    with suppress(Exception):  # of Java, of Spark, of the network: none may show
        fields = [field for field in frame.schema.fields if field.name == column]
        types = [field.dataType.simpleString() for field in fields]
    if types is None:
        raise SourceError(_FAILED)
    if types != ["binary"]:
        reported = f"got {' and '.join(types)}" if types else f"got a frame without {column!r}"
        raise SchemaError(f"column must be one of type BINARY, {reported}; pass column=, or cast it")
    name = column.replace("`", "``")
    states: list[bytes] | None = None
    with suppress(Exception):
        reports = frame.selectExpr(f"`{name}` AS report")
        partials = reports.mapInArrow(partial(_counted, protocol), "piece INT, state BINARY")
        few = partials.repartition(_STATES, "piece").mapInArrow(
            partial(_merged, protocol), "piece INT, state BINARY"
        )
        states = few.toArrow().column("state").to_pylist()
    if states is None:
        raise SourceError(_FAILED)
    aggregator = protocol.aggregator()
    for state in states:
        aggregator.merge(state)
    return aggregator


def _counted(
    protocol: LocalProtocol[Any, Any], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the state of one partition's reports; runs on a worker."""
    aggregator = protocol.aggregator()
    for batch in batches:
        add_column(aggregator, batch.column(0))
    yield _row(_partition(), aggregator)


def _merged(protocol: LocalProtocol[Any, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield one state for many; runs on a worker."""
    aggregator = protocol.aggregator()
    for batch in batches:
        for state in batch.column(1):
            aggregator.merge(state.as_py())
    yield _row(0, aggregator)


def _row(piece: int, aggregator: Aggregator[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"piece": [piece], "state": [aggregator.to_bytes()]}, schema=_PIECES)


def _partition() -> int:
    from pyspark import TaskContext  # noqa: PLC0415 - an optional library

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
