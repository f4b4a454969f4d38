"""Codes such as postal codes by ever shorter prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, GeneralizationHierarchy

__all__ = ["Prefixes"]


@final
@dataclass(frozen=True, slots=True)
class Prefixes:
    """The first characters of a code, the others masked by ``*``, and ``*`` alone on top.

    Parameters
    ----------
    lengths : sequence of int, optional
        How many characters remain at each level, fewer and fewer; one less at each level by default.

    Raises
    ------
    ParameterError
        If a length is no positive integer, or lengths do not fall.

    Examples
    --------
    >>> Prefixes((3,)).hierarchy(["02139", "02142", "10001"]).labels[1:]
    (('021**', '100**'), ('*',))
    """

    lengths: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.lengths is None:
            return
        for length in self.lengths:
            _check.integer("lengths", length, minimum=1)
        if not self.lengths or list(self.lengths) != sorted(set(self.lengths), reverse=True):
            _check.refuse("lengths", "fall from level to level", tuple(self.lengths), "try (4, 3, 2)")

    def hierarchy(self, values: Sequence[str]) -> GeneralizationHierarchy:
        """Return a hierarchy of these values, in this order.

        Parameters
        ----------
        values : sequence of str

        Returns
        -------
        GeneralizationHierarchy
        """
        longest = max(map(len, values), default=0)
        lengths = range(longest - 1, 0, -1) if self.lengths is None else self.lengths
        levels = [[value[:length].ljust(len(value), "*") for value in values] for length in lengths]
        return GeneralizationHierarchy.from_rows(
            zip(values, *levels, [SUPPRESSED] * len(values), strict=True)
        )
