"""Decoys: messages that a client of a multi-message protocol sends beside the truth, to hide everybody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER, Codec, Field, Record
from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.record_layout import Layout, Records
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["MOST_MESSAGES", "Decoys", "check_messages", "joint_distribution", "mixed"]

MOST_MESSAGES: Final = 1 << 16
"""Of one client: a specification that asks for more is refused, wherever it comes from."""


@final
@dataclass(frozen=True, slots=True)
class Decoys:
    """Messages of each client that are independent of its data: even draws from all symbols, or blanks.

    Parameters
    ----------
    slots : int
        How many, at least 1.
    coin : Coin
        Falls on heads for a draw, on tails for a blank.

    Notes
    -----
    A client always sends as many messages; which are truth, draws or blanks is not seen, but for the blanks.
    Neither draws nor blanks depend on any datum.
    """

    slots: int
    coin: Coin

    def __post_init__(self) -> None:
        _check.integer("slots", self.slots, minimum=1)

    @classmethod
    def at_least(cls, draws: int, clients: int) -> Decoys:
        """Return the fewest slots that make at least so many draws on average, from so many clients.

        Parameters
        ----------
        draws : int
            Draws of all clients together, on average.
        clients : int

        Returns
        -------
        Decoys
        """
        each = Fraction(max(1, draws), clients)
        slots = int(each) + 1
        return cls(slots, Coin.above(each / slots))

    @staticmethod
    def from_specification(specification: object) -> Decoys:
        """Return what `specification` described, or what are decoys already.

        Parameters
        ----------
        specification : object
            JSON, or a `Decoys`, which is returned as it is.

        Returns
        -------
        Decoys

        Raises
        ------
        ParameterError
            If it is neither.
        """
        if isinstance(specification, Decoys):
            return specification
        return _CODEC.decode("decoys", specification)

    def specification(self) -> object:
        """Return the number of slots and the coin's threshold, as JSON.

        Returns
        -------
        dict of str to int
        """
        return _CODEC.encode(self)

    def draw(self, clients: int, symbols: int, source: RandomSource) -> NDArray[np.int64]:
        """Draw the decoys of some clients: symbols from 0 on, and ``symbols`` for a blank.

        Parameters
        ----------
        clients : int
        symbols : int
            Number of categories.
        source : RandomSource

        Returns
        -------
        ndarray of int64, shape (clients, slots)
        """
        size = clients * self.slots
        even = uniform_integers(symbols, size, source)
        sent = self.coin.flip(size, source)
        return np.where(sent, even, symbols).reshape(clients, self.slots)

    def distribution(self, symbols: int) -> dict[int, Fraction]:
        """Return the distribution of one decoy.

        Parameters
        ----------
        symbols : int
            Number of categories.

        Returns
        -------
        dict of int to Fraction
        """
        chance = self.coin.chance
        return {**dict.fromkeys(range(symbols), chance / symbols), symbols: 1 - chance}


def check_messages(name: str, messages: int) -> None:
    """Refuse what would make a client send more messages than `MOST_MESSAGES`.

    Parameters
    ----------
    name : str
        The parameter that asks for them.
    messages : int
        Of one client.

    Raises
    ------
    ParameterError
        If they are more. Nothing of their size has been made by then.
    """
    if messages > MOST_MESSAGES:
        rule = f"ask each client for at most {MOST_MESSAGES} messages"
        _check.refuse(name, rule, messages, "ask for fewer, of more clients")


def mixed(payloads: NDArray[np.int64], layout: Layout) -> Records:
    """Return the messages of some clients as records, each client's sorted: their order carries nothing.

    Parameters
    ----------
    payloads : ndarray of int64, shape (clients, messages)
    layout : Layout

    Returns
    -------
    uint8 array, shape (clients * messages, width)
    """
    return layout.pack(np.sort(payloads, axis=1).ravel().astype(np.uint64))


def joint_distribution(
    distributions: Sequence[Mapping[int, Fraction]], layout: Layout
) -> dict[bytes, Fraction]:
    """Return the distribution of all messages of one client from that of each: for very few.

    Parameters
    ----------
    distributions : sequence of mapping
        For each message, the probability of each payload.
    layout : Layout

    Returns
    -------
    dict of bytes to Fraction
    """
    distribution: dict[tuple[int, ...], Fraction] = {}
    for choice in product(*(each.items() for each in distributions)):
        mass = Fraction(1)
        for _, chance in choice:
            mass *= chance
        key = tuple(sorted(payload for payload, _ in choice))
        distribution[key] = distribution.get(key, Fraction(0)) + mass
    return {_record(key, layout): mass for key, mass in distribution.items()}


def _record(payloads: tuple[int, ...], layout: Layout) -> bytes:
    return layout.pack(np.array(payloads, np.uint64)).tobytes()


_COIN: Final = Codec(lambda coin: coin.threshold, lambda name, written: Coin(INTEGER.decode(name, written)))
_CODEC: Final = Record("decoys", Decoys, {"slots": INTEGER, "threshold": Field("coin", _COIN)})
