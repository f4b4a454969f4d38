"""The file of a budget: what it holds comes back, and amounts round against the device."""

from __future__ import annotations

from fractions import Fraction

from sfumato.local.device.budget.budget_file import (
    UNIT,
    BudgetState,
    CollectionSpent,
    units_above,
    units_below,
)


def test_all_that_a_budget_holds_comes_back() -> None:
    state = BudgetState(
        lifetime=5 * UNIT,
        daily=UNIT,
        report=UNIT // 3,
        collection=7,
        digests=["ab" * 32],
        simulated=True,
        generation=3,
        day=20_000,
        spent=11,
        today=4,
        collections={"cd" * 32: CollectionSpent(spent=9, reports=2, memos=5)},
    )
    assert BudgetState.from_bytes(state.to_bytes()) == state


def test_amounts_round_against_the_device() -> None:
    for epsilon in (5e-324, 1e-300, 0.1, 0.5, 1 / 3, 39.9, 4096.0):
        exact = Fraction(epsilon) * UNIT
        assert exact <= units_above(epsilon) < exact + 1
        assert exact - 1 < units_below(epsilon) <= exact
    assert units_above(5e-324) == 1
    assert units_above(0.5) == units_below(0.5) == UNIT // 2
