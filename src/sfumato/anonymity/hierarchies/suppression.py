"""A hierarchy of two levels: the value, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, GeneralizationHierarchy

__all__ = ["Suppression"]


@final
@dataclass(frozen=True, slots=True)
class Suppression:
    """Either the value itself or ``*``.

    Examples
    --------
    >>> Suppression().hierarchy(["F", "M"]).labels
    (('F', 'M'), ('*',))
    """

    def hierarchy(self, values: Sequence[str]) -> GeneralizationHierarchy:
        """Return a hierarchy of these values, in this order.

        Parameters
        ----------
        values : sequence of str

        Returns
        -------
        GeneralizationHierarchy
        """
        return GeneralizationHierarchy.from_rows((value, SUPPRESSED) for value in values)
