"""The functions of the Prio3 family that the draft names."""

from __future__ import annotations

from sfumato.crypto.fields.ntt_field import FIELD64, NttField
from sfumato.federated.vdaf.circuits.chunked import Histogram, L1BoundSum, MultihotCountVec, SumVec
from sfumato.federated.vdaf.circuits.scalar import Count, Sum
from sfumato.federated.vdaf.prio3 import Prio3

__all__ = [
    "prio3_count",
    "prio3_histogram",
    "prio3_l1_bound_sum",
    "prio3_multihot_count_vec",
    "prio3_sum",
    "prio3_sum_vec",
    "prio3_sum_vec_with_multiproof",
]


def prio3_count(*, shares: int = 2, context: bytes = b"") -> Prio3:
    """Return Prio3Count: how many measurements are one; the others are zero.

    Parameters
    ----------
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Prio3

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> prio3_count().rand_size
    64
    """
    return Prio3(Count(), 1, shares, context=context)


def prio3_sum(max_measurement: int, *, shares: int = 2, context: bytes = b"") -> Prio3:
    """Return Prio3Sum: the sum of integers from 0 to a bound.

    Sums are modulo 2**64 - 2**32 + 1: the bound times the reports of all merged batches must stay below.

    Parameters
    ----------
    max_measurement : int
        The largest value that a measurement may have, from 1 to 2**62.
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Prio3

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> prio3_sum(255).circuit.encoded_length
    8
    """
    return Prio3(Sum(max_measurement), 2, shares, context=context)


def prio3_sum_vec(
    length: int, max_measurement: int, chunk_length: int, *, shares: int = 2, context: bytes = b""
) -> Prio3:
    """Return Prio3SumVec: the sums of vectors of integers from 0 to a bound.

    Parameters
    ----------
    length : int
        How many entries a measurement has.
    max_measurement : int
        The largest value that a measurement's entry may have, from 1 to 2**62.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Prio3

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> prio3_sum_vec(10, 255, 9).circuit.encoded_length
    80
    """
    return Prio3(SumVec(length, max_measurement, chunk_length), 3, shares, context=context)


def prio3_histogram(length: int, chunk_length: int, *, shares: int = 2, context: bytes = b"") -> Prio3:
    """Return Prio3Histogram: how many measurements fall into each of some buckets.

    Parameters
    ----------
    length : int
        How many buckets there are.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Prio3

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> prio3_histogram(4, 2).rand_size
    128
    """
    return Prio3(Histogram(length, chunk_length), 4, shares, context=context)


def prio3_multihot_count_vec(
    length: int, max_weight: int, chunk_length: int, *, shares: int = 2, context: bytes = b""
) -> Prio3:
    """Return Prio3MultihotCountVec: the sums of vectors of zeros and at most some number of ones.

    Parameters
    ----------
    length : int
        How many entries a measurement has.
    max_weight : int
        How many entries of a measurement may be one.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Prio3

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> prio3_multihot_count_vec(4, 2, 2).circuit.encoded_length
    6
    """
    return Prio3(MultihotCountVec(length, max_weight, chunk_length), 5, shares, context=context)


def prio3_sum_vec_with_multiproof(
    length: int,
    max_measurement: int,
    chunk_length: int,
    *,
    proofs: int,
    field: NttField = FIELD64,
    shares: int = 2,
    context: bytes = b"",
) -> Prio3:
    """Return the experimental Prio3SumVecWithMultiproof: a small field, and several proofs.

    Sums are modulo the field's prime: the bound times the reports of all merged batches must stay below.

    Parameters
    ----------
    length : int
        How many entries a measurement has.
    max_measurement : int
        The largest value that a measurement's entry may have, from 1 to 2**62.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    proofs : int
        How many proofs a report has; each leaves a cheater a chance of about 2**-50 in the small field.
    field : NttField, optional
        The field.
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Prio3

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> prio3_sum_vec_with_multiproof(10, 255, 9, proofs=3).proofs
    3
    """
    return Prio3(SumVec(length, max_measurement, chunk_length, field), 0xFFFFFFFF, shares, proofs, context)


def prio3_l1_bound_sum(
    length: int, max_measurement: int, chunk_length: int, *, shares: int = 2, context: bytes = b""
) -> Prio3:
    """Return Prio3L1BoundSum: the sums of vectors of integers from 0 up whose own sums have a bound.

    The circuit is that of draft-ietf-ppm-l1-bound-sum; its number is provisional, and no vectors are known.

    Parameters
    ----------
    length : int
        How many entries a measurement has.
    max_measurement : int
        The largest value that a measurement's sum may have, from 1 to 2**62.
    chunk_length : int
        How many zeros and ones one gadget call checks; about the square root of all of them is best.
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    context : bytes, optional
        The application's name.

    Returns
    -------
    Prio3

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> prio3_l1_bound_sum(3, 6, 2).circuit.encoded_length
    12
    """
    return Prio3(L1BoundSum(length, max_measurement, chunk_length), 0xFFFF0000, shares, context=context)
