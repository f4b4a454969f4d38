"""What a user of a ledger relies on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import (
    BudgetExceeded,
    LedgerMismatch,
    LedgerUnavailable,
    NeighboringMismatch,
    ParameterError,
    SimulatedCharge,
)
from sfumato.ledger import Budget, Dataset, Ledger, LedgerView
from sfumato.privacy import (
    ApproximateDP,
    Composed,
    Gaussian,
    Neighboring,
    PrivacyLoss,
    PureDP,
    Receipt,
    analytic_gaussian_stddev,
)
from sfumato.privacy.decimal_cost import zcdp_cost

Open = Callable[..., Ledger]
At = Callable[[str], Any]
APPROXIMATE = Budget.approximate(epsilon=2.0, delta=1e-7)


@pytest.fixture
def open_ledger(open_anywhere: Open) -> Open:
    """Every test runs on each store."""
    return open_anywhere


def gaussian(epsilon: float, delta: float) -> Gaussian:
    return Gaussian(analytic_gaussian_stddev(sensitivity=1.0, epsilon=epsilon, delta=delta))


def spend(ledger: Ledger, loss: PrivacyLoss, delta: float, most: int = 10_000) -> int:
    for number in range(most):
        try:
            ledger.charge(loss, delta=delta)
        except BudgetExceeded:
            return number
    return most


def test_a_charge_gives_a_receipt_and_an_entry(open_ledger: Open) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    loss = gaussian(0.5, 1e-8)
    receipt = ledger.charge(loss, delta=1e-8, description="how many?")
    assert receipt == Receipt(
        ledger=ledger.ledger_id,
        sequence=1,
        digest=receipt.digest,
        neighboring=Neighboring.ADD_REMOVE,
        privacy_unit="id",
    )
    (entry,) = ledger.entries()
    assert (entry.sequence, entry.description, entry.loss) == (1, "how many?", loss)
    assert (entry.epsilon, entry.delta) == (loss.epsilon(1e-8), 1e-8)
    assert entry.costs == {"basic": (entry.epsilon, 1e-8), "zcdp": zcdp_cost(loss)}
    assert (entry.version, entry.committed, entry.simulated) == (1, False, False)
    assert entry.time.utcoffset() is not None
    assert entry.digest == receipt.digest


def test_the_promised_four_answers_fit_and_what_is_left_is_said(open_ledger: Open) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    for _ in range(4):
        ledger.charge(gaussian(0.5, 1e-8), delta=1e-8)
    assert ledger.verify().sound


@pytest.mark.parametrize("shares", [(0.5,) * 4, (1.0, 0.5, 0.25, 0.25), (1.75, 0.25)])
def test_epsilons_that_sum_to_the_budget_always_fit(open_ledger: Open, shares: tuple[float, ...]) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    for epsilon in shares:
        ledger.charge(ApproximateDP(epsilon, 1e-8), delta=1e-8)


def test_many_small_gaussian_answers_cost_far_less_than_their_sum(open_ledger: Open) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    epsilon = 0.1
    answered = spend(ledger, gaussian(epsilon, 1e-9), 1e-9)
    assert answered > 100
    assert answered * epsilon > 5 * 2.0
    assert not ledger.would_accept(gaussian(epsilon, 1e-9), delta=1e-9)


def test_a_refusal_says_what_is_left_and_what_to_do(open_ledger: Open) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    ledger.charge(ApproximateDP(1.5, 1e-8), delta=1e-8)
    remedy = r"ask for an epsilon of at most 0\.5 at delta 1e-08"
    with pytest.raises(BudgetExceeded, match=remedy) as caught:
        ledger.charge(gaussian(1.0, 1e-8), delta=1e-8)
    remaining, requested = caught.value.remaining, caught.value.requested
    assert requested.epsilon == pytest.approx(gaussian(1.0, 1e-8).epsilon(1e-8))
    assert remaining == ledger.remaining(1e-8)
    assert remaining.epsilon == pytest.approx(0.5)
    assert remaining.delta == pytest.approx(4e-8)
    assert remaining.rho == 0.0


def test_a_spent_budget_answers_nothing(open_ledger: Open) -> None:
    ledger = open_ledger(budget=Budget.pure(epsilon=1.0))
    ledger.charge(PureDP(1.0), delta=0.0)
    assert ledger.remaining().epsilon == 0.0
    assert ledger.remaining().answerable_epsilon == 0.0
    assert str(ledger.remaining()).startswith("nothing (epsilon is used up), ")
    with pytest.raises(BudgetExceeded, match="no answer at this delta fits any more"):
        ledger.charge(PureDP(1e-9), delta=0.0)
    ledger.charge(PureDP(1.0) * 0, delta=0.0)


@pytest.mark.parametrize(
    ("budget", "unit"),
    [
        (Budget.zcdp(rho=0.1, delta=1e-9), {"rho": 0.1, "delta": 1e-9}),
        (Budget.gaussian(mu=0.5, delta=1e-9), {"mu": 0.5, "delta": 1e-9}),
        (Budget.pure(epsilon=1.0), {"epsilon": 1.0}),
    ],
    ids=str,
)
def test_remaining_states_the_budgets_own_unit(open_ledger: Open, budget: Budget, unit: Any) -> None:
    left = open_ledger(budget=budget).remaining()
    for name in ("epsilon", "delta", "rho", "mu"):
        value = getattr(left, name)
        assert value is None if name not in unit else value == pytest.approx(unit[name], rel=1e-12)


@pytest.mark.parametrize("budget", [Budget.zcdp(rho=0.1), Budget.gaussian(mu=math.sqrt(0.2))], ids=str)
def test_gaussian_answers_use_concentrated_budgets_up_exactly(open_ledger: Open, budget: Budget) -> None:
    # rho = 1 / (2 * 5**2) = 0.02 and mu = 1/5: five answers, up to the rounding of the sixth digit.
    assert spend(open_ledger(budget=budget), Gaussian(5.001), 1e-9) == 5


def test_a_concentrated_budget_says_what_a_refused_charge_costs(open_ledger: Open) -> None:
    with pytest.raises(BudgetExceeded) as caught:
        open_ledger(budget=Budget.gaussian(mu=0.5)).charge(Gaussian(1.0), delta=1e-9)
    assert caught.value.requested.mu == pytest.approx(1.0)


def test_noise_that_is_none_is_never_charged(open_ledger: Open) -> None:
    for budget in (APPROXIMATE, Budget.pure(epsilon=1.0), Budget.zcdp(rho=1.0)):
        with pytest.raises(BudgetExceeded):
            open_ledger(budget=budget).charge(Gaussian(0.0), delta=1e-9)


def test_a_loss_without_an_epsilon_at_that_delta_is_refused_before_it_spoils_a_filter(
    open_ledger: Open,
) -> None:
    with pytest.raises(ParameterError, match="delta must be one at which the loss has a finite epsilon"):
        open_ledger(budget=APPROXIMATE).charge(Gaussian(100.0), delta=0.0)


def test_a_loss_of_another_relation_is_refused(open_ledger: Open) -> None:
    ledger = open_ledger()
    with pytest.raises(NeighboringMismatch, match="add/remove one unit"):
        ledger.charge(PureDP(0.1, neighboring=Neighboring.REPLACE_ONE), delta=0.0)
    assert ledger.entries() == ()
    assert ledger.charge(Composed(()), delta=0.0).sequence == 1


def test_simulated_noise_is_charged_only_to_a_simulated_ledger(open_ledger: Open, at: At) -> None:
    with pytest.raises(SimulatedCharge, match="rng=None"):
        open_ledger(at("real")).charge(PureDP(0.1), delta=0.0, simulated=True)
    ledger = open_ledger(at("simulated"), simulated=True)
    ledger.charge(PureDP(0.1), delta=0.0, simulated=True)
    assert ledger.entries()[0].simulated
    assert ledger.simulated
    with pytest.raises(LedgerMismatch, match="simulated"):
        open_ledger(at("simulated"))


class Homemade(PrivacyLoss):
    """A loss that no reader knows."""

    @property
    def neighboring(self) -> Neighboring:
        return Neighboring.ADD_REMOVE

    def epsilon(self, delta: float = 0.0) -> float:
        return delta

    def to_json(self) -> str:
        return '{"format": "sfumato.loss", "version": 1, "loss": {"kind": "homemade"}}'


def test_a_loss_that_cannot_be_read_back_is_refused(open_ledger: Open) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    with pytest.raises(ParameterError, match="of a kind of loss that is known"):
        ledger.charge(Homemade(), delta=0.0)
    assert ledger.entries() == ()


class Understated(Homemade):
    """A loss that is priced as less than what it is recorded as."""

    def to_json(self) -> str:
        return PureDP(1.0).to_json()


def test_a_loss_that_is_read_back_as_another_is_refused(open_ledger: Open) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    with pytest.raises(ParameterError, match="loss must be what its JSON says"):
        ledger.charge(Understated(), delta=0.0)
    assert ledger.entries() == ()


def test_an_answer_is_found_again_only_for_the_same_request_and_version(
    open_ledger: Open, at: At, make_dataset: Callable[..., Dataset]
) -> None:
    path = at("l")
    ledger = open_ledger(path)
    assert ledger.find("q") is None
    first = ledger.charge(PureDP(0.1), delta=0.0, request="q")
    assert ledger.find("q") is None, "nothing was committed"
    ledger.commit(first, b"one")
    ledger.commit(first, b"one")
    assert ledger.find("q") == b"one"
    assert ledger.find("Q") is None
    with pytest.raises(ParameterError, match="one release"):
        ledger.commit(first, b"other")
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0, request="q"), b"two")
    assert ledger.find("q") == b"two"
    assert [entry.committed for entry in ledger.entries()] == [True, True]

    newer = open_ledger(path, dataset=make_dataset("b"), new_version=True)
    assert newer.find("q") is None
    assert ledger.find("q") == b"two"


def test_an_unnamed_request_is_never_found(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0), b"one")
    assert ledger.find("") is None


def test_another_ledgers_receipt_is_refused(open_ledger: Open) -> None:
    receipt = open_ledger().charge(PureDP(0.1), delta=0.0)
    with pytest.raises(LedgerMismatch, match="receipt"):
        open_ledger().commit(receipt, b"x")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("privacy_unit", "other"),
        ("neighboring", Neighboring.REPLACE_ONE),
        ("budget", Budget.pure(epsilon=2.0)),
        ("simulated", True),
    ],
)
def test_a_ledger_is_not_opened_for_another_use(open_ledger: Open, at: At, name: str, value: object) -> None:
    open_ledger(at("l"))
    with pytest.raises(LedgerMismatch, match=f"{name} must be the one that the ledger was made with"):
        open_ledger(at("l"), **{name: value})


def test_other_data_is_refused_or_a_new_version_that_shares_the_budget(
    open_ledger: Open, at: At, make_dataset: Callable[..., Dataset]
) -> None:
    path = at("l")
    first = open_ledger(path)
    first.charge(PureDP(0.75), delta=0.0)
    for other, part in ((make_dataset("b"), "content"), (make_dataset("a", schema="x"), "schema")):
        with pytest.raises(LedgerMismatch, match=f"another {part}; pass new_version=True"):
            open_ledger(path, dataset=other)
    second = open_ledger(path, dataset=make_dataset("b"), new_version=True)
    third = open_ledger(path, dataset=make_dataset("c", schema="x"), new_version=True)
    again = open_ledger(path, dataset=make_dataset("b"), new_version=True)
    assert [ledger.version for ledger in (first, second, third, again)] == [1, 2, 3, 2]
    assert {ledger.dataset_id for ledger in (first, second, third)} == {first.dataset_id}
    with pytest.raises(BudgetExceeded):
        third.charge(PureDP(0.5), delta=0.0)
    third.charge(PureDP(0.25), delta=0.0)
    assert [entry.version for entry in first.entries()] == [1, 3]
    assert first.verify().sound


def test_the_data_is_read_once_and_its_fingerprint_is_keyed(open_ledger: Open) -> None:
    keys: list[bytes] = []

    def fingerprint(key: bytes) -> str:
        keys.append(key)
        return "0" * 64

    for _ in range(2):
        open_ledger(dataset=Dataset(schema="s", fingerprint=fingerprint))
    assert len(keys) == len(set(keys)) == 2
    assert all(len(key) == 32 for key in keys)


def test_a_ledger_is_read_without_its_dataset(open_ledger: Open, at: At) -> None:
    ledger = open_ledger(at("l"))
    receipt = ledger.charge(PureDP(0.1), delta=0.0, request="q")
    ledger.commit(receipt, b"answer")
    with Ledger.read(at("l")) as seen:
        assert seen.entries() == ledger.entries()
        assert seen.head() == ledger.head()
        assert seen.verify() == ledger.verify()
        assert seen.remaining() == ledger.remaining()
        assert seen.find("q") == b"answer"
        assert (seen.budget, seen.privacy_unit, seen.neighboring) == (
            ledger.budget,
            ledger.privacy_unit,
            ledger.neighboring,
        )
        for write in (
            lambda: seen.charge(PureDP(0.1), delta=0.0),
            lambda: seen.commit(receipt, b"answer"),
        ):
            with pytest.raises(LedgerUnavailable, match=r"use Ledger\.open"):
                write()


def test_a_closed_ledger_says_so(open_ledger: Open, at: At) -> None:
    for path in (None, at("l")):
        with open_ledger(path) as ledger:
            ledger.charge(PureDP(0.1), delta=0.0)
        ledger.close()
        with pytest.raises(LedgerUnavailable, match="closed"):
            ledger.charge(PureDP(0.1), delta=0.0)


def test_texts_of_every_kind_are_kept(open_ledger: Open, at: At) -> None:
    texts = ["", "é\n\0\x7f\u2028", "\ud800", "x" * 100_000]
    ledger = open_ledger(at("l"), budget=Budget.zcdp(rho=1.0))
    for text in texts:
        receipt = ledger.charge(Gaussian(100.0), delta=1e-9, description=text, request=text + "!")
        ledger.commit(receipt, text.encode("utf-8", "surrogatepass"))
    assert [entry.description for entry in ledger.entries()] == texts
    assert all(ledger.find(text + "!") == text.encode("utf-8", "surrogatepass") for text in texts)


def test_charges_are_recorded_together_or_not_at_all(open_ledger: Open) -> None:
    ledger = open_ledger(budget=Budget.pure(epsilon=1.0))
    ledger.grant("ada", Budget.pure(epsilon=0.75))
    half = {"loss": PureDP(0.5), "delta": 0.0}
    quarter = {"loss": PureDP(0.25), "delta": 0.0, "request": "quarter", "description": "two"}
    ada = LedgerView(ledger, "ada")
    assert ada.charge_all([]) == ()
    with pytest.raises(BudgetExceeded, match="of analyst 'ada', got 1-DP"):
        ada.charge_all([half, half])
    with pytest.raises(BudgetExceeded, match=r"got 1\.5-DP") as refused:
        LedgerView(ledger).charge_all([half, half, half])
    assert refused.value.requested.epsilon == 1.5
    with pytest.raises(NeighboringMismatch):
        ada.charge_all([half, {"loss": Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE), "delta": 0.1}])
    assert ledger.entries() == ()
    first, second = ada.charge_all([half, quarter])
    assert (first.sequence, second.sequence, second.analyst) == (1, 2, "ada")
    ledger.commit(second, b"answer")
    assert ledger.find("quarter", analyst="ada") == b"answer"
    assert [entry.epsilon for entry in ledger.entries()] == [0.5, 0.25]
    assert [entry.committed for entry in ledger.entries()] == [False, True]
    assert ledger.remaining().epsilon == 0.25
    assert ledger.remaining(analyst="ada").epsilon == 0.0
    assert ledger.verify().sound


def test_charges_together_cost_what_they_cost_one_by_one(open_ledger: Open) -> None:
    one, other = open_ledger(budget=APPROXIMATE), open_ledger(budget=APPROXIMATE)
    charges = [(gaussian(e, d), d) for e, d in ((0.3, 1e-8), (0.7, 2e-8), (0.2, 1e-9))]
    LedgerView(one).charge_all([{"loss": loss, "delta": delta} for loss, delta in charges])
    for loss, delta in charges:
        other.charge(loss, delta=delta)
    assert one.spent() == other.spent()
    assert [entry.costs for entry in one.entries()] == [entry.costs for entry in other.entries()]
