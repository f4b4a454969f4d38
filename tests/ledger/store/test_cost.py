"""What a charge costs the database, counted and not timed."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Ledger, LedgerView
from sfumato.privacy import Gaussian

Open = Callable[..., Ledger]


def steps(ledger: Ledger, action: Callable[[], object]) -> tuple[int, int]:
    """Count the SQL statements and the instructions of SQLite's machine that an action takes."""
    connection = ledger._store._connection
    assert connection is not None
    statements, instructions = itertools.count(), itertools.count()
    connection.set_trace_callback(lambda _: next(statements) and None)
    connection.set_progress_handler(lambda: next(instructions) and None, 1)
    action()
    connection.set_trace_callback(None)
    connection.set_progress_handler(None, 1)
    return next(statements), next(instructions)


def fill(ledger: Ledger, charges: int) -> None:
    for _ in range(charges):
        ledger.charge(Gaussian(100.0), delta=1e-9)


@pytest.mark.parametrize("kind", ["charge", "refused", "remaining"])
def test_a_charge_costs_the_same_however_long_the_ledger_is(open_ledger: Open, kind: str) -> None:
    ledger = open_ledger(budget=Budget.zcdp(rho=10.0))

    def act() -> None:
        if kind == "charge":
            ledger.charge(Gaussian(100.0), delta=1e-9)
        elif kind == "remaining":
            ledger.remaining(1e-9)
        else:
            with pytest.raises(BudgetExceeded):
                ledger.charge(Gaussian(0.01), delta=1e-9)

    fill(ledger, 10)
    short = steps(ledger, act)
    fill(ledger, 1500)
    long = steps(ledger, act)
    assert long[0] == short[0] <= 8
    assert long[1] <= short[1] + 8


def test_a_charge_that_draws_reads_what_is_new_and_not_the_last_thousand(open_ledger: Open) -> None:
    ledger = open_ledger(budget=Budget.zcdp(rho=10.0))
    question = {"loss": Gaussian(100.0), "delta": 1e-9, "draws": True}
    view, numbers = LedgerView(ledger), itertools.count()

    def draw() -> None:
        view.charge_all([question | {"request": f"q{next(numbers)}"}])

    fill(ledger, 10)
    draw()
    short = steps(ledger, draw)
    fill(ledger, 200)
    draw()
    long = steps(ledger, draw)
    assert long[0] == short[0]
    assert long[1] <= short[1] + 20
