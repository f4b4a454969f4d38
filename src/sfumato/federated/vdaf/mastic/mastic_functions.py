"""The functions of the Mastic family that the draft names."""

from __future__ import annotations

from sfumato.federated.vdaf.circuits.chunked import Histogram, MultihotCountVec, SumVec
from sfumato.federated.vdaf.circuits.scalar import Count, Sum
from sfumato.federated.vdaf.mastic.mastic import Mastic

__all__ = [
    "mastic_count",
    "mastic_histogram",
    "mastic_multihot_count_vec",
    "mastic_sum",
    "mastic_sum_vec",
]


def mastic_count(bits: int, *, context: bytes = b"") -> Mastic:
    """Return MasticCount: weights are zero or one.

    Parameters
    ----------
    bits : int
        How long the strings are, from 1 to 65,535.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Mastic

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> mastic_count(8).rand_size
    96
    """
    return Mastic(Count(), 0xFFFF0001, bits, context)


def mastic_sum(bits: int, max_measurement: int, *, context: bytes = b"") -> Mastic:
    """Return MasticSum: weights are integers from 0 to a bound.

    Sums are modulo 2**64 - 2**32 + 1: the bound times the reports must stay below.

    Parameters
    ----------
    bits : int
        How long the strings are, from 1 to 65,535.
    max_measurement : int
        The largest weight, from 1 to 2**62.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Mastic

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> mastic_sum(8, 255).vidpf.value_length
    9
    """
    return Mastic(Sum(max_measurement), 0xFFFF0002, bits, context)


def mastic_sum_vec(
    bits: int, length: int, max_measurement: int, chunk_length: int, *, context: bytes = b""
) -> Mastic:
    """Return MasticSumVec: weights are vectors of integers from 0 to a bound.

    Parameters
    ----------
    bits : int
        How long the strings are, from 1 to 65,535.
    length : int
        How many entries a weight has.
    max_measurement : int
        The largest value of an entry, from 1 to 2**62.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Mastic

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> mastic_sum_vec(8, 3, 1, 1).rand_size
    128
    """
    return Mastic(SumVec(length, max_measurement, chunk_length), 0xFFFF0003, bits, context)


def mastic_histogram(bits: int, length: int, chunk_length: int, *, context: bytes = b"") -> Mastic:
    """Return MasticHistogram: weights fall into one of some buckets, and are counted by bucket.

    Parameters
    ----------
    bits : int
        How long the strings are, from 1 to 65,535.
    length : int
        How many buckets there are.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Mastic

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> mastic_histogram(8, 4, 2).circuit.output_length
    4
    """
    return Mastic(Histogram(length, chunk_length), 0xFFFF0004, bits, context)


def mastic_multihot_count_vec(
    bits: int, length: int, max_weight: int, chunk_length: int, *, context: bytes = b""
) -> Mastic:
    """Return MasticMultihotCountVec: weights are vectors of zeros and at most some number of ones.

    Parameters
    ----------
    bits : int
        How long the strings are, from 1 to 65,535.
    length : int
        How many entries a weight has.
    max_weight : int
        How many of its entries may be one.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Mastic

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> mastic_multihot_count_vec(8, 4, 2, 2).circuit.encoded_length
    6
    """
    return Mastic(MultihotCountVec(length, max_weight, chunk_length), 0xFFFF0005, bits, context)
