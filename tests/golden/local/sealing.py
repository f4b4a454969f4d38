"""Seals whose ephemeral key is given: HPKE's base mode step by step, for vectors that others reproduce.

Written from RFC 9180 apart from the package, which leaves the steps to a library and draws the ephemeral key.
"""

from __future__ import annotations

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

__all__ = ["sealed"]

_CIPHERS: dict[str, tuple[int, type[AESGCM | ChaCha20Poly1305]]] = {
    "aes-256-gcm": (2, AESGCM),
    "chacha20-poly1305": (3, ChaCha20Poly1305),
}
_KEM = b"KEM\x00\x20"


def sealed(point: bytes, message: bytes, context: bytes, *, cipher: str, ephemeral: bytes) -> bytes:
    """Return a message sealed for a public key: the ephemeral public key, the ciphertext and its tag."""
    number, aead = _CIPHERS[cipher]
    key = X25519PrivateKey.from_private_bytes(ephemeral)
    enc = key.public_key().public_bytes_raw()
    shared = key.exchange(X25519PublicKey.from_public_bytes(point))
    pseudorandom = _extract(_KEM, b"", b"eae_prk", shared)
    secret = _expand(_KEM, pseudorandom, b"shared_secret", enc + point, 32)
    suite = b"HPKE\x00\x20\x00\x01" + number.to_bytes(2, "big")
    schedule = (
        b"\x00" + _extract(suite, b"", b"psk_id_hash", b"") + _extract(suite, b"", b"info_hash", context)
    )
    base = _extract(suite, secret, b"secret", b"")
    cipher_key = _expand(suite, base, b"key", schedule, 32)
    nonce = _expand(suite, base, b"base_nonce", schedule, 12)
    return enc + aead(cipher_key).encrypt(nonce, message, b"")


def _extract(suite: bytes, salt: bytes, label: bytes, material: bytes) -> bytes:
    return hmac.digest(salt, b"HPKE-v1" + suite + label + material, hashlib.sha256)


def _expand(suite: bytes, key: bytes, label: bytes, context: bytes, size: int) -> bytes:
    labelled = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + context
    return hmac.digest(key, labelled + b"\x01", hashlib.sha256)[:size]
