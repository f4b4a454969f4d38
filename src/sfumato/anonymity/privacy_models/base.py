"""What an equivalence class must satisfy to be released, and what is proved of it along generalisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts

__all__ = ["KAnonymity", "PrivacyModel", "SensitiveModel"]


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
    def satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None = None
    ) -> NDArray[np.bool_]:
        """Say of each class whether it satisfies the condition.

        Parameters
        ----------
        counts : SensitiveCounts
            How often each sensitive value is in each class.
        hierarchy : GeneralizationHierarchy, optional
            That of the sensitive column, for distances between its values.

        Returns
        -------
        bool array
            One for each class.
        """
        return self._satisfied(counts, hierarchy)

    @abstractmethod
    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]: ...


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

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        enough: NDArray[np.bool_] = counts.sizes >= self.k
        return enough
