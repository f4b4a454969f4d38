"""The pages of a design for a number: for respondents, and for the analyst."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from sfumato import _check
from sfumato.local.surveys.designs.tasks import Kind, Task
from sfumato.local.surveys.quantitative.additive import AdditiveScrambling
from sfumato.local.surveys.quantitative.mean_planning import respondents_for_mean
from sfumato.local.surveys.quantitative.number_design import NumberDesign
from sfumato.local.surveys.quantitative.unrelated_number import UnrelatedNumber
from sfumato.local.surveys.sheets.analyst import privacy
from sfumato.local.surveys.sheets.blocks import Blank, Block, Heading, Listed, Page, Steps, Table, Text
from sfumato.local.surveys.sheets.devices import Device, instructions
from sfumato.local.surveys.sheets.words import Words
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import text_above

__all__ = ["number_analyst_page", "number_respondent_page", "task_chances"]

_PARTS: Final = (0.1, 0.05, 0.03, 0.02, 0.01)


def number_respondent_page(
    design: NumberDesign, words: Words, *, question: str, other: str, device: Device = "auto"
) -> Page:
    """Return the question, what to do, the place to write, and what a result shows in plain words.

    Parameters
    ----------
    design : NumberDesign
    words : Words
    question : str
    other : str
        A harmless question whose answers have the distribution of an `UnrelatedNumber`; without it a device
        draws that number.
    device : {"auto", "coin", "die", "spinner"}
    """
    if other and not isinstance(design, UnrelatedNumber):
        _check.refuse("other", "be left out", other, "take an UnrelatedNumber for a harmless question")
    blocks: list[Block] = [Heading(words.question), Text(question, loud=True)]
    if other:
        blocks += [Heading(words.other_question), Text(other, loud=True)]
    bounds = {"lower": design.lower, "upper": design.upper}
    blocks += [Text(words.number_range.format(**bounds)), Heading(words.what_to_do), Text(words.hidden)]
    tasks = [(task.chance, _task(task, words)) for task in design.tasks]
    if other:
        tasks = [tasks[0], (1 - tasks[0][0], words.number_other_task)]
    step, results = instructions(tasks, words, device)
    wraps = isinstance(design, AdditiveScrambling) and design.wrap
    count = design.upper - design.lower + 1
    clock = (words.wrap.format(**bounds, count=count),) if wraps else ()
    blocks += [Steps((step, words.look_up, *clock, words.write)), *results, Blank()]
    return Page(
        words.title,
        (*blocks, Text(words.follow), Heading(words.what_it_shows), Text(_shown(design, words))),
    )


def number_analyst_page(design: NumberDesign, words: Words, *, question: str, other: str = "") -> Page:
    """Return the page for the analyst.

    Parameters
    ----------
    design : NumberDesign
    words : Words
    question : str
    other : str
        The harmless question, if there is one.
    """
    weights = zip(map(str, design.answers), design.weights.tolist(), strict=True)
    formula = f"{words.mean} = m\nstddev = s / sqrt(n)"
    margins = [part * (design.upper - design.lower) for part in _PARTS]
    sizes = tuple(
        (f"± {margin:.4g}", f"{respondents_for_mean(design, margin).respondents:,}".replace(",", " "))
        for margin in margins
    )
    unknown = [words.unknown_number] if other else []
    blocks: tuple[Block, ...] = (
        Text(question, loud=True),
        Text(repr(design), formula=True),
        Heading(words.chances),
        task_chances(design, words),
        Heading(words.estimator),
        Text(formula, formula=True),
        Text(words.number_where),
        Table((words.answer, words.weight), tuple((answer, f"{weight:.9g}") for answer, weight in weights)),
        *privacy(design, words),
        Heading(words.respondents),
        Table((words.margin, words.needed), sizes),
        Text(words.number_size_note),
        Heading(words.conditions),
        Listed((words.independent, words.unseen, *unknown, words.once)),
    )
    return Page(words.analyst, blocks)


def task_chances(design: NumberDesign, words: Words) -> Table:
    """Return the chance of each task.

    Parameters
    ----------
    design : NumberDesign
    words : Words
    """
    rows = tuple((_task(task, words), str(task.chance)) for task in design.tasks)
    return Table((words.task, words.chance), rows)


def _task(task: Task, words: Words) -> str:
    if task.kind is Kind.TRUTH:
        return words.number_truth_task
    number = task.answer if isinstance(task.answer, int) else 0
    if task.kind is Kind.ADD:
        text = words.add_task if number > 0 else words.subtract_task if number else words.leave_task
        return text.format(number=abs(number))
    text = words.multiply_task if task.kind is Kind.MULTIPLY else words.number_say_task
    return text.format(number=number)


def _shown(design: NumberDesign, words: Words) -> str:
    if math.isinf(design.odds):
        fewest = min(sum(map(bool, column)) for column in zip(*design.transition, strict=True))
        return words.number_certain.format(fewest=fewest, count=design.upper - design.lower + 1)
    factor = text_above(fraction_up(Fraction(design.odds)), 4)
    return words.number_shows.format(lower=design.lower, upper=design.upper, factor=factor)
