"""Bounds on logarithms of sums: never too low, and hardly too high."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.mechanisms.statistics.quantile.log_sum_exp import COARSEST, FINEST, NOTHING, LogSumExpBounds

BITS = [COARSEST, 15, FINEST]


@pytest.mark.parametrize("bits", BITS)
@settings(max_examples=200, deadline=None)
@given(st.integers(-(2**40), 2**40), st.one_of(st.integers(-(2**29), 2**29), st.integers(-(2**58), 2**58)))
def test_sums_of_two(bits: int, one: int, apart: int) -> None:
    logs, other = LogSumExpBounds(bits, 52), one + apart
    got = int(logs.add(np.array([one]), np.array([other]))[0])
    with mpmath.workdps(60):
        least = min(one, other)
        true = max(one, other) + 2**bits * mpmath.log1p(mpmath.exp(-mpmath.mpf(abs(apart)) / 2**bits))
        assert got >= true
        assert got - true <= 2 + 2.0 ** (bits - 18)
    assert got > least


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("word", [9, 52])
@settings(max_examples=200, deadline=None)
@given(st.one_of(st.integers(0, 2**30), st.integers(0, 2**62)))
def test_chances(bits: int, word: int, below: int) -> None:
    got = int(LogSumExpBounds(bits, word).chances(np.array([below]))[0])
    with mpmath.workdps(60):
        true = 2**word * mpmath.exp(-mpmath.mpf(below) / 2**bits)
        assert got >= max(true, 1)
        assert got <= true * (1 + 1.01 * mpmath.mpf(2) ** -17) + 3


@pytest.mark.parametrize("bits", BITS)
@settings(max_examples=200, deadline=None)
@given(st.one_of(st.integers(1, 5000), st.integers(1, 2**62), st.sampled_from([2**k for k in range(63)])))
def test_counts(bits: int, number: int) -> None:
    got = int(LogSumExpBounds(bits, 52).counts(np.array([number]))[0])
    with mpmath.workdps(60):
        true = mpmath.log(number) * 2**bits
        assert true <= got <= true + 2 + 2.0**bits * 2**-10


def test_prefixes_and_windows() -> None:
    logs, rng = LogSumExpBounds(FINEST, 52), np.random.default_rng(4)
    for size in (1, 2, 7, 64, 100):
        summands = rng.integers(-(2**28), 2**28, size)
        true = np.exp(summands / 2.0**FINEST)
        assert np.allclose(logs.prefixes(summands) / 2.0**FINEST, np.log(true.cumsum()), rtol=0, atol=1e-4)
        first = rng.integers(0, size + 1, 50)
        last = first + (rng.random(50) * (size + 1 - first)).astype(np.int64)
        for got, a, b in zip(logs.windows(summands, first, last).tolist(), first, last, strict=True):
            if a == b:
                assert got == NOTHING
            else:
                want = math.log(math.fsum(true[a:b]))
                assert -1e-12 < got / 2.0**FINEST - want < 1e-4
