"""The base of client halves that report a row: one category of each of several domains."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.columns import columns_of
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["RowsRandomizer", "checked_domains"]

_MOST: Final = 1 << 12
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

    domains: tuple[Domain, ...]

    def _prepare(self) -> None:
        object.__setattr__(self, "domains", checked_domains(self.domains))
        self._choose()

    @abstractmethod
    def _choose(self) -> None:
        """Check the other parameters and set what follows from all, with ``object.__setattr__``."""

    def _written_domains(self) -> dict[str, Any]:
        """Return the domains, as JSON."""
        digests = b"".join(domain.digest for domain in self.domains)
        each = [domain.specification() for domain in self.domains]
        return {"digest": hashlib.sha256(digests).hexdigest(), "each": each}

    @staticmethod
    def _domains_of(told: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Domain, ...]:
        """Return the domains of a specification; see `Randomizer.from_specification`."""
        named = told.get("domains")
        each = named.get("each") if isinstance(named, dict) else None
        if not isinstance(each, list) or not all(isinstance(one, dict) for one in each):
            raise ParameterError("specification must state its domains, got none; use the version it is of")
        held = given.get("domains") or [None] * len(each)
        if len(held) != len(each):
            _check.refuse("domains", f"be {len(each)}", len(held), "pass those of the specification")
        return tuple(Domain.from_specification(*pair) for pair in zip(each, held, strict=True))

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
        _check.refuse("domains", "be a list of Domains", type(given).__name__, "pass Domain(values) of each")
    if not 2 <= len(given) <= _MOST:
        _check.refuse("domains", f"be from 2 to {_MOST}", len(given), "use a frequency oracle for one")
    return tuple(given)
