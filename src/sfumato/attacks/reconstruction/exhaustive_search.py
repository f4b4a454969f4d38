"""Every assignment of bits, for a few people: the best one, and what all that fit have in common."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["MOST_BITS", "Candidates", "exhaustive_search"]

MOST_BITS: Final = 20
_BLOCK: Final = 1 << 12


class Candidates(NamedTuple):
    """What an exhaustive search found.

    Attributes
    ----------
    bits : float array of shape (people,)
        The mean of all candidates that fit: 0 or 1 where they agree.
    fitting : int
        How many there are.
    error : float
        The largest error of the best candidate.
    """

    bits: NDArray[np.float64]
    fitting: int
    error: float


def exhaustive_search(
    queries: NDArray[Any], answers: NDArray[np.float64], error_bound: float | None
) -> Candidates:
    """Return what all assignments within an error bound have in common; the best ones without a bound.

    Raises
    ------
    ParameterError
        If there are too many people, or none fits.
    """
    people = queries.shape[1]
    if people > MOST_BITS:
        remedy = "use method='least-squares'"
        _check.refuse_state("queries", f"be about at most {MOST_BITS} people", f"there are {people}", remedy)
    transposed = queries.T.astype(np.float64)
    places = np.arange(people)
    worst = np.concatenate(
        [
            np.abs((block[:, None] >> places & 1) @ transposed - answers).max(axis=1)
            for block in np.array_split(np.arange(1 << people), max(1, (1 << people) // _BLOCK))
        ]
    )
    error = float(worst.min())
    fitting = np.flatnonzero(worst <= (error if error_bound is None else error_bound) + 1e-9)
    if not len(fitting):
        rule = "be as large as the largest error"
        remedy = "pass a greater error_bound, or none"
        _check.refuse_state("error_bound", rule, "no bits fit all answers", remedy)
    bits = np.array([float((fitting >> place & 1).mean()) for place in places])
    return Candidates(bits, len(fitting), error)
