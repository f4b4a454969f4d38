"""Batches of reports on their way: what a client sends, and what an aggregator remembers between messages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.seed_expansion import Rows

__all__ = [
    "ShardedReports",
    "VerifyState",
    "check_verify_key",
    "checked_flags",
    "checked_rows",
    "fresh_rows",
    "unseen",
]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShardedReports:
    """Encoded reports: row i of every part belongs to report i.

    Parameters
    ----------
    nonces : numpy.ndarray
        Bytes of shape ``(rows, 16)``.
    public_shares : numpy.ndarray
        What all aggregators get; of no columns where the circuit needs no joint randomness.
    input_shares : tuple of numpy.ndarray
        What each aggregator alone gets, the leader first.

    Examples
    --------
    >>> from sfumato.federated import prio3_count
    >>> reports = prio3_count().shard([1, 0])
    >>> [share.shape for share in reports.input_shares]
    [(2, 48), (2, 32)]
    """

    nonces: Rows
    public_shares: Rows
    input_shares: tuple[Rows, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class VerifyState:
    """What one aggregator keeps of a batch until the verifiers have decided.

    Parameters
    ----------
    output_shares : numpy.ndarray
        Its shares of what is summed.
    joint_seeds : numpy.ndarray
        The joint seeds that it computed itself; of no columns where there are none.
    sound : numpy.ndarray
        False for reports whose messages are malformed: they are never accepted.

    Examples
    --------
    >>> from sfumato.federated import prio3_count
    >>> prio3, key = prio3_count(), bytes(32)
    >>> reports = prio3.shard([1, 0])
    >>> state, _ = prio3.verify_init(key, 1, reports.nonces, reports.public_shares, reports.input_shares[1])
    >>> state.sound.tolist()
    [True, True]
    """

    output_shares: Elements
    joint_seeds: Rows
    sound: NDArray[np.bool_]


def check_verify_key(verify_key: bytes) -> None:
    """Refuse what is no common secret of aggregators.

    Parameters
    ----------
    verify_key : bytes
        32 of them.

    Raises
    ------
    ParameterError
        If it is of another type or size.

    Examples
    --------
    >>> check_verify_key(bytes(32))
    """
    _check.instance("verify_key", verify_key, bytes)
    if len(verify_key) != SEED_SIZE:
        _check.refuse("len(verify_key)", f"be {SEED_SIZE}", len(verify_key), "draw a key of 32 random bytes")


def fresh_rows(rows: int, size: int) -> Rows:
    """Return random bytes from the operating system.

    Parameters
    ----------
    rows, size : int
        How many rows, and bytes of each.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> fresh_rows(2, 16).shape
    (2, 16)
    """
    return np.frombuffer(os.urandom(rows * size), np.uint8).reshape(rows, size)


def checked_rows(name: str, value: Any, rows: int, size: int) -> Rows:
    """Return messages, which must be rows of bytes of a size.

    Parameters
    ----------
    name : str
        Their parameter.
    value : numpy.ndarray
        The messages.
    rows, size : int
        How many rows, and bytes of each.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    ParameterError
        If they have another shape or type.

    Examples
    --------
    >>> checked_rows("nonces", np.zeros((2, 16), np.uint8), 2, 16).shape
    (2, 16)
    """
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.shape != (rows, size):
        _check.refuse_type(
            name,
            f"be a uint8 array with {size} columns and one row for each report",
            value,
            "stack the messages as rows",
        )
    return value


def checked_flags(name: str, value: NDArray[np.bool_], rows: int) -> NDArray[np.bool_]:
    """Return flags, or refuse what is not one boolean for each report.

    Parameters
    ----------
    name : str
    value : numpy.ndarray of bool
    rows : int
        How many reports there are.

    Returns
    -------
    numpy.ndarray of bool

    Raises
    ------
    ParameterError
    """
    if value.dtype != np.bool_ or value.shape != (rows,):
        _check.refuse_type(name, "be one boolean for each report", value, "pass a numpy array of booleans")
    return value


def unseen(nonces: Rows, seen: set[bytes]) -> NDArray[np.bool_]:
    """Return which nonces come for the first time, and remember them all.

    Parameters
    ----------
    nonces : numpy.ndarray
        A row for each report.
    seen : set of bytes
        Those of earlier reports; these are added.

    Returns
    -------
    numpy.ndarray of bool
    """
    fresh = np.ones(len(nonces), np.bool_)
    for i, nonce in enumerate(map(bytes, nonces)):
        fresh[i] = nonce not in seen
        seen.add(nonce)
    return fresh
