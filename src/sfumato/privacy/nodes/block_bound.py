"""One block of a longer bound, as it appears in a composition; not a mechanism by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring, Relation
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["BlockBound"]


@final
@serialized_as("block-bound", loss=LOSS)
@dataclass(frozen=True, slots=True, repr=False)
class BlockBound(Node):
    """One of several blocks whose composition bounds a run; `RandomAllocation` and others make it.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the block, if it were run by itself.

    Notes
    -----
    Guarantee: an upper bound (``tight`` is False), and only of all blocks together: a block is no mechanism,
    so it has no loss for groups of units, nor under another relation.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, RandomAllocation
    >>> RandomAllocation(Gaussian(1.0), steps=40, selected=2) * 1 == BlockBound(
    ...     RandomAllocation(Gaussian(1.0), steps=20)
    ... ) * 2
    True
    """

    loss: PrivacyLoss

    def __post_init__(self) -> None:
        self._set_part("loss", self.loss)

    @property
    def neighboring(self) -> Relation | None:
        """The block's."""
        return self.loss.neighboring

    @property
    def numeric(self) -> bool:
        """Whether the block's is."""
        return self.loss.numeric

    def dominating_pair(self) -> Pair:
        """Return the block's, as one that only dominates.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return LoosePair(self.loss.dominating_pair())

    def split(self) -> tuple[float, closed_forms.Terms]:
        """Return the block's.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : sequence of (PrivacyLoss, int)
            What runs otherwise, each part with its count.
        """
        return self.loss.split()

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the block's.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        return self.loss.rdp_curve(orders)

    def zcdp(self) -> ZCDPView:
        """Return the block's.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return self.loss.zcdp()

    def gdp(self) -> GDPView:
        """Return the block's.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        return self.loss.gdp()

    def pure(self) -> PureView:
        """Return the block's.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return self.loss.pure()

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return self._missing(f"group or {relation}")
