"""Shamir's shares against exact interpolation, and what fewer shares than the threshold say."""

from __future__ import annotations

import itertools
import os
from collections import Counter

import numpy as np
import pytest

from sfumato.crypto import prime_field, secret_sharing
from sfumato.crypto.prime_field import PRIME
from sfumato.crypto.secret_sharing import combine, limbs, split
from sfumato.errors import ParameterError
from sfumato.numerics.randomness.source import SecureSource, random_source

SOURCE = SecureSource()


def interpolated(points: list[int], values: list[int]) -> int:
    """The value at 0 of the polynomial through the points, by Python's integers."""
    total = 0
    for x, y in zip(points, values, strict=True):
        weight = y
        for other in points:
            if other != x:
                weight = weight * other * pow(other - x, -1, PRIME) % PRIME
        total += weight
    return total % PRIME


@pytest.mark.parametrize(("width", "threshold", "holders"), [(1, 1, 1), (16, 3, 5), (32, 7, 12), (33, 4, 4)])
def test_any_threshold_of_shares_gives_the_secrets_back(width: int, threshold: int, holders: int) -> None:
    secrets = [os.urandom(width), bytes(width), b"\xff" * width]
    points = np.random.default_rng(holders).choice(np.arange(1, 10_000), holders, replace=False)
    shares = split(secrets, threshold=threshold, points=points, source=SOURCE)
    assert shares.shape == (3, holders, limbs(width))
    rng = np.random.default_rng(1)
    for _ in range(4):
        chosen = np.stack([rng.permutation(holders)[:threshold] for _ in secrets])
        given = np.take_along_axis(shares, chosen[..., None], axis=1)
        assert combine(points[chosen], given, width=width) == secrets
    first = points[:threshold].tolist()
    for secret, share in zip(secrets, shares, strict=True):
        numbers = [interpolated(first, share[:threshold, limb].tolist()) for limb in range(limbs(width))]
        assert b"".join(number.to_bytes(7, "little") for number in numbers)[:width] == secret


def test_one_share_less_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the field of 7 elements, the two shares below a threshold of three have one law for all secrets."""
    small = 7
    coefficients = iter(itertools.product(range(small), repeat=2))
    monkeypatch.setattr(secret_sharing, "reduced", lambda value: value % np.uint64(small))
    monkeypatch.setattr(secret_sharing, "multiply", lambda a, b: a * b % np.uint64(small))
    seen: dict[int, Counter[tuple[int, ...]]] = {}
    for secret in (0, 1, 6):
        coefficients = iter(itertools.product(range(small), repeat=2))
        seen[secret] = Counter()
        for drawn in coefficients:
            values = np.array(drawn, np.uint64)[:, None, None, None]
            monkeypatch.setattr(secret_sharing, "uniform", lambda shape, source, values=values: values)
            shares = split([bytes([secret])], threshold=3, points=[1, 2, 3], source=SOURCE)
            seen[secret][tuple(shares[0, :2, 0].tolist())] += 1
            whole = tuple(shares[0, :, 0].tolist())
            assert sum(w * s for w, s in zip((3, -3, 1), whole, strict=True)) % small == secret
    assert seen[0] == seen[1] == seen[6]
    assert set(seen[0].values()) == {1}
    assert len(seen[0]) == small**2


def test_coefficients_are_those_of_the_source() -> None:
    secrets = [b"a", b"b"]
    drawn = prime_field.uniform((2, 2, 1, 1), random_source(5))[:, :, 0, 0].tolist()
    shares = split(secrets, threshold=3, points=[4, 9, 11], source=random_source(5))
    for at, x in enumerate([4, 9, 11]):
        for number, secret in enumerate(secrets):
            high, low = drawn[0][number], drawn[1][number]
            assert int(shares[number, at, 0]) == (secret[0] + low * x + high * x * x) % PRIME


def test_shares_that_do_not_belong_together_give_other_bytes() -> None:
    shares = split([bytes(32), b"x" * 32], threshold=2, points=[1, 2], source=SOURCE)
    mixed = np.stack([shares[0, 0], shares[1, 1]])[None]
    (found,) = combine([[1, 2]], mixed, width=32)
    assert len(found) == 32
    assert found != b"x" * 32


def test_what_is_refused() -> None:
    shares = split([b"ab"], threshold=2, points=[1, 2, 3], source=SOURCE)
    for points in ([1, 1], [0, 1], [1, (1 << 32) + 1], [1.0, 2.0], [[1, 2]]):
        with pytest.raises(ParameterError, match=r"^points must be"):
            split([b"ab"], threshold=1, points=points, source=SOURCE)
    for threshold in (0, 3):
        with pytest.raises(ParameterError, match=r"^threshold must be"):
            split([b"ab"], threshold=threshold, points=[1, 2], source=SOURCE)
    for secrets in ([], [b""], [b"a", b"bc"]):
        with pytest.raises(ParameterError, match=r"^secrets must be byte strings of one length"):
            split(secrets, threshold=1, points=[1], source=SOURCE)
    with pytest.raises(ParameterError, match=r"^points must be distinct"):
        combine([[1, 1]], shares[:, :2], width=2)
    for given, width in ((shares[:, :2], 9), (shares, 2), (shares[:, :2].astype(np.int64), 2)):
        with pytest.raises(ParameterError, match=r"^shares must be 64-bit words"):
            combine([[1, 2]], given, width=width)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^shares must be elements of the field"):
        combine([[1, 2]], np.full((1, 2, 1), PRIME, np.uint64), width=2)
