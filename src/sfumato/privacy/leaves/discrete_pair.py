"""Mechanisms known by a pair of finite distributions with rational probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import RATIONAL, sequence
from sfumato.numerics.rounding import fraction_up, log_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.conversion import pure_to_gdp, pure_to_zcdp
from sfumato.privacy.leaves.leaf import Leaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.finite import log_of, rational_pair
from sfumato.privacy.pairs.pair import AtomicPair, Pair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["DiscretePair", "RationalLeaf"]

_MAX_OUTCOMES: Final = 4096
_CLOSE: Final = Fraction(1, 10**9)
_NO_CUTS: Final = np.zeros(0)


@dataclass(frozen=True, slots=True, repr=False)
class RationalLeaf(Leaf):
    r"""What two finite distributions prove.

    Notes
    -----
    *A mass beside pure DP.* Let :math:`a` and :math:`b` be the masses of what only P and only Q give,
    :math:`\delta` the greater of them. For :math:`a \le b`, :math:`P = (1-b)P' + bP''` where :math:`P'` is
    proportional to P on the common outcomes, for there :math:`(1-b)P' = \frac{1-b}{1-a} P \le P`; and
    :math:`Q = (1-b)Q' + bQ''` in the same way. So outside the mass :math:`\delta` there is
    pure DP between :math:`P'` and :math:`Q'`; that gives zCDP and Gaussian DP. For (epsilon, delta)-DP the
    largest finite loss of P and Q themselves will do.
    """

    _pair: AtomicPair = field(init=False, compare=False)
    _common: tuple[tuple[Fraction, Fraction], ...] = field(init=False, compare=False)
    # Rounded up: the mass, the largest finite loss, and the largest loss outside the mass.
    _mass: float = field(init=False, compare=False)
    _loss: float = field(init=False, compare=False)
    _inner: float = field(init=False, compare=False)

    def _set_distributions(self, masses: list[tuple[Fraction, Fraction]], *, symmetric: bool = False) -> None:
        """Work out what follows from the masses."""
        common = tuple((p, q) for p, q in masses if p and q)
        self._set("_common", common)
        ratios = [p / q for p, q in common]
        common_mass = sum(p for p, _ in common), sum(q for _, q in common)
        self._set("_pair", rational_pair(masses, symmetric=symmetric))
        self._set("_mass", fraction_up(1 - min(common_mass)))
        self._set("_loss", _largest(ratios))
        self._set("_inner", _largest([ratio * common_mass[1] / common_mass[0] for ratio in ratios]))

    def _set_rationals(self, name: str, values: object) -> None:
        """Check and store several non-negative rationals."""
        self._set_each(name, values, self._set_exact)
        count = len(getattr(self, name))
        if not 0 < count <= _MAX_OUTCOMES:
            _check.refuse_state(
                name, f"hold from 1 to {_MAX_OUTCOMES} numbers", f"it holds {count}", "merge some"
            )

    def pure(self) -> PureView:
        """Return the largest finite loss, and the mass of infinite ones."""
        return PureView(self._loss, min(1.0, self._mass))

    def split(self) -> tuple[float, tuple[tuple[PrivacyLoss, int], ...]]:
        """Return the mass, and the distributions that are left outside of it."""
        if self._mass == 0:
            return 0.0, self.terms
        if not self._common:
            return 1.0, ()
        sums = sum(p for p, _ in self._common), sum(q for _, q in self._common)
        distributions = [p / sums[0] for p, _ in self._common], [q / sums[1] for _, q in self._common]
        return self._mass, (
            (DiscretePair(*distributions, neighboring=cast("Relation", self.neighboring)), 1),
        )

    def zcdp(self) -> ZCDPView:
        """Return what pure DP outside the mass implies."""
        return ZCDPView(pure_to_zcdp(self._inner), min(1.0, self._mass))

    def gdp(self) -> GDPView:
        """Return what pure DP outside the mass implies."""
        return GDPView(pure_to_gdp(self._inner), min(1.0, self._mass))

    def log_profile(self, epsilon: float) -> float:
        """Return the log of the exact profile, the greater of both orders."""
        return max(self._log_profile(epsilon, swapped=swapped) for swapped in (False, True))

    def _log_profile(self, epsilon: float, *, swapped: bool) -> float:
        distribution = self._pair.bins(_NO_CUTS, swapped=swapped).split()
        gaps = distribution.loss - epsilon
        gaps = gaps + 4 * UNIT * np.abs(gaps)
        worse = gaps > 0
        terms = np.exp(distribution.log_mass[worse]) * -np.expm1(-gaps[worse])
        slack = 1 + UNIT * (
            64 + 4 * len(terms) + float(np.abs(distribution.log_mass[worse]).max(initial=0.0))
        )
        return min(0.0, log_up(above(math.fsum([distribution.infinite, *terms.tolist()]) * slack)))

    numeric = True
    """The divergences are sums over the outcomes."""

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the divergences, the greater of both orders; infinity where there is an infinite loss."""
        if self._mass == 0 == self._loss:
            return np.zeros_like(orders)
        return renyi(self._pair, orders) if self._mass == 0 else np.full_like(orders, np.inf)

    def dominating_pair(self) -> Pair:
        """Return the two distributions."""
        return self._pair


@final
@serialized_as("discrete-pair", p=sequence(RATIONAL), q=sequence(RATIONAL), neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class DiscretePair(RationalLeaf):
    """A mechanism whose outputs on any two neighbors are dominated by two finite distributions.

    Parameters
    ----------
    p, q : sequence of int, float or Fraction
        Masses of the outcomes with the unit and without it (under a symmetric relation: on either dataset and
        on the other), in the same order of outcomes; a float means the rational it is. Each distribution is
        divided by its sum, which must be 1 to nine digits.
    neighboring : Neighboring or Relation
        The relation that the two distributions are about.

    Notes
    -----
    Guarantee: that of the two distributions, exactly. Condition: they dominate each pair of neighbors, each
    in its order: for every epsilon neither of the two hockey-stick divergences of a mechanism's outputs is
    greater.

    References
    ----------
    Zhu, Dong, Wang (2022), "Optimal accounting of differential privacy via characteristic function",
    dominating pairs.

    Examples
    --------
    >>> from fractions import Fraction
    >>> low, high = Fraction(1, 3), Fraction(2, 3)
    >>> DiscretePair([high, low], [low, high]).epsilon(0.34)
    0.0
    """

    _any_relation = True

    p: Sequence[float | Fraction]
    q: Sequence[float | Fraction]
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rationals("p", self.p)
        self._set_rationals("q", self.q)
        self._set_relation(self.neighboring)
        if len(self.p) != len(self.q):
            found, remedy = f"it has {len(self.q)}", "write 0 for those that it lacks"
            _check.refuse_state("q", "have as many outcomes as p", found, remedy)
        sums = Fraction(sum(self.p)), Fraction(sum(self.q))
        for name, total in zip("pq", sums, strict=True):
            if abs(total - 1) > _CLOSE:
                found = f"it adds up to {float(total)!r}"
                _check.refuse_state(name, "add up to 1", found, "add the outcomes that are missing")
        self._set_distributions(
            [(Fraction(a) / sums[0], Fraction(b) / sums[1]) for a, b in zip(self.p, self.q, strict=True)]
        )


def _largest(ratios: list[Fraction]) -> float:
    """Return the largest absolute logarithm, rounded up."""
    ends = {max(ratios), min(ratios)} - {1} if ratios else set()
    return max((above(abs(log_of(end)), 32.0) for end in ends), default=0.0)
