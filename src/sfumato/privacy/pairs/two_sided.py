"""A pair discretised twice: once for lower and once for upper bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import final

import numpy as np

from sfumato.privacy.pairs.bins import NO_ATOMS, Bins
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss

__all__ = ["TwoSidedPair"]

_NOTHING = Bins(NO_ATOMS, np.zeros(0), np.zeros(0))


@final
@dataclass(frozen=True, slots=True)
class TwoSidedPair(Bins):
    """Bins from above, and beside them bins from below.

    Parameters
    ----------
    below : Bins
        Read by `merged`; everything else reads the bins from above.
    """

    below: Bins = field(default_factory=lambda: _NOTHING)

    @classmethod
    def of(cls, below: Bins, above: Bins) -> TwoSidedPair:
        """Return what two cuts of one pair say together, each about its own side."""
        return cls(**{f.name: getattr(above, f.name) for f in fields(Bins)}, below=below)

    @property
    def above(self) -> Bins:
        """The bins from above, alone."""
        return Bins(**{f.name: getattr(self, f.name) for f in fields(Bins)})

    def swapped(self) -> Bins:
        """Return the pair (Q, P)."""
        return TwoSidedPair.of(self.below.swapped(), self.above.swapped())

    def mixed(self, q: float) -> Bins:
        """Return the pair ((1 - q) Q + q P, Q), for q in (0, 1)."""
        return TwoSidedPair.of(self.below.mixed(q), self.above.mixed(q))

    def merged(self) -> DiscreteLoss:
        """Return a distribution from below."""
        return self.below.merged()
