"""Circuits of many zeros and ones, checked in chunks with joint randomness."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import FIELD128, NttField
from sfumato.federated.vdaf.circuits.circuit import Circuit, Measurements, joined, share_of_one
from sfumato.federated.vdaf.circuits.gadget import Gadget, Mul, ParallelSum
from sfumato.federated.vdaf.circuits.ranged_integers import RangedIntegers, whole_numbers
from sfumato.mechanisms.base.sensitivity import Shift

__all__ = ["Histogram", "L1BoundSum", "MultihotCountVec", "SumVec"]


class _Chunked(Circuit):
    """All elements are zeros or ones: sums of r^j x (x - 1) over chunks, with a random r for each chunk."""

    __slots__ = ()

    chunk_length: int

    @property
    def gadget(self) -> Gadget:
        """A sum of products."""
        return ParallelSum(Mul(), self.chunk_length)

    @property
    def calls(self) -> int:
        """One a chunk."""
        return -(-self.encoded_length // self.chunk_length)

    @property
    def joint_length(self) -> int:
        """One a chunk."""
        return self.calls

    @property
    def equations(self) -> int:
        """Two: all are zeros and ones, and a sum is right."""
        return 2

    def inputs(self, encoded: Elements, joint: Elements, shares: int) -> Elements:
        """Return pairs of r^j x and x - 1; see `Circuit.inputs`."""
        rows = len(encoded)
        padded = self.field.zeros(rows, self.calls * self.chunk_length)
        padded[:, : self.encoded_length] = encoded
        chunks = padded.reshape(rows, self.calls, self.chunk_length, self.field.limbs)
        return self.field.weighted_pairs(joint, chunks, share_of_one(self.field, shares))

    def _check_sizes(self, *names: str) -> None:
        for name in (*names, "chunk_length"):
            _check.integer(name, getattr(self, name), minimum=1)


@final
@dataclass(frozen=True, slots=True)
class Histogram(_Chunked):
    """One of some buckets: zeros and a single one.

    Parameters
    ----------
    length : int
        How many buckets.
    chunk_length : int
        How many are checked by one gadget call; about the square root of the length is best.

    Examples
    --------
    >>> Histogram(4, 2).encode([2])[0, :, 0].tolist()
    [0, 0, 1, 0]
    """

    length: int
    chunk_length: int
    field: NttField = field(default=FIELD128, init=False)

    def __post_init__(self) -> None:
        self._check_sizes("length")

    @property
    def encoded_length(self) -> int:
        """The buckets."""
        return self.length

    @property
    def output_length(self) -> int:
        """The buckets."""
        return self.length

    @property
    def shift(self) -> Shift:
        """From one bucket to another."""
        return Shift.entries(min(2, self.length), 1)

    @property
    def extent(self) -> Shift:
        """One bucket, by one."""
        return Shift.entries(1, 1)

    def encode(self, measurements: Measurements) -> Elements:
        """Return bucket numbers as unit vectors; see `Circuit.encode`."""
        buckets = whole_numbers(measurements, self.length - 1, ())
        out = self.field.zeros(len(buckets), self.length)
        out[np.arange(len(buckets)), buckets, 0] = 1
        return out

    def truncate(self, encoded: Elements) -> Elements:
        """Return the vector itself."""
        return encoded

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        """Return the checks' sum, and the vector's less one; see `Circuit.evaluate`."""
        one = share_of_one(self.field, shares)
        total = self.field.subtracted(self.field.summed(encoded), one)
        return joined(self.field.summed(outputs), total)


@final
@dataclass(frozen=True, slots=True)
class SumVec(_Chunked):
    """A vector of integers from 0 to a bound.

    Parameters
    ----------
    length : int
        How many integers.
    maximum : int
        The bound of each, from 1 to 2**62.
    chunk_length : int
        How many bits are checked by one gadget call.
    field : NttField, optional
        The field; with the small one, several proofs are needed.

    Examples
    --------
    >>> SumVec(2, 3, 1).encode([[1, 2]])[0, :, 0].tolist()
    [1, 0, 0, 1]
    """

    length: int
    maximum: int
    chunk_length: int
    field: NttField = FIELD128

    def __post_init__(self) -> None:
        self._check_sizes("length")
        RangedIntegers(self.field, self.maximum)

    @property
    def integers(self) -> RangedIntegers:
        """The encoding."""
        return RangedIntegers(self.field, self.maximum)

    @property
    def encoded_length(self) -> int:
        """All bits."""
        return self.length * self.integers.bits

    @property
    def output_length(self) -> int:
        """The integers."""
        return self.length

    @property
    def shift(self) -> Shift:
        """Every entry from zero to the bound."""
        return Shift.entries(self.length, self.maximum)

    @property
    def extent(self) -> Shift:
        """Every entry, by the bound."""
        return Shift.entries(self.length, self.maximum)

    @property
    def equations(self) -> int:
        """One: all are zeros and ones."""
        return 1

    def encode(self, measurements: Measurements) -> Elements:
        """Return vectors as bits; see `Circuit.encode`."""
        return self.integers.encode(whole_numbers(measurements, self.maximum, (self.length,)))

    def truncate(self, encoded: Elements) -> Elements:
        """Return the integers."""
        return self.integers.decode(encoded)

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        """Return the checks' sum; see `Circuit.evaluate`."""
        return joined(self.field.summed(outputs))


