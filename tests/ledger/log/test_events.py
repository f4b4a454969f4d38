"""What an event's body may hold: exactly its fields; anything else is refused and never skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger import Budget, Ledger, LedgerView
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.ledger.log.events import (
    Body,
    Charged,
    Committed,
    RunningTotals,
    read_event,
    write_body,
)
from sfumato.ledger.log.hash_chain import GENESIS, link
from sfumato.ledger.log.member_events import AccountSet
from sfumato.privacy import PureDP
from tests.cases import cases
from tests.ledger.tampering import execute, rewrite

Open = Callable[..., Ledger]
TOTALS = RunningTotals((Spent(0.5, 0.0),), charges=1, versions=1, accounts=1)
TIME = "2026-11-23T00:00:00.000000+00:00"
CHARGED = Charged(
    loss=PureDP(0.5).to_json(),
    epsilon=float("inf"),
    delta=1e-9,
    costs=(Spent(0.5, 0.0),),
    description="caf\u00e9 \ud800",
    request="",
    dataset_version=1,
    simulated=False,
    analyst="ada",
    period="",
    steps=3,
    run=None,
)
BODIES: dict[str, Body] = {
    "charge": CHARGED,
    "commit": Committed(request="r", dataset_version=1, payload="0" * 64),
    "account": AccountSet(analyst="ada", budget=Budget.pure(epsilon=0.5)),
    "closed": AccountSet(analyst="ada", budget=None),
}


@pytest.fixture
def path(open_ledger: Open, tmp_path: Path) -> Path:
    """A ledger of four events: opened, account, charge and commit."""
    with open_ledger(tmp_path / "l") as ledger:
        ledger.grant("ada", Budget.pure(epsilon=0.5))
        view = LedgerView(ledger, "ada")
        view.commit(view.charge(PureDP(0.25), delta=0.0, request="q"), b"answer")
    return tmp_path / "l"


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_is_read_back_as_it_was_written(body: Body) -> None:
    event = link(2, body.kind, None, write_body(body, TOTALS, TIME), GENESIS)
    assert read_event(event) == (body, TOTALS, TIME)


@cases("text", ["", "[]", "null", "{}", "{" * 10_000, '{"totals":[]}', "\ud800"])
def test_a_body_that_was_never_written_is_damage(text: str) -> None:
    with pytest.raises(LedgerCorrupt, match="hold readable events"):
        read_event(link(2, "charge", 1, text, GENESIS))
    with pytest.raises(LedgerCorrupt, match="hold readable events"):
        read_event(link(2, "refund", 1, write_body(CHARGED, TOTALS, TIME), GENESIS))


@pytest.mark.parametrize("position", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["refunded", "loss2", ""])
def test_an_unknown_field_is_refused(path: Path, position: int, name: str) -> None:
    def extend(at: int, content: dict[str, Any]) -> None:
        if at == position:
            content[name] = 1

    rewrite(path, extend)
    with pytest.raises(LedgerCorrupt, match=NOTHING_CHARGED), Ledger.read(path) as ledger:
        ledger.verify()


@pytest.mark.parametrize(
    ("position", "change"),
    [
        (2, {"budget": {"kind": "pure"}}),
        (3, {"epsilon": "nan"}),
        (3, {"epsilon": True}),
        (3, {"steps": 1.0}),
        (3, {"simulated": 0}),
        (3, {"costs": [[0.25, 0.0]]}),
        (4, {"dataset_version": "1"}),
    ],
)
def test_a_field_of_another_type_is_refused(path: Path, position: int, change: dict[str, Any]) -> None:
    def alter(at: int, content: dict[str, Any]) -> None:
        if at == position:
            content.update(change)

    rewrite(path, alter)
    with pytest.raises(LedgerCorrupt, match="hold readable events"), Ledger.read(path) as ledger:
        ledger.verify()


def test_a_ledger_of_a_later_format_is_named(path: Path) -> None:
    def later(at: int, content: dict[str, Any]) -> None:
        if at == 1:
            content["version"] = 3

    rewrite(path, later)
    with pytest.raises(LedgerUnavailable, match=r"format up to 2, got 3; upgrade sfumato"):
        Ledger.read(path)
    assert execute(path, "SELECT count(*) FROM event") == [(4,)]
