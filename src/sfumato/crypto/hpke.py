"""Encryption of one message to one public key: hybrid public key encryption (HPKE) in base mode.

RFC 9180 with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20-Poly1305, as implemented by the library
``cryptography``. Each seal uses an ephemeral key of its own, so that two seals of the same bytes are
unrelated; the context enters the key schedule, so that what is sealed for one purpose opens for no other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from typing import Any, Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from sfumato import _check

__all__ = ["SEAL", "PublicKey", "unsealed"]

SEAL: Final = 48
"""Bytes that a seal adds: an encapsulated key and a tag."""

ROLES: Final = ("analyst", "shuffler")
_PUBLIC: Final = "sfumato-{role}-public-1:"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


@final
@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public half of a key: others encrypt for its owner with it, and recognise the owner by it.

    Parameters
    ----------
    role : str
        ``"analyst"`` or ``"shuffler"``.
    point : bytes
        An X25519 public key, 32 bytes.
    token : bytes
        SHA-256 of the word that identifies the owner to servers, 32 bytes.

    Raises
    ------
    ParameterError
        If a part is malformed, or the point is no usable key.

    Examples
    --------
    >>> from sfumato.crypto import SecretKey
    >>> owner = SecretKey.generate("analyst")
    >>> public = PublicKey.from_text(owner.public.to_text(), "analyst")
    >>> owner.opened(public.seal(b"yes", b"survey 7"), b"survey 7")
    b'yes'
    """

    role: str
    point: bytes
    token: bytes
    _key: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            _check.refuse("role", f"be one of {', '.join(ROLES)}", self.role, "name the owner's role")
        for name in ("point", "token"):
            part: object = getattr(self, name)
            if not isinstance(part, bytes) or len(part) != 32:
                _check.refuse_type(name, "be 32 bytes", part, "use SecretKey.public")
        object.__setattr__(self, "_key", X25519PublicKey.from_public_bytes(self.point))
        try:
            self.seal(b"", b"")
        except ValueError:  # a point of small order, whose shared secret everybody knows
            _check.refuse(
                "point", "be a key, not a point of small order", self.point.hex(), "use SecretKey.public"
            )

    def seal(self, message: bytes, context: bytes) -> bytes:
        """Return a message sealed so that only the owner of the key can read it.

        Parameters
        ----------
        message : bytes
            What to encrypt, of any length.
        context : bytes
            Public; opening requires the same bytes, so a seal made for one purpose opens for no other.

        Returns
        -------
        bytes
            `SEAL` bytes more than the message; different at every call.
        """
        sealed: bytes = _SUITE.encrypt(message, self._key, info=context)
        return sealed

    def known_by(self, word: bytes) -> bool:
        """Report whether a word is the one that identifies the owner to servers.

        Parameters
        ----------
        word : bytes
            What a caller presents; the owner's is `SecretKey.word`.

        Returns
        -------
        bool
        """
        # Both sides are digests: how many of their bytes agree reveals nothing of the word.
        return hashlib.sha256(word).digest() == self.token

    def to_text(self) -> str:
        """Return the key as one line of text, without a newline.

        Returns
        -------
        str
            What `from_text` reads: a prefix with the role, then base64.
        """
        return _PUBLIC.format(role=self.role) + base64.b64encode(self.point + self.token).decode()

    @staticmethod
    def from_text(text: str, role: str) -> PublicKey:
        """Return the key that `to_text` wrote, which must be of the given role.

        Parameters
        ----------
        text : str
            One line; surrounding whitespace at its end is ignored.
        role : str
            ``"analyst"`` or ``"shuffler"``.

        Returns
        -------
        PublicKey

        Raises
        ------
        ParameterError
            If the text is not a public key of that role.
        """
        content = decoded_line(text, _PUBLIC.format(role=role))
        if content is None or len(content) != 64:
            remedy = f"pass the line that `sfumato shuffle keygen {role}` printed"
            _check.refuse_type(role, f"be the public key of one {role}", text, remedy)
        return PublicKey(role, content[:32], content[32:])


def decoded_line(text: object, prefix: str) -> bytes | None:
    """Return the bytes that follow the prefix of a line, or None."""
    if not isinstance(text, str) or not text.startswith(prefix):
        return None
    try:
        return base64.b64decode(text[len(prefix) :].strip(), validate=True)
    except (binascii.Error, ValueError):
        return None


def unsealed(sealed: bytes, key: X25519PrivateKey, context: bytes) -> bytes | None:
    """Return what was sealed for a key and a context, or None: altered, or for another."""
    try:
        message: bytes = _SUITE.decrypt(sealed, key, info=context)
    except (InvalidTag, ValueError):
        return None
    return message
