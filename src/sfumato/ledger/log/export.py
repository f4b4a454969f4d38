"""A ledger's log for a third party: every event, signed, without the ledger's key and the answers.

One line of JSON each: what is exported, every event of the chain, and at last the head with its Ed25519
signature. The curator's key and the stored releases stay behind; of a release there is the hash. Any program
can check the chain and the sums; who knows the ledger's public key from elsewhere also knows who exported it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato import _check
from sfumato._wire import Format, canonical, parse
from sfumato.errors import LedgerMismatch, LedgerUnavailable, ParameterError
from sfumato.ledger.failures import corrupt
from sfumato.ledger.identity import Identity, keyed
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.entries import Entry, entries_of
from sfumato.ledger.log.event_log import LogEnd
from sfumato.ledger.log.events import Charged, Committed, Opened, body_of, read_event
from sfumato.ledger.log.hash_chain import EVENT, GENESIS, Event
from sfumato.ledger.log.member_roll import Member
from sfumato.ledger.log.review_roll import Review, ReviewRoll
from sfumato.ledger.log.verification import Verification, verify_events
from sfumato.privacy.receipt import Receipt

__all__ = ["LedgerExport", "export_lines", "public_key_of"]

FORMAT: Final = Format("sfumato.ledger-export", 1)


def public_key_of(key: bytes) -> str:
    """Return the public half of the signing key that belongs to a ledger's key, in hexadecimal."""
    return _signer(key).public_key().public_bytes_raw().hex()


