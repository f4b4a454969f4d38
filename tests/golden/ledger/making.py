"""Golden files of the ledger: budgets, renewals, a file with every kind of event, its head, exports, schemas.

Ids, keys and times are fixed. Which losses the events hold is said here; how a loss is written is not.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato._wire import canonical
from sfumato.ledger import Budget, Dataset, Ledger, LedgerView, Renewal, Role
from sfumato.ledger.store.postgres_schema import statements as postgres_statements
from sfumato.ledger.store.sqlite_schema import STATEMENTS as SQLITE_STATEMENTS
from sfumato.privacy import Gaussian, Laplace, Neighboring, PureDP

__all__ = ["ANSWERS", "BUDGETS", "RENEWALS", "files", "fixed", "make_ledger", "open_ledger", "open_plain"]

BUDGETS = (
    Budget.approximate(epsilon=2.0, delta=1e-7),
    Budget.pure(epsilon=0.1),
    Budget.zcdp(rho=0.5, delta=1e-9),
    Budget.gaussian(mu=1.1, delta=1e-9),
    Budget.rdp(epsilon=2.0, delta=1e-6),
)
RENEWALS = tuple(
    Renewal(every=every, column="visited") for every in ("day", "week", "month", "quarter", "year")
)
ANSWERS = {"": b"\x00\xffthe answer", "ada": b"the answer to ada"}
"""The releases that are committed for the request ``q`` about January, by who asked."""

STEP = Gaussian(400.0)  # its price has a closed form, the same in the last digit on every machine
JANUARY, FEBRUARY = "2026-01", "2026-02"


def dataset(content: str) -> Dataset:
    """Return a dataset that is recognised by its content."""
    return Dataset(
        schema="visits(person_id BIGINT, visited TIMESTAMP)",
        fingerprint=lambda key: hmac.new(key, content.encode(), "sha256").hexdigest(),
    )


@contextlib.contextmanager
def fixed() -> Iterator[None]:
    """Draw ids and keys in a fixed order, and let every event be a second after the last."""
    ids, seconds = itertools.count(1), itertools.count()

    def time() -> str:
        minutes, second = divmod(next(seconds), 60)
        return f"2026-11-23T00:{minutes:02}:{second:02}.000000+00:00"

    with (
        patch("sfumato.ledger.ledger.draw_id", lambda: f"{next(ids):032x}"),
        patch("sfumato.ledger.registration.draw_key", lambda: bytes(range(32))),
        patch("sfumato.ledger.log.event_log.utc_now", time),
    ):
        yield


def open_ledger(path: Path, content: str = "second", *, new_version: bool = False) -> Ledger:
    """Open the golden ledger, or make it."""
    return Ledger.open(
        path,
        budget=Budget.approximate(epsilon=4.0, delta=1e-6),
        privacy_unit="person_id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=dataset(content),
        renewal=Renewal(every="month", column="visited"),
        new_version=new_version,
    )


def make_ledger(path: Path) -> None:
    """Write a ledger with every kind of event: analysts, periods, versions, answers, an extended run."""
    with open_ledger(path, "first") as ledger:
        ledger.grant("ada", Budget.approximate(epsilon=2.0, delta=1e-6))
        ledger.grant("bob", Budget.approximate(epsilon=1.0, delta=1e-6))
        ledger.grant("bob", None)
        for analyst, loss in (("", Laplace(4.0)), ("ada", Gaussian(20.0))):
            view = LedgerView(ledger, analyst, period=JANUARY)
            receipt = view.charge(loss, delta=1e-9, request="q", description="how many visits?")
            view.commit(receipt, ANSWERS[analyst])
        ledger.charge(Gaussian(50.0) * 3 + PureDP(0.01), delta=1e-9, period=FEBRUARY)
        ada = LedgerView(ledger, "ada", period=FEBRUARY)
        run = ada.reserve(STEP * 100, steps=100, delta=1e-7, description="train")
        run.claim(10)
        run.claim_replayable(10, "a" * 64)
        run.claim(5)
        run.extend(STEP * 20, steps=20)
    with open_ledger(path, new_version=True) as ledger:
        ledger.charge(PureDP(0.125), delta=0.0, period=JANUARY, request="after the change")


def open_plain() -> Ledger:
    """Open a ledger in memory with simulated noise and an infinite epsilon, without accounts and runs."""
    ledger = Ledger.open(
        None,
        budget=Budget.zcdp(rho=0.5),
        privacy_unit="row",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=dataset("plain"),
        simulated=True,
    )
    ledger.charge(
        Gaussian(10.0, neighboring=Neighboring.REPLACE_ONE),
        delta=0.0,
        description="caf\u00e9",
        simulated=True,
    )
    return ledger


def open_reviewed() -> Ledger:
    """Open a ledger in memory with every event about members and reviews."""
    ledger = Ledger.open(
        None,
        budget=Budget.pure(epsilon=1.0),
        privacy_unit="person_id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=dataset("reviewed"),
    )
    members, reviews, key = ledger.members, ledger.reviews, Ed25519PrivateKey.from_private_bytes(bytes(32))
    members.set_roles("carl", {Role.CURATOR, Role.AUDITOR})
    members.set_roles("rita", {Role.REVIEWER}, by="carl")
    members.register_key("rita", key.public_key(), by="carl")
    members.set_roles("ada", {Role.ANALYST}, by="carl")
    members.request_budget("ada", Budget.pure(epsilon=0.75), purpose="everything")
    members.decline_budget("ada", reason="ask for less", by="carl")
    ledger.grant("ada", Budget.pure(epsilon=0.5), by="carl", reason="the yearly report")
    members.record_failed_login("ada")
    receipt = ledger.charge(PureDP(0.125), delta=0.0, analyst="ada", purpose="the yearly report")
    ledger.commit(receipt, b"the answer")
    reviews.request(1, by="ada", comment="for the report")
    reviews.send_back(1, by="rita", comment="say what the column means")
    reviews.request(1, by="ada")
    approval = reviews.approval(1, by="rita", comment="fine")
    reviews.approve(approval, approval.sign(key))
    reviews.publish(1, by="carl")
    reviews.withdraw(1, by="carl", comment="a better one comes")
    members.revoke_key("rita", by="carl")
    return ledger


def lines(documents: Any) -> bytes:
    """Return values as lines of JSON."""
    return "".join(canonical(document.to_json()) + "\n" for document in documents).encode()


def files() -> dict[str, bytes]:
    """Return each file; those whose name begins with ``ledger`` or ``plain`` hold losses, or their hashes."""
    with tempfile.TemporaryDirectory() as folder, fixed():
        path = Path(folder) / "made"
        make_ledger(path)
        content = path.read_bytes()
        with Ledger.read(path) as ledger:
            made = {
                "ledger.sqlite": content,
                "ledger-export.jsonl": ledger.export().encode(),
                "ledger-head.json": ledger.head().to_json().encode(),
                "ledger-verification.json": ledger.verify(ledger.head()).to_json().encode(),
            }
        with open_plain() as plain:
            made["plain-export.jsonl"] = plain.export().encode()
        with open_reviewed() as reviewed:
            made["reviews-export.jsonl"] = reviewed.export().encode()
    return made | {
        "budgets.jsonl": lines(BUDGETS),
        "renewals.jsonl": lines(RENEWALS),
        "schema-postgres.sql": "".join(f"{text};\n" for text in postgres_statements('"sfumato"')).encode(),
        "schema-sqlite.sql": "".join(f"{text};\n" for text in SQLITE_STATEMENTS.values()).encode(),
    }
