"""Unary encodings: their exact law, short coins that use nearly all of epsilon, and that the law is drawn."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import Domain, OptimizedUnaryEncodingRandomizer, SymmetricUnaryEncodingRandomizer
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.laws import (
    below_exponential,
    have_moments,
    named_alike,
    reports,
    within,
    worst_odds,
)

KINDS: list[Any] = [SymmetricUnaryEncodingRandomizer, OptimizedUnaryEncodingRandomizer]


@cases("kind", KINDS)
@cases("epsilon", [0.05, 0.5, 1.0, 4.0, 12.0])
def test_the_odds_of_all_reports_are_those_of_epsilon(kind: Any, epsilon: float) -> None:
    made = kind(epsilon=epsilon, domain=Domain(range(4)))
    assert below_exponential(worst_odds(made.probabilities, range(4)), epsilon)


@cases("kind", KINDS)
@cases("epsilon", [1e-3, 0.1, 2.0, 30.0])
def test_coins_are_short(kind: Any, epsilon: float) -> None:
    made = kind(epsilon=epsilon, domain=Domain(range(4)))
    p, q = made.true.chance, made.other.chance
    assert below_exponential(p * (1 - q) / (q * (1 - p)), epsilon)
    assert made.other.bits <= 14 + epsilon * 1.5 + max(0, -np.log2(epsilon))
    if kind is SymmetricUnaryEncodingRandomizer:
        assert p + q == 1
    else:
        assert p == Fraction(1, 2)


@cases("kind", KINDS)
@cases("count", [2, 3, 8, 13])
def test_what_is_drawn_is_the_law(kind: Any, count: int) -> None:
    made, n = kind(epsilon=1.0, domain=Domain(range(count))), 30_000
    p, q = float(made.true.chance), float(made.other.chance)
    for value in {0, 1, count - 1}:
        records = made.randomize_batch(np.full(n, value), value).records
        assert made.layout.genuine(records).all()
        bits = np.unpackbits(records, axis=1, bitorder="little")[:, :count].astype(float)
        means = np.where(np.arange(count) == value, p, q)
        for place, ones in enumerate(bits.sum(axis=0).astype(int).tolist()):
            chance, other = (p, q) if place == value else (q, p)
            accepts_only(rate(ones, n), chance, of_the_other=other, a_tenth_more=1.1 * chance)
        rates = (
            (bits - means).T
            @ (bits - means)
            / n
            / np.sqrt(np.outer(means * (1 - means), means * (1 - means)))
        )
        off = rates[~np.eye(count, dtype=bool)]
        accepts_only(within(off, 1.2 / np.sqrt(n)), 0.0, a_tenth_is_shared=0.1)
    # And jointly, where all outcomes can be counted.
    if count == 3:
        law = made.probabilities(1)
        seen = Counter(made.randomize_batch(np.full(n, 1), 9))
        assert set(seen) <= set(law)
        sharper = named_alike(law, kind(epsilon=1.25, domain=made.domain).probabilities(1))
        another = made.probabilities(2)
        accepts_only(reports(seen, law), law, of_another=another, of_epsilon_5_4=sharper)


@pytest.mark.parametrize("kind", KINDS)
def test_many_persons_are_drawn_in_blocks(kind: Any) -> None:
    # More than one block, of rows that do not fill words; every row its own value.
    made = kind(epsilon=8.0, domain=Domain(range(999)))
    values = np.arange(5000) % 999
    bits = np.unpackbits(made.randomize_batch(values, 1).records, axis=1, bitorder="little")[:, :999]
    p, q = float(made.true.chance), float(made.other.chance)
    hits, n = int(bits[np.arange(5000), values].sum()), 5000
    accepts_only(rate(hits, n), p, of_another=q, more=min(1.15 * p, 1.0), less=0.85 * p)
    rest, others = int(bits.sum()) - hits, n * 998
    off = 10 / np.sqrt(others * q)  # deviations
    accepts_only(rate(rest, others), q, of_the_true_one=p, less=q / (1 + off), more=q * (1 + off))
    mean, variance = 998 * q + p, 998 * q * (1 - q) + p * (1 - p)
    have_moments(bits.sum(axis=1) - mean, variance, tells=0.2)


def test_large_domains_are_refused_and_told_where_to_go() -> None:
    with pytest.raises(ParameterError, match="use a protocol with short reports"):
        OptimizedUnaryEncodingRandomizer(epsilon=1.0, domain=Domain(range(1 << 21)))
    with pytest.raises(ParameterError, match="epsilon must be greater"):
        OptimizedUnaryEncodingRandomizer(epsilon=1e-19, domain=Domain(range(4)))
    with pytest.raises(ParameterError, match="have at most 16 categories"):
        OptimizedUnaryEncodingRandomizer(epsilon=1.0, domain=Domain(range(17))).probabilities(1)


def test_an_epsilon_that_coins_cannot_hold_is_told_its_direction() -> None:
    with pytest.raises(ParameterError, match=r"epsilon must be smaller, got 39\.0"):
        OptimizedUnaryEncodingRandomizer(epsilon=39.0, domain=Domain(range(4)))
    with pytest.raises(ParameterError, match="epsilon must be greater, got 1e-19"):
        OptimizedUnaryEncodingRandomizer(epsilon=1e-19, domain=Domain(range(4)))
