"""Exact distributions by enumeration: the mechanisms' claims are compared with these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

Pmf = dict[int, mpmath.mpf]


def laplace_pmf(scale: Fraction, reach: int) -> Pmf:
    with mpmath.workdps(40):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


def gaussian_pmf(stddev: Fraction, reach: int) -> Pmf:
    with mpmath.workdps(40):
        rate = mpmath.mpf(stddev.denominator) ** 2 / (2 * mpmath.mpf(stddev.numerator) ** 2)
        weights = {k: mpmath.exp(-rate * k * k) for k in range(-reach, reach + 1)}
        far = math.ceil(14 * stddev) + 1  # the mass beyond is under 1e-42
        total = mpmath.fsum(mpmath.exp(-rate * k * k) for k in range(-far, far + 1))
        return {k: weight / total for k, weight in weights.items()}


def hockey_stick(pmf: Pmf, shifts: tuple[int, ...], epsilon: float) -> float:
    """The divergence between noise and shifted noise, a lower bound that tends to it with the pmf's reach."""
    with mpmath.workdps(40):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        total = mpmath.mpf(0)
        for point in itertools.product(pmf, repeat=len(shifts)):
            here = mpmath.fprod(pmf[k] for k in point)
            there = mpmath.fprod(pmf.get(k - s, 0) for k, s in zip(point, shifts, strict=True))
            if any(k - s not in pmf for k, s in zip(point, shifts, strict=True)):
                continue
            total += max(mpmath.mpf(0), here - factor * there)
        return float(total)


@pytest.fixture(name="laplace_pmf")
def _laplace_pmf() -> Callable[[Fraction, int], Pmf]:
    return laplace_pmf


@pytest.fixture(name="gaussian_pmf")
def _gaussian_pmf() -> Callable[[Fraction, int], Pmf]:
    return gaussian_pmf


@pytest.fixture(name="hockey_stick")
def _hockey_stick() -> Callable[[Pmf, tuple[int, ...], float], float]:
    return hockey_stick
