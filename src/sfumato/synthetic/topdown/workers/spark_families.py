"""Families fitted by the executors of a Spark cluster."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato.errors import EngineError
from sfumato.synthetic.topdown.family_batch import BatchLimits, FamilyBatch, Fitted, fit_batch, joined
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["SparkFamilies"]

_COUNTS: Final = 1 << 17
"""Cells times children of the families that one task fits."""

_BYTES: Final = 48 << 20
"""What is sent in one job: less than Spark Connect takes in a message."""

_SCHEMA: Final = "number long, fitted binary"
_PROTOCOL: Final = 5


@final
@dataclass(frozen=True, slots=True)
class SparkFamilies:
    """The executors of a Spark session, classic or Connect.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        Its executors need sfumato in their Python.
    otherwise_here : bool
        Whether this process fits what a failed job did not: for noise that was drawn under a charge.

    Notes
    -----
    The parents of a level are independent of each other. Noise is drawn by the driver, in the order in which
    it is drawn without Spark, so that the release is the same to the last bit; what goes to the executors is
    noisy counts, released counts of parents, and limits.

    The driver keeps, for each level, exact and released counts of all cells that are not empty, 12 bytes
    each; limits, 16 bytes for each place and group; where there are to be intervals all noisy counts; and
    what one job sends and brings back, at most some 100 MiB.
    """

    session: Any
    otherwise_here: bool = False

    @classmethod
    def of(cls, session: object) -> SparkFamilies:
        """Return the executors of a session.

        Parameters
        ----------
        session : pyspark.sql.SparkSession

        Returns
        -------
        SparkFamilies

        Raises
        ------
        ParameterError
            If it is none.
        """
        if not all(callable(getattr(session, name, None)) for name in ("createDataFrame", "sql")):
            _check.refuse_type(
                "spark", "be a Spark session", session, "pass SparkSession.builder.getOrCreate()"
            )
        return cls(session)

    def fitted(self, batches: Iterator[FamilyBatch]) -> Iterator[Fitted]:
        """Yield the fits in the order of the batches.

        Parameters
        ----------
        batches : iterator of FamilyBatch

        Yields
        ------
        Fitted

        Raises
        ------
        EngineError
            If a job fails, unless ``otherwise_here``.
        """
        held: list[list[bytes]] = []
        for batch in batches:
            held.append([pickle.dumps(part, _PROTOCOL) for part in _split(batch)])
            if sum(len(part) for parts in held for part in parts) >= _BYTES:
                yield from self._job(held)
                held = []
        if held:
            yield from self._job(held)

    def _job(self, batches: list[list[bytes]]) -> Iterator[Fitted]:
        """Yield the fits of some batches, each sent in parts, in one job or in several small ones."""
        parts, found = [part for each in batches for part in each], list[Fitted]()
        while parts:
            size, count = 0, 0
            while count < len(parts) and (not count or size + len(parts[count]) <= _BYTES):
                size, count = size + len(parts[count]), count + 1
            found += self._fits(parts[:count])
            parts = parts[count:]
        for each in batches:
            counts = joined([fit.counts for fit in found[: len(each)]])
            yield Fitted(counts, sum(fit.unfinished for fit in found[: len(each)]))
            found = found[len(each) :]

    def _fits(self, parts: list[bytes]) -> list[Fitted]:
        numbers = pa.array(range(len(parts)), pa.int64())
        rows = pa.table({"number": numbers, "batch": pa.array(parts, pa.binary())})
        try:
            sent = self.session.createDataFrame(rows).repartition(len(parts))
            came = sent.mapInArrow(_fit_rows, _SCHEMA).collect()
            fits = {int(row["number"]): _read(row["fitted"]) for row in came}
            found = [fits[number] for number in range(len(parts))]
        except Exception as fault:
            if self.otherwise_here:
                return [fit_batch(_read(part)) for part in parts]
            raise EngineError(
                f"Spark must fit the families of a level, got a failed job ({type(fault).__name__}); see "
                "that executors have sfumato and memory, or leave spark= out"
            ) from fault
        return found


def _fit_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fit each row's families: what an executor runs."""
    for rows in batches:
        fits = [pickle.dumps(fit_batch(_read(each.as_py())), _PROTOCOL) for each in rows["batch"]]
        yield pa.RecordBatch.from_arrays(
            [rows["number"], pa.array(fits, pa.binary())], names=["number", "fitted"]
        )


def _read(sent: Any) -> Any:
    """Return what the other side of a job wrote, over the channel of Spark's own pickles."""
    return pickle.loads(bytes(sent))  # noqa: S301 - driver and executors trust each other


def _split(batch: FamilyBatch) -> Iterator[FamilyBatch]:
    """Yield the families of a batch in parts, which are fitted as they are together."""
    families = len(batch.children) - 1
    work = np.diff(batch.parents.starts) * np.diff(batch.children)
    part = np.cumsum(work) // _COUNTS
    cuts = [0, *(1 + np.flatnonzero(np.diff(part))).tolist(), families]
    for low, high in pairwise(cuts):
        first, last = int(batch.children[low]), int(batch.children[high])
        begin, end = batch.parents.starts[low], batch.parents.starts[high]
        starts = batch.parents.starts[low : high + 1] - begin
        limits = None if batch.limits is None else _limits(batch.limits, first, last)
        yield FamilyBatch(
            LevelCounts(starts, batch.parents.cells[begin:end], batch.parents.counts[begin:end]),
            batch.children[low : high + 1] - first,
            batch.queries,
            {i: noisy[first:last] for i, noisy in batch.noisy.items()},
            limits,
        )


def _limits(limits: BatchLimits, first: int, last: int) -> BatchLimits:
    return BatchLimits(
        limits.group_of,
        tuple(ends[first:last] for ends in limits.lower),
        tuple(ends[first:last] for ends in limits.upper),
        limits.coarse,
        {child - first: look for child, look in limits.below.items() if first <= child < last},
    )
