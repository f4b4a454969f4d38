"""Sampling a fixed number of units without replacement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato._wire import INTEGER
from sfumato.privacy._outward import above
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes._sampled import SampledNode
from sfumato.privacy.nodes.poisson import amplified
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.sampling.without_replacement import WithoutReplacementPair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import PureView

__all__ = ["FixedSizeSampled"]


@final
@serialized_as("fixed-size-sampled", loss=LOSS, sample_size=INTEGER, population_size=INTEGER)
@dataclass(frozen=True, slots=True, repr=False)
class FixedSizeSampled(SampledNode):
    r"""A mechanism that ran on a fixed number of units, drawn without replacement; the sample stays secret.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism on its sample, under replace-one: one leaf or node with a dominating pair.
    sample_size : int
        Number of units drawn, at least 1; all sets of that size are equally likely.
    population_size : int
        Number of units in all; public.

    Notes
    -----
    Guarantee: replace-one, an upper bound (``tight`` is False). Conditions: the sample is drawn anew for each
    run, independently of the data.

    Balle, Barthe, Gaboardi (2018), sampling without replacement: with :math:`q = m/n` and :math:`s' = 1 + q(s
    - 1)`, the divergence at :math:`s' \ge 1` is at most q times the mechanism's at s. Proof: let
    :math:`\mu_0` be the distribution of the output given that the changed unit is not drawn, :math:`\mu_1`
    and :math:`\mu_1'` those given that it is. With :math:`\beta = s'/s`,

    .. math:: (1-q)\mu_0 + q\mu_1 - s'((1-q)\mu_0 + q\mu_1') = q(\mu_1 - s((1-\beta)\mu_0 + \beta\mu_1')),

    so the divergence is at most q times the mean, by :math:`1 - \beta` and :math:`\beta`, of those of
    :math:`\mu_1` from :math:`\mu_0` and from :math:`\mu_1'`. In both cases the samples can be drawn together
    so that they differ in one replaced unit. What is below :math:`s' = 1` follows by exchanging the datasets.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Neighboring
    >>> base = Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> FixedSizeSampled(base, sample_size=100, population_size=10_000).epsilon(1e-6) < base.epsilon(1e-6)
    True
    """

    loss: PrivacyLoss
    sample_size: int
    population_size: int

    def __post_init__(self) -> None:
        self._check_loss()
        self._set_integers("sample_size", "population_size")
        if self.sample_size > self.population_size:
            remedy = "without replacement a sample is no larger than the population"
            _check.refuse("sample_size", "be at most population_size", self.sample_size, remedy)

    @property
    def _share(self) -> float:
        exact = self.sample_size == self.population_size
        return 1.0 if exact else min(1.0, above(self.sample_size / self.population_size))

    def dominating_pair(self) -> Pair:
        """Return the symmetric pair of what the theorem says.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        base, q = self.loss.dominating_pair(), self._share
        return base if q == 1 else WithoutReplacementPair(base, q)

    def pure(self) -> PureView:
        """Return the amplified epsilon, and the mass times the proportion that is drawn.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return amplified(self.loss.pure(), self._share)
