"""The client half of unary encodings: one bit for each category, each flipped at random."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.bernoulli import Coin, odds_below
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Layout, Records
from sfumato.numerics import _kernels
from sfumato.numerics.randomness.source import RandomSource

__all__ = [
    "OptimizedUnaryEncodingRandomizer",
    "SymmetricUnaryEncodingRandomizer",
    "UnaryRandomizer",
    "bit_distribution",
]

_CLOSE: Final = 1 - Fraction(1, 1 << 11)
"""Fraction of the odds that short coins must reach: it costs at most a thousandth of epsilon."""
_WORDS: Final = 1 << 16
"""Random words that are drawn at once: they stay in the processor's cache."""
_MAX: Final = 1 << 20
_SMALL: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryRandomizer(CategoricalRandomizer):
    r"""One bit for each category: set with probability p for the true one, with q for each other one.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2^20 categories, as each costs a bit of every report.

    Attributes
    ----------
    true, other : Coin
        The coins of p and q. They are short, so that few random bits make many: :math:`\frac{p(1-q)}{q(1-p)}`
        is at most :math:`e^\epsilon`, and at least 0.9995 times that.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: two true values change the distributions of
    two independent bits, whose ratios are at most :math:`\frac{p}{q}` and :math:`\frac{1-q}{1-p}`, exactly.
    """

    true: Coin = field(init=False, repr=False, compare=False)
    other: Coin = field(init=False, repr=False, compare=False)

    @staticmethod
    @abstractmethod
    def _coins(epsilon: float, bits: int) -> tuple[Coin, Coin]:
        """Return both coins, with so many bits; refuse if they are equal."""

    def _choose(self) -> None:
        if len(self.domain) > _MAX:
            remedy = "use a protocol with short reports, such as OptimalLocalHashingRandomizer"
            _check.refuse("domain", "have at most 2**20 categories", len(self.domain), remedy)
        true, other = _shortest(self._coins, self.epsilon)
        self._set(true=true, other=other)

    @property
    def _bits(self) -> int:
        return len(self.domain)

    def _chances(self) -> dict[str, Any]:
        return {
            name: [coin.threshold, coin.bits] for name, coin in (("true", self.true), ("other", self.other))
        }

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        width, bits = self.layout.payload_width, self.other.bits
        block = max(1, _WORDS * 8 // (width * bits))
        records = np.empty((len(codes), self.width), np.uint8)
        for start in range(0, len(codes), block):
            at = codes[start : start + block]
            words = -(-len(at) * width // 8)
            flips = np.empty(words, np.uint64)
            _kernels.coins(source.words(words * bits), self.other.threshold, bits, flips)
            rows = flips.view(np.uint8)[: len(at) * width].reshape(len(at), width)
            self._write_true(rows, at, source)
            records[start : start + block, :width] = rows
        self.layout.stamp(records)
        return records

    def _write_true(self, rows: Records, codes: NDArray[np.int64], source: RandomSource) -> None:
        """Draw the bits of the true categories anew, with their own chance."""
        position = np.arange(len(codes)), codes >> 3
        mask = np.left_shift(1, codes & 7).astype(np.uint8)
        heads = self.true.flip(len(codes), source)
        rows[position] = rows[position] & ~mask | mask * heads

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a value true: private, and for small domains.

        Parameters
        ----------
        value
            A category of the domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        (code,) = self.domain.codes([value]).tolist()
        chances = [self.true.chance if at == code else self.other.chance for at in range(len(self.domain))]
        return bit_distribution(chances, self.layout)


def bit_distribution(chances: Sequence[Fraction], layout: Layout) -> dict[bytes, Fraction]:
    """Return the probability of each record of independent bits, of at most 16 of them.

    Parameters
    ----------
    chances : sequence of Fraction
        How likely each bit is 1, the lowest first.
    layout : Layout

    Returns
    -------
    dict of bytes to Fraction
    """
    if len(chances) > _SMALL:
        _check.refuse_state(
            "domain",
            f"have at most {_SMALL} categories",
            f"it has {len(chances)}",
            "look at a smaller one",
        )
    distribution = {}
    for payload, bits in enumerate(product((0, 1), repeat=len(chances))):
        mass = Fraction(1)
        for chance, bit in zip(reversed(chances), bits, strict=True):
            mass *= chance if bit else 1 - chance
        distribution[layout.pack(np.array([payload], np.uint64)).tobytes()] = mass
    return distribution


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricUnaryEncodingRandomizer(UnaryRandomizer):
    r"""RAPPOR's basic form: :math:`p = 1 - q = \frac{e^{\epsilon/2}}{1 + e^{\epsilon/2}}`.

    Parameters
    ----------
    epsilon, domain
        See `UnaryRandomizer`.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR", basic one-time form; Wang, Blocki, Li, Jha (2017), the name.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> SymmetricUnaryEncodingRandomizer(epsilon=1.0, domain=Domain(range(100))).width
    17
    """

    wire_name: ClassVar[str] = "symmetric-unary-encoding"

    @staticmethod
    def _coins(epsilon: float, bits: int) -> tuple[Coin, Coin]:
        other = Coin.above(1 / (1 + odds_below(epsilon / 2)), bits)
        return Coin((1 << bits) - other.threshold, bits), other


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnaryEncodingRandomizer(UnaryRandomizer):
    r"""Minimum error for rare values: :math:`p = 1/2` and :math:`q = \frac{1}{1 + e^\epsilon}`.

    Parameters
    ----------
    epsilon, domain
        See `UnaryRandomizer`.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> OptimizedUnaryEncodingRandomizer(epsilon=1.0, domain=Domain(range(1024))).width
    132
    """

    wire_name: ClassVar[str] = "optimized-unary-encoding"

    @staticmethod
    def _coins(epsilon: float, bits: int) -> tuple[Coin, Coin]:
        return Coin(1, 1), Coin.above(1 / (1 + odds_below(epsilon)), bits)


def _shortest(coins: Any, epsilon: float) -> tuple[Coin, Coin]:
    """Return the coins with the fewest bits whose odds are close to those of epsilon."""
    wanted = odds_below(epsilon) * _CLOSE
    for bits in range(1, 65):
        try:
            true, other = coins(epsilon, bits)
        except ParameterError:  # too few bits for such a chance
            continue
        p, q = true.chance, other.chance
        if p > q and p * (1 - q) >= wanted * q * (1 - p):
            return true, other
    rule, from_what = ("greater", "0") if epsilon < 1 else ("smaller", "others near it")
    raise ParameterError(
        f"epsilon must be {rule}, got {epsilon}; "
        f"coins in steps of 2**-64 cannot distinguish it from {from_what}"
    )
