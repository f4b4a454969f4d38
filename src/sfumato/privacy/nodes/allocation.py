"""Random allocation: each unit takes part in some of the steps, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato._wire import INTEGER
from sfumato.privacy.loss import PrivacyLoss, Term
from sfumato.privacy.nodes._allocated import AllocatedNode
from sfumato.privacy.nodes.block_bound import BlockBound
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.sampling.allocation import AllocationPair
from sfumato.privacy.serialization import LOSS, serialized_as

__all__ = ["RandomAllocation"]


@final
@serialized_as("random-allocation", loss=LOSS, steps=INTEGER, selected=INTEGER)
@dataclass(frozen=True, slots=True, repr=False)
class RandomAllocation(AllocatedNode):
    r"""Steps of a mechanism, in each of which run those units that were allocated to it.

    Parameters
    ----------
    loss : PrivacyLoss
        Of one step on its units, under add/remove or zero-out: one leaf or node with a dominating pair.
    steps : int
        At least 1.
    selected : int
        In how many of the steps each unit takes part; from 1 to ``steps``.

    Notes
    -----
    Guarantee: add/remove or zero-out. Conditions: the steps of each unit are drawn uniformly, independently
    of the other units and of the data, and stay secret; all answers may be seen, and each step may depend on
    those before it. A loader that cuts one shuffled list into batches of equal size is something else: there
    one unit's absence moves all others. Several epochs with a fresh allocation each are
    ``RandomAllocation(...) * epochs``; with one allocation for all of them, `BallsInBins`.

    One of t: with the unit, all steps together have the ratio :math:`(R_1 + \dots + R_t)/t` to what they are
    without it. Tight: the two distributions are those of two neighbors if those of a step are.

    k of t: an upper bound (``tight`` is False), the composition of k allocations of one step of :math:`t/k`
    each (Feldman and Shenfeld 2025). Proof: let a random order of the steps be cut into k blocks of lengths
    that differ by at most 1, and draw one step from each. All sets of k steps are equally likely then. The
    divergences are jointly convex, so that they are at most those for the worst order; there the blocks are
    independent.

    The notions without a pair (`pure`, `zcdp`, `gdp`) are those of a unit whose steps are known, by the same
    convexity: no step hides the largest loss, as all may show it at once.

    Proofs: ``docs/proofs/allocation.md``.

    References
    ----------
    Feldman, Shenfeld (2025), "Privacy amplification by random allocation".

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, PoissonSubsampled
    >>> run = RandomAllocation(Gaussian(1.0), steps=100)
    >>> 0.6085 < run.epsilon(1e-5) < 0.6357
    True
    >>> run.epsilon(1e-6) < (PoissonSubsampled(Gaussian(1.0), 0.01) * 100).epsilon(1e-6)
    True
    """

    loss: PrivacyLoss
    steps: int
    selected: int = 1

    def __post_init__(self) -> None:
        self._check_loss()
        self._set_integers("steps", "selected")
        if self.selected > self.steps:
            _check.refuse("selected", "be at most steps", self.selected, "a unit takes part once in a step")

    @property
    def blocks(self) -> tuple[Term, ...]:
        """One allocation for each selected step; the steps themselves if all are selected."""
        if self.selected == 1:
            return ()
        if self.selected == self.steps:
            return ((self.loss, self.selected),)
        length, longer = divmod(self.steps, self.selected)
        sizes = ((length + 1, longer), (length, self.selected - longer))
        return tuple((BlockBound(RandomAllocation(self.loss, size)), count) for size, count in sizes if count)

    @property
    def _worst(self) -> tuple[Term, ...]:
        return ((self.loss, 1),)

    def _pair(self, *, whole: bool) -> Pair:
        base = self.loss.dominating_pair()
        return base if self.steps == 1 else AllocationPair(base, self.steps, whole=whole)
