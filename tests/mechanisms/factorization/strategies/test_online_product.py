"""Online products: exact to the last bit for whole numbers, however the terms come in."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.mechanisms import SquareRoot
from sfumato.mechanisms.factorization.strategies.online_product import OnlineProduct
from tests.cases import cases


def python_product(weights: list[int], values: list[int]) -> list[int]:
    """With Python's integers, of any size: one product of two long numbers (Kronecker's substitution)."""
    width, n = 192, len(values)
    low = -(1 << 80)
    shifted = [value - low for value in values]

    def joined(parts: list[int]) -> int:
        return int.from_bytes(b"".join(part.to_bytes(width // 8, "little") for part in parts), "little")

    raw = (joined(weights) * joined(shifted)).to_bytes(width // 8 * (n + len(weights) + 1), "little")
    sums = [int.from_bytes(raw[i * width // 8 : (i + 1) * width // 8], "little") for i in range(n)]
    ahead = np.cumsum(np.array([*weights, *[0] * n][:n], dtype=object)).tolist()
    return [total + low * weight for total, weight in zip(sums, ahead, strict=True)]


def falling(terms: int, bits: int) -> NDArray[np.int64]:
    """Weights that fall from ``2**bits`` to about a thousandth."""
    generator = np.random.default_rng(terms)
    weights = np.sort((2**bits * 10 ** -generator.uniform(0, 3, terms)).astype(np.int64))[::-1]
    return np.concatenate([[1 << bits], weights[1:]])


@cases(("terms", "length"), [(1, 1300), (3, 1300), (600, 2600), (5000, 5000)])
@cases("bits", [1, 20, 42])
def test_products_are_exact_however_terms_come(terms: int, length: int, bits: int) -> None:
    """Terms at their greatest magnitude first, where most digits are large; one by one, and in parts."""
    weights = falling(terms, bits)
    largest = (1 << 62) // int(weights.sum())
    generator = np.random.default_rng(length)
    values = generator.integers(-largest, largest, length, endpoint=True)
    values[: length // 2] = largest
    exact = python_product(weights.tolist(), values.tolist())
    one_by_one = OnlineProduct(weights, length, largest=largest)
    assert [one_by_one.send(value) for value in values.tolist()] == exact
    at_once = OnlineProduct(weights, length, largest=largest)
    assert at_once.extend(values).tolist() == exact
    cuts = np.sort(generator.integers(0, length, 12))
    in_parts = OnlineProduct(weights, length, largest=largest)
    both = np.stack([values, -values], axis=1)
    parts = [in_parts.extend(part) for part in np.split(both, cuts)]
    assert (np.concatenate(parts) == np.array(exact)[:, None] * [1, -1]).all()
    mixed = OnlineProduct(weights, length, largest=largest)
    found: list[int] = []
    for part in np.split(values, cuts):
        found += [mixed.send(int(value)) for value in part[:5]]
        found += mixed.extend(part[5:]).tolist()
    assert found == exact


def test_the_greatest_digits_in_a_long_block() -> None:
    """All weights and all terms equal, so that every transform errs in the same direction."""
    length, bits = 1 << 17, 20
    weights = np.full(length, 1 << bits)
    largest = (1 << 62) // int(weights.sum())
    for value in (largest, -largest, (1 << 14) - 1, 1 << 14):
        product = OnlineProduct(weights, length, largest=largest)
        sums = product.extend(np.full(length, value))
        assert (sums == (value << bits) * np.arange(1, length + 1)).all()


@pytest.mark.exhaustive
def test_a_million_terms_are_exact() -> None:
    """Against sums modulo three primes of partial sums, by one random combination of all products."""
    length, bits = 1 << 20, 18
    weights = np.rint(np.ldexp(SquareRoot(steps=length).coefficients(), bits)).astype(np.int64)
    largest = (1 << 62) // int(weights.sum())
    generator = np.random.default_rng(5)
    values = generator.integers(-largest, largest, length, endpoint=True)
    product = OnlineProduct(weights, length, largest=largest)
    sums = np.concatenate([product.extend(part) for part in np.split(values, 64)])
    for time in [0, 1023, 1024, 131071, 131072, 524287, 524288, *generator.integers(0, length, 40).tolist()]:
        # Modulo 2**64, as the products themselves are below 2**63.
        assert int(sums[time]) == int((weights[: time + 1][::-1] * values[: time + 1]).sum())


@cases("steps", [1500, 5000])
def test_floats_err_by_less_than_is_claimed(steps: int) -> None:
    weights = SquareRoot(steps=steps).coefficients()
    for values in (np.ones(steps), np.random.default_rng(6).choice([-1.0, 1.0], steps)):
        exact = np.convolve(weights.astype(np.longdouble), values)[:steps]
        claim = 2.0**-41.5 * np.sqrt(steps) * np.linalg.norm(weights)
        for cuts in ([], [13, 500, 1027]):
            product = OnlineProduct(weights, steps)
            sums = np.concatenate([product.extend(part) for part in np.split(values, cuts)])
            assert np.abs(sums - exact).max() <= claim
