"""Gadgets: the non-linear parts of a validity circuit, which a proof vouches for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField

__all__ = ["Gadget", "Mul", "ParallelSum", "PolyEval"]


class Gadget(ABC):
    """A polynomial in some inputs, evaluated on values or on polynomials given by their values."""

    __slots__ = ()

    @property
    @abstractmethod
    def arity(self) -> int:
        """How many inputs it takes."""

    @property
    @abstractmethod
    def degree(self) -> int:
        """The polynomial's degree."""

    @abstractmethod
    def evaluate(self, field: NttField, inputs: Elements) -> Elements:
        """Return the outputs at some points.

        Parameters
        ----------
        field : NttField
            The inputs' field.
        inputs : numpy.ndarray
            Of shape ``(rows, arity, points, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, points, limbs)``.
        """

    def evaluate_sum(self, field: NttField, inputs: Elements, count: int) -> Elements:
        """Return the sums of the outputs on successive groups of inputs, at some points.

        Parameters
        ----------
        field : NttField
            The inputs' field.
        inputs : numpy.ndarray
            Of shape ``(rows, count * arity, points, limbs)``.
        count : int
            How many groups.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, points, limbs)``.
        """
        rows, _, *rest = inputs.shape
        grouped: Elements = inputs.reshape(rows * count, self.arity, *rest)
        each: Elements = self.evaluate(field, grouped).reshape(rows, count, *rest)
        return field.summed(each.swapaxes(1, 2))


@final
@dataclass(frozen=True, slots=True)
class Mul(Gadget):
    """The product of two inputs.

    Examples
    --------
    >>> Mul().arity, Mul().degree
    (2, 2)
    """

    @property
    def arity(self) -> int:
        """Two."""
        return 2

    @property
    def degree(self) -> int:
        """Two."""
        return 2

    def evaluate(self, field: NttField, inputs: Elements) -> Elements:
        """Return the products; see `Gadget.evaluate`."""
        return field.multiplied(inputs[:, 0], inputs[:, 1])

    def evaluate_sum(self, field: NttField, inputs: Elements, count: int) -> Elements:
        """Return the sums of products; see `Gadget.evaluate_sum`."""
        return field.paired_products(inputs)


@final
@dataclass(frozen=True, slots=True)
class PolyEval(Gadget):
    """A polynomial of one input.

    Parameters
    ----------
    coefficients : tuple of int
        The constant first; the last is not zero.

    Examples
    --------
    >>> PolyEval((0, -1, 1)).degree
    2
    """

    coefficients: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.coefficients) < 2 or not self.coefficients[-1]:
            _check.refuse(
                "coefficients",
                "be at least two, the last not zero",
                self.coefficients,
                "drop zeros at the end",
            )

    @property
    def arity(self) -> int:
        """One."""
        return 1

    @property
    def degree(self) -> int:
        """The degree."""
        return len(self.coefficients) - 1

    def evaluate(self, field: NttField, inputs: Elements) -> Elements:
        """Return the values by Horner's rule; see `Gadget.evaluate`."""
        constants = field.vector(self.coefficients)
        value: Elements = constants[-1]
        for constant in constants[-2::-1]:
            value = field.added(field.multiplied(value, inputs[:, 0]), constant)
        return value


@final
@dataclass(frozen=True, slots=True)
class ParallelSum(Gadget):
    """The sum of one gadget's outputs on successive groups of inputs.

    With chunks of about the square root of a circuit's checks, the proof is as short as it can be (Boneh,
    Boyle, Corrigan-Gibbs, Gilboa and Ishai 2019, section 4.4).

    Parameters
    ----------
    subcircuit : Gadget
        The gadget.
    count : int
        How many groups, at least 1.

    Examples
    --------
    >>> ParallelSum(Mul(), 3).arity
    6
    """

    subcircuit: Gadget
    count: int

    def __post_init__(self) -> None:
        _check.integer("count", self.count, minimum=1)

    @property
    def arity(self) -> int:
        """Inputs of all groups together."""
        return self.subcircuit.arity * self.count

    @property
    def degree(self) -> int:
        """The degree of the one gadget."""
        return self.subcircuit.degree

    def evaluate(self, field: NttField, inputs: Elements) -> Elements:
        """Return the sums; see `Gadget.evaluate`."""
        return self.subcircuit.evaluate_sum(field, inputs, self.count)
