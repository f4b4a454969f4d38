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
from sfumato.federated.secure_aggregation.server import AggregatedSum

__all__ = ["WeightedVectors", "flat_vector", "split_shapes"]


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
        flat = flat_vector(arrays)
        scaled = np.rint(np.clip(np.nan_to_num(flat) / self.clip_value, -1, 1) * self.levels)
        return np.append(scaled.astype(np.int64) * weight, weight)

    def decode(
        self, total: NDArray[np.int64], shapes: Sequence[tuple[int, ...]]
    ) -> list[NDArray[np.float64]]:
        """Return the weighted means in the shapes of the parameters."""
        weight = int(total[-1])
        if weight < 1:
            _check.refuse_state("the round", "have examples", "the sum of weights is 0", "sample others")
        means = total[:-1].astype(np.float64) * (self.clip_value / self.levels / weight)
        return split_shapes(means, shapes)

    def request_fields(self, step: str) -> dict[str, Any]:
        """Return what a client needs in the step of vectors."""
        if step != "vector":
            return {}
        return {"clip_value": self.clip_value, "levels": self.levels, "max_weight": self.max_weight}

    def means(self, found: AggregatedSum, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.float64]]:
        """Return the weighted means."""
        return self.decode(found.total, shapes)


def flat_vector(arrays: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return all entries of some arrays, one array after the other."""
    return np.concatenate([np.zeros(0), *(np.ravel(np.asarray(array, np.float64)) for array in arrays)])


def split_shapes(values: NDArray[np.float64], shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.float64]]:
    """Return arrays of some shapes from the entries of all of them."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    pieces = np.split(values, ends[:-1]) if len(shapes) else []
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
