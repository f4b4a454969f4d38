"""Correlated noise for sums over clients: a strategy's recurrence on keyed noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sfumato.learning.noise.noise import Noise
from sfumato.mechanisms.factorization.strategy import Strategy

__all__ = ["CorrelatedRounds"]


class CorrelatedRounds:
    """Adds a strategy's noise, round by round: sums over all rounds so far have that of the prefix sums.

    Parameters
    ----------
    strategy : Strategy
    noise : Noise
        What each row of the strategy draws its fresh noise from.
    """

    def __init__(self, strategy: Strategy, noise: Noise) -> None:
        self._stream, self._noise = strategy.noise(), noise
        self._rows = 0

    def add_(self, sums: Sequence[Tensor], stddevs: Sequence[float]) -> None:
        """Add the next round's noise in place.

        Parameters
        ----------
        sums : sequence of Tensor
        stddevs : sequence of float
            Of each tensor's fresh noise; the same in every round.
        """

        def draw() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            fresh = [torch.zeros(part.shape, dtype=torch.float64) for part in sums]
            self._noise.add_(fresh, step=self._rows, stddevs=stddevs)
            self._rows += 1
            return np.concatenate([part.numpy().ravel() for part in fresh])

        sent = torch.from_numpy(np.ascontiguousarray(self._stream.send(draw)))
        for part, noise in zip(sums, sent.split([part.numel() for part in sums]), strict=True):
            part.add_(noise.reshape(part.shape).to(part))
