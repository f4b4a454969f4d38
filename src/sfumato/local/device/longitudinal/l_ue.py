"""The client half of chained unary encodings: a bit for each category, flipped permanently, then freshly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.bernoulli import Coin, odds_below
from sfumato.local.device.base.bernoulli_bits import randomized_bits
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.unary import (
    OptimizedUnaryEncodingRandomizer,
    SymmetricUnaryEncodingRandomizer,
    UnaryRandomizer,
    bit_distribution,
)
from sfumato.local.device.longitudinal.layers import TwoLayerRandomizer, refuse_layers
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.rounding import fraction_up, log_up

__all__ = ["CHAINS", "LongitudinalUnaryEncodingRandomizer"]

CHAINS: Final[Mapping[str, tuple[type[UnaryRandomizer], bool]]] = {
    "SUE": (SymmetricUnaryEncodingRandomizer, True),
    "OUE": (OptimizedUnaryEncodingRandomizer, False),
    "OSUE": (OptimizedUnaryEncodingRandomizer, True),
    "SOUE": (SymmetricUnaryEncodingRandomizer, False),
}
"""From the name of a chain to its permanent layer, and whether the fresh one treats both bits alike."""
_CLOSE: Final = 1 - Fraction(1, 1 << 11)
_BLOCK: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalUnaryEncodingRandomizer(TwoLayerRandomizer):
    r"""Two unary encodings, one after the other: L-SUE, L-OUE, L-OSUE or L-SOUE.

    Parameters
    ----------
    epsilon, domain, permanent_epsilon, max_memos
        See `TwoLayerRandomizer`; at most 2^20 categories.
    chain : str
        ``"OSUE"``, the best of them: an optimized encoding for good, a symmetric one for each report.
        ``"SUE"`` is symmetric twice (basic RAPPOR), ``"OUE"`` optimized twice, ``"SOUE"`` symmetric and then
        optimized. A fresh layer that is optimized spends part of what the permanent one has left: epsilon
        must then be smaller against ``permanent_epsilon``.

    Attributes
    ----------
    permanent : UnaryRandomizer
        The permanent layer: a memo is a report of it.
    high, low : Coin
        Coins of a reported 1 where the memo has a 1, and where it has a 0. They are short, and on the private
        side of epsilon, of whose odds they reach at least 0.9995.

    Notes
    -----
    Guarantee: as of `TwoLayerRandomizer`. In one report a bit is 1 with probability :math:`P = p_2 p_1 + q_2
    (1 - p_1)` for the true category and :math:`Q = p_2 q_1 + q_2 (1 - q_1)` for each other one,
    independently, and :math:`\frac{P(1-Q)}{Q(1-P)} \le e^\epsilon` exactly.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR": L-SUE. Arcolezi, Couchot, Al Bouna, Xiao (2022), "Improving
    the utility of locally differentially private protocols for longitudinal and multidimensional frequency
    estimates": all four, and the best.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> given = {"epsilon": 1.0, "permanent_epsilon": 3.0, "domain": Domain(range(100))}
    >>> device = LongitudinalUnaryEncodingRandomizer(**given)
    >>> device.width, [round(float(chance), 3) for chance in device.chances]
    (17, [0.5, 0.269])
    """

    wire_name: ClassVar[str] = "longitudinal-unary-encoding"
    chosen: ClassVar[tuple[str, ...]] = (*TwoLayerRandomizer.chosen, "chain")

    chain: str = "OSUE"
    permanent: UnaryRandomizer = field(init=False, repr=False, compare=False)
    high: Coin = field(init=False, repr=False, compare=False)
    low: Coin = field(init=False, repr=False, compare=False)

    def _layers(self, permanent_epsilon: float) -> None:
        named: object = self.chain
        if not isinstance(named, str) or named not in CHAINS:
            _check.refuse("chain", f"be one of {', '.join(CHAINS)}", named, "take OSUE, which errs least")
        kind, symmetric = CHAINS[named]
        permanent = kind(epsilon=permanent_epsilon, domain=self.domain)
        both = permanent.true.chance, permanent.other.chance
        high, low = _shortest(both, permanent_epsilon, self.epsilon, symmetric)
        self._set(permanent=permanent.within(), high=high, low=low)

    @property
    def memo_chances(self) -> tuple[Fraction, Fraction]:
        """How likely a memoized bit is 1, for the true category and for any one other."""
        return self.permanent.true.chance, self.permanent.other.chance

    @property
    def fresh_chances(self) -> tuple[Fraction, Fraction]:
        """How likely a reported bit is 1, where the memoized one is 1 and where it is 0."""
        return self.high.chance, self.low.chance

    def _chances(self) -> dict[str, Any]:
        coins = {
            "high": self.high,
            "low": self.low,
            "true": self.permanent.true,
            "other": self.permanent.other,
        }
        return {name: [coin.threshold, coin.bits] for name, coin in coins.items()}

    @property
    def _like(self) -> UnaryRandomizer:
        return self.permanent

    @property
    def memo_width(self) -> int:
        """Bytes of a memo: a report of the permanent layer."""
        return self.permanent.width

    def memoize(self, keys: NDArray[np.int64], fixed: Records, source: RandomSource) -> Records:
        """Draw the permanent bits of indices in the domain.

        Parameters
        ----------
        keys : int64 array, shape (n,)
            Indices of categories in the domain.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, memo_width)
            One memo for each key, drawn independently.
        """
        return self.permanent.encoded(keys, source)

    def fresh(self, memos: Records, fixed: Records, source: RandomSource) -> Records:
        """Draw one report of each memo.

        Parameters
        ----------
        memos : uint8 array, shape (n, memo_width)
            What `memoize` returned.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
            One stamped report from each memo.
        """
        rows, width = max(1, _BLOCK // self.width), self.layout.payload_width
        records = np.empty((len(memos), self.width), np.uint8)
        for start in range(0, len(memos), rows):
            part = memos[start : start + rows]
            records[start : start + rows, :width] = randomized_bits(part, self.high, self.low, source)
        self.layout.stamp(records)
        return records

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report of a new device, were a value true: private.

        Parameters
        ----------
        value
            A category of the domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        true, other = self.chances
        (code,) = self.domain.codes([value]).tolist()
        chances = [true if at == code else other for at in range(len(self.domain))]
        return bit_distribution(chances, self.layout)

    def fresh_probabilities(self, memo: bytes) -> Mapping[bytes, Fraction]:
        """Return the probability of each report, given the memo: private, and for small domains.

        Parameters
        ----------
        memo : bytes
            One row of what `memoize` returned.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        bits = np.unpackbits(np.frombuffer(memo, np.uint8), bitorder="little")[: len(self.domain)]
        return bit_distribution(
            [self.high.chance if bit else self.low.chance for bit in bits.tolist()], self.layout
        )


