"""A spinner as SVG, and a page as one SVG picture."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from html import escape
from typing import Final

from sfumato.local.surveys.sheets.blocks import Bars, Boxes, Heading, Page, Spinner, Table, Text
from sfumato.local.surveys.sheets.plain import block_lines

__all__ = ["bars_picture", "page_picture", "spinner_picture"]

_RADIUS: Final = 100.0
_SHADES: Final = ("#ffffff", "#c8c8c8", "#8f8f8f", "#e6e6e6", "#aaaaaa")
_LINE: Final = 18
_WIDE: Final = 720
_BAR: Final = 32
_NAMES: Final = 160
_LETTERS: Final = 22
_FILL: Final = "#7fa6d6"


def spinner_picture(spinner: Spinner) -> str:
    """Return a circle of areas as an SVG element, clockwise from the top.

    Parameters
    ----------
    spinner : Spinner
    """
    lines = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-110 -110 220 220" width="300" height="300">'
    return lines + "".join(_shapes(spinner)) + "</svg>"


def bars_picture(block: Bars) -> str:
    """Return bars with a line for each interval as an SVG element; each is named in its title.

    Parameters
    ----------
    block : Bars
    """
    low, high = block.bounds
    drawn, height = [], _BAR * len(block.rows) + 30

    def at(value: float) -> float:
        return _NAMES + (_WIDE - _NAMES - 20) * (min(max(value, low), high) - low) / (high - low)

    for place, (name, value, lower, upper) in enumerate(block.rows):
        y = place * _BAR + 6
        left, right, wide = at(lower), at(upper), max(0.0, at(value) - _NAMES)
        short = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
        drawn.append(
            f'<g><text x="{_NAMES - 8}" y="{y + 15}" font-size="13" font-family="sans-serif" '
            f'text-anchor="end">{_text_of(short)}</text>'
            f'<rect x="{_NAMES}" y="{y}" width="{wide:.1f}" height="20" fill="{_FILL}"/>'
            f'<path d="M{left:.1f} {y + 10}H{right:.1f}M{left:.1f} {y + 4}v12M{right:.1f} {y + 4}v12" '
            f'stroke="#000" stroke-width="2" fill="none"/></g>'
        )
    base = height - 20
    drawn.append(f'<path d="M{_NAMES} 0V{base}H{_WIDE - 20}" stroke="#000" fill="none"/>')
    for end, anchor in ((low, "start"), (high, "end")):
        drawn.append(
            f'<text x="{at(end):.1f}" y="{height - 4}" font-size="13" font-family="sans-serif" '
            f'text-anchor="{anchor}">{end:g}</text>'
        )
    title = _text_of(block.title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {height}" width="100%" role="img" '
        f'aria-label="{title}">' + "".join(drawn) + "</svg>"
    )


def _text_of(text: str) -> str:
    return escape("".join(mark if mark.isprintable() else "\ufffd" for mark in text))


def _shapes(spinner: Spinner) -> Iterator[str]:
    turned = Fraction(0)
    for place, (letter, part) in enumerate(spinner.areas):
        (x, y), (u, v) = _at(turned, _RADIUS), _at(turned + part, _RADIUS)
        wide = int(part > Fraction(1, 2))
        # The last area never has the shade of the first beside it.
        shade = _SHADES[place % len(_SHADES)] if place % len(_SHADES) or not place else _SHADES[-1]
        yield (
            f'<path d="M0 0L{x:.3f} {y:.3f}A{_RADIUS:g} {_RADIUS:g} 0 {wide} 1 {u:.3f} {v:.3f}Z" '
            f'fill="{shade}" stroke="#000" stroke-width="1"/>'
        )
        a, b = _at(turned + part / 2, 0.68 * _RADIUS)
        yield (
            f'<text x="{a:.2f}" y="{b:.2f}" font-size="16" font-family="sans-serif" text-anchor="middle" '
            f'dominant-baseline="central">{escape(letter)}</text>'
        )
        turned += part
    yield '<circle r="2.5" fill="#000"/>'


def _at(part: Fraction, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * float(part)
    return radius * math.sin(angle), -radius * math.cos(angle)


def page_picture(page: Page) -> str:
    """Return a page as one SVG picture.

    Parameters
    ----------
    page : Page
    """
    drawn, y = [_text(page.title, 40, 22, bold=True)], 70
    for block in page.blocks:
        if isinstance(block, Spinner):
            inner = "".join(_shapes(block))
            drawn.append(f'<g transform="translate({_WIDE // 2} {y + 110})">{inner}</g>')
            y += 240
            continue
        if isinstance(block, Boxes):
            drawn += _boxes(block, y)
            y += 3 * _LINE
            continue
        if isinstance(block, Heading):
            drawn.append(_text(block.text, y + 10, 16, bold=True))
            y += 10 + int(1.5 * _LINE)
            continue
        loud = isinstance(block, Text) and block.loud
        family = "monospace" if isinstance(block, Table) else "sans-serif"
        for line in block_lines(block):
            drawn.append(_text(line, y, 15 if loud else 13, bold=loud, family=family))
            y += _LINE
        y += _LINE // 2
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {y + 20}" width="{_WIDE}">'
    return f'{opening}<rect width="100%" height="100%" fill="#fff"/>' + "".join(drawn) + "</svg>\n"


def _text(
    text: str, y: int, size: int, *, bold: bool = False, x: int = 40, family: str = "sans-serif"
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-family="{family}" xml:space="preserve"{weight}>'
        f"{escape(text)}</text>"
    )


def _boxes(block: Boxes, y: int) -> Iterator[str]:
    wide = (_WIDE - 80) // len(block.labels)
    for place, label in enumerate(block.labels):
        x = 40 + place * wide
        yield f'<rect x="{x}" y="{y}" width="18" height="18" fill="none" stroke="#000"/>'
        yield _text(label, y + 15, 15, x=x + 28)
