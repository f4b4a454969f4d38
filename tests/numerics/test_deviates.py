"""Rounded multiples of real random numbers: the law, the open draws, the far tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from sfumato.numerics import deviates
from sfumato.numerics.deviates import Draw, exponential, normal, rounded, student
from sfumato.numerics.source import SimulatedSource
from tests.cases import cases
from tests.numerics.sources import ListedSource

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


WORDS = 1 << 64
SURE, NEVER = 0, WORDS - 1


def whole_part(words: list[int]) -> int | None:
    """The whole part of a normal magnitude that is accepted at once, given one word for each uniform."""
    try:
        return math.floor(normal(ListedSource(words)).bounds()[0])
    except StopIteration:
        return None


def chance(holds: Callable[[int], bool]) -> float:
    """The share of all words for which something holds: those below a threshold, which is found exactly."""
    low, high = -1, WORDS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    # In between there is no word that is treated otherwise.
    assert all(holds(word) == (word <= low) for word in range(1 << 58, WORDS, 1 << 59))
    return (low + 1) / WORDS


@pytest.mark.parametrize("whole", range(5))
def test_a_whole_part_and_its_rest_are_accepted_by_the_normal_density(
    whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All laws of this algorithm are enumerated: of one more whole part, and of both coins for a rest.
    monkeypatch.setattr(deviates, "_WORDS", 1)
    before = [SURE] * whole
    more = chance(lambda word: whole_part([*before, word, NEVER, SURE, SURE, SURE]) == whole + 1)
    assert more == pytest.approx(math.exp(-0.5), rel=1e-15)
    for part in range(1, 64, 10):
        given = [*before, NEVER, part << 58]
        first = chance(lambda coin, given=given: whole_part([*given, coin, SURE]) == whole)  # type: ignore[misc]
        second = chance(lambda coin, given=given: whole_part([*given, SURE, coin]) == whole)  # type: ignore[misc]
        # k/2 + k(k - 1)/2 + x(2k + x)/2 = (k + x)^2/2
        found = whole * math.log(more) + math.log(first) + math.log(second)
        assert found == pytest.approx(-((whole + part / 64) ** 2) / 2, abs=1e-12)


@pytest.mark.parametrize(("whole", "part"), [(0, 40), (1, 1), (1, 33), (2, 63), (4, 10)])
def test_a_coin_is_told_by_its_first_word_only_where_no_further_bit_matters(
    whole: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deviates, "_WORDS", 1)
    rest = (part << 58) + 12345

    def density(x: Fraction) -> Any:
        exponent = x * (2 * whole + x) / 2
        return mp.exp(-mp.mpf(exponent.numerator) / exponent.denominator) * mp.mpf(2) ** 64

    def ends(coin: int, *more: int) -> bool:
        return whole_part([SURE] * whole + [NEVER, rest, SURE, coin, *more]) == whole

    with mp.workdps(60):
        sure = int(mp.floor(density(Fraction(rest + 1, WORDS))))
        never = int(mp.ceil(density(Fraction(rest, WORDS))))
    assert ends(sure - 1)
    assert not ends(sure)
    # Between both, the coin's further bits decide, and those of the rest.
    assert ends(sure, SURE, SURE)
    assert not ends(sure, NEVER, NEVER)
    assert ends(never - 1, SURE, SURE)
    assert not ends(never, SURE, SURE)
