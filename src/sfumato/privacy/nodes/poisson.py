"""Poisson subsampling: each unit takes part with one probability, independently of the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import NUMBER
from sfumato.errors import NeighboringMismatch, UnsupportedView
from sfumato.numerics.rounding import expm1_up, log1p_up, mul_up
from sfumato.privacy._outward import above
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.accountant.sampled_renyi import sampled_renyi
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.leaf import GroupPrivacy, Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring, Relation
from sfumato.privacy.nodes.poisson_replace_one import PoissonReplaceOne
from sfumato.privacy.pairs.pair import Pair, no_loss
from sfumato.privacy.pairs.sampling.subsampled import SubsampledPair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import PureView

__all__ = ["PoissonSubsampled", "amplified", "check_absent"]


@final
@serialized_as("poisson-subsampled", loss=LOSS, sampling_probability=NUMBER)
@dataclass(frozen=True, slots=True, repr=False)
class PoissonSubsampled(Node):
    r"""A mechanism that ran on a Poisson sample of the units, which stays secret.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism on its sample, under add/remove or zero-out: one leaf or node with a dominating pair
        or Rényi divergences, not a composition.
    sampling_probability : float
        With which each unit is in the sample, independently of all others; in [0, 1].

    Notes
    -----
    Guarantee: if (P, Q) dominates the mechanism, with the unit against without it, then :math:`((1-q)Q +
    qP, Q)` dominates the whole, and :math:`(P', (1-q)P' + qQ')` in the other order (Zhu, Dong, Wang 2022,
    Theorem 11). For the declared pair both are met with equality. Conditions: add/remove of one unit; the
    sample is drawn anew for each run, and independently of the data. A loader that shuffles or draws a fixed
    number is not Poisson and is not priced by this node.

    Zero-out: the same pairs, for a mechanism whose output has one distribution whether a neutral unit is in
    its sample or not, such as a noisy sum to which it adds 0. Proof: the runs on both datasets are mixtures
    over whether the unit is drawn. Where it is not, they are the mechanism on the other units; where it is,
    they are the mechanism with the unit and with the neutral one, which is that on the other units again.

    Replace-one: `under` gives the loss of Gaussian noise exactly, see `PoissonReplaceOne`, and of all others
    the chain of two steps.

    A loss without a pair, such as `ZCDP`, has Rényi divergences from those of the loss, if they hold in both
    orders (as Zhu, Wang 2019; the proof is in `sfumato.privacy.accountant.sampled_renyi`).

    Pure DP: :math:`\log(1 + q(e^\epsilon - 1))`; a mass delta becomes :math:`q\delta` (Kasiviswanathan et
    al. 2011; Balle, Barthe, Gaboardi 2018).

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> step = PoissonSubsampled(Gaussian(1.0), sampling_probability=0.01)
    >>> lower, upper, tight = (step * 10_000).epsilon_interval(1e-5)
    >>> lower < 6.187712 < upper < 6.194 and tight
    True
    """

    loss: PrivacyLoss
    sampling_probability: float

    def __post_init__(self) -> None:
        self._set_part("loss", self.loss)
        check_absent(self.loss)
        remedy = "pass the chance that one unit is drawn"
        probability = _check.share("sampling_probability", self.sampling_probability, remedy)
        self._set("sampling_probability", probability)

    @property
    def neighboring(self) -> Relation:
        """Add/remove or zero-out, as of the loss."""
        return self.loss.neighboring or Neighboring.ADD_REMOVE

    def dominating_pair(self) -> Pair:
        """Return the mixture of the base's pair with its second distribution.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        q = self.sampling_probability
        if q == 0:
            return no_loss()
        base = self.loss.dominating_pair()
        return base if q == 1 else SubsampledPair(base, q)

    numeric = True
    """Always."""

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return bounds on the divergences of the dominating pair, or from those of a loss without one.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        try:
            pair = self.dominating_pair()
        except UnsupportedView:
            q = self.sampling_probability
            whole = self.loss.rdp_curve
            return whole(orders) if q == 1 else sampled_renyi(whole, q, orders)
        return renyi(pair, orders)

    def pure(self) -> PureView:
        """Return the amplified epsilon, and the mass times the probability.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        q = self.sampling_probability
        return amplified(self.loss.pure(), q) if q > 0 else PureView(0.0, 0.0)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        if steps == 2 and relation is Neighboring.REPLACE_ONE and isinstance(self.loss, Gaussian):
            return PoissonReplaceOne(self.loss, self.sampling_probability)
        return GroupPrivacy(self, steps, neighboring=relation)


def check_absent(loss: PrivacyLoss) -> None:
    """Refuse a loss under a relation in which no neighbor is without the unit.

    Raises
    ------
    NeighboringMismatch
        If the loss is neither under add/remove nor under zero-out.
    """
    if loss.neighboring not in (Neighboring.ADD_REMOVE, Neighboring.ZERO_OUT):
        raise NeighboringMismatch(
            f"loss must be under add/remove or zero-out, got {loss.neighboring}; a unit that is drawn at "
            "random is hidden among samples without it: state the loss of the mechanism under one of these"
        )


def amplified(view: PureView, q: float) -> PureView:
    """Return what holds of a sample in which each unit is with a positive probability ``q``."""
    epsilon, delta = view
    if q == 1 or math.isinf(epsilon):
        return PureView(epsilon, delta)
    log_odds = log1p_up(mul_up(q, expm1_up(epsilon))) if epsilon < 700 else epsilon
    return PureView(min(epsilon, above(log_odds)), mul_up(q, delta))
