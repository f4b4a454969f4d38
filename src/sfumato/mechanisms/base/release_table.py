"""Tables and plots of releases: a row for each number, with its interval."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato._display import Cell, html_table, named, shown
from sfumato.errors import MissingExtra
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import axes, draw_line, drawable, label_text, ticks

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = [
    "Rows",
    "Table",
    "as_pandas",
    "as_polars",
    "draw_whiskers",
    "drawn",
    "drawn_few",
    "notebook_table",
    "rows_of",
]

_SHOWN: Final = 20
_MOST: Final = 2_000
"""Bars that matplotlib draws in a second or two."""
_LABELS: Final = 100
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
    """Draw rows into axes and return them: bars for categories and cells, else points; with intervals.

    Of more than 2,000 categories the first ones are drawn; of as many cells or entries, a line.
    """
    if rows.value.dtype.kind not in "biuf":
        found = f"it is of {rows.value.dtype}"
        _check.refuse_state("value", "be numbers to plot", found, "show it as a table")
    ax = axes(ax)
    names, places = list(rows.labels), _places(rows.labels)
    many = len(rows.value) > _MOST
    if names and places is None and many:
        return drawn_few(rows, _MOST, ax)
    value = drawable(rows.value)
    ends = rows.ends
    if ends is not None:
        ends = Interval(np.atleast_1d(drawable(ends.lower)), np.atleast_1d(drawable(ends.upper)))
    ax.set_ylabel("value")
    if names and places is not None and (many or names == ["quantile"]):
        draw_line(places[0], value, ends, ax=ax)
        ax.set_xlabel(names[0].replace("_", " "))
        return ax
    if names == _EDGES and places is not None:
        left, right = places
        draw_whiskers((left + right) / 2, value, ends, ax=ax, capsize=0)
        ax.bar(left, value, right - left, align="edge", edgecolor="white")
        return ax
    index = np.arange(len(value))
    if not names or places is not None:
        (points,) = ax.plot(index, value, "o")
        draw_whiskers(index, value, ends, ax=ax, color=points.get_color())
        if names:
            ax.set_xlabel(names[0])
        else:
            ax.set_xticks([])
        return ax
    between = " to " if names == _EDGES else ", "
    texts = [between.join(map(named, row)) for row in zip(*rows.labels.values(), strict=True)]
    draw_whiskers(index, value, ends, ax=ax)
    ax.bar(index, value)
    ticks(ax.xaxis, texts, _LABELS, rotation=45 if len(value) > 6 else 0)
    ax.set_xlabel(label_text(between.join(names).replace("_", " ")))
    return ax


def draw_whiskers(
    x: Any, value: ArrayLike, ends: Interval[Any] | None, *, ax: Any, color: str = "black", capsize: int = 3
) -> None:
    """Draw intervals at ``x``, of a value that was clamped too: it lies outside of its own.

    Parameters
    ----------
    x : array
    value : array
        Without a value there are no whiskers.
    ends : Interval of arrays, or None
        Where an end is not finite, its half is not drawn.
    ax : matplotlib.axes.Axes
    color : str
    capsize : int
        Of the lines across the ends.
    """
    if ends is None:
        return
    value, lower, upper = map(drawable, (value, *ends[:2]))
    base = np.where(np.isnan(value), np.nan, np.fmin(np.fmax(value, lower), upper))
    # Matplotlib below 3.9 takes an array of one number for a number, which NumPy warns of.
    halves = np.nan_to_num([base - lower, upper - base], nan=0.0).tolist()
    ax.errorbar(x, base, yerr=halves, fmt="none", ecolor=color, capsize=capsize)


def drawn_few(rows: Rows, most: int, ax: Any = None, *, of: int | None = None) -> Any:
    """Draw the first rows as `drawn` does, with a title that says so if there are more; return the axes.

    Parameters
    ----------
    rows : Rows
    most : int
        How many are drawn at most; more than 2,000 never are.
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
    most = min(_check.integer("most", most, minimum=1), _MOST)
    count = len(rows.value) if of is None else of
    labels = {name: label[:most] for name, label in rows.labels.items()}
    ends = rows.ends
    if ends is not None:
        ends = Interval(np.asarray(ends.lower)[:most], np.asarray(ends.upper)[:most])
    ax = drawn(Rows(labels, rows.value[:most], ends), ax)
    if count > most:
        ax.set_title(f"the first {most:,} of {count:,} rows")
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
    columns = [list(map(named, label[:_SHOWN])) for label in rows.labels.values()]
    numbers: list[Cell] = list(map(shown, value.tolist()))
    if rows.ends is not None:
        lower, upper = (np.atleast_1d(np.asarray(end))[:_SHOWN].tolist() for end in rows.ends[:2])
        ends = zip(numbers, lower, upper, strict=True)
        # Rounded as the number itself is, so that no end crosses it.
        numbers = [(str(number), f"[{shown(low)}, {shown(high)}]") for number, low, high in ends]
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


def _places(labels: Mapping[str, Sequence[Any]]) -> list[NDArray[np.float64]] | None:
    """Return labels as places on an axis; None where they name rows, such as columns of somebody's data."""
    if list(labels) not in ([*_EDGES], ["quantile"], ["entry"]):
        return None
    columns = [np.asarray(label) for label in labels.values()]
    if any(column.size and column.dtype.kind not in "iuf" for column in columns):
        return None
    found = [drawable(column) for column in columns]
    return found if np.isfinite(found).all() else None


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
