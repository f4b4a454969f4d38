"""Every choice of bits is a number in range, and every number has its bits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.crypto.fields.ntt_field import FIELD64, FIELD128
from sfumato.errors import ParameterError
from sfumato.federated.vdaf.circuits.ranged_integers import RangedIntegers, whole_numbers
from tests.cases import cases


@cases("maximum", [*range(1, 20), 255, 256])
def test_bits_and_numbers(maximum: int) -> None:
    integers = RangedIntegers(FIELD64, maximum)
    values = np.arange(maximum + 1, dtype=np.uint64)[None]
    encoded = integers.encode(values)
    assert set(encoded.ravel().tolist()) <= {0, 1}
    assert (integers.decode(encoded)[..., 0] == values).all()
    choices = np.array(list(itertools.product([0, 1], repeat=integers.bits)), np.uint64)
    reached = integers.decode(FIELD64.small(choices)).ravel().tolist()
    assert set(reached) == set(range(maximum + 1))


def test_the_largest_bound() -> None:
    integers = RangedIntegers(FIELD128, 1 << 62)
    values = np.array([[0, 1, (1 << 62) - 1, 1 << 62]], np.uint64)
    assert (integers.decode(integers.encode(values))[..., 0] == values).all()
    with pytest.raises(ParameterError, match="at most"):
        RangedIntegers(FIELD128, (1 << 62) + 1)


@cases("values", [[-1], [7], [1.0], ["1"], [[1]], 3, [1 << 70]])
def test_what_is_no_measurement(values: object) -> None:
    with pytest.raises(ParameterError, match="integers from 0 to 6"):
        whole_numbers(values, 6, ())
