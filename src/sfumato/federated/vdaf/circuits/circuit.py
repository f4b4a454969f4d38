"""What a validity circuit is: an encoding of measurements, and equations that hold for valid ones only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField
from sfumato.federated.vdaf.circuits.gadget import Gadget
from sfumato.mechanisms.base.sensitivity import Shift

__all__ = ["Circuit", "Measurements", "next_power"]


Measurements: TypeAlias = Sequence[Any] | NDArray[Any]
"""What a circuit encodes, one entry a report."""


def next_power(number: int) -> int:
    """Return the smallest power of two that is at least a number.

    Examples
    --------
    >>> next_power(5)
    8
    """
    return 1 << (number - 1).bit_length()


class Circuit(ABC):
    """A validity circuit with one gadget, which is called a fixed number of times.

    Measurements are encoded as vectors of field elements, which are shared among aggregators. The inputs of
    each gadget call and the equations are affine in the encoding, so that each aggregator computes its share
    of them from its own share.
    """

    __slots__ = ()

    field: NttField
    """The field of the encoding."""

    @property
    @abstractmethod
    def gadget(self) -> Gadget:
        """The gadget."""

    @property
    @abstractmethod
    def calls(self) -> int:
        """How often the gadget is called."""

    @property
    @abstractmethod
    def encoded_length(self) -> int:
        """Elements of an encoded measurement."""

    @property
    @abstractmethod
    def output_length(self) -> int:
        """Elements that are summed over reports."""

    @property
    @abstractmethod
    def shift(self) -> Shift:
        """The most that the sums differ when one valid measurement is replaced by another."""

    @property
    @abstractmethod
    def extent(self) -> Shift:
        """The most that one valid measurement adds to the sums."""

    @property
    def joint_length(self) -> int:
        """Elements of joint randomness; none for circuits without."""
        return 0

    @property
    @abstractmethod
    def equations(self) -> int:
        """How many equations a valid measurement fulfils."""

    @abstractmethod
    def encode(self, measurements: Measurements) -> Elements:
        """Return measurements as elements.

        Parameters
        ----------
        measurements : sequence
            What the circuit measures.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, encoded_length, limbs)``.

        Raises
        ------
        ParameterError
            If one is out of range.
        """

    @abstractmethod
    def truncate(self, encoded: Elements) -> Elements:
        """Return the part, or the linear function, of encodings that is summed.

        Parameters
        ----------
        encoded : numpy.ndarray
            Of shape ``(rows, encoded_length, limbs)``.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, output_length, limbs)``.
        """

    def result(self, totals: list[int]) -> Any:
        """Return the aggregate that sums stand for: a list of them, unless a circuit says otherwise.

        Parameters
        ----------
        totals : list of int
            One for each output.

        Returns
        -------
        list of int or int
        """
        return totals

    @abstractmethod
    def inputs(self, encoded: Elements, joint: Elements, shares: int) -> Elements:
        """Return the inputs of the gadget's calls.

        Parameters
        ----------
        encoded : numpy.ndarray
            Encodings, or shares of them.
        joint : numpy.ndarray
            Joint randomness, of shape ``(rows, joint_length, limbs)``.
        shares : int
            Into how many shares an encoding is split: each has its part of the constants.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, calls, arity, limbs)``.
        """

    @abstractmethod
    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        """Return what is zero in every equation, or shares of it.

        Parameters
        ----------
        encoded : numpy.ndarray
            Encodings, or shares of them.
        outputs : numpy.ndarray
            The outputs of the gadget's calls, of shape ``(rows, calls, limbs)``.
        shares : int
            Into how many shares an encoding is split.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, equations, limbs)``.
        """


def share_of_one(field: NttField, shares: int) -> Elements:
    """Return one over the number of shares: each aggregator's part of the constant one."""
    one: Elements = field.vector([pow(shares, -1, field.modulus)])[0]
    return one


def joined(*parts: Elements) -> Elements:
    """Return sums of shape ``(rows, limbs)`` as the equations of a circuit."""
    return np.stack(parts, axis=1)