@final
@dataclass(frozen=True, slots=True)
class MultihotCountVec(_Chunked):
    """A vector of zeros and at most some number of ones.

    Parameters
    ----------
    length : int
        How many entries.
    max_weight : int
        How many of them may be one, from 1 to the length.
    chunk_length : int
        How many entries are checked by one gadget call.

    Examples
    --------
    >>> MultihotCountVec(3, 2, 2).encode([[1, 0, 1]])[0, :, 0].tolist()
    [1, 0, 1, 1, 1]
    """

    length: int
    max_weight: int
    chunk_length: int
    field: NttField = field(default=FIELD128, init=False)

    def __post_init__(self) -> None:
        self._check_sizes("length", "max_weight")
        if self.max_weight > self.length:
            _check.refuse("max_weight", "be at most the length", self.max_weight, "lower it to the length")

    @property
    def integers(self) -> RangedIntegers:
        """The weight's encoding."""
        return RangedIntegers(self.field, self.max_weight)

    @property
    def encoded_length(self) -> int:
        """The entries and the weight's bits."""
        return self.length + self.integers.bits

    @property
    def output_length(self) -> int:
        """The entries."""
        return self.length

    @property
    def shift(self) -> Shift:
        """As many ones as there may be, to as many others."""
        return Shift.entries(min(self.length, 2 * self.max_weight), 1)

    @property
    def extent(self) -> Shift:
        """As many entries as may be one."""
        return Shift.entries(self.max_weight, 1)

    def encode(self, measurements: Measurements) -> Elements:
        """Return vectors with the bits of their weights; see `Circuit.encode`."""
        entries = whole_numbers(measurements, 1, (self.length,))
        weights = entries.sum(axis=1, dtype=np.uint64)
        if (weights > self.max_weight).any():
            _check.refuse_type(
                "measurements",
                f"have at most {self.max_weight} ones each",
                entries,
                "clear some entries first",
            )
        claimed = self.integers.encode(weights[:, None])
        return np.concatenate([self.field.small(entries), claimed], axis=1)

    def truncate(self, encoded: Elements) -> Elements:
        """Return the entries."""
        return encoded[:, : self.length]

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        """Return the checks' sum, and the entries' less the weight; see `Circuit.evaluate`."""
        found = self.field.summed(encoded[:, : self.length])
        claimed = self.integers.decode(encoded[:, self.length :])[:, 0]
        return joined(self.field.summed(outputs), self.field.subtracted(found, claimed))


@final
@dataclass(frozen=True, slots=True)
class L1BoundSum(_Chunked):
    """A vector of integers from 0 up whose sum is at most a bound (draft-ietf-ppm-l1-bound-sum).

    Parameters
    ----------
    length : int
        How many integers.
    maximum : int
        The bound of their sum, from 1 to 2**62.
    chunk_length : int
        How many bits are checked by one gadget call.

    Examples
    --------
    >>> L1BoundSum(2, 3, 2).encode([[1, 2]])[0, :, 0].tolist()
    [1, 0, 0, 1, 1, 1]
    """

    length: int
    maximum: int
    chunk_length: int
    field: NttField = field(default=FIELD128, init=False)

    def __post_init__(self) -> None:
        self._check_sizes("length")
        RangedIntegers(self.field, self.maximum)

    @property
    def integers(self) -> RangedIntegers:
        """The encoding."""
        return RangedIntegers(self.field, self.maximum)

    @property
    def encoded_length(self) -> int:
        """The bits of all integers and of their sum."""
        return (self.length + 1) * self.integers.bits

    @property
    def output_length(self) -> int:
        """The integers."""
        return self.length

    @property
    def shift(self) -> Shift:
        """The whole sum from one entry to another: ``|x - y|^2 <= |x|^2 + |y|^2`` where none is negative."""
        entries, both = min(self.length, 2 * self.maximum), min(self.length, 2)
        return Shift(l0=entries, l1=both * self.maximum, l2_squared=both * self.maximum**2, linf=self.maximum)

    @property
    def extent(self) -> Shift:
        """The whole sum in one entry, or spread over many."""
        l0, most = min(self.length, self.maximum), self.maximum
        return Shift(l0=l0, l1=most, l2_squared=most**2, linf=most)

    def encode(self, measurements: Measurements) -> Elements:
        """Return vectors and their sums as bits; see `Circuit.encode`."""
        entries = whole_numbers(measurements, self.maximum, (self.length,))
        if any(sum(row) > self.maximum for row in entries.tolist()):
            _check.refuse_type(
                "measurements", f"sum to at most {self.maximum} each", entries, "scale the entries down first"
            )
        return self.integers.encode(np.column_stack([entries, entries.sum(axis=1, dtype=np.uint64)]))

    def truncate(self, encoded: Elements) -> Elements:
        """Return the integers."""
        return self.integers.decode(encoded)[:, : self.length]

    def evaluate(self, encoded: Elements, outputs: Elements, shares: int) -> Elements:
        """Return the checks' sum, and the integers' less the one claimed; see `Circuit.evaluate`."""
        numbers = self.integers.decode(encoded)
        found = self.field.summed(numbers[:, : self.length])
        return joined(self.field.summed(outputs), self.field.subtracted(found, numbers[:, self.length]))
