"""The page for whoever reads the answers: chances, estimator, epsilon, numbers of respondents."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.tasks import Kind
from sfumato.local.surveys.designs.two_samples import UnrelatedQuestionTwoSamples
from sfumato.local.surveys.inference.sample_size import respondents_for_margin
from sfumato.local.surveys.sheets.blocks import Block, Heading, Listed, Page, Table, Text
from sfumato.local.surveys.sheets.respondent import label
from sfumato.local.surveys.sheets.words import Words
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import text_above

__all__ = ["analyst_page", "analyst_page_of_two", "chances", "estimator", "privacy"]

_MARGINS: Final = (0.1, 0.05, 0.03, 0.02, 0.01)


def analyst_page(design: Design, words: Words, *, question: str) -> Page:
    """Return the page for the analyst of one sample.

    Parameters
    ----------
    design : Design
    words : Words
    question : str
    """
    blocks: list[Block] = [Text(question, loud=True), Text(repr(design), formula=True)]
    blocks += [Heading(words.chances), chances(design, words), Heading(words.estimator)]
    if isinstance(design, BinaryDesign):
        blocks += estimator(design, words)
    else:
        blocks += _estimators(design, words)
    blocks += privacy(design, words)
    blocks += _sizes(design, words)
    others = [task for task in design.tasks if task.kind in {Kind.OTHER, Kind.COMPARE}]
    share = getattr(design, "innocuous", None)
    unknown = [words.unknown.format(share=Fraction(share))] if others and share is not None else []
    blocks += [Heading(words.conditions), Listed((words.independent, words.unseen, *unknown, words.once))]
    return Page(words.analyst, tuple(blocks))


def analyst_page_of_two(design: UnrelatedQuestionTwoSamples, words: Words, *, question: str) -> Page:
    """Return the page for the analyst of two samples.

    Parameters
    ----------
    design : UnrelatedQuestionTwoSamples
    words : Words
    question : str
    """
    p, q = design.chances
    formula = f"{words.prevalence} = ({_bound(1 - q)} r1 - {_bound(1 - p)} r2) / {_bound(p - q)}"
    stddev = (
        f"stddev = sqrt({_bound((1 - q) ** 2)} r1 (1 - r1) / (n1 - 1) "
        f"+ {_bound((1 - p) ** 2)} r2 (1 - r2) / (n2 - 1)) / {_bound(abs(p - q))}"
    )
    between = " - ".join(str(Fraction(end)) for end in design.between)
    conditions = words.independent, words.unseen, words.unknown.format(share=between), words.once
    return Page(
        words.analyst,
        (
            Text(question, loud=True),
            Text(repr(design), formula=True),
            Heading(words.estimator),
            Text(f"{formula}\n{stddev}", formula=True),
            Text(words.where.format(share=words.share_of.format(answer=words.yes))),
            *privacy(design, words),
            Heading(words.conditions),
            Listed(conditions),
        ),
    )


def chances(design: Design, words: Words) -> Table:
    """Return the chance of each answer, for each truth.

    Parameters
    ----------
    design : Design
    words : Words
    """
    answers = [label(answer, words) for answer in design.answers]
    if isinstance(design, BinaryDesign):
        rows = zip(answers, *design.transition, strict=True)
        cells = tuple((answer, str(true), str(false)) for answer, false, true in reversed(list(rows)))
        return Table((words.answer, words.if_true, words.if_false), cells)
    rows_of = zip(answers, design.transition, strict=True)
    return Table(("", *answers), tuple((name, *map(str, row)) for name, row in rows_of))


def estimator(design: BinaryDesign, words: Words) -> list[Block]:
    """Return the formula of the estimated prevalence.

    Parameters
    ----------
    design : BinaryDesign
    words : Words
    """
    yes = label(design.answers[1], words)
    formula = f"{words.prevalence} = (r - {design.yes_if_false}) / {_bound(design.slope)}"
    stddev = f"stddev = sqrt(r (1 - r) / (n - 1)) / {_bound(abs(design.slope))}"
    share = words.share_of.format(answer=yes)
    return [Text(f"{formula}\n{stddev}", formula=True), Text(words.where.format(share=share))]


def _estimators(design: Design, words: Words) -> list[Block]:
    names = [label(answer, words) for answer in design.answers]
    lines = [
        f"{name}: (r - {floor}) / {_bound(design.slope)}"
        for name, floor in zip(names, design.floor, strict=True)
    ]
    lines.append(f"stddev = sqrt(r (1 - r) / (n - 1)) / {_bound(abs(design.slope))}")
    share = words.share_of.format(answer="…")
    return [Text("\n".join(lines), formula=True), Text(words.where.format(share=share))]


def privacy(design: Design | UnrelatedQuestionTwoSamples, words: Words) -> list[Block]:
    """Return what is stated of the privacy of an answer.

    Parameters
    ----------
    design : Design or UnrelatedQuestionTwoSamples
    words : Words
    """
    if math.isinf(design.odds):
        return [Heading(words.privacy), Text(words.epsilon_infinite)]
    shown, factor = text_above(design.epsilon, 5), text_above(fraction_up(Fraction(design.odds)), 4)
    return [Heading(words.privacy), Text(words.epsilon.format(epsilon=shown, factor=factor))]


def _sizes(design: Design, words: Words) -> list[Block]:
    rows = [
        (f"± {100 * margin:g} %", f"{respondents_for_margin(design, margin).respondents:,}".replace(",", " "))
        for margin in _MARGINS
    ]
    table = Table((words.margin, words.needed), tuple(rows))
    return [Heading(words.respondents), table, Text(words.size_note)]


def _bound(value: Fraction) -> str:
    """Return a fraction as one factor of a formula."""
    return f"({value})"
