"""Checks of the names and texts that people put into a ledger."""

from __future__ import annotations

import unicodedata
from typing import Final

from sfumato import _check

__all__ = ["check_comment", "check_line", "check_name", "same_name"]

LONGEST_NAME: Final = 200
LONGEST_LINE: Final = 1000
LONGEST_COMMENT: Final = 4000
_UNSEEN: Final = dict.fromkeys(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)
"""Printable characters that show nothing: fillers, and selectors of a variant of the letter before."""


def check_name(parameter: str, name: object) -> str:
    """Return a person's name, or refuse what is none."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        rule = f"be a printable name of at most {LONGEST_NAME} characters"
        _check.refuse(parameter, rule, name, "pass 'ada', say")
    return name


def same_name(name: str) -> str:
    """Return one spelling of all names that a reader takes for the same.

    Case, spaces, ways to write an accent, and characters that show nothing make no difference. Letters of two
    scripts that look alike do.

    >>> same_name(" Jose\u0301  d\u2019A\ufe0f") == same_name("jos\u00e9 D\u2019a")
    True
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(folded.translate(_UNSEEN).split())


def check_line(parameter: str, text: object, *, needed: bool = False) -> str:
    """Return a text of one line, or refuse another; an empty one too, if it is needed."""
    if not isinstance(text, str):
        _check.refuse_type(parameter, "be a text", text, "pass one, or leave it out")
    if not text.isprintable() or len(text) > LONGEST_LINE or (needed and not text.strip()):
        few = "from 1 to" if needed else "at most"
        rule = f"be one printable line of {few} {LONGEST_LINE} characters"
        _check.refuse_state(parameter, rule, f"it has {len(text)}, or others", "shorten it to one line")
    return text


def check_comment(text: object) -> str:
    """Return a comment of any number of lines, or refuse another."""
    if not isinstance(text, str):
        _check.refuse_type("comment", "be a text", text, "pass one, or leave it out")
    if len(text) > LONGEST_COMMENT or not text.replace("\n", "").isprintable():
        rule = f"be printable lines of at most {LONGEST_COMMENT} characters together"
        _check.refuse_state("comment", rule, f"it has {len(text)}, or others", "shorten it")
    return text
