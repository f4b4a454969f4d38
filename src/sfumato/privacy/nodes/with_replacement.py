"""Sampling with replacement: a unit may be drawn several times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato._wire import INTEGER
from sfumato.privacy._outward import above
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes._sampled import SampledNode, drawn_several
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.sampling.without_replacement import WithoutReplacementPair
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import LOSS, serialized_as

__all__ = ["SampledWithReplacement"]


@final
@serialized_as("sampled-with-replacement", loss=LOSS, sample_size=INTEGER, population_size=INTEGER)
@dataclass(frozen=True, slots=True, repr=False)
class SampledWithReplacement(SampledNode):
    r"""A mechanism that ran on a fixed number of independent draws; the sample stays secret.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism on its sample, under replace-one: one leaf or node with a dominating pair.
    sample_size : int
        Number of draws, at least 1, each uniform over all units.
    population_size : int
        Number of units in all, at least 2; public.

    Notes
    -----
    Guarantee: replace-one, an upper bound (``tight`` is False). Conditions: the draws are made anew for each
    run, independently of the data.

    Balle, Barthe, Gaboardi (2018), sampling with replacement: with :math:`\eta = 1 - (1 - 1/n)^m` and
    :math:`s' = 1 + \eta(s - 1)`, the divergence at :math:`s' \ge 1` is at most :math:`\eta` times the mean,
    over the number J of times that a unit is drawn if it is, of the mechanism's at s between samples that
    differ in J positions. Proof: as for `FixedSizeSampled`, where the samples with the unit are drawn
    together with those of the other dataset, or with those without it, so that J draws are replaced. For J
    positions the pair is that of ``loss.group(J)``. More than 100 positions, or what has a probability of
    less than 1e-25, is counted as a total loss (of a pure loss, as all positions).

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Neighboring
    >>> base = Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> sampled = SampledWithReplacement(base, sample_size=100, population_size=10_000)
    >>> sampled.epsilon(1e-6) < base.epsilon(1e-6)
    True
    """

    loss: PrivacyLoss
    sample_size: int
    population_size: int

    def __post_init__(self) -> None:
        self._check_loss()
        self._set_integers("sample_size", remedy="pass how many units a sample has")
        remedy = "of one unit every draw is the same"
        self._set_integers("population_size", minimum=2, remedy=remedy)

    def dominating_pair(self) -> Pair:
        """Return the symmetric pair of what the theorem says.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        mixed, drawn = drawn_several(self.loss, self.sample_size, 1 / (self.population_size - 1))
        chance = above(drawn, 64.0)
        return WithoutReplacementPair(mixed, chance) if chance < 1 else LoosePair(mixed)
