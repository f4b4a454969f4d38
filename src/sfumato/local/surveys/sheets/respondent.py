"""The page that a respondent gets."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Final

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.tasks import Kind, Task
from sfumato.local.surveys.sheets.blocks import Block, Boxes, Heading, Page, Steps, Text
from sfumato.local.surveys.sheets.devices import Device, instructions
from sfumato.local.surveys.sheets.words import Words

__all__ = ["PRIOR", "label", "percent", "respondent_page"]

PRIOR: Final = Fraction(1, 10)
"""The chance before an answer, of which a sheet says what it becomes."""


def respondent_page(
    design: Design,
    words: Words,
    *,
    question: str,
    other: str,
    device: Device = "auto",
    sample: str = "",
    beside: tuple[BinaryDesign, ...] = (),
) -> Page:
    """Return the question, what to do, the boxes, and what an answer shows in plain words.

    Parameters
    ----------
    design : Design
    words : Words
    question : str
    other : str
        The harmless question, where the design has one.
    device : {"auto", "coin", "die", "spinner"}
    sample : str
        Of which sample the page is, where there are several.
    beside : tuple of BinaryDesign
        Further distributions that answers may follow, with the same tasks: what an answer shows is stated for
        the worst.
    """
    harmless = any(task.kind in {Kind.OTHER, Kind.COMPARE} for task in design.tasks)
    if harmless != bool(other):
        rule = "be given" if harmless else "be left out"
        _check.refuse("other", rule, other, "leave it out, or take a design with a harmless question")
    blocks: list[Block] = [Text(sample)] if sample else []
    blocks += [Heading(words.question), Text(question, loud=True)]
    if harmless:
        blocks += [Heading(words.other_question), Text(other, loud=True)]
    blocks += [Heading(words.what_to_do), *_doing(design, words, device)]
    # "yes" stands first.
    order = -1 if isinstance(design, BinaryDesign) else 1
    blocks += [Boxes(tuple(label(answer, words) for answer in design.answers[::order]))]
    blocks += [Text(words.follow), Heading(words.what_it_shows)]
    blocks += _shown(design, words, beside)
    return Page(words.title, tuple(blocks))


def label(answer: Hashable, words: Words) -> str:
    """Return an answer in the language of the sheet; a category is what it is."""
    known = {"yes": words.yes, "no": words.no, "same": words.same, "different": words.different}
    return known.get(answer, str(answer)) if isinstance(answer, str) else str(answer)


def percent(part: Fraction) -> str:
    """Return how many of 100, to a tenth."""
    return f"{float(100 * part):.1f}".removesuffix(".0")


def _span(parts: list[Fraction]) -> str:
    """Return how many of 100 at least and at most, once if they are the same."""
    return " - ".join(dict.fromkeys((percent(min(parts)), percent(max(parts)))))


def _doing(design: Design, words: Words, device: Device) -> list[Block]:
    if design.tasks[0].kind is Kind.COMPARE:
        different, same = (label(answer, words) for answer in design.answers)
        outcomes = words.same_task.format(answer=same), words.different_task.format(answer=different)
        return [Steps((words.both, words.compare, words.tick)), Text("\n".join(outcomes))]
    tasks = [(task.chance, _task(task, words)) for task in design.tasks]
    step, results = instructions(tasks, words, device)
    return [Text(words.hidden), Steps((step, words.look_up, words.tick)), *results]


def _task(task: Task, words: Words) -> str:
    plain = {Kind.TRUTH: words.truth_task, Kind.OPPOSITE: words.opposite_task, Kind.OTHER: words.other_task}
    return plain.get(task.kind) or words.say_task.format(answer=label(task.answer, words))


def _shown(design: Design, words: Words, beside: tuple[BinaryDesign, ...]) -> list[Block]:
    if not isinstance(design, BinaryDesign):
        forced = sum((task.chance for task in design.tasks if task.kind is Kind.SAY), Fraction(0))
        return [Text(words.by_chance_categories.format(count=percent(forced)))]
    no, yes = (label(answer, words) for answer in design.answers)
    designs = (design, *beside)
    after = [[one.risk(PRIOR).posterior[answer] for one in designs] for answer in design.answers]
    # The farther from before, the more an answer shows.
    after_no, after_yes = (percent(max(part, key=lambda x: abs(x - PRIOR))) for part in after)
    false, true = _span([one.yes_if_false for one in designs]), _span([one.yes_if_true for one in designs])
    return [
        Text(words.by_chance.format(answer=yes, false=false, true=true)),
        Text(
            words.prior.format(prior=percent(PRIOR), yes=yes, no=no, after_yes=after_yes, after_no=after_no)
        ),
    ]
