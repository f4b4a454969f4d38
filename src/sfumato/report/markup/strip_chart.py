"""Marks on one line as SVG: where values stand beside one another, with one of them as a bar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from sfumato.report.markup.elements import Markup, element, joined
from sfumato.report.markup.page_style import COLORS

__all__ = ["strip_chart"]

_WIDTH, _MARGIN, _LINE, _HEIGHT = 640, 24, 62, 90
_NEAR: Final = 14.0
"""Marks so near share a label."""
_LEVELS: Final = 3


def strip_chart(
    own: float,
    marks: Sequence[float],
    *,
    top: float,
    scale: Sequence[tuple[float, str]],
    title: str,
    description: str,
    key: str,
) -> Markup:
    """Return marks from 0 to a top; what is above it stands at the end.

    Parameters
    ----------
    own : float
        Drawn as a bar from 0.
    marks : sequence of float
        Numbered from 1, in ascending order.
    top : float
        Positive.
    scale : sequence of (float, str)
        Places with what is written below them.
    title, description : str
        What a reader hears who sees no picture.
    key : str
        Makes the ids of this picture different from those of others on the page.
    """
    places = [_place(mark, top) for mark in marks]
    parts: list[Markup] = []
    left, right = _place(0.0, top), _place(own, top)
    bar = {"x": _text(left), "y": str(_LINE - 5), "width": _text(right - left), "height": "10"}
    parts.append(element("rect", **bar, fill=COLORS["bar"], stroke=COLORS["ink"], stroke_width="0.5"))
    line = {"x1": _text(left), "x2": str(_WIDTH - _MARGIN), "y1": str(_LINE), "y2": str(_LINE)}
    parts.append(element("line", **line, stroke=COLORS["quiet"]))
    pen = {"stroke": COLORS["ink"], "stroke_width": "1.5", "fill": "none"}
    parts += [element("path", d=f"M{_text(x)} {_LINE - 8}V{_LINE + 8}", **pen) for x in places]
    for level, (x, numbers) in enumerate(_labels(places)):
        y = str(_LINE - 14 - 14 * (level % _LEVELS))
        parts.append(element("text", numbers, x=_text(x), y=y, text_anchor="middle"))
    for value, written in scale:
        x = _place(value, top)
        anchor = "start" if value <= 0 else "end" if value >= top else "middle"
        parts.append(element("text", written, x=_text(x), y=str(_HEIGHT - 4), text_anchor=anchor))
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        joined(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        font_family="system-ui,sans-serif",
        font_size="12",
        fill=COLORS["ink"],
        aria_labelledby=f"{key}-title {key}-desc",
    )


def _labels(places: Sequence[float]) -> list[tuple[float, str]]:
    """Return the numbers of marks, those of near ones together, each with its place."""
    groups: list[list[int]] = []
    for index, place in enumerate(places):
        if groups and place - places[groups[-1][0]] < _NEAR:
            groups[-1].append(index)
        else:
            groups.append([index])
    return [(places[group[0]], ", ".join(str(index + 1) for index in group)) for group in groups]


def _place(value: float, top: float) -> float:
    share = 1.0 if math.isinf(value) else min(max(value / top, 0.0), 1.0)
    return _MARGIN + share * (_WIDTH - 2 * _MARGIN)


def _text(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
