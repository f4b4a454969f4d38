"""Tables with structural zeros: 0 where no row can be, and the nearest counts elsewhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.synthetic import Marginals, ResidualMechanism, TableDomain

DOMAIN = TableDomain(age=["child", "adult"], marital=["single", "married"])
ZEROS = DOMAIN.with_structural_zeros({"age": ["child"], "marital": ["married"]})


def people() -> pa.Table:
    return pa.table(
        {"age": ["child", "adult", "child"] * 40, "marital": ["single", "married", "married"] * 40}
    )


def test_cells_that_cannot_be_are_zero_in_intervals_and_nearest_counts() -> None:
    mechanism = ResidualMechanism.calibrated(ZEROS, Marginals.every(2), epsilon=2.0, delta=1e-6)
    released = mechanism.release(people(), rng=5)
    table = released.marginal("marital", "age")
    assert table.possible is not None
    assert table.possible.tolist() == [[True, True], [False, True]]
    ends = table.interval(0.95)
    assert (ends.lower[1, 0], ends.upper[1, 0]) == (0, 0)
    assert (ends.upper - ends.lower)[table.possible].min() > 0
    nearest = table.non_negative()
    assert nearest[1, 0] == 0
    assert nearest.min() >= 0
    assert abs(nearest.sum() - released.total) < 1e-9
    assert abs(released.total - 80) < 30, "rows that cannot be are not counted"
    assert released.marginal("age").possible is not None
    assert bool(np.all(released.marginal("age").possible))


def test_a_table_without_structural_zeros_has_intervals_everywhere() -> None:
    mechanism = ResidualMechanism.calibrated(DOMAIN, Marginals.every(2), epsilon=2.0, delta=1e-6)
    table = mechanism.release(people(), rng=5).marginal("age", "marital")
    assert table.possible is None
    assert float((table.interval().upper - table.interval().lower).min()) > 0