def export_lines(key: bytes, identity: Identity, events: Iterable[Event], last: LogEnd) -> Iterator[str]:
    """Yield the lines of an export."""
    yield canonical(FORMAT.wrap({"ledger": identity.ledger, "public_key": public_key_of(key)}))
    for event in events:
        yield canonical(EVENT.encode(event))
    head = last.summary(identity.ledger)
    yield canonical({"head": head, "signature": _signer(key).sign(_signed(head)).hex()})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerExport:
    """An exported ledger, read without its database; made by `read`.

    Attributes
    ----------
    identity : Identity
        What the ledger was made for.
    public_key : str
        The key whose owner signed the head, in hexadecimal.
    events : tuple of Event
        The whole chain.

    Notes
    -----
    Guarantee: what `read` returns is a chain without a break whose head was signed with ``public_key``. That
    this is the right key, and that nothing was left out since, needs something from elsewhere: the key that
    the curator gave, an earlier export, or a receipt.

    Examples
    --------
    >>> from sfumato.ledger import Budget, Dataset, Ledger, LedgerExport
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> receipt = ledger.charge(Laplace(2.0), delta=0.0, description="how many people")
    >>> exported = LedgerExport.parse(ledger.export())
    >>> exported.verify(public_key=ledger.public_key, receipts=[receipt]).sound
    True
    >>> ledger.close()
    """

    identity: Identity
    public_key: str
    events: tuple[Event, ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LedgerExport:
        """Read an export from a file.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        LedgerExport

        Raises
        ------
        LedgerUnavailable
            The file cannot be read, or is of a later version.
        LedgerCorrupt
            It is no export, was cut or altered, or its signature is not that of its key.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise LedgerUnavailable(
                f"export must be a readable file, got {os.fspath(path)!r}; check the path"
            ) from error
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> LedgerExport:
        """Read an export from its text; as `read`.

        Parameters
        ----------
        text : str
            One line of JSON for each event, between a first line and the signed head.

        Returns
        -------
        LedgerExport

        Raises
        ------
        LedgerUnavailable, LedgerCorrupt
            As for `read`.
        """
        lines = [_object(line) for line in text.splitlines()]
        if len(lines) < 3 or lines[0].get("format") != FORMAT.name or "head" not in lines[-1]:
            raise _no_export("another text, or one that was cut")
        version = lines[0].get("version")
        if type(version) is int and version > FORMAT.version:
            raise LedgerUnavailable(
                f"export must have a format up to {FORMAT.version}, got {version}; upgrade sfumato"
            )
        events = tuple(_chained(lines[1:-1]))
        identity = _identity_of(events[0])
        head = LogEnd.of(events[-1]).summary(identity.ledger)
        first = FORMAT.wrap({"ledger": identity.ledger, "public_key": lines[0].get("public_key")})
        if lines[-1].get("head") != head or lines[0] != first or lines[-1].keys() != {"head", "signature"}:
            raise corrupt("end with the head of its chain", "another head")
        public_key = _check_signature(first["public_key"], lines[-1]["signature"], head)
        return cls(identity=identity, public_key=public_key, events=events)

    @property
    def ledger_id(self) -> str:
        """The random id that receipts carry."""
        return self.identity.ledger

    @property
    def head_digest(self) -> str:
        """The hash of the last event."""
        return self.events[-1].digest

    def entries(self) -> tuple[Entry, ...]:
        """Return all charges in order.

        Returns
        -------
        tuple of Entry
        """
        return entries_of(self.events, self.identity.budget)

    def reviews(self) -> tuple[Review, ...]:
        """Return where each release is that ever was in review.

        Returns
        -------
        tuple of Review

        Raises
        ------
        LedgerCorrupt
            A step breaks the rules of reviews.
        """
        return self._roll().reviews()

    def members(self) -> tuple[Member, ...]:
        """Return all members.

        Returns
        -------
        tuple of Member

        Raises
        ------
        LedgerCorrupt
            As for `reviews`.
        """
        return self._roll().members.members()

    def _roll(self) -> ReviewRoll:
        roll = ReviewRoll(self.identity)
        for event in self.events:
            body, _, time = read_event(event)
            roll.follow(event, body, time)
        return roll

    def verify(
        self,
        *,
        public_key: str | None = None,
        earlier: LedgerExport | None = None,
        receipts: Iterable[Receipt | tuple[int, str]] = (),
    ) -> Verification:
        """Check sums and budgets, price every loss again, and hold the export to what is known elsewhere.

        Parameters
        ----------
        public_key : str, optional
            The ledger's key, that the curator gave in person.
        earlier : LedgerExport, optional
            An export that this one must continue.
        receipts : iterable of Receipt, or of (number, digest)
            Charges that must be in it. A release that was answered before has none: take that of the first.

        Returns
        -------
        Verification

        Raises
        ------
        LedgerCorrupt
            The events do not add up, do not continue ``earlier``, or lack a receipt's charge.
        LedgerMismatch
            The key, the earlier export or a receipt is another ledger's.
        ParameterError
            Something among the receipts is none.
        """
        if public_key is not None and not hmac.compare_digest(
            public_key.strip().lower().encode(), self.public_key.encode()
        ):
            raise LedgerMismatch(
                "export must be signed with the ledger's key, got another key; ask the curator for the key "
                "that 'sfumato ledger key' prints"
            )
        head = None
        if earlier is not None:
            if (earlier.ledger_id, earlier.public_key) != (self.ledger_id, self.public_key):
                raise LedgerMismatch("earlier export must be of the same ledger, got another's; pass its own")
            head = ChainHead(**LogEnd.of(earlier.events[-1]).summary(self.ledger_id), mac="")
        for receipt in receipts:
            self._require(receipt)
        return verify_events(self.events, self.identity, self.events[-1], head)

    def release_digest(self, number: int) -> str | None:
        """Return the SHA-256 of the release that a charge was committed with; None if it has none.

        Parameters
        ----------
        number : int
            Of the charge.

        Returns
        -------
        str or None
            64 hexadecimal digits.
        """
        for event in self.events:
            if event.kind == Committed.kind and event.charge == number:
                body = body_of(event)
                return body.payload if isinstance(body, Committed) else None
        return None

    def _require(self, receipt: Receipt | tuple[int, str]) -> None:
        if isinstance(receipt, Receipt):
            if receipt.ledger != self.ledger_id:
                raise LedgerMismatch(
                    f"receipt must be of ledger {self.ledger_id}, got one of {receipt.ledger}; check it there"
                )
            number, digest = receipt.sequence, receipt.digest
        else:
            number, digest = _claim(receipt)
        known = [e.digest for e in self.events if e.kind == Charged.kind and e.charge == number]
        if len(digest) < 12 or not any(each.startswith(digest.lower()) for each in known):
            raise corrupt("hold every charge that it gave a receipt for", f"none for receipt {number}")


def _claim(given: object) -> tuple[int, str]:
    """Return a charge's number and the digest of its receipt, or refuse what is neither."""
    match given:
        case (int() as number, str() as digest):
            pass
        case _:
            remedy = "a release that was answered before has none: take the receipt of the first"
            _check.refuse("receipts", "hold receipts, or pairs (number, digest)", given, remedy)
    return number, digest


def _signer(key: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(keyed(key, "signing", "")))


def _signed(head: Mapping[str, object]) -> bytes:
    return b"sfumato ledger export\n" + hashlib.sha256(canonical(head).encode()).digest()


def _check_signature(public_key: object, signature: object, head: Mapping[str, object]) -> str:
    try:
        key, signed = bytes.fromhex(str(public_key)), bytes.fromhex(str(signature))
        Ed25519PublicKey.from_public_bytes(key).verify(signed, _signed(head))
    except (ValueError, InvalidSignature) as error:
        raise corrupt("be signed with the key that it names", "another signature") from error
    return key.hex()


def _object(line: str) -> dict[str, Any]:
    try:
        content = parse("export", line)
    except ParameterError as error:
        raise _no_export("a line that is not JSON") from error
    if not isinstance(content, dict):
        raise _no_export("a line that is no object")
    return content


def _chained(lines: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    previous = GENESIS
    for position, fields in enumerate(lines, start=1):
        try:
            event = EVENT.decode("event", fields)
        except ParameterError:
            event = None
        if event is None or event.position != position or event.previous != previous or not event.intact:
            raise corrupt("be an unbroken chain of events", f"a break at event {position}")
        previous = event.digest
        yield event


def _identity_of(first: Event) -> Identity:
    body = body_of(first) if first.kind == Opened.kind else None
    if not isinstance(body, Opened):
        raise corrupt("begin with its identity", "another event")
    return body.identity


def _no_export(got: str) -> Exception:
    return corrupt("be an export as 'sfumato ledger export' writes it", got)
