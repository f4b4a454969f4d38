"""One message sealed for a public key with data that it is bound to: HPKE's base mode, in single shots.

RFC 9180 with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM or ChaCha20-Poly1305. `hpke` does the
same for messages that are bound to a context alone; protocols such as DAP bind them to associated data, too,
and carry the encapsulated key apart from the ciphertext.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

__all__ = [
    "AES_128_GCM",
    "CHACHA20_POLY1305",
    "TAG",
    "full_order",
    "open_base",
    "public_point",
    "seal_base",
]

AES_128_GCM: Final = 1
"""The registered number of AES-128-GCM."""

CHACHA20_POLY1305: Final = 3
"""The registered number of ChaCha20-Poly1305."""

TAG: Final = 16
"""Bytes that a ciphertext is longer than its message."""

_KEM: Final = b"KEM\x00\x20"
_SIZE: Final = 32
_CIPHERS: Final[dict[int, tuple[type[AESGCM | ChaCha20Poly1305], int]]] = {
    AES_128_GCM: (AESGCM, 16),
    CHACHA20_POLY1305: (ChaCha20Poly1305, 32),
}


def public_point(secret: bytes) -> bytes:
    """Return the public half of a secret key, 32 bytes each.

    Examples
    --------
    >>> len(public_point(bytes(range(32))))
    32
    """
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def full_order(point: bytes) -> bool:
    """Report whether bytes are a public key that can be sealed for: 32 bytes, and no point of small order.

    Examples
    --------
    >>> full_order(public_point(bytes(range(32)))), full_order(bytes(32)), full_order(b"short")
    (True, False, False)
    """
    try:  # every secret key is a multiple of the small orders, so that any one finds them (RFC 7748, 6.1)
        X25519PrivateKey.from_private_bytes(bytes(_SIZE)).exchange(X25519PublicKey.from_public_bytes(point))
    except ValueError:
        return False
    return True


def seal_base(
    point: bytes, info: bytes, associated: bytes, message: bytes, *, cipher: int = AES_128_GCM
) -> tuple[bytes, bytes]:
    """Return an encapsulated key and the ciphertext of a message.

    Parameters
    ----------
    point : bytes
        The recipient's public key, 32 bytes.
    info, associated : bytes
        Public; opening requires the same bytes.
    message : bytes
        What to encrypt.
    cipher : int, optional
        `AES_128_GCM` or `CHACHA20_POLY1305`.

    Returns
    -------
    tuple of bytes

    Raises
    ------
    ValueError
        If the point is one of small order, whose shared secret everybody knows.

    Examples
    --------
    >>> secret = bytes(range(32))
    >>> enc, sealed = seal_base(public_point(secret), b"survey 7", b"report 1", b"yes")
    >>> open_base(secret, enc, b"survey 7", b"report 1", sealed)
    b'yes'
    >>> open_base(secret, enc, b"survey 7", b"report 2", sealed) is None
    True
    """
    ephemeral = X25519PrivateKey.from_private_bytes(os.urandom(_SIZE))
    enc = ephemeral.public_key().public_bytes_raw()
    shared = _shared(ephemeral.exchange(X25519PublicKey.from_public_bytes(point)), enc + point)
    aead, nonce = _schedule(shared, info, cipher)
    return enc, aead.encrypt(nonce, message, associated)


def open_base(
    secret: bytes, enc: bytes, info: bytes, associated: bytes, sealed: bytes, *, cipher: int = AES_128_GCM
) -> bytes | None:
    """Return what was sealed for a key, or None: altered, or for another key or purpose.

    Parameters
    ----------
    secret : bytes
        The recipient's secret key, 32 bytes.
    enc : bytes
        The encapsulated key, of any length.
    info, associated : bytes
        What it was sealed with.
    sealed : bytes
        The ciphertext.
    cipher : int, optional
        As for `seal_base`.

    Returns
    -------
    bytes or None

    Examples
    --------
    >>> open_base(bytes(range(32)), bytes(32), b"", b"", bytes(16)) is None
    True
    """
    key = X25519PrivateKey.from_private_bytes(secret)
    try:
        exchanged = key.exchange(X25519PublicKey.from_public_bytes(enc))
        aead, nonce = _schedule(_shared(exchanged, enc + public_point(secret)), info, cipher)
        opened: bytes = aead.decrypt(nonce, sealed, associated)
    except (InvalidTag, ValueError):  # a ValueError is a point of another length, or of small order
        return None
    return opened


def _shared(exchanged: bytes, context: bytes) -> bytes:
    prk = _extract(_KEM, b"", b"eae_prk", exchanged)
    return _expand(_KEM, prk, b"shared_secret", context, _SIZE)


def _schedule(shared: bytes, info: bytes, cipher: int) -> tuple[AESGCM | ChaCha20Poly1305, bytes]:
    kind, width = _CIPHERS[cipher]
    suite = b"HPKE\x00\x20\x00\x01" + cipher.to_bytes(2, "big")
    context = b"\x00" + _extract(suite, b"", b"psk_id_hash", b"") + _extract(suite, b"", b"info_hash", info)
    secret = _extract(suite, shared, b"secret", b"")
    return kind(_expand(suite, secret, b"key", context, width)), _expand(
        suite, secret, b"base_nonce", context, 12
    )


def _extract(suite: bytes, salt: bytes, label: bytes, material: bytes) -> bytes:
    return hmac.digest(salt or bytes(_SIZE), b"HPKE-v1" + suite + label + material, hashlib.sha256)


def _expand(suite: bytes, prk: bytes, label: bytes, context: bytes, size: int) -> bytes:
    """Expand by one block of HKDF-SHA256; ``size`` is at most 32 here."""
    info = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + context
    return hmac.digest(prk, info + b"\x01", hashlib.sha256)[:size]
