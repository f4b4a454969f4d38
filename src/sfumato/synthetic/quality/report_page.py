"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, TypeAlias

from sfumato.synthetic.quality.associations import Association
from sfumato.synthetic.quality.report_figure import columns_of

__all__ = ["WARNING", "Table", "number_text", "report_page"]

WARNING: Final = "FOR THE CURATOR ONLY, NOT A RELEASE: computed from real rows without noise"

_STYLE: Final = """
body { font: 16px/1.45 sans-serif; color: #111; background: #fff; max-width: 60em;
  margin: 1em auto; padding: 0 1em }
.warning { background: #fff0ee; border: 2px solid #b00020; color: #b00020; font-weight: bold;
  padding: .6em 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; margin-top: 1.6em }
table { border-collapse: collapse }
th, td { border-bottom: 1px solid #ccc; padding: .25em .9em; text-align: right }
th:first-child, td:first-child { text-align: left }
svg { max-width: 100%; height: auto }
"""
_CELL: Final = 26
_GRAY: Final = "#e8e8e8"
_NOTES: Final = """<p><b>synthetic</b>: of the synthetic rows. <b>real</b>: the same of real rows in their
place, which is the floor: a bootstrap sample of as many rows, other real rows, or a classifier trained on
real rows. <b>baseline</b>: of independent columns with the real one-way marginals; for predictions, of the
most frequent class.</p>
<p>Whoever publishes these numbers, or chooses by them among generators whose output is published, reveals
something about real rows that no privacy loss covers.</p>"""

Table: TypeAlias = tuple[str, Sequence[str], Sequence[Sequence[str | float]]]


def report_page(tables: Sequence[Table], associations: Sequence[Association]) -> str:
    """Return tables and a heat map of associations as HTML: no script, and nothing is fetched.

    Parameters
    ----------
    tables : sequence of (str, sequence of str, sequence of sequence)
        Heading, names of columns and rows of each.
    associations : sequence of Association
    """
    parts = "\n".join(_table(*table) for table in tables)
    picture = f"<h2>Associations of pairs</h2>\n{_heat_map(associations)}\n" if associations else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<meta name="robots" content="noindex">\n'
        f"<title>Quality of a synthetic table (curator only)</title>\n<style>{_STYLE}</style>\n</head>\n"
        "<body>\n"
        f'<p class="warning">{escape(WARNING)}</p>\n<h1>Quality of a synthetic table</h1>\n'
        f"{parts}\n{picture}<h2>How to read it</h2>\n{_NOTES}\n</body>\n</html>\n"
    )


def _table(heading: str, names: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<td>{escape(number_text(entry) if isinstance(entry, float) else entry)}</td>" for entry in row
        )
        + "</tr>"
        for row in rows
    )
    return (
        f"<h2>{escape(heading)}</h2>\n<table>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def number_text(value: float) -> str:
    """Return a number as it is shown, a dash where there is none.

    Parameters
    ----------
    value : float
    """
    if math.isnan(value):
        return "-"
    return f"{value:.1f}" if abs(value) > 100 else f"{value:.4f}"


def _heat_map(associations: Sequence[Association]) -> str:
    """Return a picture with a square for each pair: Cramer's V, synthetic less real."""
    names = columns_of(associations)
    left = 8 * max(map(len, names)) + 10
    side = _CELL * len(names)
    squares = "".join(_squares(associations, names, left))
    labels = "".join(
        f'<text x="{left - 6}" y="{(place + 0.65) * _CELL:.1f}" text-anchor="end">{escape(name)}</text>'
        f'<text transform="translate({left + (place + 0.65) * _CELL:.1f} {side + 8}) rotate(90)">'
        f"{escape(name)}</text>"
        for place, name in enumerate(names)
    )
    caption = "Cramer's V in the synthetic rows less that in the real rows: red below, blue above"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {left + side + 10} {side + left}" '
        f'width="{left + side + 10}" font-family="sans-serif" font-size="13">'
        f"<title>{escape(caption)}</title>{squares}{labels}</svg>\n<p>{escape(caption)}.</p>"
    )


def _squares(associations: Sequence[Association], names: Sequence[str], left: int) -> Iterator[str]:
    for each in associations:
        one, other = map(names.index, each.columns)
        said = f"{', '.join(each.columns)}: synthetic {number_text(each.synthetic)}"
        said += f", real {number_text(each.real)}"
        for x, y in ((one, other), (other, one)):
            yield (
                f'<rect x="{left + x * _CELL}" y="{y * _CELL}" width="{_CELL - 1}" height="{_CELL - 1}" '
                f'fill="{_color(each.synthetic - each.real)}"><title>{escape(said)}</title></rect>'
            )


def _color(off: float) -> str:
    """Return white for 0, blue towards 1 and red towards -1; gray where there is no number."""
    if math.isnan(off):
        return _GRAY
    part = min(1.0, abs(off)) ** 0.5  # small differences are seen too
    end = (33, 102, 172) if off > 0 else (178, 24, 43)
    return "#" + "".join(f"{round(255 + part * (each - 255)):02x}" for each in end)
