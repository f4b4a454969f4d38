"""Billboards: what a part may read is the signal and one's own report."""

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import BudgetExceeded, ParameterError
from sfumato.games.joint.billboard import Billboard
from sfumato.games.joint.voting import PrivateDictator
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms import Laplace
from sfumato.privacy import Neighboring

VOTE = PrivateDictator(candidates=2, epsilon=1.0)
BALLOTS = [(0, 1), (0, 1), (1, 0)]


def respond(signal: Any, report: Any) -> bool:
    return bool(signal == report[0])


def one_argument(signal: Any) -> Any:
    return signal


def with_default(signal: Any, report: Any, others: Any = BALLOTS) -> Any:
    return others


def closure() -> Callable[[Any, Any], Any]:
    others = list(BALLOTS)

    def reads(signal: Any, report: Any) -> Any:
        return others

    return reads


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (closure(), "respond must read the signal and one report only"),
        (with_default, "respond must read the signal and one report only"),
        (one_argument, "respond must take the signal and one report"),
        ({"a": 1}.get, "respond must be a plain function"),
    ],
)
def test_functions_that_could_read_more_are_refused(function: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Billboard(signal=VOTE, respond=function, agents=3)


def test_the_signal_must_protect_one_replaced_report() -> None:
    with pytest.raises(ParameterError, match="signal must protect one replaced report"):
        Billboard(signal=Laplace(sensitivity=1, scale=1), respond=respond, agents=3)
    with pytest.raises(ParameterError, match="signal must be a Mechanism"):
        Billboard(signal=None, respond=respond, agents=3)  # type: ignore[arg-type]


def test_a_release_holds_no_report() -> None:
    board = Billboard(signal=VOTE, respond=respond, agents=3)
    release = board.release(BALLOTS, rng=2)
    assert release.value in (0, 1)
    held = {name: getattr(release, name) for name in release.__dataclass_fields__}
    assert held == {
        "value": release.value, "loss": VOTE.privacy_loss, "neighboring": board.neighboring, "receipt": None,
        "simulated": True, "labels": None, "mechanism": board,
    }  # fmt: skip
    assert release.parts(BALLOTS) == [release.value == ballot[0] for ballot in BALLOTS]


def test_reports_and_agents_that_do_not_fit_are_refused() -> None:
    board = Billboard(signal=VOTE, respond=respond, agents=3)
    release = board.release(BALLOTS, rng=2)
    for reports in (BALLOTS[:2], BALLOTS * 2):
        with pytest.raises(ParameterError, match="reports must be one for each agent"):
            board.release(reports)
    with pytest.raises(ParameterError, match="reports must be a sequence"):
        board.release({0: BALLOTS[0]})
    with pytest.raises(ParameterError, match="agent must be less than 3, got 3"):
        release.part(3, (0, 1))
    assert Billboard(signal=VOTE, respond=respond, agents=1).agents == 1
    with pytest.raises(ParameterError, match="agents must be"):
        Billboard(signal=VOTE, respond=respond, agents=0)
    with pytest.raises(ParameterError, match="delta must be in"):
        Billboard(signal=VOTE, respond=respond, agents=3, delta=1.0)


def test_the_ledger_is_charged_before_anything_is_drawn() -> None:
    board = Billboard(signal=VOTE, respond=respond, agents=3)
    with Ledger.open(
        None,
        budget=Budget.pure(epsilon=1.5),
        privacy_unit="agent",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=Dataset(schema="reports", fingerprint=lambda key: "0" * 64),
    ) as ledger:
        assert board.release(BALLOTS, ledger=ledger, description="ferry").receipt is not None
        (entry,) = ledger.entries()
        assert entry.loss == board.privacy_loss
        assert entry.description == "ferry"
        with pytest.raises(BudgetExceeded):
            board.release(BALLOTS, ledger=ledger)
    with pytest.raises(ParameterError, match="ledger must be an open ledger"):
        board.release(BALLOTS, ledger="l")  # type: ignore[arg-type]
