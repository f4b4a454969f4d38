"""Balls in bins: each unit is thrown into one batch, which comes again in every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato._wire import INTEGER
from sfumato.numerics.rounding import mul_up, sqrt_up
from sfumato.privacy.loss import PrivacyLoss, Term
from sfumato.privacy.nodes._allocated import AllocatedNode
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.sampling.allocation import AllocationPair
from sfumato.privacy.serialization import LOSS, serialized_as

__all__ = ["BallsInBins"]


@final
@serialized_as("balls-in-bins", loss=LOSS, bins=INTEGER, epochs=INTEGER)
@dataclass(frozen=True, slots=True, repr=False)
class BallsInBins(AllocatedNode):
    r"""Steps of a mechanism on batches into which the units were thrown once, for all epochs.

    Parameters
    ----------
    loss : PrivacyLoss
        Of one step on its batch, under add/remove or zero-out: one leaf or node with a dominating pair.
    bins : int
        Number of batches, which is that of the steps in an epoch; at least 1.
    epochs : int
        How often each batch is used.

    Notes
    -----
    Guarantee: add/remove or zero-out; tight if the pair of a step is. Conditions: each unit's bin is drawn
    uniformly, independently of the other units and of the data, and stays secret, and the noise of all steps
    is independent. Correlated noise (matrix mechanisms) is not priced here. With a fresh draw in each epoch
    the run is ``RandomAllocation(loss, bins) * epochs``, which hides more.

    The steps on one bin are as if run together: with their ratio :math:`R_b`, a product over the epochs, all
    steps have the ratio :math:`(R_1 + \dots + R_n)/n`, as for `RandomAllocation`. Gaussian steps on one bin
    are one Gaussian step with the noise divided by the root of the epochs.

    References
    ----------
    Chua et al. (2024), "Balls-and-bins sampling for DP-SGD"; Choquette-Choo et al. (2024), "Near exact
    privacy amplification for matrix mechanisms".

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, RandomAllocation
    >>> fixed = BallsInBins(Gaussian(2.0), bins=50, epochs=4)
    >>> fixed.epsilon(1e-6) > (RandomAllocation(Gaussian(2.0), 50) * 4).epsilon(1e-6)
    True
    """

    loss: PrivacyLoss
    bins: int
    epochs: int = 1

    def __post_init__(self) -> None:
        self._check_loss()
        self._set_integers("bins", "epochs")

    @property
    def blocks(self) -> tuple[Term, ...]:
        """All epochs of the one bin if there is only one."""
        return ((self.loss, self.epochs),) if self.bins == 1 and self.epochs > 1 else ()

    @property
    def _worst(self) -> tuple[Term, ...]:
        return ((self.loss, self.epochs),)

    def _pair(self, *, whole: bool) -> Pair:
        base, epochs = self.loss.dominating_pair(), self.epochs
        if self.bins == 1:
            return base
        if base.variance and epochs > 1:
            base, epochs = NormalPair(sqrt_up(mul_up(base.variance, float(epochs)))), 1
        return AllocationPair(base, self.bins, runs=epochs, whole=whole)
