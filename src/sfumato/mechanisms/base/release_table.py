"""Tables and plots of releases: a row for each number, with its interval."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._display import Cell, html_table, shown
from sfumato.errors import MissingExtra
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import axes, draw_line

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Rows", "Table", "as_pandas", "as_polars", "drawn", "drawn_few", "notebook_table", "rows_of"]

_SHOWN: Final = 20
_PLAIN: Final = (bool, int, float, str, bytes, tuple, Decimal, dt.date, type(None))
_EDGES: Final = ["lower_edge", "upper_edge"]

Table = dict[str, NDArray[Any]]
"""Columns of equal length by name."""


class Rows(NamedTuple):
    """What a table of a release is made of.

    Parameters
    ----------
    labels : mapping of str to sequence
        Columns that say what each row is.
    value : array of shape (n,)
    ends : Interval of arrays of shape (n,), or None
    """

    labels: Mapping[str, Sequence[Any]]
    value: NDArray[Any]
    ends: Interval[Any] | None

    def table(self, *, intervals: bool) -> Table:
        """Return the labels, the value and the ends as columns."""
        if not isinstance(intervals, bool):
            _check.refuse("intervals", "be True or False", intervals, "state another coverage by level=")
        made = {name: _column(label) for name, label in self.labels.items()}
        made["value"] = self.value
        if intervals and self.ends is not None:
            made["lower"], made["upper"] = (np.atleast_1d(np.asarray(end)) for end in self.ends[:2])
        return made


def rows_of(
    value: Any, labels: Mapping[str, Sequence[Any]] | None = None, ends: Interval[Any] | None = None
) -> Rows:
    """Return the rows of a value: one for a number, one for each entry of an array, a list or a mapping.

    Raises
    ------
    ParameterError
        If the value is something else.
    """
    if isinstance(value, Mapping):
        if any(np.ndim(entry) for entry in value.values()):
            rule, found = "map to numbers, for a table", "it maps to arrays"
            _check.refuse_state("value", rule, found, "make a release of a part of it by map")
        labels, value = {"key": list(value)}, np.asarray(list(value.values()))
    elif hasattr(value, "_fields"):
        labels, value = _fields(value)
    elif isinstance(value, list | tuple):
        value = _column(value)
    array = np.asarray(value)
    if array.ndim > 1 or (array.dtype.kind not in "biufUSO") or (array.ndim == 0 and array.dtype.kind == "O"):
        rule, found = "be a number, or have one axis, for a table", f"it is of type {type(value).__name__}"
        _check.refuse_state("value", rule, found, "make a release of a part of it by map")
    if array.ndim == 0:
        return Rows(labels or {}, array[None], ends)
    return Rows(labels or {"entry": range(len(array))}, array, ends)


def as_pandas(table: Table) -> pd.DataFrame:
    """Return a table as a pandas DataFrame."""
    try:
        import pandas as pd  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra("to_pandas needs pandas; pip install 'sfumato[pandas]'") from missing
    return pd.DataFrame(table)


def as_polars(table: Table) -> pl.DataFrame:
    """Return a table as a Polars DataFrame."""
    try:
        import polars as pl  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra("to_polars needs Polars; pip install 'sfumato[polars]'") from missing
    plain = {name: column.tolist() if column.dtype.kind == "O" else column for name, column in table.items()}
    return pl.DataFrame(plain)


def drawn(rows: Rows, ax: Any = None) -> Any:
    """Draw rows into axes and return them: bars for categories and cells, else points; with intervals."""
    table = rows.table(intervals=True)
    value = table["value"]
    if value.dtype.kind not in "biuf":
        _check.refuse_state("value", "be numbers to plot", f"it is of {value.dtype}", "show it as a table")
    value = value.astype(np.float64)
    ax = axes(ax)
    ends = [table.get(name, value).astype(np.float64) for name in ("lower", "upper")]
    # A half that is infinite is not drawn; a value that was clamped may be at an end.
    below, above = (
        np.where(np.isfinite(half), np.maximum(half, 0), 0) for half in (value - ends[0], ends[1] - value)
    )
    # Matplotlib below 3.9 takes an array of one number for a number, which NumPy warns of.
    halves = None if rows.ends is None else np.stack([below, above]).tolist()
    ax.set_ylabel("value")
    names = list(rows.labels)
    if names == _EDGES and all(map(_finite, rows.labels.values())):
        left, right = (np.asarray(table[name], np.float64) for name in names)
        ax.bar(left, value, right - left, align="edge", yerr=halves, edgecolor="white")
        return ax
    if names == ["quantile"]:
        band = None if halves is None else Interval(value - below, value + above)
        draw_line(table["quantile"], value, band, ax=ax)
        ax.set_xlabel("quantile")
        return ax
    if not names or names == ["entry"]:
        ax.errorbar(np.arange(value.size), value, yerr=halves, fmt="o", capsize=3)
        if names:
            ax.set_xlabel("entry")
        else:
            ax.set_xticks([])
        return ax
    between = " to " if names == _EDGES else ", "
    texts = [between.join(map(str, row)) for row in zip(*rows.labels.values(), strict=True)]
    ax.bar(range(value.size), value, yerr=halves, capsize=3)
    ax.set_xticks(range(value.size), texts, rotation=45 if value.size > 6 else 0)
    ax.set_xlabel(between.join(names).replace("_", " "))
    return ax


def drawn_few(rows: Rows, most: int, ax: Any = None, *, of: int | None = None) -> Any:
    """Draw the first rows as `drawn` does, with a title that says so if there are more; return the axes.

    Parameters
    ----------
    rows : Rows
    most : int
        How many are drawn at most.
    ax : matplotlib.axes.Axes, optional
        New ones if left out.
    of : int, optional
        How many there are, where ``rows`` has the first ones only.

    Raises
    ------
    ParameterError
        If ``most`` is no integer of at least 1.
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    most = _check.integer("most", most, minimum=1)
    count = len(rows.value) if of is None else of
    labels = {name: label[:most] for name, label in rows.labels.items()}
    ends = rows.ends
    if ends is not None:
        ends = Interval(np.asarray(ends.lower)[:most], np.asarray(ends.upper)[:most])
    ax = drawn(Rows(labels, rows.value[:most], ends), ax)
    if count > most:
        ax.set_title(f"the first {most} of {count:,} rows")
    return ax


