"""The tail of a sum of many independent noises of one distribution, as totals over groups have it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.queries.release.tails.noise_tails import NoiseTail, noise_tail, tabulated_tail

__all__ = ["repeated_tail"]

Floats: TypeAlias = NDArray[np.float64]

_FAR: Final = 13.0  # standard deviations of the sum that are tabulated
_EXACT: Final = 1 << 17  # the longest table of single integers
_FINE: Final = 192.0  # parts of one noise's standard deviation that it is rounded to, where it is wide
_UNSURE: Final = 1e-10  # that the roundings together are farther off than they are taken for
_ROUND_OFF: Final = 1e-13


@lru_cache(maxsize=512)
def repeated_tail(noise: SymmetricDistribution, times: int) -> NoiseTail:
    r"""Return the tail of a sum of so many independent noises, each of one distribution.

    Parameters
    ----------
    noise : SymmetricDistribution
    times : int
        At least one.

    Returns
    -------
    NoiseTail
        Of the probabilities of every integer, where these are few enough. Wide noise is rounded to multiples
        of a number c of integers; the roundings are independent, symmetric and at most c / 2 each, so that
        their sum is beyond :math:`c \sqrt{m \ln(1 / u) / 2}` for m noises with a probability of at most u
        (Hoeffding 1963, Theorem 2), by which the tail is moved outward, and raised by u.

    Examples
    --------
    >>> from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
    >>> tail = repeated_tail(DiscreteLaplaceDistribution(2), 100)
    >>> bool(0.02 < tail.upper(np.array([56.0]))[0] < 0.03)  # two standard deviations
    True
    """
    one = noise_tail(noise)
    if times == 1:
        return one
    stddev = one.stddev * math.sqrt(times)
    exact = _size(stddev, 1) <= _EXACT
    apart = 1 if exact else max(1, math.floor(one.stddev / _FINE))
    reach = _reach(stddev, apart)
    size = _size(stddev, apart)
    # P(Z rounds to j or more), for j from 0 on; a half is rounded to either side, by a coin
    ends = np.maximum(0.0, (np.arange(reach + 1) - 0.5) * apart)
    beyond = (one.from_zero(np.ceil(ends)) + one.from_zero(np.floor(ends) + (ends > 0))) / 2
    masses = np.zeros(size)
    masses[0] = 1 - 2 * beyond[1]
    side = beyond[1:-1] - beyond[2:]
    masses[1:reach] = side
    masses[-reach + 1 :] = side[::-1]
    masses[reach] = 2 * beyond[-1]
    found = np.maximum(0.0, np.fft.irfft(np.fft.rfft(masses) ** times, size))
    # noise that is farther out than the table may make up for any other
    unsure = 2 * times * float(beyond[-1]) + _ROUND_OFF
    tails = np.cumsum(found[size // 2 - 1 :: -1])[::-1] * one.slack**2 + unsure
    tails[0] = max(0.5, tails[0])
    moved = 0
    if apart > 1:
        moved = math.ceil(math.sqrt(times * math.log(1 / _UNSURE) / 2))
        tails = np.concatenate((np.full(moved, tails[0]), tails)) + _UNSURE
    farther = 2.0 * (moved + 1) * apart if moved else 1.0
    return tabulated_tail(np.minimum(1.0, tails[: reach + 1]), stddev, float(apart), farther)


def _reach(stddev: float, apart: int) -> int:
    """Return how far the table goes; noise that is hardly any has a few steps."""
    return max(8, math.ceil(_FAR * stddev / apart))


def _size(stddev: float, apart: int) -> int:
    """Return how long the transforms are: twice as far as the table, so that nothing comes round."""
    return 1 << (4 * _reach(stddev, apart)).bit_length()
