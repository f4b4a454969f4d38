"""Numbers in bins between public edges, as an ordered domain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.errors import ParameterError

__all__ = ["Bins"]

_VERSION: Final = b"sfumato bins 1\n"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Bins of numbers: each holds its lower edge, and the last one also its upper edge.

    Parameters
    ----------
    edges : one-dimensional array
        At least 3 finite numbers, rising; public, and never taken from the data. n + 1 edges make n bins.

    Attributes
    ----------
    digest : bytes
        32 bytes that identify these bins.

    Raises
    ------
    ParameterError
        If the edges are too few, do not rise or are not finite.

    Examples
    --------
    >>> ages = Bins([0, 18, 65, 120])
    >>> ages.codes([18, 17.5, 120]).tolist(), len(ages)
    ([1, 0, 2], 3)
    """

    edges: NDArray[np.float64]
    digest: bytes = field(init=False, repr=False)

    def __init__(self, edges: ArrayLike) -> None:
        try:
            made = np.array(edges, np.float64)
        except (TypeError, ValueError):
            made = np.array(np.nan)
        if made.ndim != 1 or len(made) < 3 or not np.isfinite(made).all() or not (made[1:] > made[:-1]).all():
            rule = "be at least 3 finite numbers that rise"
            _check.refuse_type("edges", rule, made if made.ndim == 1 else edges, "pass n + 1 edges of n bins")
        made.flags.writeable = False
        object.__setattr__(self, "edges", made)
        object.__setattr__(self, "digest", hashlib.sha256(_VERSION + made.astype("<f8").tobytes()).digest())

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bins) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Bins({len(self)} from {self.edges[0]} to {self.edges[-1]})"

    @property
    def values(self) -> Sequence[tuple[float, float]]:
        """The lower and the upper edge of each bin."""
        return list(zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True))

    def codes(self, values: Any) -> NDArray[np.int64]:
        """Return the indices of the bins that numbers fall in, counted from 0.

        Parameters
        ----------
        values : one-dimensional array or list
            Numbers between the first and the last edge.

        Returns
        -------
        int64 array, shape (values,)

        Raises
        ------
        ParameterError
            If one is not between them, or no number. The message shows no value.
        """
        try:
            given = np.asarray(values)
        except ValueError:
            given = np.array(None)
        low, high = self.edges[0], self.edges[-1]
        if given.shape == (0,):
            return np.zeros(0, np.int64)
        if given.ndim != 1 or given.dtype.kind not in "iuf" or not ((given >= low) & (given <= high)).all():
            raise ParameterError(
                f"values must be numbers from {low} to {high}, one per respondent, got others; "
                "clip them on the device"
            )
        found = np.searchsorted(self.edges, given.astype(np.float64), side="right") - 1
        return np.minimum(found, len(self) - 1)

    def specification(self) -> dict[str, Any]:
        """Return what makes the bins again, as JSON.

        Returns
        -------
        dict
            What `json.dumps` writes.
        """
        return {"digest": self.digest.hex(), "edges": self.edges.tolist()}

    @staticmethod
    def from_specification(specification: Mapping[str, Any], bins: Bins | None = None) -> Bins:
        """Return the bins that `specification` described.

        Parameters
        ----------
        specification : mapping
        bins : Bins, optional
            The bins themselves.

        Returns
        -------
        Bins

        Raises
        ------
        ParameterError
            If the mapping is malformed, or its digest is another.
        """
        made = Bins(specification.get("edges", ())) if bins is None else bins
        _check.instance("domain", made, Bins)
        if specification != made.specification():
            raise ParameterError("domain must be the one of the specification's digest, got other bins")
        return made
