"""What each kind of event holds, and how its body is written and read.

A ledger begins with `Opened` and goes on with other kinds; those about people stand in `member_events`, those
about publication in `review_events`. Beside its own fields every body has the time and the running totals
after the event, so that the last event alone says what has been spent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from sfumato import _check
from sfumato._wire import BOOLEAN, INTEGER, NUMBER, TEXT, Codec, Field, Format, Record, canonical, optional
from sfumato.errors import LedgerUnavailable, ParameterError
from sfumato.ledger.budget.spent import COST, Spent
from sfumato.ledger.failures import unreadable
from sfumato.ledger.identity import IDENTITY, Identity
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.log.member_events import (
    ACCOUNT_RECORDS,
    BUDGET_REQUEST_RECORD,
    LOGIN_RECORD,
    AccountSet,
    BudgetRequested,
    LoginFailed,
    MemberBody,
)
from sfumato.ledger.log.review_events import REVIEW_RECORDS, ReviewBody

__all__ = [
    "LEDGER",
    "AccountKey",
    "Body",
    "Charged",
    "Committed",
    "Drawn",
    "Opened",
    "RunningTotals",
    "VersionAdded",
    "body_of",
    "read_event",
    "totals_of",
    "write_body",
]

LEDGER: Final = Format("sfumato.ledger", 2)
"""The format of a ledger, which its first event states: of all its events, and of how they are hashed."""


class AccountKey(NamedTuple):
    """An account: an analyst's, or with "" the dataset's; of one period, or with "" of all time."""

    analyst: str
    period: str

    @property
    def charged(self) -> tuple[AccountKey, ...]:
        """The accounts that a charge to this one is added to: the dataset's, and then the analyst's."""
        dataset = AccountKey("", self.period)
        return (dataset, self) if self.analyst else (dataset,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The first event: what the ledger was made for, its key's commitment, and its dataset."""

    kind: ClassVar[str] = "opened"

    identity: Identity
    key: str
    schema: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionAdded:
    """Another version of the dataset."""

    kind: ClassVar[str] = "version"

    schema: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A charge, as `sfumato.ledger.log.entries.Entry` describes it.

    The loss is text, so that a loss which only a later version of sfumato knows spoils no other charge.
    ``run`` is the number of the charge whose run this one extends, None for all others. ``draws`` says that
    its noise is drawn only after an event `Drawn`: without one, nothing was drawn. ``purpose`` is what the
    answer is for, as who asks puts it.
    """

    kind: ClassVar[str] = "charge"

    loss: str
    epsilon: float
    delta: float
    costs: tuple[Spent, ...]
    description: str
    request: str
    dataset_version: int
    simulated: bool
    analyst: str
    period: str
    steps: int
    run: int | None
    draws: bool = False
    purpose: str = ""

    @property
    def accounts(self) -> tuple[AccountKey, ...]:
        """The accounts that the charge is added to, the dataset's first."""
        return AccountKey(self.analyst, self.period).charged


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A release that was stored with its charge: the hash of its request, and of its bytes."""

    kind: ClassVar[str] = "commit"

    request: str
    dataset_version: int
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The noise of a charge is about to be drawn, by the process that wrote this: once for each charge."""

    kind: ClassVar[str] = "draw"


Body: TypeAlias = Opened | VersionAdded | Charged | Drawn | Committed | MemberBody | ReviewBody


class RunningTotals(NamedTuple):
    """What a ledger adds up to after an event: what was spent, and how many of which events there were."""

    spent: tuple[Spent, ...]
    charges: int = 0
    versions: int = 0
    accounts: int = 0

    def after(self, body: Body, spent: tuple[Spent, ...]) -> RunningTotals:
        """Return the totals after one more event, when so much is spent."""
        return RunningTotals(
            spent=spent,
            charges=self.charges + isinstance(body, Charged),
            versions=self.versions + isinstance(body, Opened | VersionAdded),
            accounts=self.accounts + (body.kind == AccountSet.kind),
        )


_DATASET: Final = {"schema": TEXT, "fingerprint": TEXT}
_CHARGE: Final[Mapping[str, Codec[Any] | Field]] = {
    "loss": TEXT,
    "epsilon": NUMBER,
    "delta": NUMBER,
    "costs": COST,
    "description": TEXT,
    "request": TEXT,
    "dataset_version": INTEGER,
    "simulated": BOOLEAN,
    "analyst": TEXT,
    "period": TEXT,
    "steps": INTEGER,
    "run": optional(INTEGER),
    "draws": BOOLEAN,
    "purpose": TEXT,
}

