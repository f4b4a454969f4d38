"""Pages as one HTML file that needs nothing else, made to be printed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from sfumato.local.surveys.sheets.blocks import (
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
from sfumato.local.surveys.sheets.drawing import spinner_picture

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
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(pages[0].title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{sections}</body>\n</html>\n"
    )


def _section(page: Page) -> str:
    inner = "\n".join(_element(block) for block in page.blocks)
    return f"<section>\n<h1>{escape(page.title)}</h1>\n{inner}\n</section>\n"


def _element(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Text(text, loud=loud, formula=formula):
            kind = ' class="loud"' if loud else ' class="formula"' if formula else ""
            shown = escape(text) if formula else escape(text).replace("\n", "<br>")
            return f"<p{kind}>{shown}</p>"
        case Steps(items):
            return f"<ol>{_items(items)}</ol>"
        case Listed(items):
            return f"<ul>{_items(items)}</ul>"
        case _:
            return _rarer(block)


def _rarer(block: Blank | Boxes | Spinner | Table) -> str:
    match block:
        case Boxes(labels):
            return (
                '<div class="boxes">'
                + "".join(f"<span>{escape(label)}</span>" for label in labels)
                + "</div>"
            )
        case Blank():
            return '<p class="blank"></p>'
        case Spinner():
            return spinner_picture(block)
        case Table(headings, rows):
            head = "".join(f"<th>{escape(cell)}</th>" for cell in headings)
            body = "".join(
                "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
            )
            return f"<table><tr>{head}</tr>{body}</table>"


def _items(items: Iterable[str]) -> str:
    return "".join(f"<li>{escape(item)}</li>" for item in items)
