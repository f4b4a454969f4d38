"""The privacy loss of one answer, from the exact probabilities of the answers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import TypeAlias

from sfumato.numerics.rounding import fraction_up, log_up
from sfumato.privacy.leaves.randomized_response import RandomizedResponse
from sfumato.privacy.leaves.trade_off import TradeOff
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.pairs.convex_minorant import convex_minorant

__all__ = ["Transition", "loss_of", "odds_of"]

Transition: TypeAlias = tuple[tuple[Fraction, ...], ...]
"""The probability of each answer (in a row) for each truth (one row each)."""


def loss_of(*transitions: Transition) -> PrivacyLoss:
    r"""Return a bound on the loss of an answer that follows any one of several distributions.

    Parameters
    ----------
    transitions : tuple of rows
        Rows add up to 1; each column has a positive entry. Where it has a zero too the answer rules a truth
        out, and the epsilon is infinite.

    Notes
    -----
    Guarantee: exact under replace-one. Where all lies are equally likely it is the leaf of randomized
    response. Else it is the trade-off curve of the best test: for two truths the vertices follow from the
    answers in the order of their likelihood ratios (Neyman and Pearson), and the largest convex curve below
    the vertices of all ordered pairs of truths is at or below the trade-off function of each.
    """
    if len(transitions) == 1 and (odds := _even_odds(transitions[0])) is not None:
        leaf, count = log_up(fraction_up(odds)), len(transitions[0])
        return RandomizedResponse(leaf, count, neighboring=Neighboring.REPLACE_ONE)
    points = {Fraction(0): Fraction(1), Fraction(1): Fraction(0)}
    for transition in transitions:
        for null, other in permutations(transition, 2):
            alpha, beta = Fraction(0), Fraction(1)
            # What only the other can say comes first.
            likely = sorted(zip(null, other, strict=True), key=lambda masses: _ratio(*masses))
            for p, q in likely:
                alpha, beta = alpha + p, beta - q
                points[alpha] = min(beta, points.get(alpha, beta))
    hull = convex_minorant(sorted(points.items()))
    return TradeOff([a for a, _ in hull], [b for _, b in hull], neighboring=Neighboring.REPLACE_ONE)


def odds_of(*transitions: Transition) -> Fraction | float:
    """Return the maximum factor by which an answer of one of several distributions moves the odds.

    It is infinite where an answer rules a truth out.
    """
    columns = [column for transition in transitions for column in zip(*transition, strict=True)]
    if any(not min(column) for column in columns):
        return math.inf
    ratios: list[Fraction] = [max(column) / min(column) for column in columns]
    return max(ratios)


def _ratio(null: Fraction, other: Fraction) -> tuple[bool, Fraction]:
    """Return what sorts answers from the likeliest under the other to the likeliest under the null."""
    return (null > 0, -other / null if null else Fraction(0))


def _even_odds(transition: Transition) -> Fraction | None:
    """Return the odds of a true answer to one that is not, where they are the same throughout."""
    count = len(transition)
    if any(len(row) != count or not all(row) for row in transition):
        return None
    true = {transition[i][i] for i in range(count)}
    false = {transition[i][j] for i, j in permutations(range(count), 2)}
    if len(true) > 1 or len(false) > 1:
        return None
    odds = true.pop() / false.pop()
    if odds < 1:
        # Of two answers, to exchange both names changes nothing.
        return 1 / odds if count == 2 else None
    return odds
