"""What samples of a fixed number of units share, with and without replacement."""

from __future__ import annotations

from sfumato.errors import NeighboringMismatch
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.pairs.derived import one_run
from sfumato.privacy.pairs.profile import log_profile

__all__ = ["SampledNode"]


class SampledNode(Node):
    """A mechanism that ran on a sample of a public number of units, of a public number: replace-one."""

    __slots__ = ()

    loss: PrivacyLoss

    @property
    def neighboring(self) -> Neighboring:
        """Replace-one."""
        return Neighboring.REPLACE_ONE

    def log_profile(self, epsilon: float) -> float:
        """Return that of the pair."""
        return max(log_profile(law, epsilon) for law in one_run(self))

    def _check_loss(self) -> None:
        self._set_part("loss", self.loss)
        if self.loss.neighboring is not Neighboring.REPLACE_ONE:
            raise NeighboringMismatch(
                f"loss must be under replace-one, got {self.loss.neighboring}; a sample of fixed size is "
                "priced under that relation only: state the loss of the mechanism under it"
            )
