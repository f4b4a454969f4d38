"""Common base of the nodes in which a unit takes part in randomly drawn steps."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UnsupportedView
from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss, Term
from sfumato.privacy.neighboring import Neighboring, Relation
from sfumato.privacy.nodes.poisson import check_absent
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["AllocatedNode"]


class AllocatedNode(Node):
    """Steps of one mechanism, in some of which a unit takes part: add/remove or zero-out.

    Under zero-out the neutral unit must leave a step's output as it is without it, as in `PoissonSubsampled`:
    then a run with the neutral unit has the distribution of one without it, and the pairs are the same.
    The run has a pair of its own, or is bounded by the composition of `blocks`.
    """

    __slots__ = ()

    loss: PrivacyLoss

    @property
    def neighboring(self) -> Relation:
        """Add/remove or zero-out, as of the loss."""
        return self.loss.neighboring or Neighboring.ADD_REMOVE

    numeric = True
    """Always."""

    @property
    @abstractmethod
    def blocks(self) -> tuple[Term, ...]:
        """What is composed to bound the run; nothing if it has a pair of its own."""

    @property
    @abstractmethod
    def _worst(self) -> tuple[Term, ...]:
        """What was run if it were known when the unit took part, where there are no blocks."""

    @abstractmethod
    def _pair(self, *, whole: bool) -> Pair:
        """Return the pair of a run without blocks; see `AllocationPair` for ``whole``."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The blocks with their counts, or the run."""
        return self.blocks or ((self, 1),)

    def dominating_pair(self) -> Pair:
        """Return the pair of the random steps, where one pair determines all."""
        return self._missing("single dominating pair") if self.blocks else _pair(self, whole=False)

    def pure(self) -> PureView:
        """Return that of the blocks, or of a unit whose steps are known."""
        return closed_forms.pure(self.blocks or self._worst)

    def zcdp(self) -> ZCDPView:
        """Return that of the blocks, or of a unit whose steps are known."""
        return closed_forms.zcdp(self.blocks or self._worst)

    def gdp(self) -> GDPView:
        """Return that of the blocks, or of a unit whose steps are known."""
        return closed_forms.gdp(self.blocks or self._worst)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return that of the blocks, or the smallest that the pair and a unit with known steps say."""
        if self.blocks:
            return closed_forms.rdp(self.blocks, orders)
        try:
            known = closed_forms.rdp(self._worst, orders)
        except UnsupportedView:
            known = np.full(len(orders), np.inf)
        return np.asarray(np.fmin(known, renyi(_pair(self, whole=True), orders)))

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        # Blocks are a bound and no mechanisms: nothing is known of each of them between other neighbors.
        return self._missing(f"group or {relation}") if self.blocks else Node._chained(self, steps, relation)  # noqa: SLF001

    def _check_loss(self) -> None:
        self._set_part("loss", self.loss)
        check_absent(self.loss)


@lru_cache(maxsize=192)
def _pair(node: AllocatedNode, *, whole: bool) -> Pair:
    return node._pair(whole=whole)  # noqa: SLF001 - of this class
