"""Poisson sampling with a minimum separation: a unit rests for some steps after each participation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato._wire import INTEGER, NUMBER
from sfumato.numerics.rounding import expm1_down, log1p_down, mul_down
from sfumato.privacy.loss import PrivacyLoss, Term
from sfumato.privacy.nodes._allocated import AllocatedNode
from sfumato.privacy.nodes.block_bound import BlockBound
from sfumato.privacy.nodes.poisson import PoissonSubsampled, amplified
from sfumato.privacy.pairs.pair import Pair, no_loss
from sfumato.privacy.pairs.sampling.allocation import AllocationPair
from sfumato.privacy.pairs.sampling.subsampled import SubsampledPair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import PureView

__all__ = ["SeparatedPoisson"]


@final
@serialized_as("separated-poisson", loss=LOSS, sampling_probability=NUMBER, separation=INTEGER, steps=INTEGER)
@dataclass(frozen=True, slots=True, repr=False)
class SeparatedPoisson(AllocatedNode):
    r"""Steps of a mechanism on Poisson samples of those units that have rested (b-min-sep sampling).

    Parameters
    ----------
    loss : PrivacyLoss
        Of one step on its sample, under add/remove or zero-out: one leaf or node with a dominating pair.
    sampling_probability : float
        With which a unit that may take part in a step does so; in [0, 1].
    separation : int
        After taking part, a unit may not do so in the next ``separation - 1`` steps; at least 1. With 1 this
        is `PoissonSubsampled`.
    steps : int
        At least 1.

    Notes
    -----
    Guarantee: add/remove or zero-out. Conditions: each unit's steps are drawn independently of the other
    units and of the data, and stay secret; every unit may take part from the first step on; the noise of all
    steps is independent. The sampler is that of banded matrix mechanisms, but their correlated noise is not
    priced here.

    The steps are cut into blocks of ``separation``, in each of which a unit takes part at most once. Tight
    for one block, an upper bound for several. Proof: let the unit first be allowed to take part after o
    steps of the block. Then the block's answers have the distribution of those of a unit without rest in the
    first steps, of which the last o are not looked at: they are dominated by a block without rest. Given what
    was answered before the block, o has some distribution (with the unit), and the divergences are convex. So
    each block is dominated by one without rest, whatever came before, and dominating pairs compose.

    Without rest, a block of b steps has the ratio :math:`(1-p)^b + \sum_i p(1-p)^{i-1} R_i`. Pure DP: that of
    a Poisson sample with probability :math:`1 - (1-p)^b`.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> rested = SeparatedPoisson(Gaussian(1.0), 0.01, separation=10, steps=1000)
    >>> rested.epsilon(1e-6) < (PoissonSubsampled(Gaussian(1.0), 0.01) * 1000).epsilon(1e-6)
    True
    """

    loss: PrivacyLoss
    sampling_probability: float
    separation: int
    steps: int

    def __post_init__(self) -> None:
        self._set(
            "sampling_probability",
            PoissonSubsampled(self.loss, self.sampling_probability).sampling_probability,
        )
        self._set_integers("separation", "steps")

    @property
    def blocks(self) -> tuple[Term, ...]:
        """Blocks as long as the separation, and a shorter one."""
        if self.steps <= self.separation:
            return ()
        if self.sampling_probability == 1:
            return ((self.loss, -(-self.steps // self.separation)),)
        if self.separation == 1:
            return ((PoissonSubsampled(self.loss, self.sampling_probability), self.steps),)
        whole, rest = divmod(self.steps, self.separation)
        return tuple(
            (BlockBound(SeparatedPoisson(self.loss, self.sampling_probability, length, length)), count)
            for length, count in ((self.separation, whole), (rest, 1))
            if length and count
        )

    @property
    def _worst(self) -> tuple[Term, ...]:
        return ((self.loss, 1),) if self.sampling_probability > 0 else ()

    def pure(self) -> PureView:
        """Return that of the blocks, or of a sample with the chance that the unit takes part at all.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        if self.blocks or self.sampling_probability in {0, 1}:
            return AllocatedNode.pure(self)
        missed = expm1_down(mul_down(float(self.steps), log1p_down(-self.sampling_probability)))
        return amplified(self.loss.pure(), min(1.0, -missed))

    def _pair(self, *, whole: bool) -> Pair:
        probability = self.sampling_probability
        if probability == 0:
            return no_loss()
        base = self.loss.dominating_pair()
        if probability == 1:
            return base
        if self.steps == 1:
            return SubsampledPair(base, probability)
        return AllocationPair(base, self.steps, probability=probability, whole=whole)
