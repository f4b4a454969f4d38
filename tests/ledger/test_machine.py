"""A state machine: whatever is charged, refused, committed and reopened, the sums hold."""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import ApproximateDP, Gaussian, Neighboring, PrivacyLoss, PureDP, Receipt

DELTA = 1e-6
BUDGETS = st.sampled_from(
    [
        Budget.approximate(epsilon=1.0, delta=1e-5),
        Budget.pure(epsilon=1.0),
        Budget.zcdp(rho=0.05, delta=1e-5),
        Budget.gaussian(mu=0.3, delta=1e-5),
    ]
)
LOSSES = st.one_of(
    st.floats(0.001, 0.7).map(PureDP),
    st.floats(3.0, 300.0).map(Gaussian),
    st.floats(0.001, 0.7).map(lambda epsilon: ApproximateDP(epsilon, DELTA)),
)


class LedgerMachine(RuleBasedStateMachine):
    """The model: exact sums of what each filter was told, and the bytes committed for each request."""

    receipts: Bundle[tuple[Receipt, str]] = Bundle("receipts")

    @initialize(budget=BUDGETS)
    def make(self, budget: Budget) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.budget = budget
        self.charged: list[PrivacyLoss] = []
        self.committed: dict[str, bytes] = {}
        self.latest: dict[str, int] = {}
        self.open()

    def open(self) -> None:
        self.ledger = Ledger.open(
            Path(self.folder.name) / "l",
            budget=self.budget,
            privacy_unit="id",
            neighboring=Neighboring.ADD_REMOVE,
            dataset=Dataset(schema="s", fingerprint=lambda key: key.hex()),
        )

    @rule(target=receipts, loss=LOSSES, request=st.sampled_from("abc"))
    def charge(self, loss: PrivacyLoss, request: str) -> Any:
        expected = self.ledger.would_accept(loss, delta=DELTA)
        head = self.ledger.head()
        try:
            receipt = self.ledger.charge(loss, delta=DELTA, request=request)
        except BudgetExceeded:
            assert not expected
            assert self.ledger.head() == head
            return multiple()
        assert expected
        self.charged.append(loss)
        assert receipt.sequence == len(self.charged)
        return receipt, request

    @rule(pair=consumes(receipts), payload=st.binary(max_size=20))
    def commit(self, pair: tuple[Receipt, str], payload: bytes) -> None:
        receipt, request = pair
        self.ledger.commit(receipt, payload)
        if receipt.sequence > self.latest.get(request, 0):
            self.latest[request], self.committed[request] = receipt.sequence, payload

    @rule()
    def reopen(self) -> None:
        head = self.ledger.head()
        self.ledger.close()
        self.open()
        assert self.ledger.verify(head).sound

    @invariant()
    def agrees_with_the_model(self) -> None:
        assert [entry.loss for entry in self.ledger.entries()] == self.charged
        for request in "abc":
            assert self.ledger.find(request) == self.committed.get(request)

    @invariant()
    def never_overdrawn(self) -> None:
        within = []
        for member in self.budget.filters.members:
            costs = [member.price(loss, DELTA) for loss in self.charged]
            finite = all(cost.amount < math.inf for cost in costs)
            amount = sum((Fraction(cost.amount) for cost in costs if finite), Fraction(0))
            mass = sum((Fraction(cost.delta) for cost in costs), Fraction(0))
            within.append(finite and amount <= Fraction(member.limit) and mass <= Fraction(member.delta))
        assert any(within)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            self.folder.cleanup()


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=10, stateful_step_count=15, deadline=None)
