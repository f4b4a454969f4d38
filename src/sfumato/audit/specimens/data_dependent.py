"""Parameters computed from the data without a privacy cost: clamping bounds, and the number of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.input_pairs import InputPair
from sfumato.audit.specimens.specimen import Specimen

__all__ = ["DataBoundedHistogram", "UnprotectedSizeMean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataBoundedHistogram(Specimen):
    """A histogram over the whole numbers up to the largest in the data: its length reveals that number.

    The noise is right for cells that were fixed beforehand (Dwork, Roth 2014, section 3.3). These were not:
    the one who holds the largest number is seen by the cell that is there only for them. Not private for any
    epsilon.

    Examples
    --------
    >>> broken = DataBoundedHistogram(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=[1, 2, 2, 7], second=[1, 2, 2]),)
    """The largest record is there, or not."""

    def __call__(self, data: Any, size: int) -> NDArray[np.float64]:
        """Return noisy counts, one for each whole number up to the largest."""
        counts = np.bincount(np.asarray(data, dtype=np.int64))
        return counts + self._generator.laplace(0.0, 1 / self.epsilon, (size, len(counts)))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnprotectedSizeMean(Specimen):
    """A mean of records in [0, 1] with noise of scale ``1 / (n epsilon)``, where n is whoever is in the data.

    The scale is right where n is public and one record may be replaced. Where one may join or leave, the mean
    moves by about as much, but the noise narrows with n, and its tails tell how many there are. Not private
    for any epsilon. `sfumato.mechanisms.Mean` protects n, or takes it as public.

    Examples
    --------
    >>> broken = UnprotectedSizeMean(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=[0.0], second=[0.0, 1.0]),)
    """One record, or two."""

    def __call__(self, data: Any, size: int) -> NDArray[np.float64]:
        """Return noisy means."""
        records = np.clip(np.asarray(data, dtype=np.float64), 0, 1)
        count = max(1, len(records))
        return float(records.sum()) / count + self._generator.laplace(0.0, 1 / (count * self.epsilon), size)
