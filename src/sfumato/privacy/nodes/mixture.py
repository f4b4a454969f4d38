"""A mechanism drawn at random, by weights that do not depend on the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import BOOLEAN, NUMBER, sequence
from sfumato.privacy._outward import UNIT, above, sum_above
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes._parts import Several, checked, pair_of
from sfumato.privacy.pairs.mixture import WEIGHT_SLACK, MixturePair
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import LOSSES, serialized_as
from sfumato.privacy.views import PureView

__all__ = ["Mixture"]


@final
@serialized_as("mixture", losses=LOSSES, weights=sequence(NUMBER), index_public=BOOLEAN)
@dataclass(frozen=True, slots=True, repr=False)
class Mixture(Several):
    r"""One of several mechanisms, drawn by fixed weights.

    Parameters
    ----------
    losses : tuple of PrivacyLoss
        Of the mechanisms, all about one relation.
    weights : tuple of float
        Probabilities of the mechanisms, positive, with sum 1 to twelve digits (they are divided by it); they
        do not depend on the data.
    index_public : bool
        Whether it is public which one ran.

    Notes
    -----
    Guarantee: under the parts' relation. With a public index the outputs are in disjoint sets, so that every
    hockey-stick divergence, and every moment of Rényi's, is the weighted mean of the parts'. A hidden index
    is post-processing of a public one: the same bound (joint convexity), not tight.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> Mixture((PureDP(0.1), PureDP(3.0)), (0.999, 0.001), index_public=True).epsilon(1e-3) < 0.1
    True
    """

    losses: tuple[PrivacyLoss, ...]
    weights: tuple[float, ...]
    index_public: bool

    def __post_init__(self) -> None:
        self._set("losses", checked(self.losses))
        given: object = self.weights
        listed = given if isinstance(given, tuple | list) else (given,)
        weights = tuple(_check.positive("weights", weight, "leave out what never runs") for weight in listed)
        if len(weights) != len(self.losses):
            found = f"there are {len(weights)}"
            _check.refuse_state("weights", "be as many as the losses", found, "pass one for each")
        if abs(math.fsum(weights) - 1) > WEIGHT_SLACK:
            found = f"they add up to {math.fsum(weights)!r}"
            _check.refuse_state("weights", "add up to 1", found, "divide them by their sum")
        self._set("weights", weights)
        public: object = self.index_public
        if not isinstance(public, bool):
            _check.refuse("index_public", "be True or False", public, "say whether the index is released")

    def dominating_pair(self) -> Pair:
        """Return the pair of what is drawn and public.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        total = sum(map(Fraction, self.weights))
        chances = [float(Fraction(weight) / total) for weight in self.weights]
        pair = MixturePair([pair_of(part) for part in self.losses], chances, slack=4 * UNIT)
        return pair if self.index_public else LoosePair(pair)

    def log_profile(self, epsilon: float) -> float:
        """Return the log of the weighted mean, where all parts have a profile.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        logs = np.array([[part.log_profile(epsilon)] for part in self.losses])
        return min(0.0, float(self._log_mean(logs)[0]))

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the weighted means of the moments say.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        gaps = orders - 1
        moments = np.array([part.rdp_curve(orders) * gaps for part in self.losses])
        return np.asarray(self._log_mean(moments * (1 + 4 * UNIT)) / gaps * (1 + 4 * UNIT))

    def _log_mean(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log of the weighted mean of exponentials, rounded up."""
        terms = logs + np.log(self.weights)[:, None]
        with np.errstate(invalid="ignore"):
            mean = reduce(np.logaddexp, terms) if len(terms) > 1 else logs[0]
        size = np.where(np.isfinite(mean), np.abs(mean), 0.0) + np.abs(np.log(self.weights)).max()
        return np.asarray(mean + 2 * WEIGHT_SLACK + 8 * UNIT * (len(terms) + 4) * (size + 1))

    def pure(self) -> PureView:
        """Return the largest epsilon and the weighted mean of the masses.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        views = [part.pure() for part in self.losses]
        mean = sum_above(
            above(w * view.delta) for w, view in zip(self.weights, views, strict=True) if view.delta
        )
        mass = min(max(view.delta for view in views), above(mean * (1 + 2 * WEIGHT_SLACK)) if mean else 0.0)
        return PureView(max(view.epsilon for view in views), mass)