_RECORDS: Final[Mapping[str, Record[Any]]] = {
    "opened": Record("an opening", Opened, {"identity": IDENTITY, "key": TEXT, **_DATASET}),
    "version": Record("a version of the dataset", VersionAdded, _DATASET),
    "charge": Record("a charge", Charged, _CHARGE, {"draws": False, "purpose": ""}),
    "draw": Record("a draw", Drawn, {}),
    "commit": Record(
        "a commit",
        Committed,
        {"request": TEXT, "dataset_version": INTEGER, "payload_sha256": Field("payload", TEXT)},
    ),
    BudgetRequested.kind: BUDGET_REQUEST_RECORD,
    LoginFailed.kind: LOGIN_RECORD,
    **REVIEW_RECORDS,
}
_TOTALS: Final[Record[RunningTotals]] = Record(
    "the running totals",
    RunningTotals,
    {
        "totals": Field("spent", COST),
        "charges": INTEGER,
        "dataset_versions": Field("versions", INTEGER),
        "accounts": INTEGER,
    },
)
_TOTAL_NAMES: Final = ("totals", "charges", "dataset_versions", "accounts")


def write_body(body: Body, totals: RunningTotals, time: str) -> str:
    """Return the text of an event's body; the first one states the format of all."""
    of_account: list[Record[Any]] = [
        each for kind, each in ACCOUNT_RECORDS.values() if isinstance(body, kind)
    ]
    record = of_account[0] if of_account else _RECORDS[body.kind]
    fields = {**record.encode(body), **_TOTALS.encode(totals), "time": time}
    return canonical(LEDGER.wrap(fields) if isinstance(body, Opened) else fields)


def read_event(event: Event) -> tuple[Body, RunningTotals, str]:
    """Return an event's body, the running totals after it, and its time.

    Raises
    ------
    LedgerCorrupt
        The event is none that was ever written.
    LedgerUnavailable
        It begins a ledger of a later format.
    """
    try:
        fields = _document(event)
        if event.kind == Opened.kind:
            fields = _unwrapped(fields)
        time = TEXT.decode("time", fields.pop("time", None))
        totals = _TOTALS.decode("totals", {name: fields.pop(name, None) for name in _TOTAL_NAMES})
        body: Body = _record_of(event.kind, fields).decode("body", fields)
    except ParameterError as error:
        raise unreadable(event.position) from error
    return body, totals, time


def _record_of(kind: str, fields: Mapping[str, Any]) -> Record[Any]:
    """Return how an event of a kind, with these fields, is read."""
    found = [_RECORDS[kind]] if kind in _RECORDS else []
    if kind == AccountSet.kind:
        found = [record for name, (_, record) in ACCOUNT_RECORDS.items() if name in fields]
    if len(found) != 1:
        _check.refuse("kind", "be of an event", kind, "check the ledger with sfumato ledger verify")
    return found[0]


def body_of(event: Event) -> Body:
    """Return an event's body, as `read_event`."""
    return read_event(event)[0]


def totals_of(event: Event) -> RunningTotals:
    """Return the running totals after an event, without reading the rest of it."""
    try:
        fields = _document(event)
        return _TOTALS.decode("totals", {name: fields.get(name) for name in _TOTAL_NAMES})
    except ParameterError as error:
        raise unreadable(event.position) from error


def _document(event: Event) -> dict[str, Any]:
    try:
        fields = json.loads(event.body)
    except (ValueError, RecursionError) as error:
        raise unreadable(event.position) from error
    if not isinstance(fields, dict):
        _check.refuse_type("body", "be an object", fields, "check the ledger with sfumato ledger verify")
    return fields


def _unwrapped(fields: dict[str, Any]) -> dict[str, Any]:
    version = fields.get("version")
    if fields.get("format") == LEDGER.name and type(version) is int and version > LEDGER.version:
        raise LedgerUnavailable(
            f"ledger must have a format up to {LEDGER.version}, got {version}; upgrade sfumato to read it"
        )
    return LEDGER.unwrap("ledger", fields)[1]
