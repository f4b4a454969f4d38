"""What an equivalence class must satisfy to be released, and what is proved of it along generalisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import Hierarchy

__all__ = ["ClassCounts", "KAnonymity", "PrivacyModel", "SensitiveModel"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassCounts:
    """The equivalence classes as a privacy model reads them: how often each sensitive value is in each class.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class.
    of_cell, values, counts : int64 arrays
        A cell for each sensitive value that a class has: its class (ascending), the value's code, how many
        rows.
    overall : int64 array
        How many rows of the whole table have each value.
    hierarchy : Hierarchy, optional
        That of the sensitive column, for distances between its values.
    """

    sizes: NDArray[Any]
    of_cell: NDArray[Any]
    values: NDArray[Any]
    counts: NDArray[Any]
    overall: NDArray[Any]
    hierarchy: Hierarchy | None = None

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """The share of its class that each cell is."""
        shares: NDArray[np.float64] = self.counts / self.sizes[self.of_cell]
        return shares

    def total(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Sum a number of each cell by class."""
        sums = np.bincount(self.of_cell, weights=weights, minlength=len(self.sizes))
        return sums.astype(np.float64, copy=False)

    def largest(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take the largest number of each class; every class has a cell."""
        found: NDArray[np.float64] = np.maximum.reduceat(
            numbers, np.searchsorted(self.of_cell, np.arange(len(self.sizes)))
        )
        return found


class PrivacyModel(ABC):
    """A condition on each equivalence class.

    Two properties decide what a search may infer. ``upward_closed``: a class that satisfies it still does
    when any rows join it; then the number of rows outside of satisfying classes never grows along
    generalisation, so that the requirement is monotone with any limit of suppression. ``union_closed``: two
    classes that satisfy it do so together; then it is monotone where no row may be suppressed, and need not
    be where some may.

    Examples
    --------
    >>> from sfumato.anonymity import EntropyLDiversity
    >>> EntropyLDiversity.upward_closed, EntropyLDiversity.union_closed
    (False, True)
    """

    __slots__ = ()

    upward_closed: ClassVar[bool]
    union_closed: ClassVar[bool] = True

    @property
    def sensitive(self) -> str | None:
        """The sensitive column that it reads; None if it reads sizes only."""
        return None

    @property
    @abstractmethod
    def minimum_size(self) -> int:
        """A size that every satisfying class has at least."""

    @final
    def satisfied(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Say of each class whether it satisfies the condition.

        Parameters
        ----------
        classes : ClassCounts
            How often each sensitive value is in each class.

        Returns
        -------
        bool array
            One for each class.
        """
        return self._satisfied(classes)

    @abstractmethod
    def _satisfied(self, classes: ClassCounts) -> NDArray[np.bool_]: ...


class SensitiveModel(PrivacyModel):
    """A condition on how often each value of a sensitive column is in a class."""

    __slots__ = ()

    column: str

    @property
    def sensitive(self) -> str | None:
        """The sensitive column that it reads."""
        return self.column


@final
@dataclass(frozen=True, slots=True)
class KAnonymity(PrivacyModel):
    """K-anonymity: every class has at least k rows.

    Upward closed: a class only grows.

    Parameters
    ----------
    k : int
        At least 1.

    References
    ----------
    Samarati, "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001. Sweeney,
    "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.

    Examples
    --------
    >>> from sfumato.anonymity import KAnonymity
    >>> KAnonymity(5)
    KAnonymity(k=5)
    """

    k: int

    upward_closed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check.integer("k", self.k, minimum=1)

    @property
    def minimum_size(self) -> int:
        """The k itself."""
        return self.k

    def _satisfied(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Compare sizes with k."""
        enough: NDArray[np.bool_] = classes.sizes >= self.k
        return enough
