"""Poisson subsampling of records when one unit may own several of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER, NUMBER
from sfumato.numerics.rounding import exp_up, mul_up
from sfumato.privacy._outward import above, sum_above, times_above
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring, Relation
from sfumato.privacy.nodes._sampled import drawn_several, tells_all
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.pairs.group_privacy import MAX_STEPS
from sfumato.privacy.pairs.pair import Pair, no_loss
from sfumato.privacy.pairs.sampling.subsampled import SubsampledPair
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import PureView

__all__ = ["PoissonRecords"]

_MAXIMUM: Final = 1000


@runtime_checkable
class _Several(Protocol):
    """A mechanism that knows the pair of records that are drawn one by one."""

    def drawn_records(self, records: int, sampling_probability: float) -> Pair:
        """Return the pair of ``records`` records, each in the sample with one probability, against none."""


@final
@serialized_as("poisson-records", loss=LOSS, sampling_probability=NUMBER, records=INTEGER)
@dataclass(frozen=True, slots=True, repr=False)
class PoissonRecords(Node):
    r"""A mechanism that ran on a Poisson sample of records, of which one unit owns several.

    Where a unit is drawn with all its records or with none, the sample is one of units: that is
    ``PoissonSubsampled(loss.group(records), q)``.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism on its sample when one *record* is added or removed: one leaf or node with a
        dominating pair, under add/remove; or when its records are zeroed out, under zero-out.
    sampling_probability : float
        With which each record is in the sample, independently of all others; in [0, 1].
    records : int
        How many records one unit has at most, from 1 to 1000 for `Gaussian`, and to 100 for all others.

    Notes
    -----
    Guarantee: add/remove of one unit with all its records; also of any ``records`` units of one record; or
    zero-out of these, as in `PoissonSubsampled`.
    Conditions: the sample is drawn anew for each run; a unit's records are bounded before it is drawn. Fix
    which of the other records are drawn (joint convexity). Let T be the set of the unit's records that are
    drawn, and J its size, binomial of k and q.

    `Gaussian`: tight, the pair :math:`\sum_j P(J = j)\,N(j\mu, 1)` against :math:`N(0, 1)`. *Proof.* Without
    the unit the answer is :math:`N(0, I)`, in units of the noise and seen from its mean; with it, it is the
    mixture of :math:`N(v_T, I)`, where :math:`\|v_T\| \le |T|\mu` (one record after the other). The ratio of
    the densities under the first is :math:`W = \sum_T p_T e^{X_T - E X_T^2/2}` with :math:`X_T = \langle v_T,
    X \rangle` normal; that of the pair is the same of :math:`Y_T = |T|\mu Y`. As :math:`E X_S X_T \le \|v_S\|
    \|v_T\| \le E Y_S Y_T`, every convex function of W has at most the mean for the mechanism that
    it has for the pair (Kahane 1986): along :math:`\sqrt{1-t}\,X_T + \sqrt{t}\,Y_T`, X and Y independent, the
    derivative of :math:`E F(W)` by t is :math:`\frac12 \sum_{S,T} (E Y_S Y_T - E X_S X_T)\,E F''(W) W_S W_T
    \ge 0`, :math:`W_T` being the terms of W (integration by parts, F smooth and bounded by a line).
    Divergences of both orders are such means. Fewer records are some with :math:`v = 0`. A sum in which all
    of a unit's records point in one direction attains it.

    Losses that are bounded: the records are added one after the other, each to a Poisson sample, so that the
    loss is that of ``PoissonSubsampled(loss, q).group(records)``. An upper bound, often a close one.

    All others: with probability :math:`1 - (1-q)^k` the unit is in the sample, and a group of J differs; J is
    revealed. An upper bound, Zhu, Dong, Wang (2022), Theorem 11, for the mixture of the groups' pairs.

    Pure DP: as for a group of k that is sampled, :math:`k \log(1 + q(e^\epsilon - 1))`: the mean of
    :math:`e^{J\epsilon}` is :math:`(1 + q(e^\epsilon - 1))^k`, and that of the groups' masses is as in
    `GroupPrivacy`. (In the other order the mean of :math:`e^{-J\epsilon}` divides, and Chebyshev's inequality
    for sums bounds the mass.)

    References
    ----------
    Kahane (1986), "Une inégalité du type de Slepian et Gordon sur les processus gaussiens". Mixtures of
    Gaussians: Choquette-Choo, Ganesh, Steinke, Thakurta (2024), "Privacy amplification for matrix
    mechanisms", and Charles et al. (2024), "Fine-tuning large language models with user-level differential
    privacy".

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> step = PoissonRecords(Gaussian(4.0), sampling_probability=0.01, records=8)
    >>> together = PoissonSubsampled(Gaussian(4.0).group(8), sampling_probability=0.01)
    >>> round((step * 1000).epsilon(1e-6), 3), round((together * 1000).epsilon(1e-6), 3)
    (3.031, 15.488)
    """

    loss: PrivacyLoss
    sampling_probability: float
    records: int

    def __post_init__(self) -> None:
        self._set("sampling_probability", self._of_one.sampling_probability)
        self._set_integers("records", remedy="pass how many records one unit may own")
        limit = _MAXIMUM if isinstance(self.loss, _Several) else MAX_STEPS
        if self.records > limit:
            remedy = "bound how many records of one unit are retained"
            _check.refuse("records", f"be at most {limit} for this loss", self.records, remedy)

    @property
    def neighboring(self) -> Relation:
        """Add/remove or zero-out, as of the loss."""
        return self._of_one.neighboring

    @property
    def _of_one(self) -> PoissonSubsampled:
        return PoissonSubsampled(self.loss, self.sampling_probability)

    def dominating_pair(self) -> Pair:
        """Return the mixture of normal distributions, the chain of single records, or the groups' mixture.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        q, records = self.sampling_probability, self.records
        if q == 0:
            return no_loss()
        if q == 1 or records == 1:
            return PoissonSubsampled(self.loss.group(records), q).dominating_pair()
        if isinstance(self.loss, _Several):
            return self.loss.drawn_records(records, q)
        if math.isfinite(self._of_one.dominating_pair().supremum):
            return self._of_one.group(records).dominating_pair()
        mixed, drawn = drawn_several(self.loss, records, q / (1 - q))
        chance = above(drawn, 64.0)
        return SubsampledPair(LoosePair(mixed), chance) if chance < 1 else LoosePair(mixed)

    numeric = True
    """Always."""

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return bounds on the divergences of the dominating pair, where no loss of it is infinite.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        pair = self.dominating_pair()
        return self._missing("rdp", orders) if tells_all(pair) else renyi(pair, orders)

    def pure(self) -> PureView:
        """Return what a group loses of which each is sampled.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        epsilon, delta = self._of_one.pure()
        whole = times_above(self.records, epsilon)
        if math.isinf(whole) or delta == 0:
            return PureView(whole, delta)
        terms = (exp_up(times_above(i, epsilon)) for i in range(self.records))
        return PureView(whole, min(1.0, mul_up(delta, sum_above(terms))))

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        if relation is self.neighboring:
            return PoissonRecords(self.loss, self.sampling_probability, self.records * steps)
        return Node._chained(self, steps, relation)  # noqa: SLF001
