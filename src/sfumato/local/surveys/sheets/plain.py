"""Pages as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from sfumato.local.surveys.sheets.blocks import (
    Bars,
    Blank,
    Block,
    Boxes,
    Heading,
    Listed,
    Page,
    Spinner,
    Steps,
    Table,
    Text,
)

__all__ = ["block_lines", "plain_text"]

_WIDTH: Final = 88


def plain_text(pages: tuple[Page, ...]) -> str:
    """Return pages as text, with a form feed between them.

    Parameters
    ----------
    pages : tuple of Page
    """
    return "\f".join("\n".join(_page(page)) + "\n" for page in pages)


def _page(page: Page) -> Iterator[str]:
    yield page.title
    yield "=" * len(page.title)
    for block in page.blocks:
        yield ""
        yield from block_lines(block)


def block_lines(block: Block) -> Iterator[str]:
    """Return the lines of one block."""
    match block:
        case Heading(text):
            yield text
            yield "-" * len(text)
        case Text(text, formula=formula):
            for line in text.splitlines():
                yield from [f"    {line}"] if formula else _wrapped(line)
        case Steps(items) | Listed(items):
            for number, item in enumerate(items, 1):
                yield from _wrapped(item, f"{number}. " if isinstance(block, Steps) else "- ")
        case _:
            yield from _rarer(block)


def _rarer(block: Bars | Blank | Boxes | Spinner | Table) -> Iterator[str]:
    match block:
        case Boxes(labels):
            yield "    " + "      ".join(f"[ ] {label}" for label in labels)
        case Bars(title):
            yield from _wrapped(f"({title})")
        case Blank():
            yield "    [                ]"
        case Spinner(areas):
            for letter, part in areas:
                yield f"    {letter}  {part}  ({float(360 * part):.1f}°)"
        case Table(headings, rows):
            yield from _table(headings, rows)


def _table(headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, tuple("-" * width for width in widths), *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "    " + "   ".join(cells).rstrip()


def _wrapped(text: str, mark: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark))
