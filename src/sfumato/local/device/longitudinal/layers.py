"""The base of client halves with two layers of randomization: once for each value, then for each report."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import checked_epsilon
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.longitudinal.memory import Memoizing, checked_memos
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["MemoizedCategories", "TwoLayerRandomizer", "refuse_layers"]

_MOST_EPSILON = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedCategories(CategoricalRandomizer, Memoizing):
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

    def _choose(self) -> None:
        self._set(max_memos=checked_memos(self.max_memos))
        self._arrange()

    @abstractmethod
    def _arrange(self) -> None:
        """Set the exact chances, with `_set`."""

    @property
    def most_keys(self) -> int:
        """How many different keys a device can have: one for each category."""
        return len(self.domain)

    @property
    def fixed_width(self) -> int:
        """Bytes of what a device draws once for good: none."""
        return 0

    def fixed(self, size: int, source: RandomSource) -> Records:
        """Draw what devices store for good: nothing.

        Parameters
        ----------
        size : int
            Number of devices.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (size, fixed_width)
            Empty rows.
        """
        return np.empty((size, 0), np.uint8)

    def keys(self, values: Any, fixed: Records) -> NDArray[np.int64]:
        """Return what values are memoized under; see `Memoizing`.

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
        fixed = self.fixed(len(codes), source)
        return self.fresh(self.memoize(self._keys(codes, fixed), fixed, source), fixed, source)


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
    ``permanent_epsilon`` for each memo, and ``most_memos`` times that in all, between histories alike in
    their changes: theorem and proof in `sfumato.local.device.longitudinal.memory`.
    """

    chosen: ClassVar[tuple[str, ...]] = (*MemoizedCategories.chosen, "permanent_epsilon")

    permanent_epsilon: float | None = None

    def _arrange(self) -> None:
        given = self.permanent_epsilon
        wanted = min(2 * self.epsilon, _MOST_EPSILON) if given is None else given
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
    def chances(self) -> tuple[Fraction, Fraction]:
        """How likely a report supports the true value, and any one other."""


def refuse_layers(permanent_epsilon: float, epsilon: float, most: float | None = None) -> None:
    """Refuse a permanent layer that does not hide less than a report."""
    rule = f"be greater for an epsilon of {epsilon} of one report"
    remedy = "all reports of a memo reveal more than one of them does"
    if most is not None:
        remedy = f"with it one report of this chain has at most about {most:.3g}; the chain 'OSUE' has more"
    _check.refuse("permanent_epsilon", rule, permanent_epsilon, remedy)
