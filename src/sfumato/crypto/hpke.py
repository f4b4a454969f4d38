"""Encryption of one message to one public key: hybrid public key encryption (HPKE) in base mode.

RFC 9180 with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and the cipher that a key names, ChaCha20-Poly1305 or
AES-256-GCM, as implemented by the library ``cryptography``. Each seal uses an ephemeral key of its own, so
that two seals of the same bytes are unrelated; the context enters the key schedule, so that what is sealed
for one purpose opens for no other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from sfumato import _check

__all__ = ["CIPHERS", "SEAL", "PublicKey", "unsealed"]

SEAL: Final = 48
"""Bytes that a seal adds: an encapsulated key and a tag."""

ROLES: Final = ("analyst", "shuffler")
CIPHERS: Final = {"chacha20-poly1305": 3, "aes-256-gcm": 2}
"""The ciphers that a key may name, with their numbers in the registry of HPKE."""

CHECKSUM: Final = 4
"""Bytes of a line's checksum: a typo is not noticed with probability 2^-32."""

_PUBLIC: Final = "sfumato-{role}-public-2:"
_OLD: Final = "sfumato-{role}-public-1:"
_IDENTIFIERS: Final = struct.Struct(">HHH")
_KEM_AND_KDF: Final = (0x20, 1)
"""DHKEM(X25519, HKDF-SHA256) and HKDF-SHA256, by their numbers in the registry."""
_SUITES: Final = {
    "chacha20-poly1305": Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305),
    "aes-256-gcm": Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM),
}


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
    cipher : str
        One of `CIPHERS`: what is sealed for this key is encrypted with it.

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
    cipher: str = "chacha20-poly1305"
    _key: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            _check.refuse("role", f"be one of {', '.join(ROLES)}", self.role, "name the owner's role")
        check_cipher(self.cipher)
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
        sealed: bytes = _SUITES[self.cipher].encrypt(message, self._key, info=context)
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

    @property
    def id(self) -> str:
        """A digest of the whole line of the key, 64 hexadecimal digits, by which devices pin it."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    def to_text(self) -> str:
        """Return the key as one line of text, without a newline.

        Returns
        -------
        str
            What `from_text` reads: a prefix with the role; then base64 of the algorithms' numbers, the key's
            64 bytes and a checksum.
        """
        return encoded_line(_PUBLIC.format(role=self.role), self.cipher, self.point + self.token)

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
            If the text is not a public key of that role, is of version 1, which had no checksum, or its
            checksum is another: so with every typo but one in 2^32.
        """
        given: object = text
        if isinstance(given, str) and given.startswith(_OLD.format(role=role)):
            rule, remedy = "have a checksum, as keys of version 2", "let its owner write its public line anew"
            _check.refuse_state(role, rule, "it is a key of version 1", remedy)
        prefix = _PUBLIC.format(role=role)
        content = decoded_line(text, prefix)
        if content is None:
            remedy = f"pass the line that `sfumato shuffle keygen {role}` printed"
            _check.refuse_type(role, f"be the public key of one {role}", text, remedy)
        cipher, key = checked_line(role, prefix, content, 64)
        return PublicKey(role, key[:32], key[32:], cipher)


def check_cipher(cipher: object) -> None:
    """Refuse what is none of `CIPHERS`."""
    if not isinstance(cipher, str) or cipher not in CIPHERS:
        _check.refuse("cipher", f"be one of {', '.join(CIPHERS)}", cipher, "name one of them")


def encoded_line(prefix: str, cipher: str, key: bytes) -> str:
    """Return a line of a prefix, and in base64 the algorithms' numbers, a key and the checksum of all."""
    content = _IDENTIFIERS.pack(*_KEM_AND_KDF, CIPHERS[cipher]) + key
    return prefix + base64.b64encode(content + _checksum(prefix, content)).decode()


def decoded_line(text: object, prefix: str) -> bytes | None:
    """Return the bytes that follow the prefix of a line, or None."""
    if not isinstance(text, str) or not text.startswith(prefix):
        return None
    try:
        return base64.b64decode(text[len(prefix) :].strip(), validate=True)
    except (binascii.Error, ValueError):
        return None


def checked_line(name: str, prefix: str, content: bytes, size: int) -> tuple[str, bytes]:
    """Return the cipher and the key of a decoded line, or refuse it without showing it.

    Parameters
    ----------
    name : str
        What errors call it.
    prefix : str
        Of the line; the checksum is of it too.
    content : bytes
        What `decoded_line` returned.
    size : int
        Bytes of the key.

    Returns
    -------
    tuple of str and bytes

    Raises
    ------
    ParameterError
        If the line is cut, a character of it is another, or it names algorithms that are not known here.
    """
    whole, checksum = content[:-CHECKSUM], content[-CHECKSUM:]
    if len(whole) != _IDENTIFIERS.size + size or checksum != _checksum(prefix, whole):
        _refuse_line(name, "be the whole line of a key, without a typo", "its checksum is another")
    kem, kdf, number = _IDENTIFIERS.unpack_from(whole)
    ciphers = [cipher for cipher, known in CIPHERS.items() if known == number]
    if (kem, kdf) != _KEM_AND_KDF or not ciphers:
        found = f"it names {kem}, {kdf} and {number}"
        _refuse_line(name, "name algorithms that are known here", found)
    return ciphers[0], whole[_IDENTIFIERS.size :]


def _refuse_line(name: str, rule: str, found: str) -> NoReturn:
    _check.refuse_state(name, rule, found, "copy the line again from its owner")


def _checksum(prefix: str, content: bytes) -> bytes:
    return hashlib.sha256(prefix.encode() + content).digest()[:CHECKSUM]


def unsealed(
    sealed: bytes, key: X25519PrivateKey, context: bytes, cipher: str = "chacha20-poly1305"
) -> bytes | None:
    """Return what was sealed for a key and a context, or None: altered, or for another."""
    try:
        message: bytes = _SUITES[cipher].decrypt(sealed, key, info=context)
    except (InvalidTag, ValueError):
        return None
    return message
