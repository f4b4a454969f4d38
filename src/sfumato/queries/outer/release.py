"""The answer of SQL around private SELECTs: a table computed from released ones."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa

from sfumato import _check
from sfumato.errors import LedgerError
from sfumato.numerics.decimals import decimal_sum_up
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt
from sfumato.queries.outer.preparation import PreparedOuter
from sfumato.queries.release.data_frames import as_pandas, as_polars
from sfumato.queries.release.display import as_html, as_text, drawn_table, printable, promise
from sfumato.queries.release.table import TableRelease

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["PostprocessedRelease", "outer_lines"]

_LEVEL = 0.95


@final
@dataclass(frozen=True, slots=True)
class PostprocessedRelease:
    """A table that was computed from differentially private ones; it holds no raw data.

    Parameters
    ----------
    releases : tuple of TableRelease
        The answers of the private SELECTs, each one once, in the order of the text.
    outer : PreparedOuter
        The SQL around them.
    public : mapping of str to pyarrow.Table
        The public tables that it reads.
    table : pyarrow.Table
        What it made, with the ends of 95 % intervals.

    Notes
    -----
    Guarantee: ``(epsilon, delta)``-DP of all answers together, the sums of theirs (basic composition), under
    adding or removing one privacy unit. The SQL around them reads released and public tables only, so it
    costs nothing (post-processing).

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(1000), "smokes": [True, False] * 500})
    >>> with sf.connect(people, privacy_unit="person", epsilon=1.0, delta=1e-6, rng=7) as session:
    ...     release = session.sql('''
    ...         WITH counts AS (
    ...           SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, max_groups_contributed=1)
    ...           smokes, COUNT(*) AS n FROM data GROUP BY smokes)
    ...         SELECT smokes, n, n / SUM(n) OVER () AS share FROM counts ORDER BY n DESC''')
    >>> release.to_arrow(intervals=True).column_names
    ['smokes', 'n', 'n_lower', 'n_upper', 'share', 'share_lower', 'share_upper']
    >>> release.epsilon, len(release.releases)
    (1.0, 1)
    """

    releases: tuple[TableRelease, ...]
    outer: PreparedOuter = field(repr=False)
    public: Mapping[str, pa.Table] = field(repr=False)
    table: pa.Table = field(repr=False)

    @classmethod
    def of(
        cls, releases: tuple[TableRelease, ...], outer: PreparedOuter, public: Mapping[str, pa.Table]
    ) -> PostprocessedRelease:
        """Compute the answer from the released tables.

        Parameters
        ----------
        releases, outer, public
            As for the class.

        Returns
        -------
        PostprocessedRelease

        Raises
        ------
        EngineError
            If the SQL around the private SELECTs fails on their answers, which are stored all the same.
        """
        return cls(releases, outer, public, outer.table(releases, public, _LEVEL))

    def __repr__(self) -> str:
        names = printable(", ".join(self.columns))
        return f"PostprocessedRelease({self.table.num_rows} of ({names}); {printable(self._promise)})"

    def __str__(self) -> str:
        return as_text(self.to_arrow(), self._promise, self.keys)

    def _repr_html_(self) -> str:
        wide = self.to_arrow(intervals=True)
        return as_html(self.to_arrow(), self._promise, self.keys, facts=self._facts, intervals=wide)

    @property
    def _facts(self) -> dict[str, str]:
        """What a notebook says below the rows: intervals, cost, receipts, and what is left now."""
        epsilon, delta = self.cost
        facts = {"in brackets": "95 % intervals for the bounded answer, where they follow"}
        facts["cost"] = f"({epsilon:g}, {delta:g})-DP" if epsilon else "nothing: paid before"
        for number, each in enumerate(self.releases, 1):
            if each.receipt is not None:
                facts[f"receipt {number}"] = str(each.receipt)
        account = self.releases[0].account if self.releases else None
        if account is not None:
            with suppress(LedgerError):  # the ledger was closed since, or is not to be reached
                facts["left"] = str(account.remaining(self.delta))
        return facts

    @property
    def _promise(self) -> str:
        return promise(f"({self.epsilon:g}, {self.delta:g})", self.privacy_unit, simulated=self.simulated)

    @property
    def keys(self) -> frozenset[str]:
        """Names of the columns that the private SELECTs group by; their numbers, such as years, are names."""
        return frozenset(name for each in self.releases for name in each.record.keys)

    @property
    def epsilon(self) -> float:
        """Epsilon of all private SELECTs together."""
        return decimal_sum_up(each.epsilon for each in self.releases)

    @property
    def delta(self) -> float:
        """Delta of all private SELECTs together, as their OPTIONS state it."""
        return decimal_sum_up(each.delta for each in self.releases)

    @property
    def charged_delta(self) -> float:
        """Delta of all private SELECTs together, as it was charged: none for noise that needs none."""
        return decimal_sum_up(each.charged_delta for each in self.releases)

    @property
    def cost(self) -> tuple[float, float]:
        """Epsilon and delta of the private SELECTs that were charged now, not released before."""
        charged = [each for each in self.releases if not each.replayed]
        epsilon = decimal_sum_up(each.epsilon for each in charged)
        return epsilon, decimal_sum_up(each.charged_delta for each in charged)

    @property
    def loss(self) -> PrivacyLoss:
        """What was run: the sum of the losses of all private SELECTs."""
        return functools.reduce(operator.add, (each.loss for each in self.releases))

    @property
    def neighboring(self) -> Neighboring:
        """The relation that is protected: one unit added or removed."""
        return Neighboring.ADD_REMOVE

    @property
    def privacy_unit(self) -> str:
        """Who is protected: the unit column, or the row."""
        return self.releases[0].privacy_unit

    @property
    def simulated(self) -> bool:
        """True if the noise came from a seed, so that nothing is protected."""
        return any(each.simulated for each in self.releases)

    @property
    def replayed(self) -> bool:
        """True if every private SELECT had been answered before, so that nothing was charged."""
        return all(each.replayed for each in self.releases)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The ledger's receipts of the private SELECTs that were charged now, in one transaction."""
        return tuple(each.receipt for each in self.releases if each.receipt is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the answer."""
        return self.outer.columns

    def explain(self) -> str:
        """Say how each private SELECT was answered, and what was computed from the answers.

        Returns
        -------
        str
            Some lines for people.
        """
        return "\n".join(outer_lines([each.explain() for each in self.releases], self.outer))

    def plot(
        self, ax: Any = None, *, column: str | None = None, level: float = _LEVEL, most: int = 30
    ) -> Any:
        """Draw one column with its intervals, a bar for each group; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        column : str, optional
            Which; the first one of numbers if left out.
        level : float
            Coverage of the intervals, as for `to_arrow`.
        most : int
            How many rows are drawn, the first ones.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        table = self.to_arrow(intervals=True, level=level)
        return drawn_table(table, column, keys=self.keys, most=most, ax=ax)

    def to_arrow(self, *, intervals: bool = False, level: float = _LEVEL) -> pa.Table:
        """Return the answer as an Arrow table.

        Parameters
        ----------
        intervals : bool
            Put ``<name>_lower`` and ``<name>_upper`` after every column that carries an interval: one of a
            private SELECT's answer that is passed on, or put through an expression that grows or falls with
            it; a weighted sum of counts and sums, of one row or of many by SUM or in a window, and a ratio of
            two. A list of values with their counts has lists of the counts' ends, in its order. Other columns
            have none. They are NULL where the answers have more than 2,048 rows together and several are in
            a number.
        level : float
            Coverage of the intervals, strictly between 0 and 1, of each value on its own. Rows that were
            chosen or put in order by their noise are covered less often.

        Returns
        -------
        pyarrow.Table
        """
        level = _check.unit_interval("level", level, "write 0.95, say")
        given: object = intervals
        if not isinstance(given, bool):
            _check.refuse("intervals", "be True or False", given, "state another coverage by level=")
        table = self.table
        if intervals and level != _LEVEL and self.outer.intervals:
            table = self.outer.table(self.releases, self.public, level)
        made: dict[str, pa.ChunkedArray] = {}
        for name in self.columns:
            made[name] = table[name]
            if intervals and name in self.outer.intervals:
                low, high = self.outer.intervals[name]
                made[f"{name}_lower"], made[f"{name}_upper"] = table[low], table[high]
        return pa.table(list(made.values()), names=list(made))

    def to_pandas(self, *, intervals: bool = False, level: float = _LEVEL) -> pd.DataFrame:
        """Return the answer as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        intervals, level
            As for `to_arrow`.

        Returns
        -------
        pandas.DataFrame
        """
        return as_pandas(self.to_arrow(intervals=intervals, level=level))

    def to_polars(self, *, intervals: bool = False, level: float = _LEVEL) -> pl.DataFrame:
        """Return the answer as a Polars DataFrame; needs the extra ``sfumato[polars]``.

        Parameters
        ----------
        intervals, level
            As for `to_arrow`.

        Returns
        -------
        polars.DataFrame
        """
        return as_polars(self.to_arrow(intervals=intervals, level=level))


def outer_lines(explained: list[str], outer: PreparedOuter) -> list[str]:
    """Return what there is to say about private SELECTs and the SQL around them, a line each.

    Parameters
    ----------
    explained : list of str
        What each private SELECT's own explanation says.
    outer : PreparedOuter
    """
    lines = []
    for index, each in enumerate(explained):
        names = " and ".join(name for name, position in outer.answers.items() if position == index)
        lines.append(f"Private SELECT {index + 1} of {len(explained)}, called {names} below:")
        lines += [f"  {line}" for line in each.splitlines()]
    tables = ", ".join(sorted(set(outer.public.values())))
    reads = "the answers" + (f" and the public {tables}" if tables else "")
    lines.append(f"Around them: SQL over {reads}, which costs nothing: {printable(outer.text)}")
    if outer.unread:
        lines.append(f"Not read, so neither answered nor charged: {printable(', '.join(outer.unread))}.")
    carried = [name for name in outer.columns if name in outer.intervals]
    others = [name for name in outer.columns if name not in outer.intervals]
    if carried:
        lines.append(f"Intervals are carried to {printable(', '.join(carried))}.")
    if others:
        lines.append(f"No intervals: {printable(', '.join(others))}.")
    return lines
