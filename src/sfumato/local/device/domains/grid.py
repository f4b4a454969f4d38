"""Pairs of two ordered values, as a domain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.columns import columns_of

__all__ = ["Grid"]

_VERSION: Final = b"sfumato grid 1\n"


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """All pairs of a value of one ordered domain and one of another.

    Parameters
    ----------
    first, second : Domain or Bins
        The values in their order.

    Attributes
    ----------
    digest : bytes
        32 bytes that identify this grid.

    Examples
    --------
    >>> grid = Grid(Domain(range(3)), Bins([0, 10, 20]))
    >>> len(grid), grid.codes([(0, 5), (2, 20)]).tolist()
    (6, [0, 5])
    """

    first: Domain | Bins
    second: Domain | Bins
    digest: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds: list[object] = [self.first, self.second]
        for name, given in zip(("first", "second"), kinds, strict=True):
            if not isinstance(given, Domain | Bins):
                remedy = "pass Domain(values), or Bins(edges) for numbers"
                _check.refuse_type(name, "be a Domain or Bins", given, remedy)
        whole = _VERSION + self.first.digest + self.second.digest
        object.__setattr__(self, "digest", hashlib.sha256(whole).digest())

    def __len__(self) -> int:
        return len(self.first) * len(self.second)

    def codes(self, values: Any) -> NDArray[np.int64]:
        """Return the indices of pairs; the second value's index changes fastest.

        Parameters
        ----------
        values : list of pairs, or array of shape (respondents, 2)

        Returns
        -------
        int64 array, shape (pairs,)

        Raises
        ------
        ParameterError
            If one is no pair of such values. The message shows no value.
        """
        one, other = columns_of(values, 2)
        return self.first.codes(one) * len(self.second) + self.second.codes(other)

    def specification(self) -> dict[str, Any]:
        """Return what makes the grid again, as JSON.

        Returns
        -------
        dict
            What `json.dumps` writes.
        """
        parts = [self.first.specification(), self.second.specification()]
        return {"digest": self.digest.hex(), "grid": parts}

    @staticmethod
    def from_specification(specification: Mapping[str, Any], grid: Grid | None = None) -> Grid:
        """Return the grid that `specification` described.

        Parameters
        ----------
        specification : mapping
        grid : Grid, optional
            The grid itself, for one whose values JSON does not have.

        Returns
        -------
        Grid

        Raises
        ------
        ParameterError
            If the mapping is malformed, or its digest is another.
        """
        if grid is None:
            parts = specification.get("grid")
            if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(x, dict) for x in parts):
                raise ParameterError("domain must be written with its two parts, got others; pass domain=")
            kinds: list[Any] = [Bins if "edges" in part else Domain for part in parts]
            grid = Grid(*(kind.from_specification(part) for kind, part in zip(kinds, parts, strict=True)))
        _check.instance("domain", grid, Grid)
        if specification != grid.specification():
            raise ParameterError("domain must be the one of the specification's digest, got another grid")
        return grid
