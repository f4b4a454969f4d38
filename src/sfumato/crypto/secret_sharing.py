"""Shamir's secret sharing: any `threshold` shares of a secret give it back, fewer say nothing of it.

Secrets are byte strings of one length, cut into limbs of 7 bytes; each limb is the value at 0 of a polynomial
of degree ``threshold - 1`` over the field of 2^61 - 1 elements, and a share is the polynomials' values at the
holder's point. All secrets and all shares are computed at once.

>>> from sfumato.numerics.randomness.source import SecureSource
>>> shares = split([b"sixteen secret b"], threshold=2, points=[1, 2, 3], source=SecureSource())
>>> combine([[3, 1]], shares[:, [2, 0]], width=16)
[b'sixteen secret b']

Guarantee: the shares of fewer than ``threshold`` points are uniform and independent of the secret (Shamir
1979), whatever the computing power; this holds while the points are distinct, not 0, and the source is
uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.crypto.prime_field import PRIME, inverse, multiply, product, reduced, subtract, uniform
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["combine", "limbs", "split"]

_LIMB: Final = 7
_REMEDY: Final = "pass the shares that split returned, with their points"


def limbs(width: int) -> int:
    """Return how many field elements a share of a secret of ``width`` bytes has.

    Parameters
    ----------
    width : int
        Bytes of a secret.

    Returns
    -------
    int

    Examples
    --------
    >>> limbs(16), limbs(32)
    (3, 5)
    """
    return -(-width // _LIMB)


def split(
    secrets: Sequence[bytes], *, threshold: int, points: ArrayLike, source: RandomSource
) -> NDArray[np.uint64]:
    """Return the shares of secrets of one length.

    Parameters
    ----------
    secrets : sequence of bytes
        At least one; all of the same length.
    threshold : int
        How many shares give a secret back.
    points : array_like of int, shape (holders,)
        Distinct, from 1 to 2^32.
    source : RandomSource
        What the coefficients are drawn from.

    Returns
    -------
    ndarray of uint64, shape (secrets, holders, limbs)

    Raises
    ------
    ParameterError
        If the threshold is above the number of holders, or points repeat or are out of range.

    Examples
    --------
    >>> from sfumato.numerics.randomness.source import SecureSource
    >>> split([bytes(32), bytes(32)], threshold=2, points=[1, 2, 3], source=SecureSource()).shape
    (2, 3, 5)
    """
    at = _points(points)
    if at.ndim != 1 or np.unique(at).size != at.size:
        _check.refuse_type("points", "be a list of distinct integers", points, "give each holder its own")
    threshold = _check.integer("threshold", threshold, minimum=1)
    if threshold > at.size:
        _check.refuse(
            "threshold", f"be at most the {at.size} holders", threshold, "give more holders a share"
        )
    values = _to_limbs(secrets)
    total = np.broadcast_to(np.uint64(0), (len(secrets), at.size, values.shape[1])).copy()
    for coefficient in uniform((threshold - 1, len(secrets), 1, values.shape[1]), source):
        total = multiply(reduced(total + coefficient), at[:, None])
    return reduced(total + values[:, None, :])


def combine(points: ArrayLike, shares: NDArray[np.uint64], *, width: int) -> list[bytes]:
    """Return secrets from as many shares of each as its threshold.

    Parameters
    ----------
    points : array_like of int, shape (secrets, threshold)
        Whose shares they are, a row for each secret; no point twice in a row.
    shares : ndarray of uint64, shape (secrets, threshold, limbs)
        In the order of ``points``.
    width : int
        Bytes of a secret.

    Returns
    -------
    list of bytes
        A secret whose shares do not belong together comes out as other bytes, or as all zeros where its limbs
        are no bytes: compare with a commitment.

    Raises
    ------
    ParameterError
        If shapes differ, a point repeats, or a share is no element of the field.

    Examples
    --------
    >>> combine([[1, 2]], np.array([[[98], [99]]], np.uint64), width=1)
    [b'a']
    """
    at = _points(points)
    given: object = shares
    fits = isinstance(given, np.ndarray) and given.dtype == np.uint64
    if not fits or at.ndim != 2 or shares.shape != (*at.shape, limbs(width)) or not at.shape[1]:
        _check.refuse_type("shares", "be 64-bit words, a row for each point", shares, _REMEDY)
    if (shares >= PRIME).any():
        _check.refuse_type("shares", "be elements of the field of 2^61 - 1", shares, _REMEDY)
    ordered = np.sort(at, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        _check.refuse_type("points", "be distinct for each secret", points, _REMEDY)
    weights = _lagrange(at)
    total = np.zeros((at.shape[0], limbs(width)), np.uint64)
    for holder in range(at.shape[1]):
        total = reduced(total + multiply(weights[:, holder, None], shares[:, holder]))
    return _from_limbs(total, width)


def _lagrange(points: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the weights of the values at the points in the value at 0: the products of x_j / (x_j - x_i)."""
    bottom = np.empty_like(points)
    for holder in range(points.shape[1]):
        apart = subtract(points, points[:, holder, None])
        apart[:, holder] = points[:, holder]  # x_i itself: the product of all x_j then stands above
        bottom[:, holder] = product(apart)
    return multiply(product(points)[:, None], inverse(bottom))


def _points(points: ArrayLike) -> NDArray[np.uint64]:
    given = np.asarray(points)
    if given.dtype.kind not in "iu" or (given.size and (given.min() < 1 or given.max() > 1 << 32)):
        _check.refuse_type("points", "be integers from 1 to 2^32", points, "number the holders from 1")
    return given.astype(np.uint64)


def _to_limbs(secrets: Sequence[bytes]) -> NDArray[np.uint64]:
    width = len(secrets[0]) if len(secrets) else 0
    if not width or any(len(secret) != width for secret in secrets):
        _check.refuse_type("secrets", "be byte strings of one length", secrets, "pad them to one length")
    padded = np.zeros((len(secrets), limbs(width) * _LIMB), np.uint8)
    padded[:, :width] = np.frombuffer(b"".join(secrets), np.uint8).reshape(-1, width)
    words = np.zeros((len(secrets), limbs(width), 8), np.uint8)
    words[..., :_LIMB] = padded.reshape(len(secrets), -1, _LIMB)
    return words.view("<u8")[..., 0].astype(np.uint64)


def _from_limbs(values: NDArray[np.uint64], width: int) -> list[bytes]:
    words = np.ascontiguousarray(values.astype("<u8"))[..., None].view(np.uint8)
    right = (words[..., _LIMB] == 0).all(axis=1)
    joined = np.where(right[:, None], words[..., :_LIMB].reshape(len(values), -1), 0).astype(np.uint8)
    return [row.tobytes() for row in joined[:, :width]]
