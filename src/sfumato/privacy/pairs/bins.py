r"""The outcomes of a pair of distributions, partitioned into bins that bound its loss on both sides.

Write :math:`R = dQ/dP` for the likelihood ratio under :math:`P`; the privacy loss is :math:`L = -\log R`. The
hockey-stick divergence of a composition is :math:`E_P (1 - e^\epsilon \prod_i R_i)_+`, convex and falling in
each :math:`R_i`. So a bin of :math:`P`-mass :math:`a` and :math:`Q`-mass :math:`b` gives

- a lower bound, if all of it is moved to its mean :math:`R = b/a` (Jensen);
- an upper bound, if it is split between its two ends so that the mean stays (a mean-preserving spread).

Masses too small to follow are dropped below and moved up to the next loss, or to infinity, above. Where
numbers left the range of floats and P's masses do not add up to 1, above all is revealed: an infinite loss.

Arrays may have more axes before the last one: then they hold several pairs with so many bins side by side,
and what is one number for a pair is a column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss

__all__ = ["NO_ATOMS", "Bins", "Mass", "Number", "Points"]

_Array = NDArray[np.float64]
Number: TypeAlias = Any
"""A float, or a column of them for pairs that are side by side."""

_TAIL_SLACK: Final = 1 + 1e-9
"""Outweighs every rounding in a tail mass, which is negligible itself."""
_WHOLE: Final = 1 - 1e-11
"""Sums of masses, none of which is too small, are no further below 1 by their rounding."""


@dataclass(frozen=True, slots=True)
class Mass:
    """The masses that P and Q give to one set, as natural logarithms rounded up."""

    log_p: Number = -np.inf
    log_q: Number = -np.inf

    def swapped(self) -> Mass:
        """Exchange P and Q."""
        return Mass(self.log_q, self.log_p)

    def mixed(self, q: Number) -> Mass:
        """Replace P by ``(1 - q) Q + q P``."""
        return Mass(np.logaddexp(np.log1p(-q) + self.log_q, np.log(q) + self.log_p), self.log_q)


@dataclass(frozen=True, slots=True)
class Points:
    """Sets of outcomes by their P-mass and their loss ``log(P-mass / Q-mass)``, with the errors of both.

    Parameters
    ----------
    log_p : ndarray
        Natural logarithm of the P-mass.
    loss : ndarray
    mass_error, loss_error : ndarray
        Bounds on the absolute errors of ``log_p`` and of ``loss``.
    """

    log_p: _Array
    loss: _Array
    mass_error: _Array
    loss_error: _Array

    def swapped(self) -> Points:
        """Exchange P and Q, and the order."""
        if not self.loss.size:
            return self
        log_q = self.log_p - self.loss
        error = self.mass_error + self.loss_error + UNIT * np.abs(log_q)
        return Points(log_q[..., ::-1], -self.loss[..., ::-1], error[..., ::-1], self.loss_error[..., ::-1])

    def mixed(self, q: Number) -> Points:
        """Replace P by ``(1 - q) Q + q P``."""
        if not self.loss.size:
            return self
        loss, loss_error = mixed_loss(self.loss, self.loss_error, q)
        log_q = self.log_p - self.loss
        log_p = log_q + loss
        error = self.mass_error + self.loss_error + loss_error + UNIT * (np.abs(log_q) + np.abs(log_p))
        return Points(log_p, loss, error, loss_error)

    def followed_by(self, other: Points) -> Points:
        """Return both lists as one."""
        if not (self.loss.size and other.loss.size):
            return self if self.loss.size else other
        return Points(
            np.concatenate([self.log_p, other.log_p], axis=-1),
            np.concatenate([self.loss, other.loss], axis=-1),
            np.concatenate([self.mass_error, other.mass_error], axis=-1),
            np.concatenate([self.loss_error, other.loss_error], axis=-1),
        )


NO_ATOMS: Final = Points(*(np.zeros(0),) * 4)


def mixed_loss(loss: _Array, error: _Array, q: Number) -> tuple[_Array, _Array]:
    r"""Return :math:`\log(1 - q + q e^L)` and a bound on its error."""
    # Beyond 700 the exponential overflows; there 1 is as good as 1 - q.
    large = loss > 700.0
    near = np.log1p(q * np.expm1(np.minimum(loss, 700.0)))
    mixed = np.where(large, np.logaddexp(0.0, loss + np.log(q)), near)
    fraction = np.exp(np.minimum(np.log(q) + loss - mixed, 0.0))
    # Of y = exp(mixed) - 1 a few roundings are relative, and y / (1 + y) of them reach the logarithm.
    rounding = 8 * UNIT * (np.abs(mixed) + np.abs(np.expm1(-np.maximum(mixed, -700.0))))
    rounding = rounding + np.where(large, 4 * UNIT * np.abs(loss), 0.0)
    return mixed, fraction * error + rounding


@dataclass(frozen=True, slots=True)
class Bins:
    """A pair of distributions, cut into bins by loss, single losses, tails, and the outcomes of one alone.

    Parameters
    ----------
    points : Points
        The bins, from the smallest loss to the largest.
    edges, edge_error : ndarray
        The losses between which the bins lie, one more than there are bins, and a bound on their errors.
    atoms : Points
        Outcomes that have exactly their loss.
    low, high : Mass
        What lies below the first edge and above the last.
    only_p, only_q : float
        Mass of outcomes that the other distribution never gives: an infinite loss, and a minus infinite one.
    against : bool
        Whether the bins run against the cuts that they were made at, because P and Q were exchanged.

    Examples
    --------
    >>> from sfumato.privacy import Laplace
    >>> pair = Laplace(1.0).dominating_pair()
    >>> bins = pair.bins(pair.cuts(8.0), swapped=False)
    >>> bool(bins.whole), bool((bins.points.loss[1:] >= bins.points.loss[:-1]).all())
    (True, True)
    """

    points: Points
    edges: _Array
    edge_error: _Array
    atoms: Points = NO_ATOMS
    low: Mass = field(default_factory=Mass)
    high: Mass = field(default_factory=Mass)
    only_p: Number = 0.0
    only_q: Number = 0.0
    against: bool = False

    def swapped(self) -> Bins:
        """Return the pair (Q, P).

        Returns
        -------
        Bins
            The same bins, in the opposite order.
        """
        return Bins(
            points=self.points.swapped(),
            edges=-self.edges[..., ::-1],
            edge_error=self.edge_error[..., ::-1],
            atoms=self.atoms.swapped(),
            low=self.high.swapped(),
            high=self.low.swapped(),
            only_p=self.only_q,
            only_q=self.only_p,
            against=not self.against,
        )

    def mixed(self, q: Number) -> Bins:
        """Return the pair ((1 - q) Q + q P, Q), for q in (0, 1).

        Parameters
        ----------
        q : float or ndarray, shape (pairs, 1)
            The sampling probability; a column for pairs that are side by side.

        Returns
        -------
        Bins
            With the same cuts, each at the mixture's loss.
        """
        edges, edge_error = mixed_loss(self.edges, self.edge_error, q)
        atoms = self.atoms.mixed(q)
        if np.any(self.only_q):
            # Where P has nothing, the mixture's loss is log(1 - q).
            log_p = np.log((1 - q) * self.only_q) * np.ones(1)
            error = np.full(log_p.shape, 8 * UNIT)
            atoms = Points(log_p, np.log1p(-q) + 0 * log_p, error, error).followed_by(atoms)
        return Bins(
            points=self.points.mixed(q),
            edges=edges,
            edge_error=edge_error,
            atoms=atoms,
            low=self.low.mixed(q),
            high=self.high.mixed(q),
            only_p=q * self.only_p,
            against=self.against,
        )

    @property
    def certain(self) -> Number:
        """Mass that surely has an infinite loss, up to some roundings; `only_p` may count more of P so."""
        return self.only_p

    @property
    def whole(self) -> Any:
        """Whether nothing of P is lost; a column for pairs that are side by side."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.exp(self.low.log_p) + np.exp(self.high.log_p) + self.only_p
            for points in (self.points, self.atoms):
                if points.loss.size:
                    mass = np.exp(points.log_p + points.mass_error).sum(
                        axis=-1, keepdims=points.loss.ndim > 1
                    )
                    total = total + mass
        return (total >= _WHOLE) & (total < np.inf)

    def merged(self) -> DiscreteLoss:
        """Return a distribution of the loss whose compositions have no greater divergence than the pair's.

        Returns
        -------
        DiscreteLoss
            For lower bounds: each bin is moved to its mean likelihood ratio.
        """
        both = self.points.followed_by(self.atoms)
        loss = both.loss - both.loss_error - 2 * UNIT * np.abs(both.loss)
        return DiscreteLoss(
            loss, both.log_p - both.mass_error, np.nextafter(self.only_p * (1 - 8 * UNIT), 0.0)
        )

    def split(self) -> DiscreteLoss:
        """Return a distribution of the loss whose compositions have no smaller divergence than the pair's.

        Returns
        -------
        DiscreteLoss
            For upper bounds: each bin is split between its two ends.
        """
        points, left, right = self.points, self.edges[..., :-1], self.edges[..., 1:]
        # A bin that has no width has one loss, and one that is empty has any.
        width = np.where(right > left, right - left, 1.0)
        error = points.loss_error + self.edge_error[..., :-1] + self.edge_error[..., 1:]
        error = error + 4 * UNIT * (np.abs(points.loss) + np.abs(left) + np.abs(right))
        span = -np.expm1(-width)
        # The fraction of the right end, rounded up: mass that moves up is on the safe side.
        fraction = -np.expm1(np.minimum(left - points.loss, 0.0)) / span
        fraction = np.clip(fraction + 2 * error / span + 8 * UNIT, 0.0, 1.0)
        mass = np.exp(points.log_p) * np.exp(points.mass_error + 8 * UNIT)
        at_edges = np.zeros(self.edges.shape)
        if self.edges.size:
            at_edges[..., :-1] += mass * (1 - fraction)
            at_edges[..., 1:] += mass * fraction
            at_edges[..., :1] += np.exp(self.low.log_p) * _TAIL_SLACK
        with np.errstate(divide="ignore"):
            log_p = np.log(at_edges) + 4 * UNIT * (1 + np.abs(np.log(np.maximum(at_edges, 1e-300))))
        error = self.edge_error + 2 * UNIT * np.abs(self.edges)
        both = Points(log_p, self.edges, np.zeros(log_p.shape), error).followed_by(self.atoms)
        tail = np.exp(self.high.log_p) * _TAIL_SLACK
        infinite = np.where(
            tail > 0, np.nextafter((self.only_p + tail) * (1 + 2 * UNIT), np.inf), self.only_p
        )
        return DiscreteLoss(
            both.loss + both.loss_error + 2 * UNIT * np.abs(both.loss),
            both.log_p + both.mass_error,
            # A scalar again where there is one pair.
            np.where(self.whole, infinite, 1.0)[()],
        )
