"""Pages as one HTML file that needs nothing else, made to be printed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
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
from sfumato.local.surveys.sheets.drawing import bars_picture, spinner_picture

__all__ = ["html_text"]

_STYLE: Final = """
@page { size: A4; margin: 18mm }
body { font: 12pt/1.4 sans-serif; color: #000; background: #fff; max-width: 44em; margin: 1em auto }
section { padding: 1em }
section + section { break-before: page; border-top: 1px dashed #888 }
h1 { font-size: 1.5em; margin: 0 0 .6em }
h2 { font-size: 1.1em; margin: 1.1em 0 .3em }
p { margin: .4em 0 }
.loud { font-size: 1.25em; font-weight: bold; border-left: 4px solid #000; padding: .2em .7em }
.formula { font-family: monospace; white-space: pre-wrap; background: #eee; padding: .5em .7em }
table { border-collapse: collapse; margin: .5em 0; break-inside: avoid }
figure { margin: .6em 0 }
figcaption { font-size: .9em }
tbody th { font-weight: normal }
th, td { border: 1px solid #888; padding: .25em .7em; text-align: left }
.boxes { display: flex; flex-wrap: wrap; gap: 2.5em; margin: .8em 0; font-size: 1.2em }
.boxes span::before { content: ""; display: inline-block; width: .9em; height: .9em; border: 1.5px solid #000;
  margin-right: .5em; vertical-align: -.1em }
.blank { width: 8em; height: 2em; border: 1.5px solid #000; margin: .8em 0 }
svg { display: block; margin: .5em auto; break-inside: avoid }
@media print { body { margin: 0; max-width: none } section { padding: 0 } section + section { border: 0 } }
"""


def html_text(pages: tuple[Page, ...], *, language: str) -> str:
    """Return pages as HTML: no script, and nothing is fetched.

    Parameters
    ----------
    pages : tuple of Page
    language : str
        Its code.
    """
    sections = "".join(_section(page) for page in pages)
    return (
        f'<!DOCTYPE html>\n<html lang="{_safe(language)}">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta name="viewport" content="width=device-width"/>\n<title>{_safe(pages[0].title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{sections}</main>\n</body>\n</html>\n"
    )


def _section(page: Page) -> str:
    inner = "\n".join(_element(block) for block in page.blocks)
    return f"<section>\n<h1>{_safe(page.title)}</h1>\n{inner}\n</section>\n"


def _element(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{_safe(text)}</h2>"
        case Text(text, loud=loud, formula=formula):
            kind = ' class="loud"' if loud else ' class="formula"' if formula else ""
            shown = _safe(text) if formula else _safe(text).replace("\n", "<br/>")
            return f"<p{kind}>{shown}</p>"
        case Steps(items):
            return f"<ol>{_items(items)}</ol>"
        case Listed(items):
            return f"<ul>{_items(items)}</ul>"
        case _:
            return _rarer(block)


def _rarer(block: Bars | Blank | Boxes | Spinner | Table) -> str:
    match block:
        case Boxes(labels):
            return (
                '<div class="boxes">' + "".join(f"<span>{_safe(label)}</span>" for label in labels) + "</div>"
            )
        case Bars():
            return f"<figure>{bars_picture(block)}<figcaption>{_safe(block.title)}</figcaption></figure>"
        case Blank():
            return '<p class="blank"></p>'
        case Spinner():
            return spinner_picture(block)
        case Table(headings, rows):
            head = "".join(f'<th scope="col">{_safe(cell)}</th>' for cell in headings)
            body = "".join(
                f'<tr><th scope="row">{_safe(row[0])}</th>'
                + "".join(f"<td>{_safe(cell)}</td>" for cell in row[1:])
                + "</tr>"
                for row in rows
            )
            return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _safe(text: str) -> str:
    """Return a text with nothing in it that HTML takes for its own, nor control characters, which it bars."""
    return escape("".join(mark if mark in "\n\t" or mark.isprintable() else "\ufffd" for mark in text))


def _items(items: Iterable[str]) -> str:
    return "".join(f"<li>{_safe(item)}</li>" for item in items)
