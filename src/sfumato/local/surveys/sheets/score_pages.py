"""The pages of several questions to each person, whose true ones are counted: a sum score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.tasks import Kind
from sfumato.local.surveys.scores.sum_score import SumScore
from sfumato.local.surveys.sheets.analyst import chances, estimator
from sfumato.local.surveys.sheets.blocks import Block, Heading, Listed, Page, Text
from sfumato.local.surveys.sheets.devices import Device
from sfumato.local.surveys.sheets.respondent import PRIOR, respondent_page
from sfumato.local.surveys.sheets.words import Words
from sfumato.privacy._outward import text_above

__all__ = ["score_pages"]


def score_pages(
    score: SumScore, words: Words, *, questions: Sequence[str], device: Device = "auto"
) -> tuple[Page, ...]:
    """Return a page for each question, to be answered with chance of its own, and the analyst's.

    Parameters
    ----------
    score : SumScore
    words : Words
    questions : sequence of str
        One for each design.
    device : {"auto", "coin", "die", "spinner"}
    """
    given: object = questions
    texts = isinstance(given, list | tuple) and all(isinstance(text, str) and text.strip() for text in given)
    count = len(score.designs)
    if not texts or len(questions) != count:
        _check.refuse_type("question", f"be a list of {count} texts", given, "pass one for each design")
    if any(task.kind in {Kind.OTHER, Kind.COMPARE} for design in score.designs for task in design.tasks):
        rule, found = "use a device alone", "one has a harmless question"
        remedy = "its answer would be the same each time: take TwoCoins or ForcedResponse"
        _check.refuse_state("designs", rule, found, remedy)
    if any(not design.tasks or math.isinf(design.odds) for design in score.designs):
        rule = "leave every answer possible for every truth"
        found = "one rules a truth out, or no device gives the chances"
        _check.refuse_state("designs", rule, found, "write the sheet by hand")
    together = Text(_together(score, words))
    pages = [
        respondent_page(
            design,
            words,
            question=question,
            other="",
            device=device,
            sample=words.score_question.format(number=number, count=count),
        )
        for number, (design, question) in enumerate(zip(score.designs, questions, strict=True), 1)
    ]
    shown = (replace(page, blocks=(*page.blocks, together)) for page in pages)
    return (*shown, Page(words.analyst, tuple(_analyst(score, words, questions))))


def _together(score: SumScore, words: Words) -> str:
    """Return what all answers of one person show of one at most, however truths depend."""
    odds = math.prod(Fraction(design.odds) for design in score.designs)
    most = PRIOR * odds / (1 - PRIOR + PRIOR * odds)
    return words.score_prior.format(
        count=len(score.designs), prior=math.floor(100 * PRIOR), most=math.ceil(100 * most)
    )


def _analyst(score: SumScore, words: Words, questions: Sequence[str]) -> Iterator[Block]:
    count, shown = len(questions), None
    for number, (design, question) in enumerate(zip(score.designs, questions, strict=True), 1):
        yield Text(f"{words.score_question.format(number=number, count=count)}: {question}", loud=True)
        if design != shown:
            shown = design
            yield from _design(design, words)
    yield Text(words.score_estimator)
    yield Heading(words.privacy)
    yield Text(words.score_privacy.format(count=count, epsilon=text_above(score.epsilon, 5)))
    yield Heading(words.conditions)
    yield Listed((words.independent, words.unseen, words.once))


def _design(design: BinaryDesign, words: Words) -> Iterator[Block]:
    yield Text(repr(design), formula=True)
    yield Heading(words.chances)
    yield chances(design, words)
    yield Heading(words.estimator)
    yield from estimator(design, words)
