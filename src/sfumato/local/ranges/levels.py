"""What protocols share whose reports are about one level of a tree, drawn by chance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.base.sampled_question import CountedPart, SampledQuestionProtocol
from sfumato.local.base.simulated_counts import SimulatedCounts
from sfumato.local.device.ranges.levels import LevelsRandomizer
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.mixture import Mixture

__all__ = ["Level", "LevelsProtocol"]

Device = TypeVar("Device", bound=LevelsRandomizer)
Result = TypeVar("Result")


class Level(CountedPart, Protocol):
    """What one level's reports add up to, and what they cost."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Of a report about this level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsProtocol(
    SampledQuestionProtocol, SimulatedCounts[Result], LocalProtocol[Device, Result], Generic[Device, Result]
):
    """A protocol whose reports are about one level each.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of each report, from above 0 to 40.
    weights : tuple of float, optional
        How likely each level is drawn, in proportion; all alike if left out.

    Attributes
    ----------
    device : LevelsRandomizer
        The client half, which a device makes again from ``device.specification()``.
    """

    epsilon: float
    weights: tuple[float, ...] | None = None
    device: Device = field(init=False, repr=False, compare=False)

    levels: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    @abstractmethod
    def _levels(self) -> tuple[Any, ...]:
        """Check the parameters and return what is counted of each level, the coarsest first."""

    def _make(self) -> Device:
        self._set(levels=self._levels())
        return self._client(protocols=tuple(level.device.wire_name for level in self.levels))

    @property
    def counted(self) -> Sequence[Level]:
        """The levels that are reported, the coarsest first."""
        return self.levels

    @property
    def _categories(self) -> int:
        return len(self.device.domain)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """One of the levels' losses, drawn as levels are, publicly; a single one if all agree."""
        losses: list[PrivacyLoss] = []
        chances: list[float] = []
        for level, chance in zip(self.counted, self.device.chances, strict=True):
            loss = level.privacy_loss
            if loss in losses:
                chances[losses.index(loss)] += float(chance)
            else:
                losses.append(loss)
                chances.append(float(chance))
        return losses[0] if len(losses) == 1 else Mixture(tuple(losses), tuple(chances), index_public=True)

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return self._simulated(np.arange(len(counts)), counts, generator)
