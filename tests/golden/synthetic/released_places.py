"""The record of released counts of places, from fixed numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.privacy import ZCDP, Neighboring
from sfumato.synthetic import Hierarchy, TableDomain, TopDownRelease
from sfumato.synthetic.releases.release_record import SyntheticRecord
from sfumato.synthetic.topdown.topdown_release import all_levels
from sfumato.synthetic.topdown.tree_least_squares import MeasuredTable
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["files", "record"]

DOMAIN = TableDomain(sex=["f", "m"], age=[0, 1, 2]).with_structural_zeros({"sex": ["m"], "age": [2]})
TOWNS = pa.table({"state": ["A", "A", "B"], "town": [11, 12, 21]})
LOWEST = LevelCounts(
    np.array([0, 3, 3, 5]), np.array([0, 1, 4, 2, 3], np.int32), np.array([40, 3, 1, 200, 70_000])
)
NOISY: dict[int, list[tuple[int, ...]]] = {
    0: [(), (0, 1)],
    1: [(0,)],
    2: [(), (0, 1)],
}
"""The tables measured on each level."""


def record() -> SyntheticRecord:
    """Return the record."""
    places = Hierarchy.from_table(TOWNS, ["state", "town"], root="land")
    value = all_levels(places, LOWEST, DOMAIN.cells)
    measured = {}
    for depth, tables in NOISY.items():
        shapes = [(places.size(depth), int(np.prod([DOMAIN.sizes[i] for i in table]))) for table in tables]
        noisy = [np.arange(rows * cells).reshape(rows, cells) * 37 - 9 for rows, cells in shapes]
        pairs = zip(tables, noisy, strict=True)
        measured[depth] = [MeasuredTable(table, counts, 2.5 + depth) for table, counts in pairs]
    exact = value[1].grouped(0, 2, np.zeros(6, np.int64), 1)
    measured[1].append(MeasuredTable((), exact, 0.0))
    released = TopDownRelease(
        value=value,
        hierarchy=places,
        domain=DOMAIN,
        outside_guarantee=("the total at each state",),
        measured=measured,
        unfinished=1,
        loss=ZCDP(0.125, neighboring=Neighboring.REPLACE_ONE),
        neighboring=Neighboring.REPLACE_ONE,
    )
    return SyntheticRecord(kind="topdown", release=released, epsilon=1.0, delta=1e-9, privacy_unit="person")


def files() -> dict[str, bytes]:
    """Return the bytes of each file by name."""
    return {"released-places.json": record().to_bytes() + b"\n"}
