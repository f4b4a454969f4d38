"""Contribution bounding: keeps at most so many records of each unit, chosen at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.columns import records_at
from sfumato.mechanisms.base.sensitivity import Stability
from sfumato.mechanisms.query.records import as_column, record_count
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

    def __call__(self, data: Any) -> Any:
        """Return the records that are retained, in their order.

        Parameters
        ----------
        data : tuple of units and records
            For each record its unit, and the record itself; of equal length, arrays, lists or columns.
            Units are integers, texts, or other objects that can be compared. A record without a unit (None,
            NaN in a list, a null) is left out.

        Returns
        -------
        array, list, or column
            Of the kind of the records.
        """
        if not isinstance(data, tuple) or len(data) != 2:
            rule = "be a tuple of units and records"
            remedy = "pass (units, records)"
            _check.refuse_state("data", rule, f"it is a value of type {type(data).__name__}", remedy)
        units, present = _unit_indices(data[0])
        if present.size != record_count(data[1]):
            remedy = "give each record its unit"
            _check.refuse_state("units", "be as many as the records", "they have another length", remedy)
        lot = random_source(self.rng).words(len(units))
        order = np.lexsort((lot, units))
        sorted_units = units[order]
        firsts = np.flatnonzero(np.diff(sorted_units, prepend=-1))
        index = np.arange(len(units)) - np.repeat(firsts, np.diff(np.append(firsts, len(units))))
        retained = np.sort(order[index < self.limit])
        return records_at(data[1], np.flatnonzero(present)[retained])


def _unit_indices(data: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the units of records as indices, and which records have a unit; the indices are of these."""
    units, nulls = as_column(data)
    present = np.ones(units.size, np.bool_) if nulls is None else ~nulls
    if units.dtype.kind == "O":
        present &= np.fromiter((_is_unit(unit) for unit in units), np.bool_, units.size)
        index_of: dict[object, int] = {}
        found = [index_of.setdefault(unit, len(index_of)) for unit in units[present]]
        return np.array(found, np.int64), present
    if units.dtype.kind not in "biuSU":
        rule = "be a one-dimensional array of integers or text"
        _check.refuse_state("units", rule, f"they are of type {units.dtype}", "give each record its unit")
    return np.unique(units[present], return_inverse=True)[1].astype(np.int64), present


def _is_unit(unit: Any) -> bool:
    try:
        hash(unit)
        return unit is not None and bool(unit == unit)  # noqa: PLR0124 - NaN alone differs from itself
    except Exception:  # what cannot be compared is no unit, and whether it can depends on the record
        return False
