"""The base of client halves with two layers of randomization: once for each value, then for each report."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import MAX_EPSILON, checked_epsilon
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.longitudinal.memory import MemoizingRandomizer, checked_memos
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["MemoizedCategories", "TwoLayerRandomizer", "refuse_layers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedCategories(CategoricalRandomizer, MemoizingRandomizer):
    """A client half that memoizes, and reports a category of a domain again and again.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`.
    max_memos : int
        Largest number of memos that a device draws, from 1 to 65,536; see
        `sfumato.local.device.longitudinal.memory`.
    """

    chosen: ClassVar[tuple[str, ...]] = (*CategoricalRandomizer.chosen, "max_memos")

    max_memos: int = 4

    @property
    def max_keys(self) -> int:
        """How many different keys a device can have: one for each category."""
        return len(self.domain)

    def _choose(self) -> None:
        self._set(max_memos=checked_memos(self.max_memos))
        self._arrange()

    @abstractmethod
    def _arrange(self) -> None:
        """Set the exact chances, with `_set`."""

    def keys(self, values: Any, fixed: Records) -> NDArray[np.int64]:
        """Return what values are memoized under; see `MemoizingRandomizer`.

        Parameters
        ----------
        values : array or list
            What is true on each device.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.

        Returns
        -------
        int64 array, shape (n,)
            The key of each value, at least 0.
        """
        return self._keys(self.domain.codes(values), fixed)

    def _keys(self, codes: NDArray[np.int64], fixed: Records) -> NDArray[np.int64]:
        """Return what indices in the domain are memoized under: themselves."""
        return codes

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        return self._first_reports(len(codes), partial(self._keys, codes), source)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLayerRandomizer(MemoizedCategories):
    r"""A permanent randomization of the value, memoized, and a fresh one of the memo for each report.

    Parameters
    ----------
    epsilon, domain, max_memos
        See `MemoizedCategories`; epsilon is that of one report of a device.
    permanent_epsilon : float, optional
        That of a memo, and so of all reports made of it, however many: above epsilon, at most 40. Twice
        epsilon if left out.

    Notes
    -----
    Guarantee: one report of a device is :math:`\epsilon`-DP, replace-one. All reports together lose at most
    ``permanent_epsilon`` for each memo, and ``memo_limit`` times that in all, between histories alike in
    their changes: theorem and proof in `sfumato.local.device.longitudinal.memory`.
    """

    chosen: ClassVar[tuple[str, ...]] = (*MemoizedCategories.chosen, "permanent_epsilon")

    permanent_epsilon: float | None = None

    def _arrange(self) -> None:
        given = self.permanent_epsilon
        wanted = min(2 * self.epsilon, MAX_EPSILON) if given is None else given
        permanent = checked_epsilon(wanted, "permanent_epsilon")
        self._set(permanent_epsilon=permanent)
        if permanent <= self.epsilon:
            refuse_layers(permanent, self.epsilon)
        self._layers(permanent)

    @abstractmethod
    def _layers(self, permanent_epsilon: float) -> None:
        """Set the exact chances of both layers, with `_set`."""

    @property
    @abstractmethod
    def memo_chances(self) -> tuple[Fraction, Fraction]:
        """How likely a memo supports the true value, and any one other."""

    @property
    @abstractmethod
    def fresh_chances(self) -> tuple[Fraction, Fraction]:
        """How likely a report supports a value that its memo supports, and one that it does not."""

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """How likely a report supports the true value, and any one other, after both layers."""
        high, low = self.fresh_chances
        true, other = self.memo_chances
        return low + true * (high - low), low + other * (high - low)


def refuse_layers(permanent_epsilon: float, epsilon: float, maximum: float | None = None) -> None:
    """Refuse a permanent layer that does not hide less than a report."""
    rule = f"be greater for an epsilon of {epsilon} of one report"
    remedy = "raise it: all reports of a memo reveal more than one of them does"
    if maximum is not None:
        remedy = f"one report of this chain has at most about {maximum:.3g} with it; use the chain 'OSUE'"
    _check.refuse("permanent_epsilon", rule, permanent_epsilon, remedy)
