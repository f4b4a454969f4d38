"""The two fields against Python's integers, at their edges and at random."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from sfumato.crypto.fields import _kernel
from sfumato.crypto.fields.ntt_field import FIELD64, FIELD128, NttField
from sfumato.errors import ParameterError
from tests.cases import cases

FIELDS = [FIELD64, FIELD128]


def some(field: NttField, count: int, seed: int) -> list[int]:
    p, draw = field.modulus, random.Random(seed)
    powers = [(1 << bits) + shift for bits in (31, 32, 63, 64, 66, 96, 127, 128) for shift in (-1, 0, 1)]
    folds = [turns << 64 for turns in (1, 27, 28, 29)]
    edges = [x % p for value in [0, 1, 2, *powers, *folds] for x in (value, -value)]
    return edges + [draw.randrange(p) for _ in range(count)]


def value_at(coefficients: list[int], x: int, p: int) -> int:
    return sum(c * pow(x, i, p) for i, c in enumerate(coefficients)) % p


@cases("field", FIELDS)
def test_arithmetic_is_exact(field: NttField) -> None:
    p, values = field.modulus, some(field, 60, 1)
    grid = [(x, y) for x in values for y in values]
    left, right = field.vector(values)[:, None], field.vector(values)[None]
    flat = (-1, field.limbs)
    assert field.integers(field.multiplied(left, right).reshape(flat)) == [x * y % p for x, y in grid]
    assert field.integers(field.added(left, right).reshape(flat)) == [(x + y) % p for x, y in grid]
    assert field.integers(field.subtracted(left, right).reshape(flat)) == [(x - y) % p for x, y in grid]


@cases("field", FIELDS)
def test_moduli_are_prime_and_roots_primitive(field: NttField) -> None:
    p = field.modulus
    # Proth: p = k * 2**e + 1 with k < 2**e is prime if some a has a**((p - 1) / 2) = -1.
    assert pow(7, (p - 1) // 2, p) == p - 1
    assert (p - 1) % (1 << field.order_bits) == 0
    assert (p - 1) >> field.order_bits < 1 << field.order_bits
    assert pow(field.generator, 1 << field.order_bits - 1, p) == p - 1


@cases("field", FIELDS)
def test_inverses(field: NttField) -> None:
    values = [x for x in some(field, 20, 2) if x]
    told = field.integers(field.inverted(field.vector(values)))
    assert told == [pow(x, -1, field.modulus) for x in values]
    with pytest.raises(ParameterError, match="zero has no inverse"):
        field.inverted(field.vector([1, 0]))


@cases("field", FIELDS)
@cases("length", [1, 2, 8, 32])
def test_transforms(field: NttField, length: int) -> None:
    p, root = field.modulus, field.root(length)
    rows = [some(field, length, seed)[-length:] for seed in (3, 4)]
    coefficients = np.stack([field.vector(r) for r in rows])
    values = field.values(coefficients)
    for got, row in zip(values, rows, strict=True):
        assert field.integers(got) == [value_at(row, pow(root, i, p), p) for i in range(length)]
    assert (field.coefficients(values) == coefficients).all()
    twice = field.root(2 * length)
    for got, row in zip(field.doubled(values), rows, strict=True):
        assert field.integers(got) == [value_at(row, pow(twice, i, p), p) for i in range(2 * length)]


@cases("field", FIELDS)
def test_values_at_points_and_at_the_nodes_themselves(field: NttField) -> None:
    p, row = field.modulus, some(field, 8, 5)[-8:]
    points = [12345, 1, field.root(8), 0, p - 1]
    weights = field.lagrange_weights(field.vector(points), 8)
    values = np.broadcast_to(field.values(field.vector(row)), (5, 1, 8, field.limbs))
    assert field.integers(field.dots(values, weights)[:, 0]) == [value_at(row, x, p) for x in points]


@cases("field", FIELDS)
def test_sums(field: NttField) -> None:
    values = some(field, 8, 6)
    assert field.integers(field.summed(field.vector(values))[None]) == [sum(values) % field.modulus]
    assert field.integers(field.summed(field.zeros(2, 0))) == [0, 0]
    many = field.vector(values * 2000)[:20_001].reshape(-1, 3, field.limbs)
    assert (field.total(many) == field.summed(many.swapaxes(0, 1))).all()
    assert field.integers(field.total(field.zeros(0, 2))) == [0, 0]


@cases("field", FIELDS)
def test_sums_of_products_are_reduced_once_and_exact(field: NttField) -> None:
    """The largest elements, so many that the sums of products pass the width that is kept for one."""
    p, count = field.modulus, 40
    for numbers in ([p - 1] * (6 * count), (some(field, 6 * count, 10) * 6 * count)[: 6 * count]):
        weights, told = numbers[-count:], field.vector(numbers).reshape(2, count, 3, field.limbs)
        rows = [numbers[: 3 * count], numbers[3 * count :]]
        both = np.stack([field.vector(weights)] * 2)
        combined = [
            [sum(w * x for w, x in zip(weights, r[i::3], strict=True)) % p for i in range(3)] for r in rows
        ]
        assert [field.integers(row) for row in field.combined_rows(told, both)] == combined
        dotted = field.dots(told.swapaxes(1, 2), both)
        assert [field.integers(row) for row in dotted] == combined
        paired = [
            [sum(x * y for x, y in zip(r[i::6], r[i + 3 :: 6], strict=True)) % p for i in range(3)]
            for r in rows
        ]
        assert [field.integers(row) for row in field.paired_products(told)] == paired
    assert field.paired_products(field.zeros(0, 2, 3)).shape == (0, 3, field.limbs)


@cases("field", FIELDS)
def test_codes_and_rows_that_hold_the_modulus(field: NttField) -> None:
    p = field.modulus
    good = np.stack([field.vector([0, p - 1]), field.vector([1, p - 2])])
    rows = field.encoded(good)
    assert rows[0].tobytes() == b"".join(x.to_bytes(field.size, "little") for x in (0, p - 1))
    bad = b"".join(x.to_bytes(field.size, "little") for x in (0, p))
    most = b"\xff" * (2 * field.size)
    stacked = np.stack([*rows, *(np.frombuffer(row, np.uint8) for row in (bad, most))])
    read, sound = field.decoded(stacked)
    assert sound.tolist() == [True, True, False, False]
    assert (read[:2] == good).all()
    assert not read[2:].any()


@cases("field", FIELDS)
def test_weighted_pairs(field: NttField) -> None:
    p, values = field.modulus, some(field, 6, 7)[-6:]
    weights, less = some(field, 2, 8)[-2:], some(field, 1, 9)[-1]
    rows = field.vector(values).reshape(2, 3, field.limbs)
    told = field.weighted_pairs(field.vector(weights), rows, field.vector([less])[0])
    expected = [
        number % p
        for i, x in enumerate(values)
        for number in (pow(weights[i // 3], i % 3 + 1, p) * x, x - less)
    ]
    assert field.integers(told.reshape(12, field.limbs)) == expected
    assert field.weighted_pairs(field.zeros(0), field.zeros(0, 3), field.zeros()).shape == (0, 6, field.limbs)


def test_lengths_that_have_no_root() -> None:
    for length in (0, 3, 1 << 33):
        with pytest.raises(ParameterError, match="power of two"):
            FIELD64.root(length)


def test_the_kernels_refuse_mismatched_sizes() -> None:
    two, three = np.zeros(2, np.uint64), np.zeros(3, np.uint64)
    refused: list[Callable[[], None]] = [
        lambda: _kernel.combine(1, 0, two, three, two),
        lambda: _kernel.combine(2, 0, three, three, three),
        lambda: _kernel.combine(1, 3, two, two, two),
        lambda: _kernel.dots(1, False, 2, 1, two, three, two[:1].copy()),
        lambda: _kernel.dots(1, True, 0, 1, two, two, two),
        lambda: _kernel.pairs(1, 1, two, three, two[:1], three),
        lambda: _kernel.pairs(1, 1, two, two, two, np.zeros(4, np.uint64)),
        lambda: _kernel.pairs(1, 1, two, two, two[:1], three),
        lambda: _kernel.pairs(1, 0, two, two, two[:1], three),
        lambda: _kernel.pairs(4, 1, *(np.zeros(4 * size, np.uint64) for size in (1, 1, 1, 2))),
        lambda: _kernel.row_sums(1, False, 1, 2, two, three, two[:1].copy()),
        lambda: _kernel.row_sums(1, False, 0, 2, two, two, two[:1].copy()),
        lambda: _kernel.row_sums(1, True, 1, 1, two, two, two),
        lambda: _kernel.row_sums(1, True, 1, 2, three, three, two),
        lambda: _kernel.row_sums(4, True, 1, 2, *(np.zeros(4 * size, np.uint64) for size in (2, 2, 1))),
        lambda: _kernel.doubled(1, 2, two, two, two, two, three),
        lambda: _kernel.doubled(1, 2, two, two, two[:1].copy(), two, np.zeros(4, np.uint64)),
        lambda: _kernel.doubled(1, 3, three, three, three, three, np.zeros(6, np.uint64)),
        lambda: _kernel.transform(1, 3, three, three),
        lambda: _kernel.transform(1, 2, two, two[:0].copy()),
        lambda: _kernel.invert(1, two),
        lambda: _kernel.turboshake(1, 1, 2, bytes(3), two),
        lambda: _kernel.turboshake(0, 0, 1, bytes(3), two),
    ]
    for call in refused:
        with pytest.raises(ValueError, match="must"):
            call()
