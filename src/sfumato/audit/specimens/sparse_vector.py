"""Sparse vector algorithms that were published with a wrong privacy proof.

Numbered as in Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy", PVLDB
10(6), Figure 1, where each is analysed. The right one is `sfumato.mechanisms.SparseVector`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.input_pairs import InputPair
from sfumato.audit.specimens.specimen import Specimen

__all__ = ["ChenSparseVector", "LeeCliftonSparseVector", "RothSparseVector", "StoddardSparseVector"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseVectorSpecimen(Specimen):
    """What the four share: a noisy threshold at 0, queries of sensitivity 1, and answers until some number.

    Parameters
    ----------
    positives : int
        The run ends with this "above", in those that end.
    """

    positives: int = 1

    @property
    @abstractmethod
    def scales(self) -> tuple[float, float]:
        """Scales of the Laplace noise on the threshold and on each query."""

    def noisy(self, queries: Any, size: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return noisy queries, and whether each is above the noisy threshold."""
        exact = np.asarray(queries, dtype=np.float64)
        on_threshold, on_queries = self.scales
        threshold = self._generator.laplace(0.0, on_threshold, (size, 1))
        noise = self._generator.laplace(0.0, on_queries, (size, len(exact))) if on_queries else 0.0
        values = np.broadcast_to(exact + noise, (size, len(exact)))
        return values, values >= threshold

    def ended(self, above: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which queries came after the end of the run."""
        before: NDArray[np.int64] = np.cumsum(above, axis=1) - above
        return np.asarray(before >= self.positives)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RothSparseVector(SparseVectorSpecimen):
    """Algorithm 3: releases the noisy value that was compared; not private for any epsilon.

    From A. Roth's lecture notes of 2011, as Lyu, Su and Li quote them. A value released for an "above" bounds
    the noisy threshold, which every "below" was compared with: so each "below" costs again.

    Outputs: for each query -inf (below), the noisy value (above) or NaN (after the end).

    Examples
    --------
    >>> broken = RothSparseVector(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    @property
    def scales(self) -> tuple[float, float]:
        """Half of epsilon for each."""
        return 2 / self.epsilon, 2 * self.positives / self.epsilon

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=[0.0] * 6 + [1.0], second=[1.0] * 6 + [0.0]),)
    """Six queries that rise and one that falls."""

    def __call__(self, data: Any, size: int) -> NDArray[np.float64]:
        """Answer the queries of ``data``, ``size`` times."""
        values, above = self.noisy(data, size)
        released = np.where(above, values, -np.inf)
        released[self.ended(above)] = np.nan
        return released


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeeCliftonSparseVector(SparseVectorSpecimen):
    """Algorithm 4: noise on the queries that does not grow with the number of "above".

    From Lee, Clifton (2014), "Top-k frequent itemsets via differentially private FP-trees". It is
    ``(1 + 6 c) / 4`` epsilon-DP for c "above", says the analysis, and not epsilon-DP.

    Outputs: for each query 0 (below), 1 (above) or -1 (after the end).

    Parameters
    ----------
    positives : int
        After how many "above" it ends.

    Examples
    --------
    >>> broken = LeeCliftonSparseVector(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    positives: int = 4

    @property
    def scales(self) -> tuple[float, float]:
        """A quarter of epsilon for the threshold, the rest for each query."""
        return 4 / self.epsilon, 4 / (3 * self.epsilon)

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=[0.0, 1.0] * 4, second=[1.0, 0.0] * 4),)
    """Queries of which half rise and half fall."""

    def __call__(self, data: Any, size: int) -> NDArray[np.int8]:
        """Answer the queries of ``data``, ``size`` times."""
        _, above = self.noisy(data, size)
        return np.where(self.ended(above), -1, above).astype(np.int8)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoddardSparseVector(SparseVectorSpecimen):
    """Algorithm 5: no noise on the queries and no end; not private for any epsilon.

    From Stoddard, Chen, Machanavajjhala (2014), "Differentially private algorithms for empirical machine
    learning". Two queries that trade places show two orders of answers, and one order is impossible on each.

    Outputs: for each query whether it is above.

    Examples
    --------
    >>> broken = StoddardSparseVector(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    @property
    def scales(self) -> tuple[float, float]:
        """Half of epsilon for the threshold, nothing for the queries."""
        return 2 / self.epsilon, 0.0

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=[0.0, 1.0], second=[1.0, 0.0]),)
    """Two queries that trade places."""

    def __call__(self, data: Any, size: int) -> NDArray[np.bool_]:
        """Answer the queries of ``data``, ``size`` times."""
        return self.noisy(data, size)[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChenSparseVector(SparseVectorSpecimen):
    """Algorithm 6: noise on the queries, and no end; not private for any epsilon.

    From Chen, Xiao, Zhang, Xu (2015), "Differentially private high-dimensional data publication via
    sampling-based inference". Every "above" costs, and their number has no limit.

    Outputs: for each query whether it is above.

    Examples
    --------
    >>> broken = ChenSparseVector(epsilon=1.0, rng=1)
    >>> len(broken(broken.pairs[0].first, 5))
    5
    """

    @property
    def scales(self) -> tuple[float, float]:
        """Half of epsilon for each."""
        return 2 / self.epsilon, 2 / self.epsilon

    pairs: ClassVar[Sequence[InputPair]] = (InputPair(first=[0.0, 1.0] * 4, second=[1.0, 0.0] * 4),)
    """Four pairs of queries that trade places."""

    def __call__(self, data: Any, size: int) -> NDArray[np.bool_]:
        """Answer the queries of ``data``, ``size`` times."""
        return self.noisy(data, size)[1]
