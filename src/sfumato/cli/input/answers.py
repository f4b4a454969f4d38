"""Answers of a survey as they are written, to those that its design names."""

from __future__ import annotations

from typing import Any
from unicodedata import combining, normalize

from sfumato import _check
from sfumato.local import surveys
from sfumato.local.surveys.sheets.respondent import label
from sfumato.local.surveys.sheets.words import words_of

__all__ = ["spelled", "translated"]


def spelled(answers: list[Any], design: Any) -> list[Any]:
    """Return the answers as the design spells them: in any capitals, and as the sheets in each language say.

    "Yes", "YES", "Ja", "oui" and "si" are "yes": of the sheets' words accents may be left out, of a
    category's name none. Where two answers differ by capitals alone these count.

    Parameters
    ----------
    answers : list
        Cells of a column.
    design : Design
    """
    texts = [answer for answer in design.answers if isinstance(answer, str)]
    own = {_uncapped(answer): answer for answer in texts}
    exact = len(own) < len(texts)
    # A name but for its accents is another word, and no translation either.
    taken = {_folded(answer): answer for answer in texts}
    translated = {
        text: answer for text, answer in _translations(design).items() if taken.get(text, answer) == answer
    }

    def named(text: str) -> str:
        return own.get(_uncapped(text)) or translated.get(_folded(text), text)

    found = [named(cell) if isinstance(cell, str) and not exact else cell for cell in answers]
    if not {answer for answer in found if isinstance(answer, str)} <= set(design.answers):
        rule = f"each be one of {', '.join(map(repr, design.answers))}"
        if not exact:
            rule += f", in any capitals, or as sheets in {', '.join(surveys.LANGUAGES)} say it"
        remedy = "correct them, or name the two by --labels NO,YES"
        _check.refuse_state("answers", rule, "another text is among them", remedy)
    return found


def _translations(design: Any) -> dict[str, str]:
    """Return what the sheets in each language call the answers of a design."""
    texts = [answer for answer in design.answers if isinstance(answer, str)]
    return {
        _folded(word): answer
        for language in surveys.LANGUAGES
        for answer in texts
        if (word := label(answer, words_of(language))) != answer
    }


def _uncapped(text: str) -> str:
    """Return a text without capitals."""
    return normalize("NFC", normalize("NFC", text).casefold())


def _folded(text: str) -> str:
    """Return a text without capitals and accents."""
    return "".join(mark for mark in normalize("NFKD", text.casefold()) if not combining(mark))


def translated(answers: list[Any], labels: str, design: Any) -> list[Any]:
    """Return the answers under the design's names.

    Parameters
    ----------
    answers : list
        Cells of a column.
    labels : str
        How they are written, between commas, in the design's order.
    design : Design
    """
    names = [label.strip() for label in labels.split(",")]
    if len(set(names)) != len(design.answers) or len(names) != len(design.answers):
        order = ",".join(map(str, design.answers))
        _check.refuse("labels", f"be {len(design.answers)} different texts", labels, f"in the order {order}")
    known = dict(zip(names, design.answers, strict=True))
    if not {str(answer) for answer in answers} <= known.keys():
        _check.refuse(
            "labels", "name every answer in the column", labels, "add what is missing, or correct it"
        )
    return [known[str(answer)] for answer in answers]
