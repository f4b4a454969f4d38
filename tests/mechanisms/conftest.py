"""Exact distributions by enumeration: the mechanisms' claims are compared with these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

Pmf = dict[int, mpmath.mpf]

BITS = 400
"""Of the fractions that stand for probabilities: the least of them has some 250 of its own."""


def laplace_pmf(scale: Fraction, reach: int) -> Pmf:
    with mpmath.workdps(40):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def gaussian_pmf(stddev: Fraction, reach: int) -> Pmf:
    with mpmath.workdps(40):
        rate = mpmath.mpf(stddev.denominator) ** 2 / (2 * mpmath.mpf(stddev.numerator) ** 2)
        far = max(reach, math.ceil(14 * stddev) + 1)  # the mass beyond is under 1e-42
        weights = [mpmath.exp(-rate * k * k) for k in range(far + 1)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        return {k: weights[abs(k)] / total for k in range(-reach, reach + 1)}


def hockey_stick(pmf: Pmf, shifts: tuple[int, ...], epsilon: float) -> float:
    """The divergence between noise and shifted noise, a lower bound that tends to it with the pmf's reach."""
    with mpmath.workprec(BITS):
        unit = mpmath.mpf(2) ** BITS
        whole = {k: int(p * unit) for k, p in pmf.items()}  # sums of whole numbers are quick, and exact
        ratio = int(mpmath.exp(mpmath.mpf(epsilon)) * unit)
        axes = [[(p, whole[k - s]) for k, p in whole.items() if k - s in whole] for s in shifts]
        gaps = (
            (math.prod(p for p, _ in at) << BITS) - ratio * math.prod(q for _, q in at)
            for at in itertools.product(*axes)
        )
        return float(mpmath.mpf(sum(gap for gap in gaps if gap > 0)) / unit ** (len(shifts) + 1))


@pytest.fixture(name="laplace_pmf")
def _laplace_pmf() -> Callable[[Fraction, int], Pmf]:
    return laplace_pmf


@pytest.fixture(name="gaussian_pmf")
def _gaussian_pmf() -> Callable[[Fraction, int], Pmf]:
    return gaussian_pmf


@pytest.fixture(name="hockey_stick")
def _hockey_stick() -> Callable[[Pmf, tuple[int, ...], float], float]:
    return hockey_stick
