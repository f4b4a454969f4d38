"""Sums of many noises: against their convolution, and never below it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.queries.release.tails.repeated_noise import repeated_tail
from tests.cases import cases


def _convolved(noise: SymmetricDistribution, times: int) -> NDArray[np.float64]:
    """Return P(sum >= k) for k from 0 on, by convolution of all integers."""
    last = noise.quantile_above(1e-13)
    size = 1 << (2 * last * times + 1).bit_length()
    one = np.zeros(size)
    away = np.arange(last + 1.0)
    if isinstance(noise, DiscreteLaplaceDistribution):
        rate = away / float(noise.scale)
    else:
        rate = away**2 / 2 / noise.stddev**2
    half = noise.pmf(0).upper * np.exp(-rate)
    one[: last + 1], one[-last:] = half, half[:0:-1]
    found = np.fft.irfft(np.fft.rfft(one) ** times, size)
    return np.asarray(np.cumsum(found[size // 2 :: -1])[::-1])


@cases(
    "noise, times, looser",
    [
        (DiscreteLaplaceDistribution(2), 1, 1e-9),
        (DiscreteLaplaceDistribution(2), 2, 1e-6),
        (DiscreteLaplaceDistribution(3), 60, 1e-6),
        (DiscreteGaussianDistribution(4), 9, 1e-6),
        (DiscreteLaplaceDistribution(2000), 2, 0.12),
        (DiscreteLaplaceDistribution(Fraction(1, 8)), 3, 1e-6),
    ],
)
def test_no_tail_is_below_the_convolution_nor_far_above(
    noise: SymmetricDistribution, times: int, looser: float
) -> None:
    exact, tail = _convolved(noise, times), repeated_tail(noise, times)
    at = np.unique(np.linspace(0, 4 * tail.stddev, 200).astype(int))
    found = tail.upper(at.astype(np.float64))
    assert (found >= exact[at] * (1 - 1e-9) - 1e-12).all()
    assert (found <= exact[at] * (1 + looser) + 1e-9).all()
    # to the other side of zero, where P(sum >= -k) is 1 - P(sum >= k + 1)
    assert (tail.upper(-at.astype(np.float64)) >= 1 - exact[at + 1] - 1e-9).all()
    assert float(tail.upper(np.array([1e9 * tail.stddev]))[0]) <= 1e-6
