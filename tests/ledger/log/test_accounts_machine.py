"""A state machine: two openings of one ledger, analysts and periods, against a model that adds fractions."""

from __future__ import annotations

import contextlib
import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sfumato.errors import BudgetExceeded, LedgerMismatch
from sfumato.ledger import Budget, Dataset, Ledger, LedgerExport, Renewal
from sfumato.privacy import Neighboring, PureDP

ANALYSTS = st.sampled_from(["", "ada", "bob"])
PERIODS = ("2025", "2026")
SIXTEENTHS = st.integers(1, 12).map(lambda n: n / 16)


class AccountsMachine(RuleBasedStateMachine):
    """The model: what each pair of analyst and period has spent, in sixteenths, which floats add exactly."""

    @initialize(renews=st.booleans())
    def make(self, renews: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.renewal = Renewal(every="year", column="t") if renews else None
        self.budgets: dict[str, float | None] = {}
        self.spent: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
        self.charges: list[tuple[str, str, float]] = []
        self.ledgers = [self.open(), self.open()]

    def open(self) -> Ledger:
        return Ledger.open(
            Path(self.folder.name) / "l",
            budget=Budget.pure(epsilon=1.0),
            privacy_unit="id",
            neighboring=Neighboring.ADD_REMOVE,
            dataset=Dataset(schema="s", fingerprint=lambda key: key.hex()),
            renewal=self.renewal,
        )

    @rule(place=st.integers(0, 1), analyst=st.sampled_from(["ada", "bob"]), epsilon=SIXTEENTHS | st.none())
    def grant(self, place: int, analyst: str, epsilon: float | None) -> None:
        self.ledgers[place].grant(analyst, None if epsilon is None else Budget.pure(epsilon=epsilon))
        self.budgets[analyst] = epsilon

    @rule(place=st.integers(0, 1), analyst=ANALYSTS, year=st.sampled_from(PERIODS), epsilon=SIXTEENTHS)
    def charge(self, place: int, analyst: str, year: str, epsilon: float) -> None:
        period = year if self.renewal is not None else ""
        keys = [("", period), (analyst, period)] if analyst else [("", period)]
        limits = {"": 1.0, **self.budgets}
        if analyst and limits.get(analyst) is None:
            with contextlib.suppress(LedgerMismatch):
                self.ledgers[place].charge(PureDP(epsilon), delta=0.0, analyst=analyst, period=period)
                raise AssertionError("who has no account was charged")
            return
        fits = all(self.spent[key] + Fraction(epsilon) <= Fraction(limits[key[0]] or 0) for key in keys)
        try:
            self.ledgers[place].charge(PureDP(epsilon), delta=0.0, analyst=analyst, period=period)
        except BudgetExceeded:
            assert not fits
            return
        assert fits
        for key in keys:
            self.spent[key] += Fraction(epsilon)
        self.charges.append((analyst, period, epsilon))

    @rule(place=st.integers(0, 1))
    def reopen(self, place: int) -> None:
        self.ledgers[place].close()
        self.ledgers[place] = self.open()

    @invariant()
    def agrees_with_the_model(self) -> None:
        for ledger in self.ledgers:
            told = [(entry.analyst, entry.period, entry.epsilon) for entry in ledger.entries()]
            assert told == self.charges
            for analyst, epsilon in self.budgets.items():
                for period in PERIODS if self.renewal is not None else ("",):
                    if epsilon is not None:
                        left = Fraction(epsilon) - self.spent[analyst, period]
                        assert ledger.remaining(analyst=analyst, period=period).epsilon == max(left, 0)
            assert [account.analyst for account in ledger.accounts()] == sorted(self.budgets)
            assert ledger.spent().epsilon == sum(Fraction(epsilon) for _, _, epsilon in self.charges)

    @invariant()
    def stays_sound(self) -> None:
        found = self.ledgers[0].verify()
        assert found.sound
        assert LedgerExport.parse(self.ledgers[1].export()).verify() == found

    def teardown(self) -> None:
        if hasattr(self, "ledgers"):
            for ledger in self.ledgers:
                ledger.close()
            self.folder.cleanup()


TestAccounts = AccountsMachine.TestCase
TestAccounts.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)
