"""A third party checks a ledger's exported log without the database: chain, sums, signature, receipts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato._wire import canonical
from sfumato.errors import LedgerCorrupt, LedgerError, LedgerMismatch, LedgerUnavailable, ParameterError
from sfumato.ledger import Budget, Ledger, LedgerExport, LedgerView, Renewal
from sfumato.ledger.log.hash_chain import EVENT, GENESIS, link
from sfumato.ledger.log.releases import payload_digest
from sfumato.privacy import PureDP, Receipt
from tests.cases import cases

Open = Callable[..., Ledger]


@pytest.fixture
def ledger(open_anywhere: Open) -> Ledger:
    ledger = open_anywhere()
    ledger.grant("ada", Budget.pure(epsilon=0.5))
    LedgerView(ledger, "ada").charge(PureDP(0.25), delta=0.0, description="é\u2028\ud800", request="q")
    ledger.commit(ledger.charge(PureDP(0.25), delta=0.0, request="secret question"), b"secret answer")
    return ledger


def test_an_export_says_and_proves_what_the_ledger_does(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "l.jsonl").write_text(ledger.export(), encoding="utf-8")
    exported = LedgerExport.read(tmp_path / "l.jsonl")
    assert exported.entries() == ledger.entries()
    assert exported.verify(public_key=ledger.public_key) == ledger.verify()
    assert (exported.ledger_id, exported.head_digest) == (ledger.ledger_id, ledger.head().digest)
    assert exported.release_digest(2) == payload_digest(b"secret answer")
    assert exported.release_digest(1) is None
    assert exported.identity.budget == ledger.budget


def test_an_export_holds_no_secret(ledger: Ledger) -> None:
    text = ledger.export()
    assert text.isascii()
    for secret in ("secret", ledger._key.hex()):
        assert secret not in text


def test_receipts_are_found_in_the_export(ledger: Ledger, open_ledger: Open) -> None:
    receipt = ledger.charge(PureDP(0.125), delta=0.0)
    exported = LedgerExport.parse(ledger.export())
    exported.verify(receipts=[receipt, (3, receipt.digest[:12].upper())])
    wrong: list[Receipt | tuple[int, str]] = [
        replace(receipt, sequence=2),
        replace(receipt, digest=GENESIS),
        (3, receipt.digest[:11]),
        (9, receipt.digest),
    ]
    for claim in wrong:
        with pytest.raises(LedgerCorrupt, match="receipt for, got none"):
            exported.verify(receipts=[claim])
    with pytest.raises(LedgerMismatch, match="receipt must be of ledger"):
        exported.verify(receipts=[open_ledger().charge(PureDP(0.1), delta=0.0)])
    nothing: list[Any] = [None, 3, ("3", receipt.digest), (3,)]
    for given in nothing:
        with pytest.raises(ParameterError, match="receipts must hold receipts"):
            exported.verify(receipts=[given])


def test_an_export_must_continue_an_earlier_one(ledger: Ledger, open_ledger: Open) -> None:
    earlier = LedgerExport.parse(ledger.export())
    ledger.charge(PureDP(0.125), delta=0.0)
    later = LedgerExport.parse(ledger.export())
    assert later.verify(earlier=earlier).charges == 3
    with pytest.raises(LedgerCorrupt, match="rolled back"):
        earlier.verify(earlier=later)
    with pytest.raises(LedgerMismatch, match="earlier export"):
        later.verify(earlier=LedgerExport.parse(open_ledger().export()))


def test_a_key_that_was_told_must_be_the_exports(ledger: Ledger, open_ledger: Open) -> None:
    exported = LedgerExport.parse(ledger.export())
    exported.verify(public_key=f" {ledger.public_key.upper()}\n")
    for other in (open_ledger().public_key, "", "é"):
        with pytest.raises(LedgerMismatch, match="signed with the ledger's key"):
            exported.verify(public_key=other)


def rewritten(text: str, change: Callable[[int, dict[str, Any]], None]) -> str:
    """Forge an export as somebody without the key could: events changed, and the chain hashed again."""
    lines = [json.loads(line) for line in text.splitlines()]
    previous = GENESIS
    for place, fields in enumerate(lines[1:-1], 1):
        content = json.loads(fields["body"])
        change(place, content)
        event = link(fields["position"], fields["kind"], fields["charge"], canonical(content), previous)
        previous, lines[place] = event.digest, EVENT.encode(event)
    lines[-1]["head"]["digest"] = previous
    return "\n".join(map(json.dumps, lines))


def test_a_forged_chain_is_not_signed(ledger: Ledger) -> None:
    def cheaper(place: int, content: dict[str, Any]) -> None:
        if place == 3:
            content["description"] = "other"

    same = rewritten(ledger.export(), lambda place, content: None)
    assert LedgerExport.parse(same).entries() == ledger.entries()
    with pytest.raises(LedgerCorrupt, match="signed with the key"):
        LedgerExport.parse(rewritten(ledger.export(), cheaper))


def test_every_cut_or_changed_line_is_found(ledger: Ledger) -> None:
    lines = ledger.export().splitlines()
    for place in range(len(lines)):
        for altered in (
            [*lines[:place], *lines[place + 1 :]],
            lines[:place],
            [*lines[:place], "{}", *lines[place + 1 :]],
            [*lines[:place], "x", *lines[place + 1 :]],
            [*lines[:place], "[]", *lines[place + 1 :]],
            [*lines[:place], lines[place], *lines[place:]],
            [*lines[:place], lines[place].replace("0.25", "0.125").replace("ad", "da"), *lines[place + 1 :]],
        ):
            if altered != lines:
                with pytest.raises(LedgerError):
                    LedgerExport.parse("\n".join(altered)).verify()


@cases("text", ["", "\n", "{}", "id,age\n1,30\n", "[1]\n[2]\n[3]", "{}\n{}\n{}"])
def test_what_is_no_export_is_refused(text: str) -> None:
    with pytest.raises(LedgerCorrupt, match="be an export"):
        LedgerExport.parse(text)


def test_files_that_cannot_be_read_and_later_formats_are_named(open_ledger: Open, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "bytes"):
        with pytest.raises(LedgerUnavailable, match="export must be a readable file"):
            LedgerExport.read(path)
    with pytest.raises(LedgerUnavailable, match="upgrade sfumato"):
        LedgerExport.parse(open_ledger().export().replace('"version":1', '"version":2', 1))


def test_a_renewing_ledger_is_exported_with_its_periods(open_anywhere: Open) -> None:
    ledger = open_anywhere(renewal=Renewal(every="month", column="t"))
    for period in ("2026-01", "2026-02"):
        ledger.charge(PureDP(0.75), delta=0.0, period=period)
    exported = LedgerExport.parse(ledger.export())
    assert exported.verify().sound
    assert [entry.period for entry in exported.entries()] == ["2026-01", "2026-02"]
    assert exported.identity.protects == "(id, month of t)"


def test_a_ledger_without_charges_is_exported_too(open_ledger: Open) -> None:
    ledger = open_ledger(budget=Budget.zcdp(rho=1.0))
    assert LedgerExport.parse(ledger.export()).verify().events == 1
