"""What was written once is read to the same numbers, goes on being charged, and is written alike today."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import LedgerMismatch, LedgerUnavailable, ParameterError
from sfumato.ledger import Budget, ChainHead, Ledger, LedgerExport, LedgerView, Renewal, Verification
from sfumato.ledger.budget.spent import BinarySpent, Spent
from sfumato.privacy import Laplace, PureDP
from tests.golden.ledger import making
from tests.ledger.tampering import execute

GOLDEN = Path(making.__file__).parent


def text(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="ascii")


VERSIONS = ("", "version_1/")
"""Where what each version of the format wrote lies: in the first, numbers are the floats that they are."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return copied(tmp_path)


def copied(tmp_path: Path, version: str = "") -> Path:
    shutil.copy(GOLDEN / f"{version}ledger.sqlite", tmp_path / "golden")
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.sharpest("", "version_1/")
def test_a_ledger_is_whole_and_costs_no_more_than_was_recorded(tmp_path: Path, version: str) -> None:
    path = copied(tmp_path, version)
    head = ChainHead.from_json(text(f"{version}ledger-head.json"))
    with Ledger.read(path) as ledger:
        assert ledger.head() == head
        found = ledger.verify(head)
        assert found.sound
        assert found == Verification.from_json(text(f"{version}ledger-verification.json"))
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.sharpest("", "version_1/")
def test_a_ledger_goes_on(tmp_path: Path, version: str) -> None:
    path = copied(tmp_path, version)
    head = ChainHead.from_json(text(f"{version}ledger-head.json"))
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


def test_floats_are_summed_as_floats_and_decimals_after_them_as_decimals(tmp_path: Path) -> None:
    """Three masses of 1e-9, as floats, were a little more; what follows is exact, never below their sum."""
    path = copied(tmp_path, "version_1/")
    with making.open_ledger(path) as ledger:
        before = ledger.entries()
        assert all(isinstance(cost, BinarySpent) for entry in before for cost in entry.costs.values())
        for _ in range(10):
            ledger.charge(PureDP(0.1), delta=0.0, period="2027-01")
        assert ledger.remaining(period="2027-01").epsilon == 3.0
        charged = ledger.entries()[len(before) :]
        assert {entry.costs["basic"] for entry in charged} == {Spent(0.1, 0.0)}
        floats = sum(Fraction(entry.costs["basic"].amount) for entry in before)
        (total,) = execute(path, "SELECT body FROM event ORDER BY position DESC LIMIT 1")[0]
        basic = json.loads(total)["totals"][0]
        assert 0 <= Fraction(basic["amount"]) - floats - 1 < Fraction(1, 10**14)
        assert ledger.verify().sound


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.sharpest("", "version_1/")
def test_exports_are_read_back(version: str) -> None:
    exported = LedgerExport.read(GOLDEN / f"{version}ledger-export.jsonl")
    assert exported.verify(public_key=exported.public_key).sound
    assert [entry.period for entry in exported.entries()] == ["2026-01"] * 2 + ["2026-02"] * 3 + ["2026-01"]
    (entry,) = LedgerExport.read(GOLDEN / f"{version}plain-export.jsonl").entries()
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


def test_members_and_reviews_of_the_golden_export_are_read_and_verified() -> None:
    exported = LedgerExport.parse(text("reviews-export.jsonl"))
    assert exported.verify().sound
    (review,) = exported.reviews()
    states = ["requested", "returned", "requested", "approved", "published", "withdrawn"]
    assert [step.state for step in review.steps] == states
    assert review.approval is not None
    assert review.approval.signed_by(review.public_key, bytes.fromhex(review.signature))
    assert [(member.name, member.public_key, member.failed_logins) for member in exported.members()] == [
        ("ada", None, 1),
        ("carl", None, 0),
        ("rita", None, 0),
    ]
    assert [entry.purpose for entry in exported.entries()] == ["the yearly report"]
