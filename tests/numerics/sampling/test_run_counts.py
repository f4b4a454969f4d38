"""Exact draws of how often to run, against the laws summed up in mpmath."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest

from sfumato.errors import ParameterError
from sfumato.numerics.certified.fixed_point import log_bounds
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling.run_counts import (
    _first_negative_binomial,
    poisson,
    truncated_negative_binomial,
)
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.numerics.sources import ListedSource

Sums = Iterator[tuple[int, mp.mpf]]


def number(x: float | Fraction) -> mp.mpf:
    exact = Fraction(x)
    return mp.mpf(exact.numerator) / exact.denominator


def binomial_sums(eta: float | Fraction, gamma: float | Fraction) -> Sums:
    """P(K <= k), from the definition: the weights over their sum, which is known in closed form."""
    shape, stop = number(eta), number(gamma)
    whole = mp.log(1 / stop) if eta == 0 else stop**-shape - 1
    weight, total, k = (1 - stop) * (shape if eta else 1), mp.mpf(0), 1
    while True:
        total += weight
        yield k, total / whole
        weight *= (1 - stop) * (k + shape) / (k + 1)
        k += 1


def poisson_sums(mean: float) -> Sums:
    weight, total, k = mp.exp(-number(mean)), mp.mpf(0), 0
    while True:
        total += weight
        yield k, total
        k += 1
        weight *= number(mean) / k


Case = tuple[Callable[[Any], int], Callable[[], Sums]]


def binomial(eta: float, gamma: float) -> Case:
    return lambda rng: truncated_negative_binomial(eta, gamma, rng), lambda: binomial_sums(eta, gamma)


CASES: dict[str, Case] = {
    "geometric": binomial(1, 0.3),
    "logarithmic": binomial(0, 0.02),
    "negative": binomial(-0.9, 0.01),
    "nearly logarithmic": binomial(1e-30, 0.1),
    "nearly logarithmic from below": binomial(-1e-30, 0.1),
    "concentrated": binomial(40, 0.5),
    "nearly one run": binomial(0.5, 1 - 2**-40),
    "rare": binomial(3.5, 1e-3),
    "few": (lambda rng: poisson(0.3, rng), lambda: poisson_sums(0.3)),
    "many": (lambda rng: poisson(300, rng), lambda: poisson_sums(300)),
}


def reference(words: list[int], sums: Sums) -> int:
    value = 0
    for word in words:
        value = value << 64 | word
    place = mp.mpf(value) / mp.mpf(2) ** (64 * len(words))
    return next(k for k, total in sums if place < total)


@pytest.mark.parametrize("case", CASES)
def test_any_word_is_decided_as_the_reference_does(case: str) -> None:
    draw, sums = CASES[case]
    words = SimulatedSource(8).words(30).tolist()
    with mp.workdps(400):
        for word in [0, 1, *words]:
            further = SimulatedSource(word % 999).words(6).tolist()
            assert draw(ListedSource([word, *further])) == reference([word, *further], sums())


@cases("case", CASES)
def test_borders_are_decided_exactly(case: str) -> None:
    draw, sums = CASES[case]
    with mp.workdps(400):
        borders = [total for (_, total), _ in zip(sums(), range(4), strict=False)]
        for border in borders:
            word = int(mp.floor(border * mp.mpf(2) ** 64))
            exact = int(mp.floor(border * mp.mpf(2) ** 128)) - (word << 64)
            for near in (
                [word, exact - 1],
                [word, exact + 1],
                [word - 1, 2**64 - 1],
                [word + 1, 0],
                [word, exact],
            ):
                if all(0 <= each < 2**64 for each in near):
                    listed = [*near, *SimulatedSource(3).words(6).tolist()]
                    assert draw(ListedSource(listed)) == reference(listed, sums())


MISTAKEN: dict[str, Callable[[], Sums]] = {
    "geometric": lambda: binomial_sums(1, 0.4),
    "logarithmic": lambda: binomial_sums(0, 0.05),
    "negative": lambda: binomial_sums(-0.8, 0.01),
    "concentrated": lambda: binomial_sums(40, 0.45),
    "few": lambda: poisson_sums(0.4),
}


def part(sums: Sums) -> dict[int, float]:
    """All but the last thousandth."""
    before, distribution = 0.0, {}
    for k, total in sums:
        distribution[k] = float(total) - before
        before = float(total)
        if total > 0.999:
            return distribution
    raise AssertionError("sums go on for ever")


@pytest.mark.parametrize("case", MISTAKEN)
def test_draws_follow_the_law(case: str) -> None:
    draw, sums = CASES[case]
    source = SimulatedSource(20261121)
    drawn = Counter(draw(source) for _ in range(3_000))
    accepts_only(frequencies(drawn), part(sums()), like_it=part(MISTAKEN[case]()))


@cases("x", [Fraction(1), Fraction(2), Fraction(3, 2), Fraction(10**40), 1 + Fraction(1, 2**80)])
@cases("bits", [1, 60, 300])
def test_logarithms_are_enclosed(x: Fraction, bits: int) -> None:
    low, high = log_bounds(x, bits)
    with mp.workdps(200):
        assert low <= mp.log(number(x)) * mp.mpf(2) ** bits <= high <= low + 2


@cases("eta", [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(-1, 2)])
def test_the_first_probability_is_enclosed(eta: Fraction) -> None:
    for parts in range(2, 200):
        for gamma in (Fraction(1, parts), Fraction(parts - 1, parts)):
            low, high, point = _first_negative_binomial(eta, gamma, 8)
            with mp.workprec(point + 100):
                truth = next(binomial_sums(eta, gamma))[1] * mp.mpf(2) ** point
                assert low <= truth <= high, gamma
            assert high - low <= 2 ** (point - 60)


@cases(
    ("call", "message"),
    [
        (lambda: truncated_negative_binomial(-1, 0.5), "shape must be above -1"),
        (lambda: truncated_negative_binomial(math.nan, 0.5), "shape must be a finite"),
        (lambda: truncated_negative_binomial(2000, 0.5), "shape must be above -1 and at most 1000"),
        (lambda: truncated_negative_binomial(1, 0.0), "stopping_probability must be strictly"),
        (lambda: truncated_negative_binomial(1, 1.0), "stopping_probability must be strictly"),
        (lambda: poisson(0), "mean must be positive"),
        (lambda: poisson(1e9), "mean must be at most"),
    ],
)
def test_bad_parameters_are_refused(call: Callable[[], int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
