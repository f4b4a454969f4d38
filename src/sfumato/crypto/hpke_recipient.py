"""Opens many messages that were sealed for one key and one context: the same as one by one, in less time."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

__all__ = ["Recipient"]

_POINT: Final = 32
_SEAL: Final = 48
_VERSION: Final = b"HPKE-v1"
_KEM: Final = b"KEM\x00\x20"
_CIPHERS: Final[dict[str, tuple[bytes, type[ChaCha20Poly1305 | AESGCM]]]] = {
    "chacha20-poly1305": (b"HPKE\x00\x20\x00\x01\x00\x03", ChaCha20Poly1305),
    "aes-256-gcm": (b"HPKE\x00\x20\x00\x01\x00\x02", AESGCM),
}
"""The suite's identifier and the cipher, by name; both ciphers have keys of 32 bytes and nonces of 12."""
_FILL: Final = b"\x36" * 32, b"\x5c" * 32
_INNER, _OUTER = (int.from_bytes(half, "big") for half in _FILL)


@final
class Recipient:
    """The owner of a key, who opens messages of one context.

    Parameters
    ----------
    key : X25519PrivateKey
    context : bytes
        What the messages were sealed with.
    cipher : str
        One of `sfumato.crypto.hpke.CIPHERS`.

    Notes
    -----
    RFC 9180, base mode, as `sfumato.crypto.hpke` seals it. What depends on the key and the context alone is
    computed once: the digests of the context (section 5.1), and all labels. The HMACs of the key schedule are
    written out as the two hashes that they are (RFC 2104), for three of the five have a key in common with
    another. Keys are combined with the pads as whole numbers, without a table that a secret would index.

    Examples
    --------
    >>> from sfumato.crypto import SecretKey
    >>> owner = SecretKey.generate("analyst")
    >>> recipient = owner.recipient(b"survey 7")
    >>> recipient.opened(owner.public.seal(b"yes", b"survey 7"))
    b'yes'
    >>> recipient.opened(owner.public.seal(b"yes", b"survey 8")) is None
    True
    """

    __slots__ = ("_cipher", "_exchange", "_key_info", "_labels", "_nonce_info")

    def __init__(self, key: X25519PrivateKey, context: bytes, cipher: str = "chacha20-poly1305") -> None:
        suite, self._cipher = _CIPHERS[cipher]
        self._exchange = key.exchange
        digests = (
            hmac.digest(bytes(_POINT), _VERSION + suite + label + content, hashlib.sha256)
            for label, content in ((b"psk_id_hash", b""), (b"info_hash", context))
        )
        schedule = b"\x00" + b"".join(digests) + b"\x01"
        self._key_info = b"\x00\x20" + _VERSION + suite + b"key" + schedule
        self._nonce_info = b"\x00\x0c" + _VERSION + suite + b"base_nonce" + schedule
        inner, outer = _padded(bytes(_POINT))
        self._labels = (
            inner + _VERSION + _KEM + b"eae_prk",
            outer,
            b"\x00\x20" + _VERSION + _KEM + b"shared_secret",
            key.public_key().public_bytes_raw() + b"\x01",
            _VERSION + suite + b"secret",
        )

    def opened(self, sealed: bytes) -> bytes | None:
        """Return a message, or None: it was altered, or sealed for another key or context.

        Parameters
        ----------
        sealed : bytes
            What `sfumato.crypto.hpke.PublicKey.seal` returned.

        Returns
        -------
        bytes or None
        """
        if len(sealed) < _SEAL:
            return None
        hashed, point = hashlib.sha256, sealed[:_POINT]
        exchange_inner, exchange_outer, shared_label, recipient, secret_label = self._labels
        try:
            exchanged = self._exchange(X25519PublicKey.from_public_bytes(point))
            extracted = hashed(exchange_outer + hashed(exchange_inner + exchanged).digest()).digest()
            inner, outer = _padded(extracted)
            shared = hashed(outer + hashed(inner + shared_label + point + recipient).digest()).digest()
            inner, outer = _padded(shared)
            secret = hashed(outer + hashed(inner + secret_label).digest()).digest()
            inner, outer = _padded(secret)
            key = hashed(outer + hashed(inner + self._key_info).digest()).digest()
            nonce = hashed(outer + hashed(inner + self._nonce_info).digest()).digest()[:12]
            message: bytes = self._cipher(key).decrypt(nonce, sealed[_POINT:], None)
        except (InvalidTag, ValueError):  # a ValueError is a point of small order
            return None
        return message


def _padded(key: bytes) -> tuple[bytes, bytes]:
    """Return the first blocks of HMAC's inner and outer hash, of a key of 32 bytes."""
    number = int.from_bytes(key, "big")
    inner, outer = (number ^ _INNER).to_bytes(32, "big"), (number ^ _OUTER).to_bytes(32, "big")
    return inner + _FILL[0], outer + _FILL[1]
