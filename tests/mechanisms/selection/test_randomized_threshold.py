"""A threshold with a coin: a mass met exactly, draws, and what one unit changes, in fractions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.numerics.randomness.source import random_source
from tests.cases import cases
from tests.chance import accepts_only, frequencies

NOISES: tuple[SymmetricDistribution, ...] = (
    DiscreteLaplaceDistribution(1),
    DiscreteLaplaceDistribution(Fraction(1, 9)),
    DiscreteLaplaceDistribution(700),
    DiscreteGaussianDistribution(4),
    DiscreteGaussianDistribution(Fraction(1, 3)),
    TruncatedLaplaceDistribution(3, 40),
    TruncatedLaplaceDistribution(3, 40, Fraction(1, 7)),
)


def _part(probability: float) -> Fraction:
    return Fraction(round(probability * (1 << 62)), 1 << 62)


@cases("noise", NOISES)
@cases("mass", [0.3, 1e-3, 1e-6, 1e-15])
@cases("count", [1, 5])
def test_the_mass_is_met_and_never_exceeded(noise: SymmetricDistribution, mass: float, count: int) -> None:
    if isinstance(noise, TruncatedLaplaceDistribution) and noise.weight:
        if mass < noise.at_limit.lower:
            with pytest.raises(ParameterError, match="mass must be at least the delta of the noise"):
                RandomizedThreshold.smallest(noise, mass, count)
            return
        threshold, mass = RandomizedThreshold.smallest(noise, mass, count), noise.at_limit.upper
    else:
        threshold = RandomizedThreshold.smallest(noise, mass, count)
    shown = threshold.shown(noise, count)
    assert shown.upper <= mass
    assert shown.lower >= mass * (1 - 1e-9)
    assert 0 < threshold.probability <= 1
    # A whole threshold, as it would be without the coin, shows at most as much.
    whole = noise.upper_tail(count + noise.quantile_above(mass) - count)
    assert whole.lower <= shown.upper


def test_a_mass_that_a_whole_threshold_meets_needs_no_coin() -> None:
    noise = TruncatedLaplaceDistribution(2, 5)
    mass = noise.pmf(5).upper
    threshold = RandomizedThreshold.smallest(noise, mass)
    assert threshold.units == 6
    assert threshold.probability > 1 - Fraction(1, 1 << 40)
    below = math.nextafter(noise.upper_tail(6).upper, 1.0)  # nothing is beyond the limit
    assert RandomizedThreshold.smallest(noise, below) == RandomizedThreshold(7, Fraction(1))


@cases("noise", [noise for noise in NOISES if noise.stddev < 100])
def test_the_probability_of_being_shown_is_the_sum_over_noisy_counts(noise: SymmetricDistribution) -> None:
    threshold = RandomizedThreshold(4, _part(0.3))
    for count in (1, 4, 9):
        mass = {value: noise.pmf(value - count).lower for value in range(4, 90)}
        mass[4] *= 0.3
        assert threshold.shown(noise, count).upper == pytest.approx(math.fsum(mass.values()), rel=1e-9)


def test_draws_show_what_is_above_and_a_part_of_what_is_at_the_threshold() -> None:
    threshold = RandomizedThreshold(10, _part(0.3))
    noisy = np.repeat(np.array([8, 9, 10, 11, 12]), 40_000)
    plain = DiscreteLaplaceDistribution(2)
    shown = Counter(noisy[threshold.select(noisy - 3, noisy, plain, random_source(5))].tolist())
    assert set(shown) == {10, 11, 12}
    assert shown[11] == shown[12] == 40_000
    counts = {"shown": shown[10], "not": 40_000 - shown[10]}
    coin = {"shown": 0.3, "not": 0.7}
    accepts_only(
        frequencies(counts), coin, the_other_side={"shown": 0.7, "not": 0.3}, fair=dict.fromkeys(coin, 0.5)
    )
    sure = RandomizedThreshold(10, Fraction(1))
    near, none = np.array([9, 10, 11]), np.zeros(0, np.int64)
    assert sure.select(near, near, plain, random_source(1)).tolist() == [False, True, True]
    assert threshold.select(none, none, plain, random_source(1)).size == 0


def test_the_lowest_noise_of_two_limits_has_a_coin_of_its_own() -> None:
    noise = TruncatedLaplaceDistribution(2, 7, Fraction(1, 3))
    threshold = RandomizedThreshold(10, _part(0.3))
    noisy = np.full(40_000, 10)
    lowest, above = (
        int(threshold.select(noisy + 7 - less, noisy, noise, random_source(6)).sum()) for less in (0, 1)
    )
    for shown, right, wrong in ((lowest, 3 / 7, 0.3), (above, 0.3, 3 / 7)):
        counts = {"shown": shown, "not": 40_000 - shown}
        laws = [{"shown": p, "not": 1 - p} for p in (right, wrong)]
        accepts_only(frequencies(counts), laws[0], of_the_other_noise=laws[1])
    # One limit: no other coin. A coin that is more often heads than not makes the other one sure.
    single = TruncatedLaplaceDistribution(2, 7)
    assert threshold.shown(single, 17).upper == pytest.approx(
        single.upper_tail(-6).upper + 0.3 * single.pmf(7).upper
    )
    often = RandomizedThreshold(10, _part(0.75))
    assert often.shown(noise, 17).lower == pytest.approx(1.0, rel=1e-11)
    assert often.shown(noise, 17).lower < 1


def test_no_more_is_given_to_noise_of_two_limits_than_its_delta() -> None:
    noise = TruncatedLaplaceDistribution(2, 7, Fraction(1, 3))
    whole = RandomizedThreshold.smallest(noise, 0.2)
    assert whole == RandomizedThreshold.smallest(noise, noise.at_limit.upper)
    assert whole.units == 7
    assert whole.shown(noise, 1).upper <= noise.at_limit.upper


def test_every_count_has_a_coin() -> None:
    class Counted:
        simulated, asked = True, 0

        def words(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
            self.asked += count
            return np.zeros(count, np.uint64)

        def bytes(self, count: int) -> bytes:
            raise AssertionError

    asked = set()
    for value in (0, 10, 1000):
        source = Counted()
        threshold, noisy = RandomizedThreshold(10, Fraction(1, 1 << 62)), np.full(50, value)
        threshold.select(noisy + 7, noisy, TruncatedLaplaceDistribution(2, 7, Fraction(1, 3)), source)
        asked.add(source.asked)
    assert asked == {50}


Law = dict[int | None, Fraction]


def _released(
    weights: dict[int, Fraction], coin: Fraction, units: int, count: int, least: int, *, lowest: Fraction
) -> Law:
    """The distribution of what is released of a group, from exact probabilities of the noise."""
    if count < least:
        return {None: Fraction(1)}
    rows: Law = {count + k: p for k, p in weights.items() if count + k >= units}
    if units in rows:
        rows[units] *= lowest if units - count == min(weights) else coin
    return {**rows, None: 1 - sum(rows.values(), Fraction(0))}


def _excess(one: Law, other: Law, ratio: Fraction) -> Fraction:
    """By how much probabilities exceed 1 / ratio times the other's."""
    terms = (max(Fraction(0), mass - other.get(row, Fraction(0)) / ratio) for row, mass in one.items())
    return sum(terms, Fraction(0))


