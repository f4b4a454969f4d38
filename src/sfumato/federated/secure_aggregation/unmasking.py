"""The server's last step: secrets from shares, and their masks out of the sum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.mask_stream import MaskStream, Words
from sfumato.crypto.secret_sharing import combine
from sfumato.federated.secure_aggregation.masking import pair_seed, unmask_pair
from sfumato.federated.secure_aggregation.messages import KEY
from sfumato.federated.secure_aggregation.parameters import SecureAggregation

__all__ = ["Unmasking"]

_TOGETHER: Final = 512
"""Clients whose secrets are computed at once, so that arrays stay in the cache."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unmasking:
    """What the survivors revealed, a row for each client and a column for each of its neighbors.

    Parameters
    ----------
    plan : SecureAggregation
    neighbors : ndarray of int64, shape (clients, degree)
    answered : ndarray of bool, shape (clients, degree)
        Whose share of the client's secret is there.
    shares : ndarray of uint64, shape (clients, degree, limbs)
    survivors : ndarray of bool, shape (clients,)
    context : bytes
        What the seeds of pairs are bound to.
    paired : ndarray of bool, shape (clients, degree)
        Where a survivor gave the seed that it shares with a client that dropped out: that mask is out.
    points : mapping of int to bytes
        The public keys that masks were agreed with.
    commitments : mapping of int to bytes
        SHA-256 of the seeds of self-masks.
    """

    plan: SecureAggregation
    neighbors: NDArray[np.int64]
    answered: NDArray[np.bool_]
    shares: NDArray[np.uint64]
    survivors: NDArray[np.bool_]
    context: bytes
    paired: NDArray[np.bool_]
    points: Mapping[int, bytes]
    commitments: Mapping[int, bytes]

    def remove_masks(self, stream: MaskStream, total: Words, sharers: NDArray[np.int64]) -> None:
        """Take out of the sum, in place, the masks of all that sent shares.

        Parameters
        ----------
        stream : MaskStream
        total : ndarray of word_type(bits)
            The sum of the masked vectors.
        sharers : ndarray of int64
            The clients that others masked against.

        Raises
        ------
        ParameterError
            If a secret that is needed has too few shares, or they give another one than was committed to.
        """
        unpaired = self.survivors[self.neighbors] & ~self.paired
        needed = sharers[self.survivors[sharers] | unpaired[sharers].any(axis=1)]
        if (self.answered[needed].sum(axis=1) < self.plan.shares).any():
            rule = f"be known from {self.plan.shares} shares"
            _check.refuse_state("each secret", rule, "too few clients answered", "start another round")
        for start in range(0, len(needed), _TOGETHER):
            owners = needed[start : start + _TOGETHER]
            for owner, secret in zip(owners.tolist(), self._secrets(owners), strict=True):
                if self.survivors[owner]:
                    _check_secret(hashlib.sha256(secret).digest() == self.commitments[owner])
                    stream.subtract(total, secret)
                else:
                    self._remove_pairs(stream, total, owner, secret, self.neighbors[owner][unpaired[owner]])
        stream.reduce(total)

    def _remove_pairs(
        self, stream: MaskStream, total: Words, dropped: int, secret: bytes, silent: NDArray[np.int64]
    ) -> None:
        key = X25519PrivateKey.from_private_bytes(secret)
        _check_secret(key.public_key().public_bytes_raw() == self.points[dropped])
        for survivor in silent.tolist():
            point = X25519PublicKey.from_public_bytes(self.points[survivor])
            seed = pair_seed(key, point, self.context, dropped, survivor)
            unmask_pair(stream, total, survivor, dropped, seed)

    def _secrets(self, owners: NDArray[np.int64]) -> list[bytes]:
        columns = np.argsort(~self.answered[owners], axis=1, kind="stable")[:, : self.plan.shares]
        holders = np.take_along_axis(self.neighbors[owners], columns, axis=1)
        shares = np.take_along_axis(self.shares[owners], columns[..., None], axis=1)
        return combine(holders + 1, shares, width=KEY)


def _check_secret(right: bool) -> None:
    if not right:
        rule = "give back the secret that was committed to"
        _check.refuse_state("the shares", rule, "some client sent others", "start another round")
