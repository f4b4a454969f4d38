"""Poisson subsampling with a cap on the size of the sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from sfumato._wire import INTEGER, NUMBER
from sfumato.numerics.rounding import exp_up, mul_up
from sfumato.privacy._outward import UNIT, above, sum_above
from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Relation
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.wrapped import FailureMassPair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import PureView

__all__ = ["TruncatedPoisson"]


@final
@serialized_as(
    "truncated-poisson", loss=LOSS, sampling_probability=NUMBER, sample_size=INTEGER, population_size=INTEGER
)
@dataclass(frozen=True, slots=True, repr=False)
class TruncatedPoisson(Node):
    r"""A mechanism that ran on a Poisson sample, of which no more than so many units were retained.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism on its sample, under add/remove or zero-out.
    sampling_probability : float
        With which each unit is drawn, independently of all others; in [0, 1].
    sample_size : int
        How many remain at most, by a rule that sees the sample only.
    population_size : int
        A public bound on the number of units.

    Notes
    -----
    Guarantee: add/remove or zero-out, an upper bound (``tight`` is False). Proof: let K of the other units be
    drawn, at least ``sample_size`` with a probability of at most :math:`\tau`. If K is smaller, nothing is
    cut off with or without the unit, and whatever the others are, the pair of `PoissonSubsampled` dominates.
    Otherwise the two runs differ only if the unit is drawn: let everything be revealed then, with probability
    q. So the divergence is at most
    :math:`(1-\tau) H(s) + \tau(q + (1-q)(1-s)_+) \le \tau q + (1 - \tau q) H(s)`, as
    :math:`H(s) \ge (1-s)_+`: a mass :math:`\tau q` is parted off. Zero-out, as in `PoissonSubsampled`: the
    same, for a neutral unit is cut off or retained as any other at its position is. By Chernoff,
    :math:`\tau \le e^{-N D(B/N \| q)}` for B retained of N others.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, PoissonSubsampled
    >>> run = TruncatedPoisson(Gaussian(1.0), 0.01, sample_size=250, population_size=10_000) * 1000
    >>> run.epsilon(1e-6) < (PoissonSubsampled(Gaussian(1.0), 0.01) * 1000).epsilon(1e-6) * 1.001
    True
    """

    loss: PrivacyLoss
    sampling_probability: float
    sample_size: int
    population_size: int

    def __post_init__(self) -> None:
        self._set("sampling_probability", self._untruncated.sampling_probability)
        self._set_integers("sample_size", "population_size")

    @property
    def neighboring(self) -> Relation:
        """Add/remove or zero-out, as of the loss."""
        return self._untruncated.neighboring

    @property
    def _untruncated(self) -> PoissonSubsampled:
        return PoissonSubsampled(self.loss, self.sampling_probability)

    @property
    def _mass(self) -> float:
        """The chance that the unit is drawn into a sample that is full without it, rounded up."""
        q, retained, others = self.sampling_probability, self.sample_size, self.population_size - 1
        if retained > others or q == 0:
            return 0.0
        fraction = retained / others
        if fraction <= q:
            return q
        left = (1 - fraction) * math.log((1 - fraction) / (1 - q)) if retained < others else 0.0
        slack = 64 * UNIT * (1 + abs(math.log(q)) + abs(left))
        return min(q, mul_up(q, exp_up(above(-others * (fraction * math.log(fraction / q) + left - slack)))))

    def dominating_pair(self) -> Pair:
        """Return the pair without truncation, and the mass.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        mass = self._mass
        return (
            FailureMassPair(self._untruncated.dominating_pair(), mass) if mass < 1 else two_points(math.inf)
        )

    def split(self) -> tuple[float, closed_forms.Terms]:
        """Return the mass, and what ran otherwise.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : sequence of (PrivacyLoss, int)
            What runs otherwise, each part with its count.
        """
        return self._mass, ((self._untruncated, 1),)

    def pure(self) -> PureView:
        """Return that without truncation, with the mass.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        epsilon, delta = self._untruncated.pure()
        return PureView(epsilon, min(1.0, sum_above([delta, self._mass])))