def _chained(
    first: tuple[Fraction, Fraction], second: tuple[Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    """Return the chances of a 1 after both layers, where the true bit is 1 and where it is 0."""
    high, low = second
    return low + first[0] * (high - low), low + first[1] * (high - low)


def _odds(chances: tuple[Fraction, Fraction]) -> Fraction:
    true, other = chances
    return true * (1 - other) / (other * (1 - true))


def _shortest(
    first: tuple[Fraction, Fraction], permanent: float, epsilon: float, symmetric: bool
) -> tuple[Coin, Coin]:
    """Return the coins of the fresh layer: the fewest bits with which the odds of epsilon are nearly reached.

    The odds of a report fall with the chance of a 1 where the memo has a 0, so that the smallest such chance
    that satisfies epsilon is found by bisection.
    """
    limit = odds_below(epsilon)
    for bits in range(1, 65):
        half = 1 << bits - 1

        def coins(low: int, bits: int = bits) -> tuple[Coin, Coin]:
            return (Coin((1 << bits) - low, bits) if symmetric else Coin(1, 1)), Coin(low, bits)

        def odds(low: int, coins: Any = coins) -> Fraction:
            return _odds(_chained(first, tuple(coin.chance for coin in coins(low))))

        below, enough = 0, half
        while enough - below > 1:
            middle = (below + enough) // 2
            below, enough = (below, middle) if odds(middle) <= limit else (middle, enough)
        if enough < half and odds(enough) >= limit * _CLOSE:
            return coins(enough)
    minimum = Fraction(1, 1 << 64)
    maximum = _odds(_chained(first, (1 - minimum if symmetric else Fraction(1, 2), minimum)))
    if maximum < limit:
        refuse_layers(permanent, epsilon, None if symmetric else log_up(fraction_up(maximum)))
    raise ParameterError(
        f"epsilon must be greater, got {epsilon}; coins in steps of 2**-64 cannot distinguish it from 0"
    )
