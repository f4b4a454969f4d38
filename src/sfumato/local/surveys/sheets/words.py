"""The words of an instruction sheet, in one language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Words"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """All sentences of a sheet; braces stand for what depends on the design.

    Parameters
    ----------
    language : str
        Its code, such as ``"en"``.
    """

    language: str
    title: str
    question: str
    other_question: str
    what_to_do: str
    hidden: str
    coin: str
    coins: str
    die: str
    spinner: str
    both: str
    look_up: str
    compare: str
    tick: str
    result: str
    task: str
    heads: str
    tails: str
    area: str
    truth_task: str
    opposite_task: str
    say_task: str
    other_task: str
    same_task: str
    different_task: str
    yes: str
    no: str
    same: str
    different: str
    what_it_shows: str
    by_chance: str
    by_chance_categories: str
    prior: str
    follow: str
    sample: str
    analyst: str
    chances: str
    if_true: str
    if_false: str
    answer: str
    estimator: str
    share_of: str
    prevalence: str
    where: str
    privacy: str
    epsilon: str
    respondents: str
    margin: str
    needed: str
    size_note: str
    conditions: str
    independent: str
    unseen: str
    unknown: str
    once: str
