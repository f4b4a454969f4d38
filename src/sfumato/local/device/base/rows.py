"""The base of client halves that report a row: one category of each of several domains."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.columns import columns_of
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["RowsRandomizer", "checked_domains"]

_MAX: Final = 1 << 12
_BLOCK: Final = 1 << 17
"""Rows of an array that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRandomizer(Randomizer):
    """A client half that reports of one person's categories in several domains.

    Parameters
    ----------
    epsilon : float
        See `Randomizer`: for everything that one person reports together; all domains' values may differ.
    domains : tuple of Domain
        From 2 to 2^12.
    """

    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "domains")

    domains: tuple[Domain, ...]

    def _prepare(self) -> None:
        self._set(domains=checked_domains(self.domains))
        self._choose()

    @abstractmethod
    def _choose(self) -> None:
        """Check the other parameters and set what follows from all, with `_set`."""

    def _records(self, values: Any, source: RandomSource) -> Records:
        if not isinstance(values, np.ndarray) or len(values.shape) != 2 or len(values) <= _BLOCK:
            return self._encode(self._codes(values), source)
        starts = range(0, len(values), _BLOCK)
        return np.concatenate([self._encode(self._codes(values[at : at + _BLOCK]), source) for at in starts])

    def _codes(self, values: Any) -> NDArray[np.int64]:
        """Return the indices of rows of categories in their domains, one row of the array for each domain."""
        parts = zip(self.domains, columns_of(values, len(self.domains)), strict=True)
        return np.array([domain.codes(column) for domain, column in parts])

    @abstractmethod
    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        """Return one stamped record for each column of indices in the domains."""


def checked_domains(given: object) -> tuple[Domain, ...]:
    """Return the domains of several questions, or refuse anything else.

    Parameters
    ----------
    given : object
        What the caller passed.

    Returns
    -------
    tuple of Domain

    Raises
    ------
    ParameterError
        If it is no list of 2 to 2^12 domains.
    """
    if not isinstance(given, tuple | list) or not all(isinstance(domain, Domain) for domain in given):
        _check.refuse_type("domains", "be a list of Domains", given, "pass Domain(values) of each")
    if not 2 <= len(given) <= _MAX:
        _check.refuse("domains", f"be from 2 to {_MAX}", len(given), "use a frequency oracle for one")
    return tuple(given)
