"""What was written once is read to the same numbers, goes on being charged, and is written alike today."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from sfumato.errors import LedgerMismatch, LedgerUnavailable, ParameterError
from sfumato.ledger import Budget, ChainHead, Ledger, LedgerExport, LedgerView, Renewal, Verification
from sfumato.privacy import Laplace
from tests.golden.ledger import making
from tests.ledger.tampering import execute

GOLDEN = Path(making.__file__).parent


def text(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="ascii")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    shutil.copy(GOLDEN / "ledger.sqlite", tmp_path / "golden")
    return tmp_path / "golden"


def dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_the_same_bytes_are_written_today(path: Path, tmp_path: Path) -> None:
    made = making.files()
    assert sorted(made) == sorted(file.name for file in GOLDEN.iterdir() if file.suffix not in (".py", ""))
    # A database file also says which SQLite wrote it: of two files the rows and tables are compared.
    (tmp_path / "today").write_bytes(made.pop("ledger.sqlite"))
    assert dump(tmp_path / "today") == dump(path)
    assert (
        execute(tmp_path / "today", "PRAGMA user_version") == execute(path, "PRAGMA user_version") == [(1,)]
    )
    assert execute(path, "PRAGMA application_id") == [(int.from_bytes(b"SFLG"),)]
    for name, content in made.items():
        assert content == (GOLDEN / name).read_bytes(), name


def test_budgets_and_renewals_are_read_back() -> None:
    budgets = [Budget.from_json(json.loads(line)) for line in text("budgets.jsonl").splitlines()]
    assert tuple(budgets) == making.BUDGETS
    assert [budget.filters for budget in budgets] == [budget.filters for budget in making.BUDGETS]
    renewals = [Renewal.from_json(json.loads(line)) for line in text("renewals.jsonl").splitlines()]
    assert tuple(renewals) == making.RENEWALS


def test_a_ledger_is_whole_and_costs_no_more_than_was_recorded(path: Path) -> None:
    head = ChainHead.from_json(text("ledger-head.json"))
    with Ledger.read(path) as ledger:
        assert ledger.head() == head
        found = ledger.verify(head)
        assert found.sound
        assert found == Verification.from_json(text("ledger-verification.json"))
        entries = ledger.entries()
        for entry in entries:
            assert entry.loss.epsilon(entry.delta) <= entry.epsilon
        assert [entry.committed for entry in entries] == [True, True, False, False, False, False]
        assert [entry.analyst for entry in entries] == ["", "ada", "", "ada", "ada", ""]
        assert [entry.steps for entry in entries] == [0, 0, 0, 100, 20, 0]
        assert [entry.version for entry in entries] == [1, 1, 1, 1, 1, 2]
        assert [(account.analyst, account.charges) for account in ledger.accounts()] == [
            ("ada", 3),
            ("bob", 0),
        ]
        run = ledger.run(4, digest=entries[3].digest)
        assert (run.reserved, run.claimed, run.left) == (120, 16, 104)
        assert LedgerExport.parse(ledger.export()).entries() == entries


def test_a_ledger_goes_on(path: Path) -> None:
    head = ChainHead.from_json(text("ledger-head.json"))
    with making.open_ledger(path) as ledger:
        assert ledger.charge(Laplace(50.0), delta=1e-9, period="2026-01", request="q").sequence == 7
        ada = LedgerView(ledger, "ada", period="2026-02")
        run = ada.run(4)
        assert run.claim_replayable(10, "a" * 64)
        assert run.claim(2) == range(16, 18)
        with pytest.raises(LedgerMismatch, match="account was closed"):
            LedgerView(ledger, "bob", period="2026-01")
        assert ledger.verify(head).sound


def test_committed_answers_are_given_again_without_a_charge(path: Path) -> None:
    with making.open_ledger(path, "first") as ledger:
        for analyst, answer in making.ANSWERS.items():
            assert LedgerView(ledger, analyst, period="2026-01").find("q") == answer
            assert LedgerView(ledger, analyst, period="2026-02").find("q") is None
        assert len(ledger.entries()) == 6
    with making.open_ledger(path) as ledger:
        assert ledger.find("q", period="2026-01") is None, "the answers are those of the first version"


def test_exports_are_read_back() -> None:
    exported = LedgerExport.read(GOLDEN / "ledger-export.jsonl")
    assert exported.verify(public_key=exported.public_key).sound
    assert [entry.period for entry in exported.entries()] == ["2026-01"] * 2 + ["2026-02"] * 3 + ["2026-01"]
    (entry,) = LedgerExport.read(GOLDEN / "plain-export.jsonl").entries()
    assert (entry.epsilon, entry.simulated, entry.description) == (float("inf"), True, "caf\u00e9")


def test_what_a_later_version_writes_is_named_and_never_skipped(path: Path) -> None:
    head = text("ledger-head.json")
    with pytest.raises(ParameterError, match=r"version of sfumato\.ledger-head from 1 to 1, got 2"):
        ChainHead.from_json(head.replace('"version":1', '"version":2'))
    with pytest.raises(ParameterError, match="be a chain head with"):
        ChainHead.from_json(head.replace('"digest"', '"hash"'))
    export = text("ledger-export.jsonl")
    with pytest.raises(LedgerUnavailable, match="upgrade sfumato"):
        LedgerExport.parse(export.replace('"version":1', '"version":2', 1))
    execute(path, "PRAGMA user_version = 2")
    with pytest.raises(LedgerUnavailable, match="upgrade sfumato"):
        Ledger.read(path)
