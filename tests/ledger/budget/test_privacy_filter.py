"""The filter without a file: the same rules as the ledger's, and nothing kept."""

from __future__ import annotations

import os
import threading

import pytest

from sfumato.errors import BudgetExceeded, LedgerUnavailable, NeighboringMismatch, ParameterError
from sfumato.ledger import Budget, Dataset, Ledger, PrivacyFilter
from sfumato.numerics.decimals import outward
from sfumato.privacy import Gaussian, Laplace, Neighboring, PoissonSubsampled, PrivacyLoss, PureDP

STEP = PoissonSubsampled(Gaussian(1.0), sampling_probability=0.01)
BUDGETS = [
    Budget.approximate(epsilon=2.0, delta=1e-6),
    Budget.pure(epsilon=1.0),
    Budget.zcdp(rho=0.1, delta=1e-9),
    Budget.gaussian(mu=0.5, delta=1e-9),
    Budget.rdp(epsilon=2.0, delta=1e-6),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_it_accepts_exactly_what_a_ledger_accepts(budget: Budget) -> None:
    account = PrivacyFilter(budget)
    dataset = Dataset(schema="t(id BIGINT)", fingerprint=lambda key: key.hex())
    with Ledger.open(
        None, budget=budget, privacy_unit="id", neighboring=Neighboring.ADD_REMOVE, dataset=dataset
    ) as ledger:
        losses: list[PrivacyLoss] = [Gaussian(8.0), Laplace(9.0), PureDP(0.2), STEP * 20]
        for loss in losses * 12:
            accepted = account.would_accept(loss, delta=1e-9)
            assert accepted == ledger.would_accept(loss, delta=1e-9)
            if accepted:
                account.charge(loss, delta=1e-9)
                ledger.charge(loss, delta=1e-9)
            else:
                with pytest.raises(BudgetExceeded, match="charge must fit into the budget"):
                    account.charge(loss, delta=1e-9)
        assert account.remaining(1e-9) == ledger.remaining(1e-9)
        assert account.charges == len(ledger.entries())
        assert ledger.verify().sound


def test_steps_on_poisson_samples_are_charged_to_either_kind_of_approximate_budget() -> None:
    run = STEP * 1000
    account = PrivacyFilter(Budget.approximate(epsilon=3.0, delta=1e-5))
    account.charge(run, delta=1e-6)
    assert account.spent().epsilon == outward(run.epsilon(1e-6))
    steps = PrivacyFilter(Budget.rdp(epsilon=4.0, delta=1e-5))
    while steps.would_accept(STEP):
        steps.charge(STEP)
    # Within the budget, and not far below it: the divergences are those of the composition.
    assert 2.5 < (STEP * steps.charges).epsilon(1e-5) <= 4.0


def test_threads_never_spend_more_than_there_is() -> None:
    account = PrivacyFilter(Budget.pure(epsilon=1.0))

    def spend() -> None:
        while account.would_accept(PureDP(0.0078125)):
            try:
                account.charge(PureDP(0.0078125))
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.charges == 128


def test_a_forked_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    account = PrivacyFilter(Budget.pure(epsilon=1.0))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LedgerUnavailable, match="in the process that made it"):
        account.charge(PureDP(0.1))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="budget must be a Budget"):
        PrivacyFilter(1.0)  # type: ignore[arg-type]
    account = PrivacyFilter(Budget.pure(epsilon=1.0))
    with pytest.raises(ParameterError, match="loss must be a PrivacyLoss"):
        account.charge(0.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"delta must be in \[0, 1\)"):
        account.charge(PureDP(0.1), delta=1.0)
    with pytest.raises(NeighboringMismatch, match="ledger's relation"):
        account.charge(PureDP(0.1, neighboring=Neighboring.REPLACE_ONE))
    assert account.charges == 0
    approximate = PrivacyFilter(Budget.approximate(epsilon=1.0, delta=1e-6))
    with pytest.raises(ParameterError, match="delta must be one at which the loss has a finite epsilon"):
        approximate.charge(Gaussian(100.0))


def test_the_steps_that_fit_are_all_that_the_budget_has_room_for() -> None:
    dataset = Dataset(schema="t(id BIGINT)", fingerprint=lambda key: key.hex())
    for room in range(9):
        with Ledger.open(
            None,
            budget=Budget.pure(epsilon=room + 0.5),
            privacy_unit="id",
            neighboring=Neighboring.ADD_REMOVE,
            dataset=dataset,
        ) as ledger:
            for most in range(11):
                fitting = ledger.steps_that_fit(lambda steps: PureDP(1.0) * steps, maximum=most, delta=0.0)
                assert fitting == min(room, most), (room, most)
