"""Keys of an unknown domain, encrypted alike on every device: a shuffler counts what it cannot read."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from sfumato import _check
from sfumato._wire import Format, canonical
from sfumato.crypto.hpke import SEAL, PublicKey
from sfumato.local.device.base.client_nonce import NONCE, check_bytes, client_nonce
from sfumato.local.device.shuffle.collection import check_parties, later_key

__all__ = ["SPARSE_FORMAT", "SparseCollection"]

SPARSE_FORMAT: Final = "sfumato.sparse-collection"

_FORMAT: Final = Format(SPARSE_FORMAT)
_NONCE: Final = b"sfumato sparse 1 nonce\x00"
_ENVELOPE: Final = b"sfumato sparse 1 envelope\x00"
_CIPHER: Final = b"sfumato sparse 1 cipher\x00"
_COMMITMENT: Final = b"sfumato sparse 1 commitment\x00"
_SECRET: Final = 32
_TAG: Final = 16
_LENGTH: Final = struct.Struct("<H")
_MAX_KEYS: Final = 64
_MAX_BYTES: Final = 4096
_PARTS: Final = (
    "name", "epsilon", "delta", "noise", "batch_size", "max_keys", "key_bytes", "commitment", "analyst",
    "shuffler",
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseCollection:
    """A question with texts as answers, whose noisy counts above a threshold alone leave the shuffler.

    Parameters
    ----------
    epsilon, delta : float
        What a release guarantees each client under replace-one; epsilon above 0 and at most 40, delta
        strictly between 0 and 1.
    batch_size : int
        How many clients the shuffler counts together, exactly; at least 2.
    max_keys : int
        The most different keys of a client that are counted, from 1 to 64; every client sends as many.
    key_bytes : int
        The most bytes of a key in UTF-8, from 1 to 4096.
    commitment : bytes
        What `commit` returned of the devices' encryption key.
    analyst, shuffler : PublicKey
    noise : {"laplace", "gaussian"}
        Gaussian noise is less where ``max_keys`` is large.
    name : str
        Distinguishes collections that are equal in all else.

    Attributes
    ----------
    id : bytes
        32 bytes: a digest of all parameters.

    Notes
    -----
    The devices share an encryption key, which the analyst draws and the shuffler does not get. A device
    encrypts each of its keys by AES-SIV (RFC 5297) of the padded text, bound to the collection: the same text
    is the same bytes from everybody, and only who has the encryption key reads them. What a device has not to
    report it fills with random bytes, which no one else sends. All of it is sealed for the shuffler.

    What the shuffler sees below the threshold is in the notes of `sfumato.local.shuffle.SparseHistogram`.

    References
    ----------
    Rogaway, Shrimpton (2006), "A provable-security treatment of the key-wrap problem": deterministic
    authenticated encryption, which reveals which messages are alike, and nothing else.

    Examples
    --------
    >>> from sfumato.crypto import SecretKey
    >>> encryption_key = SparseCollection.encryption_key()
    >>> asked = SparseCollection(
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     batch_size=1000,
    ...     max_keys=2,
    ...     key_bytes=100,
    ...     commitment=SparseCollection.commit(encryption_key),
    ...     analyst=SecretKey.generate("analyst").public,
    ...     shuffler=SecretKey.generate("shuffler").public,
    ... )
    >>> len(asked.envelope(["https://example.org"], bytes(16), encryption_key)) == asked.envelope_width
    True
    """

    epsilon: float
    delta: float
    batch_size: int
    max_keys: int
    key_bytes: int
    commitment: bytes = field(repr=False)
    analyst: PublicKey
    shuffler: PublicKey
    noise: str = "laplace"
    name: str = ""
    id: bytes = field(init=False, compare=False)

    wire_name: ClassVar[str] = SPARSE_FORMAT

    def __post_init__(self) -> None:
        epsilon = _check.positive("epsilon", self.epsilon)
        if epsilon > 40:
            _check.refuse("epsilon", "be at most 40", epsilon, "pass a smaller one")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", _check.unit_interval("delta", self.delta))
        if self.noise not in ("laplace", "gaussian"):
            remedy = "pass 'gaussian' where a client has many keys"
            _check.refuse("noise", "be 'laplace' or 'gaussian'", self.noise, remedy)
        for name, least, most in (
            ("batch_size", 2, math.inf), ("max_keys", 1, _MAX_KEYS), ("key_bytes", 1, _MAX_BYTES),
        ):  # fmt: skip
            found = _check.integer(name, getattr(self, name), minimum=least)
            if found > most:
                _check.refuse(name, f"be at most {most}", found, "ask for less of each client")
            object.__setattr__(self, name, found)
        check_bytes("commitment", self.commitment, _SECRET, "use SparseCollection.commit")
        check_parties(self.analyst, self.shuffler, self.name)
        object.__setattr__(self, "id", hashlib.sha256(canonical(self.specification()).encode()).digest())

    @staticmethod
    def encryption_key() -> bytes:
        """Return a new encryption key for the devices, from the operating system's entropy.

        Returns
        -------
        bytes
            32 of them, for the analyst and all devices, and not for the shuffler.
        """
        return os.urandom(_SECRET)

    @staticmethod
    def commit(encryption_key: bytes) -> bytes:
        """Return what a collection states of an encryption key, which does not reveal it.

        Parameters
        ----------
        encryption_key : bytes
            What `encryption_key` returned.

        Returns
        -------
        bytes
            A digest of 32 bytes.
        """
        check_bytes("encryption_key", encryption_key, _SECRET, "use SparseCollection.encryption_key")
        return hashlib.sha256(_COMMITMENT + encryption_key).digest()

    @property
    def envelope_context(self) -> bytes:
        """What the seals of envelopes are bound to."""
        return _ENVELOPE + self.id

    @property
    def messages(self) -> int:
        """How many records each client sends."""
        return self.max_keys

    @property
    def sealed_width(self) -> int:
        """Bytes of an encrypted key."""
        return _TAG + _LENGTH.size + self.key_bytes

    @property
    def envelope_width(self) -> int:
        """Bytes of every envelope."""
        return NONCE + self.messages * self.sealed_width + SEAL

    def envelope(
        self, keys: Sequence[str], secret: bytes, encryption_key: bytes, *, key: PublicKey | None = None
    ) -> bytes:
        """Return what one device sends: its keys, encrypted and sealed.

        Parameters
        ----------
        keys : sequence of str
            The truth; any number. Of more than ``max_keys`` different ones, as many are drawn at random.
        secret : bytes
            Drawn once on the device and stored there, the same for all collections; 16 bytes or more.
        encryption_key : bytes
            That of the collection's devices.
        key : PublicKey, optional
            Of the shuffler, as `sfumato.local.device.offered_key` returned it; the collection's own by
            default.

        Returns
        -------
        bytes
            `envelope_width` of them. To send it again, send these same bytes.

        Raises
        ------
        ParameterError
            If a key is no text, or too long; the message does not show it. Or the encryption key is another.
        """
        given: object = keys
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            _check.refuse_type("keys", "be a list of texts", given, "pass [key] for one")
        texts = [self._padded(key) for key in keys]
        cipher, bound = self._cipher(encryption_key), [self.id]
        different = sorted(set(texts))
        drawn = secrets.SystemRandom().sample(different, min(self.max_keys, len(different)))
        records = [cipher.encrypt(text, bound) for text in drawn]
        records += [os.urandom(self.sealed_width) for _ in range(self.max_keys - len(records))]
        content = client_nonce(secret, _NONCE + self.id) + b"".join(sorted(records))
        outer = self.shuffler if key is None else later_key(key, self.analyst)
        return outer.seal(content, self.envelope_context)

    def _padded(self, key: object) -> bytes:
        rule = f"be texts of at most {self.key_bytes} bytes in UTF-8"
        try:
            text = key.encode() if isinstance(key, str) else b""
        except UnicodeEncodeError:
            text = b"\x00" * (self.key_bytes + 1)
        if not isinstance(key, str) or len(text) > self.key_bytes:
            _check.refuse_state("keys", rule, "one is not", "cut or hash long ones, on every device alike")
        return _LENGTH.pack(len(text)) + text.ljust(self.key_bytes, b"\x00")

    def decrypted(self, records: Sequence[bytes], encryption_key: bytes) -> list[str | None]:
        """Return the texts of encrypted keys; None is one that no device encrypted.

        Parameters
        ----------
        records : sequence of bytes
            Each of `sealed_width` bytes.
        encryption_key : bytes
            That of the collection's devices.

        Returns
        -------
        list of str or None

        Raises
        ------
        ParameterError
            If the encryption key is another.
        """
        cipher = self._cipher(encryption_key)
        return [self._text(cipher, record) for record in records]

    def _text(self, cipher: AESSIV, record: bytes) -> str | None:
        try:
            padded: bytes = cipher.decrypt(record, [self.id])
            (length,) = _LENGTH.unpack_from(padded)
            text = padded[_LENGTH.size : _LENGTH.size + length].decode()
            return text if self._padded(text) == padded else None
        except (InvalidTag, ValueError, struct.error):  # a ParameterError is a ValueError
            return None

    def _cipher(self, encryption_key: bytes) -> AESSIV:
        if self.commit(encryption_key) != self.commitment:
            _check.refuse_state(
                "encryption_key", "be that of the collection's devices", "it is another", "use that one"
            )
        return AESSIV(HKDFExpand(SHA256(), 64, _CIPHER + self.id).derive(encryption_key))

    def specification(self) -> dict[str, Any]:
        """Return all of it, as JSON, which is public; `from_specification` makes it again.

        Returns
        -------
        dict
            What `json.dumps` writes. The encryption key is not in it.
        """
        parts: dict[str, Any] = {name: getattr(self, name) for name in _PARTS}
        texts = {"commitment": self.commitment.hex(), "analyst": self.analyst.to_text()}
        return _FORMAT.wrap({**parts, **texts, "shuffler": self.shuffler.to_text()})

    @staticmethod
    def from_specification(specification: Mapping[str, Any]) -> SparseCollection:
        """Return the collection that `specification` described.

        Parameters
        ----------
        specification : mapping

        Returns
        -------
        SparseCollection

        Raises
        ------
        ParameterError
            If it is of another format, or one of its parts breaks its rule.
        """
        _, parts = _FORMAT.unwrap("collection", specification)
        if parts.keys() != set(_PARTS):
            _check.refuse(
                "collection", f"have the fields {', '.join(_PARTS)}", sorted(parts), "use the whole file"
            )
        try:
            commitment = bytes.fromhex(parts["commitment"])
        except (TypeError, ValueError):
            commitment = b""
        keys = {role: PublicKey.from_text(parts[role], role) for role in ("analyst", "shuffler")}
        return SparseCollection(**{**parts, "commitment": commitment, **keys})
