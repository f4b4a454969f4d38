"""Rounded multiples of real random numbers: the law, the open draws, the far tails."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling import rounded_noise
from sfumato.numerics.sampling.rounded_noise import Draw, exponential, normal, rounded, student
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate
from tests.numerics.enumeration import WORDS, enumerated, pieces
from tests.numerics.sources import ListedSource

LAWS: dict[str, tuple[Draw, Callable[[Any], Any]]] = {
    "laplace": (exponential, stats.laplace.cdf),
    "normal": (normal, stats.norm.cdf),
    "cauchy": (student(1), stats.cauchy.cdf),
    "student 2": (student(2), stats.t(2).cdf),
    "student 3": (student(3), stats.t(3).cdf),
}
# With which law each could be mistaken.
OTHERS = {"normal": "laplace", "cauchy": "student 2", "student 2": "cauchy", "student 3": "normal"}


@pytest.mark.parametrize("words", [2, 0])
@pytest.mark.parametrize("scale", [Fraction(2, 7), Fraction(40)])
def test_all_words_together_give_the_law_of_laplace(
    scale: Fraction, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From no known bits, every decision is open at first.
    monkeypatch.setattr(rounded_noise, "_WORDS", words)
    limit = 12

    for sign, signed in ((1, 1), (0, -1)):

        def drawn(word: int, sign: int = sign) -> int:
            return rounded(exponential, scale, limit, ListedSource([sign, word, *[1 << 63] * 4]))

        found = enumerated(drawn, pieces(drawn))
        with mp.workdps(40):
            above = [
                mp.exp(-(k - mp.mpf(1) / 2) * scale.denominator / scale.numerator)
                for k in range(1, limit + 1)
            ]
            distribution = [x - y for x, y in zip([mp.mpf(1), *above], [*above, mp.mpf(0)], strict=True)]
            for k, chance in enumerate(distribution):
                share = found.get(signed * k, Fraction(0))
                # A word that holds a border is decided by further ones.
                assert abs(mp.mpf(share.numerator) / share.denominator - chance) <= mp.mpf(2) ** -63
        assert sum(found.values()) == 1


@cases("part", [1 << 59, WORDS // 3, WORDS // 2])
@cases("degrees", [1, 2, 3])
def test_a_point_of_the_ball_is_told_by_its_direction(
    degrees: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first coordinate changes what is told, the others given: all borders, to the last digits."""
    monkeypatch.setattr(rounded_noise, "_WORDS", 1)
    scale, limit = Fraction(5, 2), 9
    others = [part - (place << 58) for place in range(degrees)]

    def told(word: int) -> int | None:
        # Words of ones decide what is open; a point that is refused is followed by none in the ball.
        source = ListedSource([1, word, *others, *[WORDS - 1] * (degrees + 1)])
        try:
            return rounded(student(degrees), scale, limit, source)
        except StopIteration:
            return None

    found = enumerated(told, pieces(told))
    assert None in found
    length = math.sqrt(sum((other / WORDS) ** 2 for other in others))
    ball = math.sqrt(1 - length**2)
    for k in range(limit + 1):
        at, after = (
            min(ball, max(0.0, j - 0.5) / float(scale) * length / math.sqrt(degrees)) for j in (k, k + 1)
        )
        assert float(found.get(k, 0)) == pytest.approx((ball if k == limit else after) - at, abs=1e-14)


EDGES = [-8.0, -4.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("name", ["cauchy", "normal", "student 2", "student 3"])
@pytest.mark.parametrize(("scale", "words"), [(Fraction(40), 2), (Fraction(5, 2), 0)])
def test_integers_come_as_often_as_the_law_says(
    name: str, scale: Fraction, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounded_noise, "_WORDS", words)
    source = SimulatedSource(11)
    drawn = np.array([rounded(LAWS[name][0], scale, 1 << 62, source) for _ in range(3000)])
    edges = np.floor(np.array(EDGES) * float(scale)) + 0.5

    def distribution(cdf: Callable[[Any], Any], width: float, shift: float = 0.0) -> dict[int, float]:
        return dict(enumerate(np.diff([0.0, *cdf((edges + shift) / width), 1.0])))

    width, other = float(scale), OTHERS[name]
    accepts_only(
        frequencies(Counter(np.searchsorted(edges, drawn).tolist())),
        distribution(LAWS[name][1], width),
        wider=distribution(LAWS[name][1], 1.5 * width),
        narrower=distribution(LAWS[name][1], width / 1.5),
        **{other: distribution(LAWS[other][1], width)},
    )


@cases("name", LAWS)
def test_large_scales_keep_their_low_digits(name: str) -> None:
    draw, _ = LAWS[name]
    source = SimulatedSource(2)
    drawn = np.array([rounded(draw, Fraction(1 << 50), 1 << 62, source) for _ in range(600)])
    for digit in range(40):
        accepts_only(rate(int((drawn >> digit & 1).sum()), 600), 0.5, mostly_even=0.3, mostly_odd=0.7)


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
    monkeypatch.setattr(rounded_noise, "_WORDS", 1)
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
    monkeypatch.setattr(rounded_noise, "_WORDS", 1)
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
