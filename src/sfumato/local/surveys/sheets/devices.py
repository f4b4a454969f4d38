"""What a respondent uses to leave something to chance: coins, a die, or a spinner of paper."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Final, Literal, TypeAlias, get_args

from sfumato import _check
from sfumato.local.surveys.sheets.blocks import Block, Spinner, Table
from sfumato.local.surveys.sheets.words import Words

__all__ = ["Device", "Tasks", "instructions"]

Device: TypeAlias = Literal["auto", "coin", "die", "spinner"]
Tasks: TypeAlias = Sequence[tuple[Fraction, str]]
"""The chance of each task, and the task; the chances add up to 1."""

_FACES: Final = 6
_TOSSES: Final = (1, 2, 3)


def instructions(tasks: Tasks, words: Words, device: Device = "auto") -> tuple[str, list[Block]]:
    """Return how the device is used, and what its results mean.

    Parameters
    ----------
    tasks : sequence of (Fraction, str)
    words : Words
    device : {"auto", "coin", "die", "spinner"}
        Coins give eighths, a die sixths, a spinner anything; ``"auto"`` takes the first of them that gives
        these chances, with at most two tosses.

    Returns
    -------
    tuple
        One step for the respondent, and the blocks with the results.

    Raises
    ------
    ParameterError
        If the device cannot give these chances.
    """
    if device not in get_args(Device):
        _check.refuse("device", f"be one of {', '.join(map(repr, get_args(Device)))}", device, "leave it out")
    tosses = next((count for count in _TOSSES if _fits(tasks, 2**count)), None)
    if device == "coin" and tosses is None:
        _check.refuse("device", "give the chances of the design", device, "take a spinner, or eighths")
    if device == "die" and not _fits(tasks, _FACES):
        _check.refuse("device", "give the chances of the design", device, "take a spinner, or sixths")
    if tosses is not None and (device == "coin" or (device == "auto" and tosses <= 2)):
        return _coins(tasks, words, tosses)
    if device != "spinner" and _fits(tasks, _FACES):
        return words.die, [_table(tasks, words, [str(face) for face in range(1, _FACES + 1)])]
    letters = [chr(ord("A") + at % 26) + (str(at // 26) if at > 25 else "") for at in range(len(tasks))]
    areas = tuple((letter, part) for letter, (part, _) in zip(letters, tasks, strict=True))
    rows = tuple(
        (words.area.format(letter=area[0]), task) for area, (_, task) in zip(areas, tasks, strict=True)
    )
    return words.spinner, [Spinner(areas), Table((words.result, words.task), rows)]


def _coins(tasks: Tasks, words: Words, tosses: int) -> tuple[str, list[Block]]:
    falls = [", ".join(sides) for sides in product((words.heads, words.tails), repeat=tosses)]
    step = words.coin if tosses == 1 else words.coins.format(count=tosses)
    return step, [_table(tasks, words, falls)]


def _fits(tasks: Tasks, results: int) -> bool:
    return all((part * results).denominator == 1 for part, _ in tasks)


def _table(tasks: Tasks, words: Words, results: Sequence[str]) -> Table:
    """Return each result with its task, in turn."""
    left, rows = list(results), []
    for part, task in tasks:
        mine = [left.pop(0) for _ in range(int(part * len(results)))]
        rows.append((" / ".join(mine), task))
    return Table((words.result, words.task), tuple(rows))
