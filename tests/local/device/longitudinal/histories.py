"""Exact laws of all that a device reports over time."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from sfumato.local.device import LongitudinalLocalHashingRandomizer

__all__ = ["law_of_one_value", "law_of_rounds", "permanent"]


def permanent(device: Any) -> Any:
    """What draws the memos, and the values that it can tell apart."""
    return (
        device.inner.permanent if isinstance(device, LongitudinalLocalHashingRandomizer) else device.permanent
    )


def law_of_rounds(device: Any, values: tuple[int, ...]) -> dict[bytes, Fraction]:
    """The exact law of all reports of a device, one after the other: enumerated memo by memo.

    Of a device with a seed: of the two layers alone, over buckets, or of seed 0.
    """
    memos = {value: permanent(device).probabilities(value) for value in dict.fromkeys(values)}
    found: dict[bytes, Fraction] = {}
    for drawn in product(*(each.items() for each in memos.values())):
        chosen = {value: memo for value, (memo, _) in zip(memos, drawn, strict=True)}
        law = {b"": prod((chance for _, chance in drawn), start=Fraction(1))}
        for value in values:
            told = device.fresh_probabilities(chosen[value])
            law = {seen + row: part * chance for seen, part in law.items() for row, chance in told.items()}
        for seen, part in law.items():
            found[seen] = found.get(seen, Fraction(0)) + part
    return found


def law_of_one_value(device: Any, reports: int, value: int) -> dict[bytes, Fraction]:
    """That of so many reports of one value."""
    return law_of_rounds(device, (value,) * reports)
