"""An answer that a console released: a table with its intervals, its guarantee and its receipts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, final

import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.queries.release.data_frames import as_pandas, as_polars
from sfumato.queries.release.display import as_html, as_text, printable, promise

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["RemoteAnswer"]

_FACTS: Final = b"sfumato.facts"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAnswer:
    """A released table from a console; it holds no raw data.

    Parameters
    ----------
    table : pyarrow.Table
        With the ends of 95 % intervals.
    facts : mapping of str to value
        What the console says of it.

    Notes
    -----
    Guarantee: as the console states it: ``(epsilon, delta)``-DP of this answer alone, when one privacy unit
    is added or removed. It is as trustworthy as who runs the console; receipts can be checked in its log.

    Examples
    --------
    >>> facts = {"epsilon": 0.5, "delta": 0.0, "privacy_unit": "person", "simulated": False, "receipts": []}
    >>> answer = RemoteAnswer(table=pa.table({"n": [7], "n_lower": [1], "n_upper": [13]}), facts=facts)
    >>> answer.to_arrow().column_names, answer.to_arrow(intervals=True).num_columns, answer.epsilon
    (['n'], 3, 0.5)
    >>> print(answer)
    n
    7
    (0.5, 0)-DP for each person
    """

    table: pa.Table
    facts: Mapping[str, Any]

    @classmethod
    def from_stream(cls, content: bytes, about: Mapping[str, Any] | None = None) -> Self:
        """Return the answer that a console sent.

        Parameters
        ----------
        content : bytes
            A stream of Arrow's IPC format, with facts in its schema.
        about : mapping of str to value, optional
            Facts that it need not have.

        Returns
        -------
        RemoteAnswer

        Raises
        ------
        SourceError
            If it is no such stream, or lacks a fact.
        """
        try:
            table = pa.ipc.open_stream(content).read_all()
            facts = json.loads((table.schema.metadata or {})[_FACTS])
            answer = cls(table=table.replace_schema_metadata(None), facts={**(about or {}), **facts})
            _ = (answer.epsilon, answer.delta, answer.privacy_unit, answer.simulated, answer.receipts)
        except (pa.ArrowException, KeyError, ValueError, TypeError):
            raise SourceError("an answer must be a stream of Arrow, got another; check the address") from None
        return answer

    @property
    def epsilon(self) -> float:
        """Epsilon of this answer alone."""
        return float(self.facts["epsilon"])

    @property
    def delta(self) -> float:
        """Delta of this answer alone."""
        return float(self.facts["delta"])

    @property
    def privacy_unit(self) -> str:
        """Who is protected."""
        return str(self.facts["privacy_unit"])

    @property
    def simulated(self) -> bool:
        """True if the noise was simulated, so that nothing is protected."""
        return bool(self.facts["simulated"])

    @property
    def receipts(self) -> tuple[int, ...]:
        """Numbers of its charges in the ledger."""
        return tuple(receipt["number"] for receipt in self.facts["receipts"])

    @property
    def job(self) -> str:
        """The job that it answers."""
        return str(self.facts.get("job", ""))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, without the ends of intervals."""
        return tuple(self.to_arrow().column_names)

    def explain(self) -> str:
        """Say how the answer was made.

        Returns
        -------
        str
        """
        return "\n".join(map(printable, str(self.facts.get("explanation", "")).split("\n")))

    def to_arrow(self, *, intervals: bool = False) -> pa.Table:
        """Return the answer as an Arrow table.

        Parameters
        ----------
        intervals : bool
            With ``<name>_lower`` and ``<name>_upper`` after every noised column.

        Returns
        -------
        pyarrow.Table
        """
        if intervals:
            return self.table
        ends = {f"{name}_{end}" for name in self._bounded for end in ("lower", "upper")}
        return self.table.select([name for name in self.table.column_names if name not in ends])

    def to_pandas(self, *, intervals: bool = False) -> pd.DataFrame:
        """Return the answer as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        intervals : bool
            As for `to_arrow`.

        Returns
        -------
        pandas.DataFrame
        """
        return as_pandas(self.to_arrow(intervals=intervals))

    def to_polars(self, *, intervals: bool = False) -> pl.DataFrame:
        """Return the answer as a Polars DataFrame; needs the extra ``sfumato[polars]``.

        Parameters
        ----------
        intervals : bool
            As for `to_arrow`.

        Returns
        -------
        polars.DataFrame
        """
        return as_polars(self.to_arrow(intervals=intervals))

    @property
    def _promise(self) -> str:
        return promise(f"({self.epsilon:g}, {self.delta:g})", self.privacy_unit, simulated=self.simulated)

    def __repr__(self) -> str:
        names = printable(", ".join(self.columns))
        return f"RemoteAnswer({self.table.num_rows} of ({names}); {printable(self._promise)})"

    def __str__(self) -> str:
        return as_text(self.to_arrow(), self._promise, self._keys)

    def _repr_html_(self) -> str:
        facts = {"receipts": ", ".join(map(str, self.receipts))} if self.receipts else {}
        return as_html(self.to_arrow(), self._promise, self._keys, facts=facts, intervals=self.table)

    @property
    def _keys(self) -> frozenset[str]:
        """Whole numbers without an interval, beside columns that have some: names, such as years."""
        whole = {field.name for field in self.table.schema if pa.types.is_integer(field.type)}
        return frozenset(whole - self._bounded) if self._bounded else frozenset()

    @property
    def _bounded(self) -> frozenset[str]:
        """Columns with an interval."""
        every = set(self.table.column_names)
        return frozenset(name for name in every if {f"{name}_lower", f"{name}_upper"} <= every)
