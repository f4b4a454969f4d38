"""People's binary attributes, a row each: arrays, memory maps or packed bits, scored in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.tracing.score_weights import ScoreWeights

__all__ = ["AttributeRows", "PackedBits", "as_rows", "row_sums", "weighted_scores"]

_BLOCK: Final = 1 << 21


class AttributeRows(Protocol):
    """What holds rows of attributes: it has a shape, and slices of rows are arrays."""

    @property
    def shape(self) -> tuple[int, ...]:
        """People and attributes."""
        ...

    def __getitem__(self, rows: Any, /) -> Any: ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class PackedBits:
    """Rows of attributes at eight to a byte, as ``numpy.packbits(rows, axis=1)`` writes them.

    Parameters
    ----------
    bits : uint8 array of shape (people, bytes)
        A memory map will do.
    attributes : int
        How many of the bits count.

    Raises
    ------
    ParameterError
        If they do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> rows = PackedBits(np.packbits(np.eye(3, 10, dtype=bool), axis=1), 10)
    >>> rows.shape, rows[1:2].tolist()
    ((3, 10), [[0, 1, 0, 0, 0, 0, 0, 0, 0, 0]])
    """

    bits: NDArray[np.uint8]
    attributes: int

    def __post_init__(self) -> None:
        attributes = _check.integer("attributes", self.attributes, minimum=1)
        if self.bits.dtype != np.uint8 or self.bits.ndim != 2 or self.bits.shape[1] != -(-attributes // 8):
            remedy = "pass numpy.packbits(rows, axis=1)"
            _check.refuse_type("bits", "be uint8, a byte for eight attributes", self.bits, remedy)

    @property
    def shape(self) -> tuple[int, int]:
        """People and attributes."""
        return self.bits.shape[0], self.attributes

    def __getitem__(self, rows: Any, /) -> NDArray[np.uint8]:
        return np.unpackbits(self.bits[rows], axis=-1, count=self.attributes)


def as_rows(name: str, values: Any, attributes: int | None = None) -> AttributeRows:
    """Return rows of attributes, or refuse what has no such shape."""
    rows: AttributeRows = values if hasattr(values, "shape") else np.asarray(values)
    if len(rows.shape) != 2 or 0 in rows.shape:
        remedy = "pass a row for each person and a column for each attribute"
        _check.refuse_type(name, "have two axes, people and attributes", rows, remedy)
    if attributes is not None and rows.shape[1] != attributes:
        remedy = "pass the same attributes in the same order"
        _check.refuse_type(name, f"have {attributes} attributes", rows, remedy)
    return rows


def weighted_scores(name: str, rows: AttributeRows, weights: ScoreWeights) -> NDArray[np.float64]:
    """Return everyone's score, some rows at a time, with sums of floats of 53 bits."""
    people, attributes = rows.shape
    constant, slope = float(weights.without.sum()), weights.having - weights.without
    scores = np.empty(people)
    step = max(1, _BLOCK // attributes)
    for start in range(0, people, step):
        block = _binary(name, rows[start : start + step])
        scores[start : start + step] = block.astype(np.float64) @ slope
    return scores + constant


def row_sums(name: str, rows: AttributeRows) -> NDArray[np.int64]:
    """Return how many people have each attribute."""
    people, attributes = rows.shape
    counts = np.zeros(attributes, dtype=np.int64)
    step = max(1, _BLOCK // attributes)
    for start in range(0, people, step):
        counts += _binary(name, rows[start : start + step]).sum(axis=0, dtype=np.int64)
    return counts


def _binary(name: str, block: Any) -> NDArray[Any]:
    array = np.asarray(block)
    if array.dtype != np.bool_ and not (array.dtype.kind in "iu" and 0 <= array.min() <= array.max() <= 1):
        _check.refuse_type(name, "be 0 or 1, as bool or integers", array, "code each attribute as a bit")
    return array
