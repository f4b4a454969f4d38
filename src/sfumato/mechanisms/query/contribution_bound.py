"""Contribution bounding: keeps at most so many records of each unit, chosen at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.sensitivity import Stability
from sfumato.mechanisms.query.records import as_records
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["ContributionBound"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionBound:
    """Keeps at most so many records of each unit, chosen evenly among them.

    A transformation for `Query.after`: ``query.after(bound, stability=bound.stability)``.

    Parameters
    ----------
    limit : int
        The most records of one unit that are retained; at least 1.
    rng : None, int, numpy Generator or RandomSource
        What the lot is drawn with. A seed is for simulation only: a release of a query after such a bound is
        marked as simulated.

    Notes
    -----
    Stability: adding or removing a unit adds or removes at most ``limit`` records of the result, and zeroing
    its records zeroes at most ``limit``. Proof: each record draws a number of its own, and those of a unit
    with the smallest numbers are retained. For one and the same draw, what is retained of the other units
    does not depend on this one; so the two results are coupled, at most ``limit`` records apart, and a
    mechanism's guarantee for that distance holds for the mixture over the draw (joint convexity).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Count, Laplace
    >>> bound = ContributionBound(limit=2)
    >>> visits = Laplace.for_query(Count().after(bound, stability=bound.stability), epsilon=1.0)
    >>> users, pages = np.array([7, 7, 7, 7, 8]), np.array([1, 2, 3, 4, 5])
    >>> len(bound((users, pages))), visits.mechanism.scale
    (3, 2)
    """

    limit: int
    rng: Rng = None

    def __post_init__(self) -> None:
        _check.integer("limit", self.limit, minimum=1, remedy="pass at least 1")
        random_source(self.rng)

    @property
    def simulated(self) -> bool:
        """Whether the lot follows a seed, so that nobody is protected."""
        return random_source(self.rng).simulated

    @property
    def stability(self) -> Stability:
        """How many records of the result one unit moves."""
        return Stability(add_remove=self.limit, zero_out=self.limit)

    def __call__(self, data: Any) -> NDArray[Any]:
        """Return the records that are retained, in their order.

        Parameters
        ----------
        data : tuple of two numpy arrays
            For each record its unit, and the record itself; of equal length. Units may be integers or text.
        """
        if not isinstance(data, tuple) or len(data) != 2:
            rule = "be a tuple of units and records"
            remedy = "pass (units, records)"
            _check.refuse_state("data", rule, f"it is a value of type {type(data).__name__}", remedy)
        units, records = (as_records(part) for part in data)
        if units.ndim != 1 or units.dtype.kind not in "biuSU" or len(units) != len(records):
            rule = "be as long as the records, a one-dimensional array of integers or text"
            _check.refuse_state(
                "units",
                rule,
                f"they have {units.ndim} axes of type {units.dtype}, or another length",
                "give each record its unit",
            )
        _, unit = np.unique(units, return_inverse=True)
        lot = random_source(self.rng).words(len(units))
        order = np.lexsort((lot, unit))
        sorted_units = unit[order]
        firsts = np.flatnonzero(np.diff(sorted_units, prepend=-1))
        index = np.arange(len(units)) - np.repeat(firsts, np.diff(np.append(firsts, len(units))))
        return np.asarray(records[np.sort(order[index < self.limit])])
