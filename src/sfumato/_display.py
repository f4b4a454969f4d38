"""What a notebook shows: tables of plain HTML, without scripts, in which no text can be markup.

Screen readers find a caption, and the head of each column and row. Colours and widths are the notebook's.

>>> html_facts("An audit", {"claim": "<b>1</b>"})[84:-22]
'<tr><th scope="row">claim</th><td>&lt;b&gt;1&lt;/b&gt;</td></tr>'
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

__all__ = ["Cell", "html_block", "html_facts", "html_table", "named", "printable", "shortened", "shown"]

_WHOLE = 10**15
"""From here on a number is written with an exponent: no one reads its digits, and a cell would cut them."""

Cell = str | tuple[str, str]
"""A text, or one with a note beside it in small letters."""


def printable(text: str) -> str:
    r"""Return a text that cannot steer a terminal: what is not printable is written as an escape.

    Examples
    --------
    >>> print(printable("Iowa" + chr(0x202E)))
    Iowa\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int = 40) -> str:
    """Return at most so many characters of a text, the last three of them dots where more was there.

    Examples
    --------
    >>> shortened("a" * 50, 10)
    'aaaaaaa...'
    """
    return text if len(text) <= most else text[: most - 3] + "..."


def named(value: object) -> str:
    """Return a value that names something, such as a year or an edge: it is not rounded.

    Examples
    --------
    >>> named(2019), named(1000.25), named(None)
    ('2019', '1000.25', 'NULL')
    """
    return "NULL" if value is None else printable(str(value))


def shown(value: object) -> str:
    """Return a value as a person reads it; of a list of values with their counts these.

    Examples
    --------
    >>> shown(2839), shown(48123.7), shown(0.51234), shown("Iowa"), shown(None)
    ('2,839', '48,124', '0.5123', 'Iowa', 'NULL')
    >>> shown(1e300), shown(10**40)
    ('1e+300', '1.000e+40')
    >>> shown(Decimal("1270.500000000"))
    '1,270.5'
    >>> shown([{"value": "Iowa", "count": 2839}, {"value": None, "count": 7}])
    'Iowa (2,839), NULL (7)'
    """
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        first, *others = map(shown, value.values())
        return f"{first} ({', '.join(others)})"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return ", ".join(map(shown, value))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return printable(str(value))
    return _number(value)


def html_table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    more: str = "",
    facts: Mapping[str, str] | None = None,
) -> str:
    """Return a table with what is said of it below.

    Parameters
    ----------
    caption : str
    head : sequence of str
        Names of the columns.
    rows : iterable of sequence of str or tuple of two str
    more : str
        A line below the rows.
    facts : mapping of str to str, optional
        What else is said, by its name.

    Examples
    --------
    >>> html_table("a count", ["n"], [[("7", "[5, 9]")]], facts={"cost": "nothing"})[-101:-6]
    '<tr><td>7 <small>[5, 9]</small></td></tr></tbody></table><dl><dt>cost</dt><dd>nothing</dd></dl>'
    """
    names = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    below = f"<p>{_text(more)}</p>" if more else ""
    said = "".join(f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in (facts or {}).items())
    listed = f"<dl>{said}</dl>" if said else ""
    table = f"<caption>{_text(caption)}</caption><thead><tr>{names}</tr></thead><tbody>{body}</tbody>"
    return html_block(f"<table>{table}</table>{below}{listed}")


def html_facts(caption: str, facts: Mapping[str, str]) -> str:
    """Return facts as a table of names and texts.

    Parameters
    ----------
    caption : str
    facts : mapping of str to str
    """
    rows = "".join(
        f'<tr><th scope="row">{_text(name)}</th><td>{_text(text)}</td></tr>' for name, text in facts.items()
    )
    return html_block(f"<table><caption>{_text(caption)}</caption><tbody>{rows}</tbody></table>")


def html_block(content: str) -> str:
    """Return HTML in which a notebook leaves $ alone: MathJax would make formulas of names, and links too."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{content}</div>'


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < _WHOLE else f"{value:.4g}"
    if not -(10**30) < value < 10**30:
        return f"{Decimal(value):.4g}"
    if not isinstance(value, Decimal):
        return f"{value:,}"
    whole, point, part = f"{value:,f}".partition(".")
    return f"{whole}{point}{part}".rstrip("0").rstrip(".") if point else whole


def _text(text: str) -> str:
    return html.escape(printable(text))


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _text(cell)
    text, note = cell
    return f"{_text(text)} <small>{_text(note)}</small>" if note else _text(text)
