"""One block of a longer bound, as it appears in a composition; not a mechanism by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.post_processed import UpperBound
from sfumato.privacy.serialization import LOSS, serialized_as

__all__ = ["BlockBound"]


@final
@serialized_as("block-bound", loss=LOSS)
@dataclass(frozen=True, slots=True, repr=False)
class BlockBound(UpperBound):
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

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return self._missing(f"group or {relation}")
