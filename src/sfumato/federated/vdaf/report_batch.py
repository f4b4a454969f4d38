"""Batches of reports on their way: what a client sends, and what an aggregator remembers between messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import Elements
from sfumato.federated.vdaf.seed_expansion import Rows

__all__ = ["ShardedReports", "VerifyState"]


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
