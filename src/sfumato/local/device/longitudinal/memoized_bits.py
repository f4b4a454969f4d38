"""Memoized bits that are reported as they are, or by randomized response again for each report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import Coin, checked_epsilon
from sfumato.local.device.longitudinal.layers import refuse_layers
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["MemoizedBits"]

Bits = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class MemoizedBits:
    """How bits are memoized and reported.

    Parameters
    ----------
    epsilon : float
        That of a memo.
    memo : Coin
        Falls on heads for a memoized bit that is true.
    again : Coin or None
        Falls on heads for a reported bit that is the memoized one; None reports memos.
    """

    epsilon: float
    memo: Coin
    again: Coin | None

    @classmethod
    def of(
        cls, epsilon: float, truth: Coin, permanent_epsilon: float | None, coin: Callable[[float], Coin]
    ) -> MemoizedBits:
        """Return the layers with which a reported bit is true as rarely as a coin says, nearly exactly.

        Parameters
        ----------
        epsilon : float
            That of one report.
        truth : Coin
            That of a reported bit: the report's may be less by a few times 2^-64, never more.
        permanent_epsilon : float or None
            That of a memo; None, or the same as epsilon, reports memos.
        coin : callable
            From an epsilon to the coin of bits with it.

        Returns
        -------
        MemoizedBits
        """
        if permanent_epsilon is None:
            return cls(epsilon, truth, None)
        permanent = checked_epsilon(permanent_epsilon, "permanent_epsilon")
        if permanent == epsilon:
            return cls(epsilon, truth, None)
        memo = coin(permanent)
        again_true = (truth.chance - (1 - memo.chance)) / (2 * memo.chance - 1)
        if permanent < epsilon or again_true >= 1:
            refuse_layers(permanent, epsilon)
        again = Coin.below(again_true)
        if again.chance <= Fraction(1, 2):
            _check.refuse("epsilon", "be above about 2**-60", epsilon, "raise it: reports are mere noise")
        return cls(permanent, memo, again)

    @property
    def again_chance(self) -> Fraction:
        """The probability that a reported bit is the memoized one."""
        return Fraction(1) if self.again is None else self.again.chance

    @property
    def chance(self) -> Fraction:
        """The probability that a reported bit is true."""
        memo, again = self.memo.chance, self.again_chance
        return memo * again + (1 - memo) * (1 - again)

    def memoize(self, true: Bits, source: RandomSource) -> Bits:
        """Draw the memos of bits.

        Parameters
        ----------
        true : bool array
            The true bits.
        source : RandomSource

        Returns
        -------
        bool array of the same shape
        """
        return np.asarray(true == self.memo.flip(true.size, source).reshape(true.shape))

    def report(self, memos: Bits, source: RandomSource) -> Bits:
        """Draw one report of memoized bits.

        Parameters
        ----------
        memos : bool array
        source : RandomSource

        Returns
        -------
        bool array of the same shape
        """
        if self.again is None:
            return memos
        return np.asarray(memos == self.again.flip(memos.size, source).reshape(memos.shape))

    def odds(self, reports: int) -> Fraction:
        r"""Return the largest ratio of the chances of reports of one memoized bit, were it true or not.

        Parameters
        ----------
        reports : int
            Reports of the one memo.

        Returns
        -------
        Fraction

        Notes
        -----
        The ratio :math:`\frac{p\lambda + 1 - p}{(1-p)\lambda + p}` rises with the likelihood
        :math:`\lambda` of a memo that is true, which is :math:`(r/(1-r))^t` at most, where all t reports say
        so; by symmetry its inverse is no greater.
        """
        memo = self.memo.chance
        if self.again is None:
            return memo / (1 - memo)
        maximum = (self.again.chance / (1 - self.again.chance)) ** reports
        return (memo * maximum + 1 - memo) / ((1 - memo) * maximum + memo)

    def thresholds(self) -> dict[str, object]:
        """Return the exact chances as JSON.

        Returns
        -------
        dict
        """
        return {
            "permanent": self.memo.threshold,
            "again": None if self.again is None else self.again.threshold,
        }
