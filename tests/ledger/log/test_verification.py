"""Tampering, roll-back, and losses whose price was mended."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sfumato.errors import LedgerCorrupt, LedgerMismatch, LedgerUnavailable, ParameterError
from sfumato.ledger import Budget, ChainHead, Ledger, Spent
from sfumato.ledger.budget.spent import COST
from sfumato.ledger.log.hash_chain import GENESIS
from sfumato.privacy import Gaussian, PoissonSubsampled, PrivacyLoss, PureDP, calibrate
from sfumato.privacy.accountant import intervals
from tests.cases import cases
from tests.ledger.tampering import execute, rewrite, tamper

Open = Callable[..., Ledger]


@pytest.fixture
def path(open_ledger: Open, tmp_path: Path) -> Path:
    """A ledger with three charges of 0.1, two of them committed."""
    ledger = open_ledger(tmp_path / "l")
    receipts = [ledger.charge(PureDP(0.1), delta=0.0, request=name) for name in "abc"]
    for receipt in receipts[:2]:
        ledger.commit(receipt, b"release %d" % receipt.sequence)
    ledger.close()
    return tmp_path / "l"


@contextlib.contextmanager
def patched_price(epsilon: float) -> Iterator[None]:
    """Have charges cost less than they do, as an accountant with a hole would."""
    rooms = ("filters", "budget_check")
    with contextlib.ExitStack() as patches:
        for room in rooms:
            patches.enter_context(patch(f"sfumato.ledger.budget.{room}.own_epsilon", lambda *_: epsilon))
        yield


ALTERED = {
    "description": 'UPDATE event SET body = replace(body, \'"description":""\', \'"description":"x"\') '
    "WHERE position = 3",
    "last": "UPDATE event SET body = body || ' ' WHERE position = 6",
    "kind": "UPDATE event SET kind = 'commit' WHERE position = 4",
    "hash": "UPDATE event SET digest = previous WHERE position = 3",
    "first": "UPDATE event SET body = replace(body, '1.0', '9.0') WHERE position = 1",
    "deleted": "DELETE FROM event WHERE position = 3",
    "deleted last": "DELETE FROM event WHERE position = 6",
    "deleted all": "DELETE FROM event",
    "key": "UPDATE secret SET key = zeroblob(32)",
    "no key": "DELETE FROM secret",
}


@pytest.mark.parametrize("statement", ALTERED.values(), ids=ALTERED)
def test_altered_and_deleted_rows_are_found_when_opening(
    path: Path, statement: str, open_ledger: Open
) -> None:
    tamper(path, statement)
    for attempt in (open_ledger, Ledger.read):
        with pytest.raises(LedgerCorrupt, match="nothing was charged"):
            attempt(path)


def test_swapped_rows_are_found_when_opening(path: Path, open_ledger: Open) -> None:
    tamper(
        path,
        "UPDATE event SET position = -2 WHERE position = 2",
        "UPDATE event SET position = 2, charge = NULL WHERE position = 3",
        "UPDATE event SET position = 3 WHERE position = -2",
        "UPDATE event SET charge = 2 WHERE position = 2",
    )
    with pytest.raises(LedgerCorrupt, match="chain"):
        open_ledger(path)


RELEASES = {
    "payload": "UPDATE release SET payload = x'00' WHERE charge = 1",
    "request": "UPDATE release SET request = (SELECT request FROM release WHERE charge = 2) WHERE charge = 1",
    "version": "UPDATE release SET dataset_version = 2 WHERE charge = 1",
    "deleted": "DELETE FROM release WHERE charge = 1",
    "added": "INSERT INTO release VALUES (3, 'x', 1, x'00')",
    "moved": "UPDATE release SET charge = 3 WHERE charge = 2",
}


@pytest.mark.parametrize("statement", RELEASES.values(), ids=RELEASES)
def test_altered_releases_are_found_by_verify_and_never_handed_out(
    path: Path, statement: str, open_ledger: Open
) -> None:
    tamper(path, statement)
    ledger = open_ledger(path)
    with pytest.raises(LedgerCorrupt, match="release"):
        ledger.verify()
    for request, payload in (("a", b"release 1"), ("b", b"release 2"), ("c", None)):
        with contextlib.suppress(LedgerCorrupt):
            assert ledger.find(request) in (payload, None)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER event_update_refused",
        "DROP INDEX release_of_request",
        "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM event; END",
        "CREATE TABLE more (x)",
        "DROP TABLE release",
    ],
)
def test_an_altered_schema_is_refused(path: Path, statement: str, open_ledger: Open) -> None:
    execute(path, statement)
    with pytest.raises(LedgerCorrupt, match="tables and triggers"):
        open_ledger(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET kind = 'x'",
        "DELETE FROM event",
        "INSERT OR REPLACE INTO event VALUES (2, 'charge', 1, 'b', 'p', 'd')",
        "INSERT INTO event VALUES (99, 'charge', 9, 'b', 'p', 'd')",
        "INSERT INTO event VALUES (7, 'charge', 3, 'b', 'p', 'd')",
        "INSERT OR REPLACE INTO release VALUES (1, 'r', 1, x'00')",
        "DELETE FROM release",
        "UPDATE release SET payload = x'00'",
        "INSERT OR REPLACE INTO secret VALUES (1, x'00')",
        "DELETE FROM secret",
    ],
)
def test_the_database_itself_is_append_only(path: Path, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        execute(path, statement)


def test_a_forged_log_is_found_against_an_exported_head(path: Path, open_ledger: Open) -> None:
    with open_ledger(path) as ledger:
        head = ledger.head()
    rewrite(path, lambda position, content: content.update(time="2020-01-01T00:00:00+00:00"))
    forged = open_ledger(path)
    assert forged.verify().sound
    with pytest.raises(LedgerCorrupt, match="continue the head"):
        forged.verify(head)


def test_totals_that_are_not_the_sum_are_found(path: Path, open_ledger: Open) -> None:
    def hide(position: int, content: dict[str, Any]) -> None:
        if position == 6:
            content["totals"] = [{"amount": 0.1, "delta": 0.0}]

    rewrite(path, hide)
    with pytest.raises(LedgerCorrupt, match="add up"):
        open_ledger(path).verify()


def test_a_rolled_back_file_is_found_against_an_exported_head(
    path: Path, open_ledger: Open, tmp_path: Path
) -> None:
    shutil.copy(path, tmp_path / "old")
    with open_ledger(path) as ledger:
        ledger.charge(PureDP(0.1), delta=0.0)
        head = ledger.head()
        assert ledger.verify(head).sound
    shutil.copy(tmp_path / "old", path)
    old = open_ledger(path)
    assert old.verify().sound, "without a head nothing can tell"
    with pytest.raises(LedgerCorrupt, match="rolled back"):
        old.verify(head)


def test_a_pinned_head_is_asked_for_when_the_ledger_is_opened(
    path: Path, open_ledger: Open, tmp_path: Path
) -> None:
    shutil.copy(path, tmp_path / "old")
    with open_ledger(path) as ledger:
        early = ledger.head()
        ledger.charge(PureDP(0.1), delta=0.0)
        head = ledger.head()
    for seen in (early, head):
        assert open_ledger(path, head=seen).head() == head
    shutil.copy(tmp_path / "old", path)
    with pytest.raises(LedgerCorrupt, match="continue the head, got a chain without it: the ledger was roll"):
        open_ledger(path, head=head)
    open_ledger(path, head=early).charge(PureDP(0.1), delta=0.0)
    with pytest.raises(LedgerCorrupt, match="continue the head, got another event"):
        open_ledger(path, head=head)
    with pytest.raises(LedgerMismatch, match="head must be one that this ledger exported"):
        open_ledger(tmp_path / "old", head=open_ledger().head())
    with pytest.raises(LedgerUnavailable):
        open_ledger(tmp_path / "gone", head=head)
    assert not (tmp_path / "gone").exists(), "what was seen before is not made anew"
    with pytest.raises(ParameterError, match="head must come with a ledger"):
        open_ledger(None, head=head)


def test_a_pinned_head_counts_the_steps_of_runs(path: Path, open_ledger: Open, tmp_path: Path) -> None:
    with open_ledger(path) as ledger:
        run = ledger.reserve(PureDP(0.1), steps=8, delta=0.0)
        run.claim(3)
    shutil.copy(path, tmp_path / "old")
    with open_ledger(path) as ledger:
        ledger.run(run.number).claim(2)
        head = ledger.head()
    assert open_ledger(path, head=head).head() == head
    with pytest.raises(LedgerCorrupt, match="3 claimed steps where the head has seen 5"):
        open_ledger(tmp_path / "old", head=head)


def test_later_charges_continue_an_older_head(path: Path, open_ledger: Open) -> None:
    ledger = open_ledger(path)
    head = ChainHead.from_json(ledger.head().to_json())
    ledger.charge(PureDP(0.1), delta=0.0)
    assert ledger.verify(head).charges == 4


def test_heads_that_the_ledger_did_not_export_are_refused(path: Path, open_ledger: Open) -> None:
    ledger = open_ledger(path)
    head = ledger.head()
    assert head.charges == 3
    for wrong in (
        dataclasses.replace(head, position=1),
        dataclasses.replace(head, digest=GENESIS),
        dataclasses.replace(head, mac="é"),
        open_ledger().head(),
    ):
        with pytest.raises(LedgerMismatch, match="head must be one that this ledger exported"):
            ledger.verify(wrong)


@cases("text", ["", "{}", "[]", '{"ledger": 1}', None, "{" * 10_000])
def test_texts_that_are_no_heads_are_refused(text: Any) -> None:
    with pytest.raises(ParameterError, match="exported head"):
        ChainHead.from_json(text)


def test_a_price_that_was_mended_upward_is_flagged(path: Path, open_ledger: Open) -> None:
    """The log as an earlier version would have left it, that thought the second charge cheaper."""

    spent = Spent(0.1, 0.0).plus(Spent(0.05, 0.0))

    def cheap(position: int, content: dict[str, Any]) -> None:
        if position == 3:
            content["costs"] = COST.encode((Spent(0.05, 0.0),))
        if position >= 3:
            content["totals"] = COST.encode((spent,))
        if position >= 4:
            content["totals"] = COST.encode((spent.plus(Spent(0.1, 0.0)),))

    rewrite(path, cheap)
    ledger = open_ledger(path)
    found = ledger.verify()
    assert (found.underpriced, found.overdrawn, found.sound) == ((2,), False, False)


def test_a_charge_that_was_read_finely_is_sound_in_another_process(open_ledger: Open, tmp_path: Path) -> None:
    """A calibration reads its loss more finely than a price does, and what is proven is remembered."""

    def made(noise: float) -> PrivacyLoss:
        return PoissonSubsampled(Gaussian(noise), sampling_probability=0.1) * 1000

    ledger = open_ledger(tmp_path / "l", budget=Budget.approximate(epsilon=2.0, delta=5e-5))
    loss = made(calibrate(made, epsilon=2.0, delta=2.5e-5, tolerance=1e-4))
    ledger.charge(loss, delta=2.5e-5)
    recorded = ledger.entries()[0].epsilon
    intervals._known.cache_clear()  # as another process begins
    assert loss.epsilon(2.5e-5) > recorded
    intervals._known.cache_clear()
    assert ledger.verify().sound
    # A price below the truth is still found, and with it that the budget does not hold.
    with patched_price(recorded * (1 - 1e-3)):
        low = open_ledger(tmp_path / "low", budget=Budget.approximate(epsilon=2.0, delta=5e-5))
        low.charge(loss, delta=2.5e-5)
    intervals._known.cache_clear()
    assert low.verify().underpriced == (1,)


def test_a_budget_that_is_overdrawn_at_todays_prices_is_flagged(open_ledger: Open, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "l") as ledger:
        for _ in range(2):
            ledger.charge(PureDP(0.5), delta=0.0)

    def dearer(position: int, content: dict[str, Any]) -> None:
        if position > 1:
            content["loss"] = PureDP(0.75).to_json()

    rewrite(tmp_path / "l", dearer)
    found = open_ledger(tmp_path / "l").verify()
    assert (found.underpriced, found.overdrawn) == ((1, 2), True)


def test_a_split_that_is_too_generous_today_is_flagged(open_ledger: Open, tmp_path: Path) -> None:
    budget = Budget.approximate(epsilon=1.0, delta=1e-6)
    with open_ledger(tmp_path / "l", budget=budget) as ledger:
        for _ in range(2):
            ledger.charge(PureDP(0.4), delta=0.0)

    def generous(position: int, content: dict[str, Any]) -> None:
        if position == 1:
            content["identity"]["budget"]["filters"][0]["limit"] = 0.5
            content["identity"]["budget"]["filters"][1]["limit"] = 5.0

    rewrite(tmp_path / "l", generous)
    assert open_ledger(tmp_path / "l", budget=budget).verify().overdrawn


def test_a_loss_of_a_later_version_is_named(path: Path, open_ledger: Open) -> None:
    def unknown(position: int, content: dict[str, Any]) -> None:
        if position == 3:
            for known in ("PureDP", "pure-dp"):
                content["loss"] = content["loss"].replace(known, "noisier-dp")
            assert "noisier-dp" in content["loss"]

    rewrite(path, unknown)
    ledger = open_ledger(path)
    for attempt in (ledger.entries, ledger.verify):
        with pytest.raises(LedgerUnavailable, match="charge 2; upgrade sfumato"):
            attempt()


@pytest.mark.parametrize("field", ["budget", "neighboring", "ledger", "schema", "totals", "charges", "key"])
def test_a_forged_log_without_a_field_is_damage(path: Path, open_ledger: Open, field: str) -> None:
    def drop(_: int, content: dict[str, Any]) -> None:
        content.pop(field, None)
        content.get("identity", {}).pop(field, None)

    rewrite(path, drop)
    with pytest.raises((LedgerCorrupt, LedgerMismatch)):
        open_ledger(path)


@pytest.mark.parametrize(
    "field", ["costs", "loss", "delta", "epsilon", "time", "dataset_version", "description"]
)
def test_a_forged_charge_without_a_field_is_damage(path: Path, open_ledger: Open, field: str) -> None:
    def drop(position: int, content: dict[str, Any]) -> None:
        if position == 3:
            content.pop(field)

    rewrite(path, drop)
    with pytest.raises(LedgerCorrupt):
        open_ledger(path).verify()
