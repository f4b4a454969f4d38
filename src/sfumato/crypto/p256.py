"""Points of the curve P-256: products with scalars, and hashes to the curve (RFC 9380).

>>> multiply(2, GENERATOR) == add(GENERATOR, GENERATOR)
True

Products with secret scalars are those of the library ``cryptography``, in constant time. It returns the
first coordinate alone; which of the two points it is, the product with the scalar one more tells.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec

__all__ = [
    "GENERATOR",
    "ORDER",
    "Point",
    "add",
    "decoded",
    "encoded",
    "hash_to_curve",
    "hash_to_scalar",
    "multiply",
]

Point = tuple[int, int]

_CURVE: Final = ec.SECP256R1()
_P: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1
_A: Final = -3
_B: Final = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""How many points there are; a prime."""
GENERATOR: Final[Point] = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Z: Final = -10
_LENGTH: Final = 48
"""Bytes that are reduced modulo a 256-bit prime, so that the result is almost uniform."""


def add(left: Point, right: Point) -> Point:
    """Return the sum of two points that are not each other's negatives; for public points.

    Raises
    ------
    ValueError
        If the sum is the point at infinity.
    """
    (x1, y1), (x2, y2) = left, right
    if x1 == x2:
        if (y1 + y2) % _P == 0:
            raise ValueError("the sum is the point at infinity")
        slope = (3 * x1 * x1 + _A) * pow(2 * y1, -1, _P)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, _P)
    x = (slope * slope - x1 - x2) % _P
    return x, (slope * (x1 - x) - y1) % _P


def multiply(scalar: int, point: Point) -> Point:
    """Return a scalar times a point of the curve.

    Raises
    ------
    ValueError
        If the scalar is not from 1 to below the order.
    """
    if not 0 < scalar < ORDER:
        raise ValueError("a scalar is from 1 to below the order")
    if scalar == ORDER - 1:
        return point[0], -point[1] % _P
    public = ec.EllipticCurvePublicNumbers(*point, _CURVE).public_key()
    x, following = (
        int.from_bytes(ec.derive_private_key(k, _CURVE).exchange(ec.ECDH(), public), "big")
        for k in (scalar, scalar + 1)
    )
    y = _root(x * x * x + _A * x + _B)
    if x == point[0]:  # plus or minus one: minus one was answered above
        return point
    return (x, y) if add((x, y), point)[0] == following else (x, -y % _P)


def encoded(point: Point) -> bytes:
    """Return a point in 33 bytes: the second coordinate's parity, and the first coordinate.

    >>> encoded(GENERATOR).hex()[:10]
    '036b17d1f2'
    """
    return bytes([2 + (point[1] & 1)]) + point[0].to_bytes(32, "big")


def decoded(data: bytes) -> Point:
    """Return the point that `encoded` wrote.

    Raises
    ------
    ValueError
        If it is no such point.
    """
    given: object = data
    if not isinstance(given, bytes) or len(given) != 33 or data[0] not in (2, 3):
        raise ValueError("a point has 33 bytes, of which the first is 2 or 3")
    x = int.from_bytes(data[1:], "big")
    square = (x * x * x + _A * x + _B) % _P
    y = _root(square)
    if x >= _P or y * y % _P != square:
        raise ValueError("the bytes are no point of P-256")
    return x, y if y & 1 == data[0] & 1 else -y % _P


def hash_to_scalar(text: bytes, tag: bytes) -> int:
    """Return a number below the order that is a random oracle of a text, under a domain's tag."""
    return int.from_bytes(_expanded(text, tag, _LENGTH), "big") % ORDER


def hash_to_curve(text: bytes, tag: bytes) -> Point:
    """Return a point that is a random oracle of a text: the suite P256_XMD:SHA-256_SSWU_RO_ of RFC 9380."""
    long = _expanded(text, tag, 2 * _LENGTH)
    first, second = (int.from_bytes(part, "big") % _P for part in (long[:_LENGTH], long[_LENGTH:]))
    return add(_mapped(first), _mapped(second))


def _root(square: int) -> int:
    """Return the square root of a square modulo the prime, which is 3 modulo 4."""
    return pow(square, (_P + 1) >> 2, _P)


def _mapped(u: int) -> Point:
    """Return the simplified SWU map of a field element (RFC 9380, section 6.6.2)."""
    zu = _Z * u * u
    denominator = (zu * zu + zu) % _P
    if denominator:
        x = -_B * pow(_A, -1, _P) * (1 + pow(denominator, -1, _P)) % _P
    else:
        x = _B * pow(_Z * _A, -1, _P) % _P
    square = (x * x * x + _A * x + _B) % _P
    y = _root(square)
    if y * y % _P != square:
        x = zu * x % _P
        y = _root(x * x * x + _A * x + _B)
    return x, y if y & 1 == u & 1 else -y % _P


def _expanded(text: bytes, tag: bytes, length: int) -> bytes:
    """Return the expansion by a hash of RFC 9380, section 5.3.1, with SHA-256."""
    marked = tag + bytes([len(tag)])
    start = hashlib.sha256(bytes(64) + text + length.to_bytes(2, "big") + b"\0" + marked).digest()
    block = hashlib.sha256(start + b"\1" + marked).digest()
    found = block
    for number in range(2, -(-length // 32) + 1):
        mixed = bytes(a ^ b for a, b in zip(start, block, strict=True))
        block = hashlib.sha256(mixed + bytes([number]) + marked).digest()
        found += block
    return found[:length]
