"""Counts by lowest place and cell that an engine made: the place is one more column of the domain."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from sfumato import _check
from sfumato.synthetic.counting.engine_counts import EngineCounts
from sfumato.synthetic.domain.attributes import Categorical
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.edges import MOST_CELLS
from sfumato.synthetic.domain.structural_zeros import zero_labels
from sfumato.synthetic.topdown.hierarchy import Hierarchy, Nodes
from sfumato.synthetic.topdown.unit_counts import UnitCounts

__all__ = ["place_domain", "place_unit_counts"]


def place_domain(hierarchy: Hierarchy, domain: TableDomain) -> TableDomain:
    """Return a domain with the column of the lowest places before its own.

    Parameters
    ----------
    hierarchy : Hierarchy
    domain : TableDomain

    Returns
    -------
    TableDomain
        Places are in the order of their labels, so that whole numbers one after the other are found by
        subtraction; other ones by a join.

    Raises
    ------
    ParameterError
        If the domain has that column, or there are too many places.

    Examples
    --------
    >>> import pyarrow as pa
    >>> places = Hierarchy.from_table(pa.table({"state": ["B", "A"], "town": [1, 2]}), ["state", "town"])
    >>> place_domain(places, TableDomain(sex=["f", "m"]))["town"].labels, places.places("town").to_pylist()
    ((1, 2), [2, 1])
    """
    name, labels = hierarchy.names[-1], hierarchy.labels[-1]
    if name.casefold() in {column.casefold() for column in domain}:
        rule, found = "not have the column of the lowest places", f"{name!r} is in both"
        _check.refuse_state("domain", rule, found, "leave it out of the domain: the hierarchy has it")
    if len(labels) > MOST_CELLS:
        rule = f"have at most {MOST_CELLS} lowest places where an engine counts"
        _check.refuse_state("hierarchy", rule, f"it has {len(labels)}", "release it in parts, or join places")
    values = labels.take(_order(hierarchy)).to_pylist()
    made = TableDomain({name: Categorical(values), **domain})
    return made.with_structural_zeros(*(zero_labels(domain, zero) for zero in domain.structural_zeros))


def place_unit_counts(hierarchy: Hierarchy, counts: EngineCounts) -> UnitCounts:
    """Return the counts of the tables of all columns of `place_domain`.

    Parameters
    ----------
    hierarchy : Hierarchy
    counts : EngineCounts
        Private.

    Returns
    -------
    UnitCounts
    """
    held = counts.cells(tuple(range(len(counts.sizes))))
    units = _order(hierarchy)[held.cells[:, 0]]
    cells = np.ravel_multi_index(tuple(held.cells[:, 1:].T), tuple(counts.sizes[1:]))
    return UnitCounts(units, cells, held.counts)


def _order(hierarchy: Hierarchy) -> Nodes:
    """Return the lowest places in the order of their labels."""
    return np.asarray(pc.sort_indices(hierarchy.labels[-1]).to_numpy(), np.int64)
