"""Circuits that measure one number and need no joint randomness: a count and a sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import FIELD64, NttField
from sfumato.federated.vdaf.circuits.circuit import Circuit, Measurements
from sfumato.federated.vdaf.circuits.gadget import Gadget, Mul, PolyEval
from sfumato.federated.vdaf.circuits.ranged_integers import RangedIntegers, whole_numbers
from sfumato.mechanisms.base.sensitivity import Shift

__all__ = ["Count", "Sum"]


@final
@dataclass(frozen=True, slots=True)
class Count(Circuit):
    """Zero or one, which its square equals.

    Examples
    --------
    >>> Count().encode([0, 1]).tolist()
    [[[0]], [[1]]]
    """

    field: NttField = field(default=FIELD64, init=False)

    @property
    def gadget(self) -> Gadget:
        """The product."""
        return Mul()

    @property
    def calls(self) -> int:
        """One."""
        return 1

    @property
    def encoded_length(self) -> int:
        """One."""
        return 1

    @property
    def output_length(self) -> int:
        """One."""
        return 1

    @property
    def shift(self) -> Shift:
        """From zero to one."""
        return Shift.entries(1, 1)

    @property
    def extent(self) -> Shift:
        """One."""
        return Shift.entries(1, 1)

    @property
    def equations(self) -> int:
        """One."""
        return 1

    def encode(self, measurements: Measurements) -> Elements:
        """Return zeros and ones; see `Circuit.encode`."""
        return self.field.small(whole_numbers(measurements, 1, ())[:, None])

    def truncate(self, encoded: Elements) -> Elements:
        """Return the number itself."""
        return encoded

    def result(self, totals: list[int]) -> int:
        """Return the count."""
        return totals[0]

    def inputs(self, encoded: Elements, joint: Elements, shares: int) -> Elements:
        """Return the number twice; see `Circuit.inputs`."""
        return encoded[:, None].repeat(2, axis=2)

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        """Return the square less the number; see `Circuit.evaluate`."""
        return self.field.subtracted(outputs, encoded)


@final
@dataclass(frozen=True, slots=True)
class Sum(Circuit):
    """An integer from 0 to a bound.

    Parameters
    ----------
    maximum : int
        The bound, from 1 to 2**62.

    Examples
    --------
    >>> Sum(6).encode([5]).tolist()
    [[[0], [1], [1]]]
    """

    maximum: int
    field: NttField = field(default=FIELD64, init=False)

    def __post_init__(self) -> None:
        RangedIntegers(self.field, self.maximum)

    @property
    def integers(self) -> RangedIntegers:
        """The encoding."""
        return RangedIntegers(self.field, self.maximum)

    @property
    def gadget(self) -> Gadget:
        """The polynomial that is zero at 0 and 1."""
        return PolyEval((0, -1, 1))

    @property
    def calls(self) -> int:
        """One a bit."""
        return self.integers.bits

    @property
    def encoded_length(self) -> int:
        """The bits."""
        return self.integers.bits

    @property
    def output_length(self) -> int:
        """One."""
        return 1

    @property
    def shift(self) -> Shift:
        """From zero to the bound."""
        return Shift.entries(1, self.maximum)

    @property
    def extent(self) -> Shift:
        """The bound."""
        return Shift.entries(1, self.maximum)

    @property
    def equations(self) -> int:
        """One a bit."""
        return self.integers.bits

    def encode(self, measurements: Measurements) -> Elements:
        """Return the bits; see `Circuit.encode`."""
        return self.integers.encode(whole_numbers(measurements, self.maximum, ())[:, None])

    def truncate(self, encoded: Elements) -> Elements:
        """Return the integer."""
        return self.integers.decode(encoded)

    def result(self, totals: list[int]) -> int:
        """Return the sum."""
        return totals[0]

    def inputs(self, encoded: Elements, joint: Elements, shares: int) -> Elements:
        """Return each bit by itself; see `Circuit.inputs`."""
        return encoded[:, :, None]

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        """Return the gadget's outputs; see `Circuit.evaluate`."""
        return outputs
