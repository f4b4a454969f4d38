"""Rounded multiples of real random numbers: the law, the open draws, the far tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.numerics import deviates
from sfumato.numerics.deviates import Draw, exponential, normal, rounded, student
from sfumato.numerics.source import SimulatedSource
from tests.cases import cases

LAWS: dict[str, tuple[Draw, Callable[[Any], Any]]] = {
    "laplace": (exponential, stats.laplace.cdf),
    "normal": (normal, stats.norm.cdf),
    "cauchy": (student(1), stats.cauchy.cdf),
    "student 2": (student(2), stats.t(2).cdf),
    "student 3": (student(3), stats.t(3).cdf),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("scale", "words"), [(Fraction(2, 7), 2), (Fraction(40), 2), (Fraction(5, 2), 0)])
def test_integers_come_as_often_as_the_law_says(
    name: str, scale: Fraction, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From no known bits, every decision is open at first.
    monkeypatch.setattr(deviates, "_WORDS", words)
    draw, cdf = LAWS[name]
    source, count = SimulatedSource(11), 3000
    drawn = np.array([rounded(draw, scale, 1 << 62, source) for _ in range(count)])
    # Dvoretzky, Kiefer, Wolfowitz: both distances are above this in fewer than one of 1e10 runs.
    most = math.sqrt(math.log(4e10) / (2 * count))
    points = np.arange(-400, 401)
    signed = np.searchsorted(np.sort(drawn), points, side="right") / count
    assert np.abs(signed - cdf((points + 0.5) / float(scale))).max() < most
    points = np.arange(401)
    folded = np.searchsorted(np.sort(np.abs(drawn)), points, side="right") / count
    assert np.abs(folded - (2 * cdf((points + 0.5) / float(scale)) - 1)).max() < most


@cases("name", LAWS)
def test_large_scales_keep_their_low_digits(name: str) -> None:
    draw, _ = LAWS[name]
    source = SimulatedSource(2)
    drawn = np.array([rounded(draw, Fraction(1 << 50), 1 << 62, source) for _ in range(600)])
    for digit in range(40):
        # 7.5 standard deviations of a fair coin.
        assert abs(int((drawn >> digit & 1).sum()) - 300) < 7.5 * 600**0.5 / 2


def test_beyond_the_limit_is_the_limit() -> None:
    source = SimulatedSource(3)
    assert {abs(rounded(student(1), Fraction(1 << 70), 1 << 30, source)) for _ in range(20)} == {1 << 30}
    assert {rounded(normal, Fraction(1, 1 << 80), 1 << 62, source) for _ in range(20)} == {0}


class Zeros:
    """Words that are all zero at first, then uniform."""

    simulated = True

    def __init__(self, zeros: int) -> None:
        self._zeros, self._source = zeros, SimulatedSource(5)

    def words(self, count: int) -> np.ndarray:
        self._zeros -= count
        return np.zeros(count, np.uint64) if self._zeros >= 0 else self._source.words(count)

    def bytes(self, count: int) -> bytes:
        return self._source.bytes(count)


@pytest.mark.parametrize(
    ("name", "zeros", "least"), [("laplace", 3, 88.0), ("cauchy", 5, 0.0), ("student 3", 9, 0)]
)
def test_what_is_known_to_be_nothing_yet_is_drawn_further(name: str, zeros: int, least: float) -> None:
    drawn = rounded(LAWS[name][0], Fraction(1), 1 << 62, Zeros(zeros))
    assert abs(drawn) >= least
