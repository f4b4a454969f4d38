"""What a reviewer signs: that one release, byte for byte, of one charge of one ledger may be published."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato import _check
from sfumato._wire import INTEGER, TEXT, Field, Format, Record, canonical, parse

__all__ = ["Approval"]

FORMAT: Final = Format("sfumato.release-approval", 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A statement for a reviewer to sign with an Ed25519 key of their own.

    Parameters
    ----------
    ledger : str
        The ledger's id.
    number : int
        The release's charge.
    receipt : str
        The hash of the chain with that charge, in hexadecimal.
    payload : str
        The SHA-256 of the release's bytes, in hexadecimal.
    request : str
        The hash of the chain with the request for review that this answers, in hexadecimal; "" before one.
    by : str
        Who signs.
    comment : str
        What they say of it.

    Notes
    -----
    The statement depends on the release, so whoever signs it has been shown these very bytes or their hash,
    and a signature under one release, charge or ledger is worth nothing under another. It answers one
    request: of a release that was returned and asked for again, it approves nothing.

    Examples
    --------
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> approval = Approval(
    ...     ledger="6f1c", number=1, receipt="0" * 64, payload="1" * 64, request="2" * 64, by="rita"
    ... )
    >>> key = Ed25519PrivateKey.generate()
    >>> signature = approval.sign(key)
    >>> approval.signed_by(key.public_key().public_bytes_raw().hex(), signature)
    True
    """

    ledger: str
    number: int
    receipt: str
    payload: str
    request: str
    by: str
    comment: str = ""

    def to_bytes(self) -> bytes:
        """Return the bytes that are signed, by this class or by any program that has the key.

        Returns
        -------
        bytes
            A line that names the use, and the SHA-256 of `to_json`.
        """
        return b"sfumato release approval\n" + hashlib.sha256(self.to_json().encode()).digest()

    def sign(self, key: Ed25519PrivateKey) -> bytes:
        """Return the signature of this statement.

        Parameters
        ----------
        key : Ed25519PrivateKey
            The reviewer's; it is used and not stored.

        Returns
        -------
        bytes
            64 bytes.
        """
        if not isinstance(key, Ed25519PrivateKey):
            _check.refuse_type(
                "key", "be an Ed25519PrivateKey", key, "Ed25519PrivateKey.generate() makes one"
            )
        return key.sign(self.to_bytes())

    def signed_by(self, public_key: str, signature: bytes) -> bool:
        """Whether a signature is one of this statement.

        Parameters
        ----------
        public_key : str
            64 hexadecimal digits.
        signature : bytes
            What `sign` returned.

        Returns
        -------
        bool
        """
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(signature, self.to_bytes())
        except (ValueError, InvalidSignature):
            return False
        return True

    def to_json(self) -> str:
        """Return the statement as one line of JSON.

        Returns
        -------
        str
            Of the format ``sfumato.release-approval``.
        """
        return canonical(FORMAT.wrap(_RECORD.encode(self)))

    @classmethod
    def from_json(cls, text: str) -> Approval:
        """Read a statement that `to_json` wrote.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

        Returns
        -------
        Approval

        Raises
        ------
        ParameterError
            The text is not one.
        """
        name = "text of an approval"
        _, fields = FORMAT.unwrap(name, parse(name, text))
        return _RECORD.decode(name, fields)


_RECORD: Final[Record[Approval]] = Record(
    "an approval",
    Approval,
    {
        "ledger": TEXT,
        "charge": Field("number", INTEGER),
        "receipt": TEXT,
        "release_sha256": Field("payload", TEXT),
        "request": TEXT,
        "by": TEXT,
        "comment": TEXT,
    },
)
