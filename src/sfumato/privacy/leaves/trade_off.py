"""A trade-off curve: false negative against false positive rates of the best attack."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato._wire import RATIONAL, sequence
from sfumato.privacy.leaves.discrete_pair import RationalLeaf
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.convex_minorant import convex_minorant
from sfumato.privacy.serialization import serialized_as

__all__ = ["TradeOff"]


@final
@serialized_as("trade-off", alphas=sequence(RATIONAL), betas=sequence(RATIONAL), neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class TradeOff(RationalLeaf):
    r"""Any mechanism whose trade-off function is nowhere below a piecewise linear curve: f-DP.

    Parameters
    ----------
    alphas : sequence of int, float or Fraction
        False positive rates of tests for the unit, rising from 0 to 1; a float means the rational it is.
    betas : sequence of int, float or Fraction
        Bounds on the smallest false negative rates there: falling to 0, each at most ``1 - alpha``.
    neighboring : Neighboring or Relation
        The relation that the curve is about.

    Notes
    -----
    Guarantee: the largest convex curve :math:`f` at or below the points is the trade-off function of a pair:
    between two of its vertices the distributions have the masses :math:`\alpha_{i+1} - \alpha_i` without the
    unit and :math:`\beta_i - \beta_{i+1}` with it, and :math:`1 - f(0)` lies where only the one with it has
    mass (Neyman and Pearson). A mechanism whose trade-off function is at least :math:`f` is a post-processing
    of the pair (Blackwell), so the pair dominates it; in the other order, both are inverted. For a curve that
    is not its own inverse, the null hypothesis is that the unit is absent.

    References
    ----------
    Dong, Roth, Su (2022), "Gaussian differential privacy": f-DP, Blackwell's theorem.

    Examples
    --------
    >>> round(TradeOff([0, 0.25, 1], [1, 0.25, 0]).epsilon(0.0), 6)  # the log of 3
    1.098612
    """

    _any_relation = True

    alphas: Sequence[float | Fraction]
    betas: Sequence[float | Fraction]
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rationals("alphas", self.alphas)
        self._set_rationals("betas", self.betas)
        self._set_relation(self.neighboring)
        points = self._points()
        for (a, b), (c, d) in itertools.pairwise(points):
            if a >= c:
                _check.refuse("alphas", "rise", float(c), "sort them, and leave out repetitions")
            if b < d:
                _check.refuse("betas", "fall", float(d), "more false positives never cost false negatives")
        for a, b in points:
            if a + b > 1:
                rule = f"be at most 1 - alpha, {float(1 - a)!r} here"
                _check.refuse("betas", rule, float(b), "guessing achieves 1 - alpha without any data")
        hull = convex_minorant(points)
        parts = [(b - d, c - a) for (a, b), (c, d) in itertools.pairwise(hull)]
        self._set_distributions([(1 - hull[0][1], Fraction(0)), *parts])

    def _points(self) -> list[tuple[Fraction, Fraction]]:
        if len(self.alphas) != len(self.betas):
            found = f"there are {len(self.betas)}"
            _check.refuse_state("betas", "be as many as the alphas", found, "pass one for each")
        if len(self.alphas) < 2 or (self.alphas[0], self.alphas[-1]) != (0, 1):
            ends = tuple(float(alpha) for alpha in (*self.alphas[:1], *self.alphas[-1:]))
            remedy = "add the end points: at alpha 0 the largest beta that holds, at alpha 1 beta 0"
            _check.refuse("alphas", "begin with 0 and end with 1", ends, remedy)
        return [(Fraction(a), Fraction(b)) for a, b in zip(self.alphas, self.betas, strict=True)]
