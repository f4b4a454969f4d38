"""Common base of the shuffle model: the report of one client, mixed with other reports."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.views import PureView

__all__ = ["ShuffleModelNode"]


class ShuffleModelNode(Node):
    """A report of a local randomizer among others: replace-one, by one pair that is symmetric."""

    __slots__ = ()

    loss: PrivacyLoss

    def _check_report(self) -> None:
        """Check that the loss is that of one report, whatever its client's datum is replaced by."""
        given: object = self.loss
        if not isinstance(given, PrivacyLoss):
            remedy = "pass that of one report; it may be composed of several parts"
            _check.refuse_type("loss", "be a PrivacyLoss", given, remedy)
        if self.loss.neighboring is not Neighboring.REPLACE_ONE:
            raise NeighboringMismatch(
                f"loss must be under replace-one, got {self.loss.neighboring}; state what the local "
                "randomizer promises for any two data of its one client: neighboring=Neighboring.REPLACE_ONE"
            )

    @property
    def neighboring(self) -> Neighboring:
        """Replace-one."""
        return Neighboring.REPLACE_ONE

    numeric = True
    """Always."""

    def pure(self) -> PureView:
        """Return what the report alone promises: who sees it among others learns no more."""
        return self.loss.pure()

    def log_profile(self, epsilon: float) -> float:
        """Return that of the pair."""
        pair = self.dominating_pair()
        return pair.bins(pair.cuts(0.0), swapped=False).split().log_profile(epsilon)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return bounds on the divergences of the dominating pair."""
        return renyi(self.dominating_pair(), orders)

    @abstractmethod
    def dominating_pair(self) -> Pair:
        """Return the pair of all reports together."""
