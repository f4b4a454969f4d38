"""The field of point functions' leaves against Python's integers, at its edges and at random."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sfumato.crypto.fields import _kernel
from sfumato.crypto.fields.field import FIELD255, PrimeField
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.xof.turboshake import XofTurboShake128

P = FIELD255.modulus


def some(count: int, seed: int) -> list[int]:
    draw = random.Random(seed)
    powers = [(1 << bits) + shift for bits in (63, 64, 128, 192, 254, 255) for shift in (-1, 0, 1)]
    edges = [x % P for value in [0, 1, 2, 18, 19, 20, 38, *powers] for x in (value, -value)]
    return edges + [draw.randrange(P) for _ in range(count)]


def test_arithmetic_is_exact() -> None:
    values = some(40, 1)
    grid = [(x, y) for x in values for y in values]
    left, right = FIELD255.vector(values)[:, None], FIELD255.vector(values)[None]
    flat = (-1, 4)
    assert FIELD255.integers(FIELD255.multiplied(left, right).reshape(flat)) == [x * y % P for x, y in grid]
    assert FIELD255.integers(FIELD255.added(left, right).reshape(flat)) == [(x + y) % P for x, y in grid]
    assert FIELD255.integers(FIELD255.subtracted(left, right).reshape(flat)) == [(x - y) % P for x, y in grid]


def test_sums_and_products_of_vectors() -> None:
    values = some(3, 2)
    vector = FIELD255.vector(values)
    assert FIELD255.integers(FIELD255.summed(vector)[None]) == [sum(values) % P]
    told = FIELD255.dots(np.stack([vector, vector[::-1]])[None], vector[None])[0]
    pairs = [zip(row, values, strict=True) for row in (values, values[::-1])]
    assert FIELD255.integers(told) == [sum(x * y for x, y in pair) % P for pair in pairs]


def test_codes_and_rows_that_hold_the_modulus() -> None:
    top = 1 << 192
    good = [0, P - 1, top - 1, top]
    rows = [FIELD255.encoded(FIELD255.vector([value])[None])[0] for value in good]
    assert [row.tobytes() for row in rows] == [value.to_bytes(32, "little") for value in good]
    bad = [
        np.frombuffer(value.to_bytes(32, "little"), np.uint8)
        for value in (P, P + 18, 1 << 255, (1 << 256) - 1)
    ]
    read, sound = FIELD255.decoded(np.stack(rows + bad))
    assert sound.tolist() == [True] * 4 + [False] * 4
    assert FIELD255.integers(read[:4, 0]) == good
    assert not read[4:].any()


def test_uniform_elements_drop_the_highest_bit() -> None:
    # A number of 255 bits is rejected once in 2**250: the loop itself is that of the other fields.
    xof = XofTurboShake128(np.zeros((1, 32), np.uint8), b"t", np.arange(3, dtype=np.uint8)[:, None])
    words = xof.stream(32 * 40)
    words[:, 31::32] &= 127
    assert (FIELD255.encoded(xof.elements(FIELD255, 40)) == words).all()


def test_the_kernel_has_no_transforms_and_inverses_of_four_limbs() -> None:
    four = np.ones(8, np.uint64)
    with pytest.raises(ValueError, match="one or two limbs"):
        _kernel.transform(4, 2, four, four)
    with pytest.raises(ValueError, match="one or two limbs"):
        _kernel.invert(4, four)
    with pytest.raises(ValueError, match="four limbs"):
        _kernel.combine(3, 0, four[:6], four[:6], four[:6].copy())


def test_products_of_nothing_add_up_to_zero() -> None:
    fields: tuple[PrimeField, ...] = (FIELD64, FIELD255)
    for field in fields:
        found = field.dots(field.zeros(2, 3, 0), field.zeros(2, 0))
        assert found.shape == (2, 3, field.limbs)
        assert not found.any()
        assert field.dots(field.zeros(0, 3, 2), field.zeros(0, 2)).shape == (0, 3, field.limbs)
