"""Post-processing: any function of an answer that does not look at the data again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Relation
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import LoosePair
from sfumato.privacy.serialization import LOSS, serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["PostProcessed", "UpperBound"]


class UpperBound(Node):
    """A part's own views, as upper bounds; common base of what can only lose less than its part."""

    __slots__ = ()

    loss: PrivacyLoss

    def __post_init__(self) -> None:
        self._set_part("loss", self.loss)

    @property
    def neighboring(self) -> Relation | None:
        """The part's."""
        return self.loss.neighboring

    @property
    def numeric(self) -> bool:
        """Whether the part's is."""
        return self.loss.numeric

    def dominating_pair(self) -> Pair:
        """Return the part's, as one that only dominates.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return LoosePair(self.loss.dominating_pair())

    def split(self) -> tuple[float, closed_forms.Terms]:
        """Return the part's.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : sequence of (PrivacyLoss, int)
            What runs otherwise, each part with its count.
        """
        return self.loss.split()

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the part's.

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
        """Return the part's.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return self.loss.zcdp()

    def gdp(self) -> GDPView:
        """Return the part's.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        return self.loss.gdp()

    def pure(self) -> PureView:
        """Return the part's.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return self.loss.pure()


@final
@serialized_as("post-processed", loss=LOSS)
@dataclass(frozen=True, slots=True, repr=False)
class PostProcessed(UpperBound):
    """A mechanism of whose output only a function is shown.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism.

    Notes
    -----
    Guarantee: that of the mechanism, under its relation, as an upper bound (``tight`` is False): every
    hockey-stick and every Rényi divergence can only fall when both distributions go through the same channel
    (data processing; Dwork and Roth 2014, Proposition 2.1).

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> PostProcessed(Gaussian(1.0)).epsilon_interval(1e-6).lower
    0.0
    """

    _any_relation = True

    loss: PrivacyLoss

    def log_profile(self, epsilon: float) -> float:
        """Return the mechanism's.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        return self.loss.log_profile(epsilon)
