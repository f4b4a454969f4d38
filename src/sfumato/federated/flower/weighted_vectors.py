"""Model parameters as the integers of a round: weighted, with the weight behind them.

The sum of all clients' vectors gives the weighted mean of their parameters, as FedAvg takes it.

>>> import numpy as np
>>> encoding = WeightedVectors(clip_value=1.0, levels=1 << 10, max_weight=100)
>>> total = encoding.encode([np.array([0.5])], 10) + encoding.encode([np.array([-1.0])], 30)
>>> [mean.tolist() for mean in encoding.decode(total, [(1,)])]
[[-0.625]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check

__all__ = ["WeightedVectors"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedVectors:
    """How parameters become integers.

    Parameters
    ----------
    clip_value : float
        Parameters are clipped to this magnitude.
    levels : int
        Steps from 0 to ``clip_value``.
    max_weight : int
        A client counts for at most so many examples.
    """

    clip_value: float
    levels: int
    max_weight: int

    def __post_init__(self) -> None:
        _check.positive("clip_value", self.clip_value)
        _check.integer("levels", self.levels, minimum=1)
        _check.integer("max_weight", self.max_weight, minimum=1)

    @property
    def bound(self) -> int:
        """The greatest magnitude of an entry."""
        return self.levels * self.max_weight

    def bits(self, clients: int) -> int:
        """Return the bits of the least modulus in which the sum of all clients does not wrap around."""
        return (clients * 2 * self.bound).bit_length()

    def encode(self, arrays: Sequence[ArrayLike], weight: int) -> NDArray[np.int64]:
        """Return the entries, times the weight, and then the weight; NaN counts as 0."""
        weight = min(_check.integer("weight", weight), self.max_weight)
        flat = np.concatenate([np.zeros(0), *(np.ravel(np.asarray(array, np.float64)) for array in arrays)])
        scaled = np.rint(np.clip(np.nan_to_num(flat) / self.clip_value, -1, 1) * self.levels)
        return np.append(scaled.astype(np.int64) * weight, weight)

    def decode(self, total: NDArray[np.int64], shapes: Sequence[tuple[int, ...]]) -> list[NDArray[Any]]:
        """Return the weighted means in the shapes of the parameters."""
        weight = int(total[-1])
        if weight < 1:
            _check.refuse_state("the round", "have examples", "the sum of weights is 0", "sample others")
        means = total[:-1] * (self.clip_value / self.levels / weight)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        pieces = np.split(means, ends[:-1]) if len(shapes) else []
        return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
