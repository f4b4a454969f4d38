"""l-diversity and its relatives: how many values of a sensitive column a class has, and how evenly.

Distinct l-diversity is upward closed. The others are closed under unions only: the entropy of a mixture is at
least the mean of the entropies; the sum of the l-1 largest counts is subadditive, so that (c, l) holds of a
union; and the largest frequency of a union is at most the larger one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.measures.l_diversity import distinct_values, entropy_values, recursive_ratios
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts
from sfumato.anonymity.privacy_models.base import SensitiveModel

__all__ = ["AlphaDeassociation", "DistinctLDiversity", "EntropyLDiversity", "RecursiveLDiversity"]

_ROUNDED = 1 - 1e-12
"""Entropies are sums of floats: l equal values must have an entropy of log l."""


@final
@dataclass(frozen=True, slots=True)
class DistinctLDiversity(SensitiveModel):
    """Distinct l-diversity: every class has at least l different sensitive values.

    Upward closed: rows that join take no value away.

    Parameters
    ----------
    column : str
        A sensitive column.
    l : int
        At least 1.

    References
    ----------
    Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity", ACM TKDD 1(1), 2007.

    Examples
    --------
    >>> from sfumato.anonymity import DistinctLDiversity
    >>> DistinctLDiversity("occupation", 3).l
    3
    """

    column: str
    l: int  # noqa: E741

    upward_closed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check.integer("l", self.l, minimum=1)

    @property
    def minimum_size(self) -> int:
        """The l itself: different values are of different rows."""
        return self.l

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        return distinct_values(counts) >= self.l


@final
@dataclass(frozen=True, slots=True)
class EntropyLDiversity(SensitiveModel):
    """Entropy l-diversity: the entropy of the sensitive values of a class is at least log l.

    Closed under unions, by the concavity of entropy (proved by Machanavajjhala et al.); not upward closed.

    Parameters
    ----------
    column : str
        A sensitive column.
    l : float
        At least 1.

    References
    ----------
    Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity", ACM TKDD 1(1), 2007.

    Examples
    --------
    >>> from sfumato.anonymity import EntropyLDiversity
    >>> EntropyLDiversity("occupation", 2.5).minimum_size
    3
    """

    column: str
    l: float  # noqa: E741

    upward_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if _check.positive("l", self.l) < 1:
            _check.refuse("l", "be at least 1", self.l, "every class has an l of 1")

    @property
    def minimum_size(self) -> int:
        """The l, rounded up: m values have an entropy of at most log m."""
        return math.ceil(self.l * _ROUNDED)

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        return entropy_values(counts) >= self.l * _ROUNDED


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveLDiversity(SensitiveModel):
    """Recursive (c, l)-diversity: r1 < c (r_l + ... + r_m) for the sorted counts r1 >= r2 >= ... of a class.

    Closed under unions (proved by Machanavajjhala et al.); not upward closed.

    Parameters
    ----------
    column : str
        A sensitive column.
    c : float
        Positive.
    l : int
        At least 1.

    References
    ----------
    Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity", ACM TKDD 1(1), 2007.

    Examples
    --------
    >>> from sfumato.anonymity import RecursiveLDiversity
    >>> RecursiveLDiversity(column="occupation", c=2.0, l=3).minimum_size
    3
    """

    column: str
    c: float
    l: int  # noqa: E741

    upward_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.positive("c", self.c)
        _check.integer("l", self.l, minimum=1)

    @property
    def minimum_size(self) -> int:
        """The l itself: a class with fewer values has an empty right side."""
        return self.l

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        return recursive_ratios(counts, self.l) < self.c


@final
@dataclass(frozen=True, slots=True)
class AlphaDeassociation(SensitiveModel):
    """The alpha of (alpha, k)-anonymity: no sensitive value is more than a share alpha of a class.

    Closed under unions; not upward closed.

    Parameters
    ----------
    column : str
        A sensitive column.
    alpha : float
        Above 0 and at most 1.

    References
    ----------
    Wong, Li, Fu and Wang, "(alpha, k)-anonymity", KDD 2006.

    Examples
    --------
    >>> from sfumato.anonymity import AlphaDeassociation
    >>> AlphaDeassociation("occupation", 0.5).minimum_size
    2
    """

    column: str
    alpha: float

    upward_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not _check.share("alpha", self.alpha):
            _check.refuse("alpha", "be above 0", self.alpha, "pass 0.5, say")

    @property
    def minimum_size(self) -> int:
        """One over alpha, rounded up: one row alone is a share of one over the size."""
        return math.ceil(_ROUNDED / self.alpha)

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        largest = np.maximum.reduceat(counts.counts, counts.starts)
        below: NDArray[np.bool_] = largest * _ROUNDED <= self.alpha * counts.sizes
        return below