@cases("ratio", [Fraction(1, 2), Fraction(2, 3), Fraction(9, 10)])
@cases("least", [1, 4])
@cases("limit", [3, 8, 14])
@cases("weight", [Fraction(0), Fraction(1, 3), Fraction(93, 100)])
def test_one_unit_changes_what_is_released_by_the_delta_of_the_proof(
    ratio: Fraction, least: int, limit: int, weight: Fraction
) -> None:
    # exp(epsilon) = 1 / ratio, a fraction: all that follows is exact
    def truncated(limit: int) -> dict[int, Fraction]:
        powers = {k: ratio ** abs(k) for k in range(-limit, limit + 1)}
        return {k: p / sum(powers.values()) for k, p in powers.items()}

    shorter, longer = truncated(limit - 1), truncated(limit)
    noise = {k: weight * shorter.get(k, 0) + (1 - weight) * p for k, p in longer.items()}
    delta = weight * shorter[limit - 1] + (1 - weight) * longer[limit]
    at = limit - 1 if weight else limit
    coin = (delta - sum(p for k, p in noise.items() if k > at)) / noise[at]
    assert 0 < coin <= 1
    other = min(Fraction(1), coin / (1 - coin)) if weight else coin
    worst, last = Fraction(0), Fraction(0)
    for count in range(41):
        laws = [_released(noise, coin, least + at, n, least, lowest=other) for n in (count, count + 1)]
        both = _excess(laws[0], laws[1], ratio), _excess(laws[1], laws[0], ratio)
        assert max(both) <= delta
        worst = max(worst, *both)
        # No rule shows more: theorem 1 of Desfontaines, Voss, Gipson, Mandayam (2022), in fractions.
        shown = 1 - laws[1][None]
        if count + 1 >= least:
            last = min(last / ratio + delta, 1 - ratio * (1 - last - delta), Fraction(1))
            assert shown == last
    assert worst == delta
    # The coins are right: if they show more, they reveal more.
    if weight:
        more = coin + Fraction(1, 50) * (1 - coin)
        law = _released(noise, more, least + at, least, least, lowest=other)
        assert 1 - law[None] > delta
        units = least + at + limit
        often = [
            _released(noise, coin, least + at, n, least, lowest=min(Fraction(1), other * 51 / 50))
            for n in (units - 1, units)
        ]
        assert other == 1 or _excess(often[0], often[1], ratio) > delta


