"""The words of an instruction sheet, in one language; each language is a file of `languages`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, final

from sfumato import _check

__all__ = ["LANGUAGES", "Words", "words_of"]

_FOLDER: Final = files("sfumato.local.surveys.sheets") / "languages"
_FOUND: Final = sorted(file.name.removesuffix(".toml") for file in _FOLDER.iterdir())

LANGUAGES: Final = tuple(sorted(_FOUND, key=lambda code: code != "en"))
"""The languages of the sheets, by their codes; English is the first."""


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
    score_question: str
    score_estimator: str
    score_prior: str
    score_privacy: str
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
    number_range: str
    number_truth_task: str
    number_say_task: str
    number_other_task: str
    add_task: str
    subtract_task: str
    leave_task: str
    multiply_task: str
    wrap: str
    write: str
    number_shows: str
    number_certain: str
    chance: str
    weight: str
    mean: str
    number_where: str
    number_size_note: str
    epsilon_infinite: str
    unknown_number: str
    report_title: str
    report_result: str
    report_quantity: str
    report_estimate: str
    report_stddev: str
    report_lower: str
    report_upper: str
    report_interval: str
    report_covers: str
    report_approximate: str
    report_raw: str
    report_bars: str
    report_distribution: str
    report_share: str
    report_misfit: str
    report_answers: str
    report_count: str
    report_total: str
    report_left_out: str
    report_design: str
    report_belief: str
    report_not_promised: str
    report_who: str
    report_population: str
    report_followed: str
    report_learn: str
    report_several: str


def words_of(language: str) -> Words:
    """Return the words of a language.

    Parameters
    ----------
    language : str
        One of `LANGUAGES`.

    Raises
    ------
    ParameterError
        If there is no file for it.
    """
    if language not in LANGUAGES:
        known = ", ".join(map(repr, LANGUAGES))
        _check.refuse("language", f"be one of {known}", language, "leave it out for English")
    return _read(language)


@cache
def _read(language: str) -> Words:
    text = (_FOLDER / f"{language}.toml").read_text("utf-8")
    return Words(language=language, **tomllib.loads(text))
