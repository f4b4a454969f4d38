"""Additive shares of a number and of a part of the noise: what a split-and-mix client sends."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER, Record
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import polya

__all__ = ["MOST_BITS", "MOST_SHARES", "Split"]

MOST_BITS: Final = 52
MOST_SHARES: Final = 256
_MAX_CLIENTS: Final = 1 << 40


@final
@dataclass(frozen=True, slots=True)
class Split:
    r"""How whole numbers and noise on them are split into shares, modulo a power of two.

    Parameters
    ----------
    clients : int
        How many honest clients there are at least: each adds one of as many parts of the noise.
    shares : int
        How many add up to a number, from 2 to 256.
    bits : int
        All numbers are taken modulo :math:`2^{bits}`; from 1 to 52.

    Notes
    -----
    Any ``shares - 1`` shares of a number are independent and even, whatever the number is: all but the last
    are drawn so, and with one of them unknown the last is even too.
    """

    clients: int
    shares: int
    bits: int

    def __post_init__(self) -> None:
        if _check.integer("clients", self.clients, minimum=1) > _MAX_CLIENTS:
            _check.refuse("clients", "be at most 2**40", self.clients, "count honest clients only")
        remedy = "wait for more honest clients, who need fewer shares"
        if not 2 <= _check.integer("shares", self.shares) <= MOST_SHARES:
            _check.refuse("shares", f"be from 2 to {MOST_SHARES}", self.shares, remedy)
        if not 1 <= _check.integer("bits", self.bits) <= MOST_BITS:
            remedy = "take fewer clients, fewer steps or a greater epsilon"
            _check.refuse("bits", f"be from 1 to {MOST_BITS}", self.bits, remedy)

    @staticmethod
    def from_specification(specification: object) -> Split:
        """Return what `specification` described, or what is a split already.

        Parameters
        ----------
        specification : object
            JSON, or a `Split`, which is returned as it is.

        Returns
        -------
        Split

        Raises
        ------
        ParameterError
            If it is neither.
        """
        if isinstance(specification, Split):
            return specification
        return _CODEC.decode("split", specification)

    def specification(self) -> object:
        """Return the three numbers, as JSON.

        Returns
        -------
        dict of str to int
        """
        return _CODEC.encode(self)

    def shared(self, numbers: NDArray[np.int64], scale: Fraction, source: RandomSource) -> NDArray[np.uint64]:
        r"""Return shares of numbers with a part of discrete Laplace noise on each.

        Parameters
        ----------
        numbers : ndarray of int64
        scale : Fraction
            Of the whole noise, that of `clients` parts.
        source : RandomSource

        Returns
        -------
        ndarray of uint64, shape (\*numbers.shape, shares)
            The last axis adds up to the number and the noise, modulo ``2**bits``.
        """
        up, down = polya(scale, self.clients, 2 * numbers.size, source).reshape(2, *numbers.shape)
        even = source.words(numbers.size * (self.shares - 1)).reshape(*numbers.shape, self.shares - 1)
        left = (numbers + up - down).view(np.uint64) - even.sum(axis=-1, dtype=np.uint64)
        return np.concatenate([even, left[..., None]], axis=-1) & np.uint64((1 << self.bits) - 1)


_CODEC: Final = Record("a split", Split, {"clients": INTEGER, "shares": INTEGER, "bits": INTEGER})