def notebook_table(rows: Rows, caption: str, facts: Mapping[str, str]) -> str:
    """Return the first rows as HTML, with their intervals in small letters.

    Raises
    ------
    ParameterError
        If the entries are neither numbers nor names.
    """
    if any(not isinstance(each, _PLAIN) for each in rows.value[:_SHOWN].tolist()):
        _check.refuse_state(
            "value", "be numbers or names, for a table", "it holds others", "take a part of it"
        )
    value, names = rows.value[:_SHOWN], [*rows.labels, "value"]
    columns = [list(map(shown, label[:_SHOWN])) for label in rows.labels.values()]
    numbers: list[Cell] = list(map(shown, value.tolist()))
    if rows.ends is not None:
        lower, upper = (np.atleast_1d(np.asarray(end))[:_SHOWN].tolist() for end in rows.ends[:2])
        ends = zip(numbers, lower, upper, strict=True)
        numbers = [(str(number), f"[{low:.6g}, {high:.6g}]") for number, low, high in ends]
    left = len(rows.value) - len(value)
    return html_table(
        caption,
        names,
        zip(*columns, numbers, strict=True),
        more=f"and {left:,} more" if left else "",
        facts=facts,
    )


def _fields(value: Any) -> tuple[dict[str, list[str]], NDArray[Any]]:
    """Return the numbers in a named tuple, such as a fitted line, and what each is called."""
    parts = {name: np.asarray(part) for name, part in value._asdict().items()}
    names = [
        name if part.ndim == 0 else f"{name}[{index}]"
        for name, part in parts.items()
        for index in range(part.size)
    ]
    return {"field": names}, np.concatenate([part.ravel() for part in parts.values()])


def _finite(edges: Sequence[Any]) -> bool:
    return all(math.isfinite(edge) for edge in edges)


def _column(given: Sequence[Any]) -> NDArray[Any]:
    """Return a column of one type where all entries have it, else of objects."""
    kinds = {type(entry) for entry in given}
    if (len(kinds) == 1 and kinds <= {int, float, bool, str}) or isinstance(given, range | np.ndarray):
        array = np.asarray(given)
        if array.dtype.kind in "biufU":
            return array
    made = np.empty(len(given), dtype=object)
    made[:] = [*given]
    return made
