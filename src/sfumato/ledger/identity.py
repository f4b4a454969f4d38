"""What a ledger belongs to: one dataset, in one or more versions.

A dataset is given a random id when its ledger is created. Its content is recognised by a keyed fingerprint:
the key is drawn by the ledger and stays in the curator's file, so the fingerprint shows nobody else whether
a guessed dataset is the real one, and two ledgers of the same data show different fingerprints.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from sfumato import _check
from sfumato._wire import BOOLEAN, TEXT, Names, Record, optional
from sfumato.errors import LedgerMismatch
from sfumato.ledger.budget.budget import BUDGET, Budget
from sfumato.ledger.budget.renewal import RENEWAL, Renewal
from sfumato.ledger.display import ledger_html
from sfumato.ledger.store.base import Store
from sfumato.privacy.neighboring import Neighboring

__all__ = ["IDENTITY", "Dataset", "Identity", "LedgerFacts", "draw_id", "draw_key", "keyed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    r"""A dataset as a ledger sees it: its schema in the clear, its content through a keyed fingerprint only.

    Parameters
    ----------
    schema : str
        Canonical text of the tables, columns and types; equal datasets must give equal texts.
    fingerprint : callable
        Takes a secret key of 32 bytes and returns the HMAC-SHA-256 of the content under that key, as 64
        hexadecimal digits. Called when a ledger is opened, never while it is charged.

    Examples
    --------
    >>> import hashlib, hmac
    >>> content = b"id,age\n1,30\n"
    >>> dataset = Dataset(
    ...     schema="people(id BIGINT, age BIGINT)",
    ...     fingerprint=lambda key: hmac.new(key, content, hashlib.sha256).hexdigest(),
    ... )
    >>> len(dataset.digest(bytes(32)))
    64
    """

    schema: str
    fingerprint: Callable[[bytes], str]

    def __post_init__(self) -> None:
        schema: object = self.schema
        if not isinstance(schema, str) or not schema:
            _check.refuse("schema", "be a non-empty text", schema, "pass the tables, columns and types")
        if not callable(self.fingerprint):
            _check.refuse_type(
                "fingerprint",
                "be a function of a key",
                self.fingerprint,
                "pass one that returns an HMAC-SHA-256 in hexadecimal",
            )

    def digest(self, key: bytes) -> str:
        """Return the content's fingerprint under ``key``, checked to be one.

        Parameters
        ----------
        key : bytes
            The ledger's secret key, of 32 bytes.

        Returns
        -------
        str
            64 hexadecimal digits.

        Raises
        ------
        ParameterError
            The function of the dataset returned something else; it is not shown.
        """
        digest: object = self.fingerprint(key)
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            # The value is not shown: it was computed from the data.
            remedy = "return the hexdigest() of an HMAC-SHA-256"
            _check.refuse_type("fingerprint", "return 64 hexadecimal digits", digest, remedy)
        return digest


def draw_id() -> str:
    """Return a fresh random id of 128 bits, in hexadecimal."""
    return secrets.token_hex(16)


def draw_key() -> bytes:
    """Return a fresh secret key of 256 bits from the operating system."""
    return secrets.token_bytes(32)


def keyed(key: bytes, purpose: str, text: str) -> str:
    """Return the HMAC-SHA-256 of ``text`` for one purpose: no output can stand in for another purpose's.

    >>> keyed(bytes(32), "request", "x") == keyed(bytes(32), "head", "x")
    False
    """
    message = f"sfumato ledger {purpose}\n{text}".encode("utf-8", "surrogatepass")
    return hmac.new(key, message, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a ledger was made for; fixed with its first event.

    Attributes
    ----------
    ledger, dataset : str
        Random ids.
    privacy_unit : str
        What one unit is.
    neighboring : Neighboring
        How two datasets that must look alike may differ.
    budget : Budget
        What may be spent in all.
    simulated : bool
        Whether simulated noise may be charged; such a ledger protects nobody.
    renewal : Renewal or None
        How the budget renews; None if it is one for all time.
    """

    ledger: str
    dataset: str
    privacy_unit: str
    neighboring: Neighboring
    budget: Budget
    simulated: bool
    renewal: Renewal | None = None

    @property
    def protects(self) -> str:
        """What one unit is, in words; where the budget renews, a unit within one period."""
        if self.renewal is None:
            return self.privacy_unit
        return f"({self.privacy_unit}, {self.renewal.words})"

    def require_same_use(self, other: Identity) -> None:
        """Refuse to be opened for another unit, relation, budget or kind of noise than it was made for."""
        for name in ("privacy_unit", "neighboring", "budget", "simulated", "renewal"):
            made, given = getattr(self, name), getattr(other, name)
            if made != given:
                raise LedgerMismatch(
                    f"{name} must be the one that the ledger was made with, {made}, got {given}; "
                    "pass that one, or give another dataset its own ledger"
                )


class LedgerFacts:
    """What was fixed when a ledger was made, and where it is; base of `Ledger` and `LedgerView`."""

    __slots__ = ("_identity", "_store", "_version")

    def __init__(self, identity: Identity, store: Store[Any], version: int) -> None:
        self._identity = identity
        self._store = store
        self._version = version

    @property
    def budget(self) -> Budget:
        """What may be spent in all, with the split it was made with."""
        return self._identity.budget

    @property
    def renewal(self) -> Renewal | None:
        """How the budget renews; None if it is one for all time."""
        return self._identity.renewal

    @property
    def privacy_unit(self) -> str:
        """What one unit is; where the budget renews, ``(unit, period)``."""
        return self._identity.protects

    @property
    def neighboring(self) -> Neighboring:
        """How two datasets that must look alike may differ."""
        return self._identity.neighboring

    @property
    def ledger_id(self) -> str:
        """The random id that receipts and heads carry."""
        return self._identity.ledger

    @property
    def dataset_id(self) -> str:
        """The random id of the dataset, whatever its version."""
        return self._identity.dataset

    @property
    def version(self) -> int:
        """Version of the dataset that this ledger was opened with, from 1."""
        return self._version

    @property
    def simulated(self) -> bool:
        """Whether the ledger takes simulated noise and so protects nobody."""
        return self._identity.simulated

    @property
    def path(self) -> Path | None:
        """The file, or None in memory or on a server."""
        return self._store.path

    def _repr_html_(self) -> str:
        return ledger_html(self)

    def close(self) -> None:
        """Close the ledger; everything is already on the disk."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def durable(self) -> bool:
        """Whether the ledger is still there when the process ends: it is not in memory."""
        return self._store.durable


IDENTITY: Final[Record[Identity]] = Record(
    "a ledger's identity",
    Identity,
    {
        "ledger": TEXT,
        "dataset": TEXT,
        "privacy_unit": TEXT,
        "neighboring": Names(
            "a neighboring relation",
            {
                "add-remove": Neighboring.ADD_REMOVE,
                "replace-one": Neighboring.REPLACE_ONE,
                "zero-out": Neighboring.ZERO_OUT,
            },
        ),
        "budget": BUDGET,
        "simulated": BOOLEAN,
        "renewal": optional(RENEWAL),
    },
)
"""What a ledger was made for, as its first event holds it."""
