"""Bars with whiskers as SVG: an estimate to each name, and the interval around it.

Colors stand at the shapes and not in the page's style sheet, which printers do not apply within a picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from sfumato.report.markup.elements import Markup, element, joined
from sfumato.report.markup.page_style import COLORS

__all__ = ["Bar", "axis", "bar_chart"]

_WIDTH, _NAMES, _ROW, _MARGIN = 640, 190, 22, 12
_AXIS: Final = 20
_LONGEST: Final = 26


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: its name, its value, and the ends of its interval, which may be infinite.

    Parameters
    ----------
    name : str
        In printable characters.
    value, lower, upper : float
    """

    name: str
    value: float
    lower: float
    upper: float


def bar_chart(
    bars: Sequence[Bar], *, title: str, description: str, ends: tuple[str, str], key: str
) -> Markup:
    """Return the bars under one another, from zero, with a whisker over each interval.

    Parameters
    ----------
    bars : sequence of Bar
        Their values are finite.
    title, description : str
        What a reader hears who sees no picture.
    ends : tuple of str
        What is written below the two ends of the `axis`.
    key : str
        Makes the ids of this picture different from those of others on the page.

    Returns
    -------
    Markup
    """
    low, high = axis(bars)
    height = _ROW * len(bars) + _AXIS
    zero = _place(0.0, low, high)
    rows = joined(_row(bar, index, low, high) for index, bar in enumerate(bars))
    bottom = str(_ROW * len(bars))
    line = element("line", x1=_text(zero), x2=_text(zero), y1="0", y2=bottom, stroke=COLORS["quiet"])
    below = str(height - 6)
    labels = (
        element("text", ends[0], x=str(_NAMES), y=below),
        element("text", ends[1], x=str(_WIDTH - _MARGIN), y=below, text_anchor="end"),
    )
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        rows,
        line,
        *labels,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        font_family="system-ui,sans-serif",
        font_size="12",
        fill=COLORS["ink"],
        aria_labelledby=f"{key}-title {key}-desc",
    )


def axis(bars: Sequence[Bar]) -> tuple[float, float]:
    """Return the ends of the axis: zero, every value, and every end of an interval that is finite.

    Parameters
    ----------
    bars : sequence of Bar
    """
    seen = [0.0]
    for bar in bars:
        seen += [end for end in (bar.value, bar.lower, bar.upper) if math.isfinite(end)]
    return min(seen), max(seen)


def _row(bar: Bar, index: int, low: float, high: float) -> Markup:
    top, middle = index * _ROW + 4, index * _ROW + _ROW / 2
    ends = sorted((_place(0.0, low, high), _place(bar.value, low, high)))
    whisker = _whisker(bar, middle, low, high)
    name = bar.name if len(bar.name) <= _LONGEST else bar.name[: _LONGEST - 1] + "…"
    return joined(
        (
            element("text", name, x=str(_NAMES - 8), y=_text(middle + 4), text_anchor="end"),
            element(
                "rect",
                x=_text(ends[0]),
                y=str(top),
                width=_text(ends[1] - ends[0]),
                height=str(_ROW - 8),
                fill=COLORS["bar"],
                stroke=COLORS["ink"],
                stroke_width="0.5",
            ),
            element("path", d=whisker, stroke=COLORS["ink"], stroke_width="1.5", fill="none"),
        )
    )


def _whisker(bar: Bar, middle: float, low: float, high: float) -> str:
    """Return the path of a whisker; an end that is infinite has no cap."""
    left, right = (_place(end, low, high) for end in (bar.lower, bar.upper))
    caps = "".join(
        f"M{_text(x)} {_text(middle - 4)}V{_text(middle + 4)}"
        for x, end in ((left, bar.lower), (right, bar.upper))
        if math.isfinite(end)
    )
    return f"M{_text(left)} {_text(middle)}H{_text(right)}{caps}"


def _place(value: float, low: float, high: float) -> float:
    """Return where a value is from left to right; halves, for a difference of two floats may be infinite."""
    span = high / 2 - low / 2
    if span == 0:
        return float(_NAMES)
    share = (min(max(value, low), high) / 2 - low / 2) / span
    return _NAMES + share * (_WIDTH - _MARGIN - _NAMES)


def _text(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
