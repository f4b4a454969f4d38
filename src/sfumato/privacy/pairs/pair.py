"""A dominating pair of distributions: what a leaf states, and what all accounting is computed from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import NO_ATOMS, Bins, Number, Points

__all__ = ["AtomicPair", "Pair", "UncutPair", "no_loss", "two_points"]

_Array = NDArray[np.float64]


class Pair(ABC):
    r"""Two distributions (P, Q) as far apart in every hockey-stick divergence as any two neighbors' outputs.

    The unswapped order is that of the dataset *with* the unit against the one without it (of either dataset
    against the other, under a symmetric relation); ``swapped`` is the other way round. Both orders must hold
    through a whole composition, so each is composed by itself and the worse one counts.

    References
    ----------
    Zhu, Dong, Wang (2022), "Optimal accounting of differential privacy via characteristic function":
    dominating pairs, and their composition under adaptive choice of mechanisms with fixed parameters.
    """

    __slots__ = ()

    @property
    def variance(self) -> float:
        """The square of mu where the pair is exactly N(mu, 1) against N(0, 1), else 0; rounded up."""
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether both orders have the same distribution of the loss."""
        return True

    @property
    def tight(self) -> bool:
        """Whether the pair is that of two neighbors of the mechanism, or only dominates them."""
        return True

    @property
    def enclosed(self) -> bool:
        """Whether merging and splitting enclose two neighbors, be `bins` a partition of outcomes or not."""
        return self.tight

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The essential supremum of the finite loss in both orders, rounded down."""

    @property
    def continuous(self) -> bool:
        """Whether `bins` depends on the cuts."""
        return True

    @property
    def kind(self) -> Hashable:
        """Equal for pairs that can be put side by side; None where there is no such pair."""
        return None

    @property
    def parameters(self) -> Sequence[float | _Array]:
        """What distinguishes the pair from others of its kind."""
        return ()

    def stacked(self, parameters: _Array) -> Pair:
        """Return pairs of this kind side by side, by the columns of each of their parameters.

        Of cuts, rates and bins it has a row for each pair (see `sfumato.privacy.pairs.bins`); nothing else
        may be asked of it.
        """
        del parameters
        raise NotImplementedError(f"{type(self).__name__} is of no kind")

    @abstractmethod
    def cuts(self, reach: float) -> _Array:
        """Return coarse cuts of the outcomes; about ``exp(-reach**2 / 2)`` of either mass lies outside."""

    def snapped(self, cuts: _Array) -> _Array:
        """Return rising cuts near the given ones at which the pair can be cut; here every cut is one."""
        return cuts

    @abstractmethod
    def rate(self, cuts: _Array) -> _Array:
        """Return how many bins per unit of outcome `bins` needs, between coarse cuts."""

    def finer(self, cuts: _Array, wanted: _Array | float) -> _Array:
        """Return cuts with so many bins, about, between each two of the given ones; more where `rate` asks.

        Parameters
        ----------
        cuts : ndarray
            At least two.
        wanted : ndarray or float
            Bins, or parts of one, between each two cuts.
        """
        heights = np.maximum(wanted, self.rate(cuts) * np.diff(cuts))
        ends = np.concatenate([np.zeros_like(heights[..., :1]), np.cumsum(heights, axis=-1)], axis=-1)
        # Side by side, all pairs get as many bins as the one that needs the largest number.
        fractions = np.linspace(0.0, 1.0, math.ceil(ends[..., -1].max()) + 1)
        if cuts.ndim == 1:
            return self.snapped(np.interp(ends[-1] * fractions, ends, cuts))
        return np.array(
            [np.interp(end[-1] * fractions, end, row) for end, row in zip(ends, cuts, strict=True)]
        )

    def sharper(self, cuts: _Array) -> _Array:
        """Return cuts for a closer look at a pair that is not cut at will; the same if there is none."""
        return cuts

    @abstractmethod
    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Cut the pair."""

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Return upper bounds on ``log E_P[exp(c * loss)]`` over the outcomes beyond the last loss of `bins`.

        Parameters
        ----------
        tilts : ndarray
            Values of c, all positive.
        cuts : ndarray
            As for `bins`.
        swapped : bool
            As for `bins`: P is the second distribution where it is set.

        Notes
        -----
        Asked only where `bins` leaves mass there; infinity, unless a pair proves more.
        """
        del cuts, swapped
        return np.full(len(tilts), np.inf)


class UncutPair(Pair):
    """A pair that comes in pieces of its own, whatever cuts are asked for."""

    __slots__ = ()

    @property
    def continuous(self) -> bool:
        """No."""
        return False

    def cuts(self, reach: float) -> _Array:
        """Return no cuts."""
        del reach
        return np.zeros(0)

    def rate(self, cuts: _Array) -> _Array:
        """Return nothing: there is no other cut."""
        return np.zeros(max(0, len(cuts) - 1))


class AtomicPair(UncutPair):
    """A pair of finite discrete distributions.

    Parameters
    ----------
    points : Points
        The outcomes that both distributions give, from the smallest loss to the largest.
    only_p, only_q : float
        Masses of the outcomes that one of them gives.
    symmetric : bool
        Whether both orders are known to have the same distribution of the loss; then one is computed.
    tight : bool
        Whether the pair is that of two neighbors, or only dominates them.
    """

    __slots__ = ("_bins", "_swapped", "_symmetric", "_tight")

    def __init__(
        self,
        points: Points,
        *,
        only_p: Number = 0.0,
        only_q: Number = 0.0,
        symmetric: bool = False,
        tight: bool = True,
    ) -> None:
        nothing = np.zeros(0)
        self._symmetric, self._tight = symmetric, tight
        self._bins = Bins(NO_ATOMS, nothing, nothing, atoms=points, only_p=only_p, only_q=only_q)
        self._swapped = self._bins.swapped()

    @property
    def symmetric(self) -> bool:
        """Whether it was said so."""
        return self._symmetric

    @property
    def tight(self) -> bool:
        """Whether it was said so."""
        return self._tight

    @property
    def supremum(self) -> float:
        """The largest loss."""
        points = self._bins.atoms
        loss = np.concatenate([points.loss - points.loss_error, -points.loss - points.loss_error])
        return max(0.0, float(loss.max(initial=0.0)))

    @property
    def kind(self) -> Hashable:
        """How many atoms of which sorts."""
        bins = self._bins
        return AtomicPair, bins.atoms.loss.shape[-1], np.all(bins.only_p > 0), np.all(bins.only_q > 0)

    @property
    def parameters(self) -> Sequence[float | _Array]:
        """The atoms and the masses that one of the distributions gives."""
        points = self._bins.atoms
        lists = (points.log_p, points.loss, points.mass_error, points.loss_error)
        return [*np.concatenate(lists).tolist(), self._bins.only_p, self._bins.only_q]

    def stacked(self, parameters: _Array) -> Pair:
        """Return the atoms of all."""
        only_p, only_q = parameters[-2:]
        points = Points(*np.split(parameters[:-2, :, 0].T, 4, axis=1))
        return AtomicPair(points, only_p=only_p, only_q=only_q)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the atoms."""
        del cuts
        return self._swapped if swapped else self._bins


def two_points(epsilon: float, infinite: float = 0.0, *, tight: bool = True) -> AtomicPair:
    """Return randomized response with the largest loss ``epsilon``, revealed in full with some probability.

    Every (epsilon, infinite)-DP pair is a post-processing of it (Kairouz, Oh, Viswanath 2015).
    """
    if math.isinf(epsilon) or infinite >= 1:
        return AtomicPair(NO_ATOMS, only_p=1.0, only_q=1.0, symmetric=True, tight=tight)
    log_rest = math.log1p(-infinite)
    lesser = -math.log1p(math.exp(-epsilon)) + log_rest
    log_p = np.array([lesser - epsilon, lesser])
    with np.errstate(over="ignore"):
        error = UNIT * (16 + 4 * np.abs(log_p))
    points = Points(log_p, np.array([-epsilon, epsilon]), error, np.zeros(2))
    return AtomicPair(points, only_p=infinite, only_q=infinite, symmetric=True, tight=tight)


def no_loss() -> AtomicPair:
    """Return two equal distributions."""
    return AtomicPair(Points(*(np.zeros(1),) * 4), symmetric=True)
