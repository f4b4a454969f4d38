"""What every engine must offer to a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from sfumato.queries.plan.query import AggregationJob, Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Engine"]


class Engine(Protocol):
    """A place where tables lie and bounded integers are computed.

    An engine adds no noise and applies no threshold: what it returns is exact and must never leave the
    process.

    Notes
    -----
    Guarantee: for one ``job`` and one ``secret`` let T and T' be tables that differ in all rows of one
    privacy unit. The answers differ in at most ``job.max_groups`` groups (one where that is None), and in
    each of them measure i differs by at most ``job.measures[i].sensitivity``, where that of counts by bin
    bounds the sum of the differences of all bins. The reason is the same for
    every engine: the rows a unit keeps, and the groups it keeps, are a function of that unit's own rows and
    of ``secret``; every retained number is clamped; sums are exact integers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> with sf.connect(pa.table({"n": [1, 2]}), privacy_unit=sf.ROW, epsilon=1.0, rng=1) as session:
    ...     engine: Engine = session.engine
    ...     type(engine).__name__
    'DuckDBEngine'
    """

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The tables by name, with their columns."""
        ...

    @property
    def schema_text(self) -> str:
        """Canonical text of all tables, columns and types, for the identity of a dataset."""
        ...

    def fingerprint(self, key: bytes) -> str:
        """Keyed HMAC-SHA-256 of the content of all tables, in hexadecimal.

        Parameters
        ----------
        key : bytes
            A secret of the ledger's; without it nobody can test a guess at the content.

        Returns
        -------
        str
        """
        ...

    def unite(self, columns: Mapping[str, tuple[str, ...]]) -> None:
        """Give tables a column more, the connected component of each row, or refuse before any is read.

        Parameters
        ----------
        columns : mapping of str to tuple of str
            The columns whose values connect rows, table by table.
        """
        ...

    def check(self, job: AggregationJob) -> None:
        """Refuse a job that cannot run, reading no private row; a session calls it before it charges.

        Parameters
        ----------
        job : AggregationJob
        """
        ...

    def aggregate(self, job: AggregationJob, secret: bytes) -> pa.Table:
        """Compute the job.

        Parameters
        ----------
        job : AggregationJob
            As `check` accepted it.
        secret : bytes
            Fresh random bytes, from which follows which rows and groups of a unit count.

        Returns
        -------
        pyarrow.Table
            Columns ``k0``, ``k1``, ... (the keys) and ``m0``, ``m1``, ... (int64 measures), one row per
            group, sorted by key with NULL last; exactly one row where there are no keys. A measure of counts
            by bin is a list of structs ``leaf`` and ``n`` (int64), sorted by bin, empty bins left out.
        """
        ...

    def cancel(self) -> bool:
        """Make the job that is computed now end, called from another thread; return whether there was one."""
        ...

    def public_rows(self, table: str) -> pa.Table:
        """Return the rows of a public table, its usable columns in the types of queries.

        Parameters
        ----------
        table : str
            One that the session lists as public, never a private one.

        Returns
        -------
        pyarrow.Table
        """
        ...

    def close(self) -> None:
        """Release what the engine holds; calling it again does nothing."""
        ...