@cases("ratio", [Fraction(1, 2), Fraction(4, 5)])
def test_a_unit_in_two_groups_changes_twice_as_much_at_most(ratio: Fraction) -> None:
    powers = {k: ratio ** abs(k) for k in range(-3, 4)}
    noise = {k: p / sum(powers.values()) for k, p in powers.items()}
    delta = noise[3]
    law = [_released(noise, Fraction(1), 4, count, 1, lowest=Fraction(1)) for count in range(9)]
    for first, second in itertools.product(range(8), repeat=2):
        pairs = [
            {(a, b): p * q for a, p in law[one].items() for b, q in law[other].items()}
            for one, other in ((first, second), (first + 1, second + 1))
        ]
        for p, q in (pairs, pairs[::-1]):
            terms = (max(Fraction(0), mass - q.get(rows, Fraction(0)) / ratio**2) for rows, mass in p.items())
            assert sum(terms, Fraction(0)) <= 2 * delta


@cases("start", [1, 5, 9, 40])
@cases("needed", [Fraction(9, 2), Fraction(5), Fraction(1), Fraction(1, 2), 5 + Fraction(1, 1 << 62)])
def test_the_lowest_threshold_that_is_enough(needed: Fraction, start: int) -> None:
    # its mean over the coin must be at least what is needed
    found = RandomizedThreshold.lowest(lambda each: each.units + 1 - each.probability >= needed, start)
    assert found.units + 1 - found.probability == max(1, needed)
    never = Fraction(1, 1 << 63)  # between two coins: the one that is less often heads is enough
    between = RandomizedThreshold.lowest(lambda each: each.units + 1 - each.probability >= 5 + never, 1)
    assert between == RandomizedThreshold(5, 1 - Fraction(1, 1 << 62))


def test_one_coin_for_a_list_raises_its_threshold() -> None:
    source = random_source(8)
    threshold = RandomizedThreshold(10, _part(0.3))
    found = Counter(threshold.flipped(source) for _ in range(20_000))
    coin = {10: 0.3, 11: 0.7}
    accepts_only(frequencies(found), coin, the_other_side={10: 0.7, 11: 0.3}, fair=dict.fromkeys(coin, 0.5))
    assert {RandomizedThreshold(10, Fraction(1)).flipped(source) for _ in range(50)} == {10}


@pytest.mark.parametrize(
    ("probability", "phrase"),
    [
        (Fraction(0), "probability must be"),
        (Fraction(3, 2), "probability must be at most 1"),
        (Fraction(1, 3), "multiple of 2"),
        ("half", "probability must be"),
    ],
)
def test_what_is_no_probability_is_refused(probability: Fraction, phrase: str) -> None:
    with pytest.raises(ParameterError, match=phrase):
        RandomizedThreshold(5, probability)
