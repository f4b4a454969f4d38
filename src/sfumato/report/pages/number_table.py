"""The released numbers as a table with their intervals, and as bars with whiskers below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, final

import pyarrow as pa

from sfumato.queries.release.display import plain_values, printable, shown
from sfumato.report.markup.bar_chart import Bar, axis, bar_chart
from sfumato.report.markup.elements import Markup, element, joined, user_text
from sfumato.report.markup.numerals import Numerals
from sfumato.report.texts.catalog import Texts

__all__ = ["Column", "columns_of", "number_charts", "number_table"]

_ROWS: Final = 60
_BARS: Final = 20
_CHARTS: Final = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of an answer.

    Parameters
    ----------
    name : str
    values : sequence
        Plain values, one for each row.
    ends : tuple of two sequences, optional
        Of its intervals.
    is_key : bool
        Whether its values are names of groups, such as years.
    """

    name: str
    values: Sequence[Any]
    ends: tuple[Sequence[Any], Sequence[Any]] | None = None
    is_key: bool = False


def columns_of(table: pa.Table, wide: pa.Table, keys: Sequence[str]) -> list[Column]:
    """Return the columns of an answer, with the intervals that stand in the wider table.

    Parameters
    ----------
    table : pyarrow.Table
        The answer.
    wide : pyarrow.Table
        The same rows, after each column with intervals two more for their ends.
    keys : sequence of str
        Names of the columns that name a group.
    """
    columns, position = [], 0
    for index, name in enumerate(table.column_names):
        position += 1
        following = wide.column_names[position : position + 2]
        ends = None
        if following == [f"{name}_lower", f"{name}_upper"] and not _are(table, index, following):
            lower, upper = (wide.column(position + each).to_pylist() for each in (0, 1))
            ends, position = (lower, upper), position + 2
        columns.append(
            Column(name=name, values=plain_values(table.column(index)), ends=ends, is_key=name in keys)
        )
    return columns


def _are(table: pa.Table, index: int, following: Sequence[str]) -> bool:
    """Return whether what follows in the wide table are columns of the answer by such names, and no ends."""
    return list(table.column_names[index + 1 : index + 3]) == list(following)


def number_table(columns: Sequence[Column], texts: Texts) -> Markup:
    """Return the first rows, each number with its interval.

    Parameters
    ----------
    columns : sequence of Column
    texts : Texts
    """
    rows = len(columns[0].values) if columns else 0
    heads = element("tr", *(element("th", user_text(each.name), scope="col") for each in columns))
    body = (element("tr", *(_cell(each, row, texts) for each in columns)) for row in range(min(rows, _ROWS)))
    table = element(
        "table",
        element("caption", texts("numbers.caption")),
        element("thead", heads),
        element("tbody", *body),
    )
    label = texts("numbers.heading")
    parts = [element("div", table, class_="scroll", tabindex="0", role="group", aria_label=label)]
    if rows > _ROWS:
        parts.append(element("p", texts("numbers.more", shown=str(_ROWS), all=str(rows))))
    return joined(parts)


def _cell(column: Column, row: int, texts: Texts) -> Markup:
    value, numerals = column.values[row], Numerals(texts.language)
    if column.is_key:
        named = (
            texts("numbers.missing")
            if value is None
            else user_text(", ".join(value) if isinstance(value, list) else str(value))
        )
        return element("th", named, scope="row")
    written = _written(value, numerals.nearest, texts)
    if column.ends is None:
        return element("td", written, class_="n")
    low, high = (ends[row] for ends in column.ends)
    if low is None or high is None:
        return element("td", written, class_="n")
    ends = {
        "low": _written(low, numerals.down, texts),
        "high": _written(high, numerals.up, texts),
    }
    between = element("span", texts("numbers.interval", **ends), class_="i")
    return element("td", written, Markup(" "), between, class_="n")


def _written(value: Any, number: Any, texts: Texts) -> Markup:
    """Return a value, a number by the given way of rounding."""
    if value is None:
        return texts("numbers.missing")
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return joined([number(value)])
    if isinstance(value, list) and not any(isinstance(each, dict) for each in value):
        return joined(
            joined(["; " if index else "", _written(each, number, texts)]) for index, each in enumerate(value)
        )
    return user_text(shown(value))


def number_charts(columns: Sequence[Column], texts: Texts) -> Iterator[Markup]:
    """Yield bars with whiskers for the first columns that have numbers with intervals.

    Parameters
    ----------
    columns : sequence of Column
    texts : Texts
    """
    numerals, drawn = Numerals(texts.language), 0
    for column in columns:
        bars = list(_bars(columns, column))[:_BARS]
        if not bars or drawn == _CHARTS:
            continue
        drawn += 1
        low, high = axis(bars)
        chart = bar_chart(
            bars,
            title=texts("numbers.chart", column=printable(column.name)),
            description=texts("numbers.chart_text"),
            ends=(numerals.down(low), numerals.up(high)),
            key=f"chart-{drawn}",
        )
        caption = texts("numbers.chart_caption", column=user_text(column.name))
        yield element("figure", chart, element("figcaption", caption))


def _bars(columns: Sequence[Column], column: Column) -> Iterator[Bar]:
    """Yield a bar for each row of a column that has a number and an interval there."""
    if column.ends is None:
        return
    keys = [each for each in columns if each.is_key]
    for row, (value, low, high) in enumerate(zip(column.values, *column.ends, strict=True)):
        if not all(isinstance(each, int | float | Decimal) for each in (value, low, high)):
            continue
        if math.isfinite(value) and not (math.isnan(low) or math.isnan(high)):
            named = ", ".join(shown(None) if k.values[row] is None else str(k.values[row]) for k in keys)
            numbers = {"value": float(value), "lower": float(low), "upper": float(high)}
            yield Bar(name=printable(named or column.name), **numbers)
