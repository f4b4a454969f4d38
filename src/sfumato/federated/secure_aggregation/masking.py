"""The masks of one vector: one of the client's own and one of each pair, added with opposite signs.

Guarantee: with independent uniform masks, the masked vectors of a set of clients, together with the
self-masks of those that survive and the pair masks of those that do not, depend on the survivors' vectors
through their sum alone if the survivors are connected by pairs whose masks stay secret (Bonawitz et al. 2017,
Lemma 6.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato import _check
from sfumato.crypto.mask_stream import MaskStream, Words

__all__ = ["SMALL_ORDER", "channel_key", "mask_vector", "pair_seed", "unmask_pair"]

_INFO: Final = b"sfumato secure aggregation 1 "
_P: Final = (1 << 255) - 19
_ORDER_8: Final = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
SMALL_ORDER: Final = frozenset(
    (point + top).to_bytes(32, "little")
    for point in (0, 1, _P - 1, _P, _P + 1, *_ORDER_8)
    for top in (0, 1 << 255)
)
"""Encodings of the points whose shared secret is zero with every key (Curve25519, section 2)."""


def mask_vector(
    stream: MaskStream, total: Words, client: int, self_seed: bytes, pair_seeds: Iterable[tuple[int, bytes]]
) -> Words:
    """Mask a client's residues in place.

    Parameters
    ----------
    stream : MaskStream
    total : ndarray of word_type(bits)
        The residues.
    client : int
        Whose they are.
    self_seed : bytes
        Of the client's own mask.
    pair_seeds : iterable of tuple
        Each neighbor with the seed of the pair; the client with the lower number adds the mask.

    Returns
    -------
    ndarray of word_type(bits)
        The argument, modulo 2^bits.
    """
    stream.add(total, self_seed)
    for neighbor, seed in pair_seeds:
        (stream.add if client < neighbor else stream.subtract)(total, seed)
    return stream.reduce(total)


def unmask_pair(stream: MaskStream, total: Words, survivor: int, dropped: int, seed: bytes) -> None:
    """Take the mask that a survivor has of its pair with a dropped client out of the sum, in place."""
    (stream.subtract if survivor < dropped else stream.add)(total, seed)


def pair_seed(key: X25519PrivateKey, point: X25519PublicKey, digest: bytes, one: int, other: int) -> bytes:
    """Return the seed of the mask of a pair, the same for both."""
    low, high = sorted((one, other))
    return _agreed(key, point, b"mask " + digest + low.to_bytes(4, "big") + high.to_bytes(4, "big"))


def channel_key(
    key: X25519PrivateKey, point: X25519PublicKey, digest: bytes, sender: int, recipient: int
) -> bytes:
    """Return the key of the one envelope that a sender seals for a recipient."""
    return _agreed(
        key, point, b"channel " + digest + sender.to_bytes(4, "big") + recipient.to_bytes(4, "big")
    )


def _agreed(key: X25519PrivateKey, point: X25519PublicKey, use: bytes) -> bytes:
    try:
        secret = key.exchange(point)
    except ValueError:  # the shared secret is zero, which everybody knows
        _check.refuse_state(
            "a neighbor's key", "be a usable point", "it has a small order", "leave that client out"
        )
    return HKDF(SHA256(), 32, None, _INFO + use).derive(secret)
