"""The printable instruction sheet of a design: a page for respondents, and one for the analyst."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.two_samples import UnrelatedQuestionTwoSamples
from sfumato.local.surveys.designs.unrelated_question import UnrelatedQuestion
from sfumato.local.surveys.quantitative.number_design import NumberDesign
from sfumato.local.surveys.scores.sum_score import SumScore
from sfumato.local.surveys.sheets.analyst import analyst_page, analyst_page_of_two
from sfumato.local.surveys.sheets.blocks import Page
from sfumato.local.surveys.sheets.devices import Device
from sfumato.local.surveys.sheets.drawing import page_picture
from sfumato.local.surveys.sheets.html import html_text
from sfumato.local.surveys.sheets.number_pages import number_analyst_page, number_respondent_page
from sfumato.local.surveys.sheets.plain import plain_text
from sfumato.local.surveys.sheets.respondent import respondent_page
from sfumato.local.surveys.sheets.score_pages import score_pages
from sfumato.local.surveys.sheets.words import words_of

__all__ = ["Sheet", "instruction_sheet"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A sheet to print.

    Parameters
    ----------
    pages : tuple of Page
        Those for respondents, then the one for the analyst.
    language : str
        A code, such as ``"en"``.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins, instruction_sheet
    >>> sheet = instruction_sheet(TwoCoins(), question="Have you ever cheated in an exam?")
    >>> len(sheet.pages), sheet.html().startswith("<!DOCTYPE html>"), sheet.svg().startswith("<svg")
    (2, True, True)
    """

    pages: tuple[Page, ...]
    language: str

    def text(self) -> str:
        """Return the sheet as plain text, pages separated by form feeds.

        Returns
        -------
        str
            Lines of plain characters.
        """
        return plain_text(self.pages)

    def html(self) -> str:
        """Return the sheet as one HTML file that needs nothing else.

        Returns
        -------
        str
            The text of the file.
        """
        return html_text(self.pages, language=self.language)

    def svg(self) -> str:
        """Return the first respondent's page as a picture.

        Returns
        -------
        str
            The text of an SVG file.
        """
        return page_picture(self.pages[0])


def instruction_sheet(
    design: Design | UnrelatedQuestionTwoSamples | SumScore,
    *,
    question: str | Sequence[str],
    other: str = "",
    language: str = "en",
    device: Device = "auto",
) -> Sheet:
    """Return the printable sheet of a design.

    Parameters
    ----------
    design : Design, UnrelatedQuestionTwoSamples or SumScore
    question : str
        The sensitive question; answered by yes or no, by one of the categories, or by a number. Of a
        `SumScore`, a list with one for each of its designs, which have no harmless question.
    other : str
        The harmless question, of the designs that have one; an `UnrelatedNumber` may leave it to a device.
    language : {"en", "de", "fr", "es"}
        Of all but the questions and the categories.
    device : {"auto", "coin", "die", "spinner"}
        What leaves it to chance; ``"auto"`` takes coins or a die where they give the chances, else a spinner.

    Returns
    -------
    Sheet

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> sheet = instruction_sheet(TwoCoins(), question="Have you ever cheated in an exam?")
    >>> "Toss a coin 2 times" in sheet.text()
    True
    """
    words = words_of(language)
    if isinstance(design, SumScore):
        if other:
            _check.refuse("other", "be left out", other, "the questions of a score use a device alone")
        pages_of = score_pages(design, words, questions=question, device=device)
        return Sheet(pages=pages_of, language=language)
    if not isinstance(question, str) or not question.strip():
        _check.refuse("question", "be a text", question, "pass what is to be printed on the sheet")
    if isinstance(design, NumberDesign):
        first = number_respondent_page(design, words, question=question, other=other, device=device)
        second = number_analyst_page(design, words, question=question, other=other)
        return Sheet(pages=(first, second), language=language)
    if not isinstance(design, UnrelatedQuestionTwoSamples) and (not design.tasks or math.isinf(design.odds)):
        rule, found = (
            "leave every answer possible for every truth",
            "one of them rules a truth out, or no device gives the chances",
        )
        _check.refuse_state(
            "design", rule, found, "write the sheet by hand: what stands on these would be false"
        )
    if not isinstance(design, UnrelatedQuestionTwoSamples):
        page = respondent_page(design, words, question=question, other=other, device=device)
        return Sheet(pages=(page, analyst_page(design, words, question=question)), language=language)
    # What a respondent learns about their own risk holds at either end of the harmless share.
    ends = [
        [UnrelatedQuestion(sensitive=chance, innocuous=end) for end in design.between]
        for chance in design.chances
    ]
    pages = [
        respondent_page(
            low,
            words,
            question=question,
            other=other,
            device=device,
            sample=words.sample.format(number=number),
            beside=(high,),
        )
        for number, (low, high) in enumerate(ends, 1)
    ]
    return Sheet(pages=(*pages, analyst_page_of_two(design, words, question=question)), language=language)
