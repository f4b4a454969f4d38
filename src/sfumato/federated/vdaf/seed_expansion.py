"""What Prio3 derives from seeds: each use has a domain separation tag of its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField
from sfumato.crypto.xof.turboshake import SEED_SIZE, XofTurboShake128

__all__ = ["NONCE_SIZE", "Rows", "SeedExpansion", "Usage"]

Rows = NDArray[np.uint8]
"""Rows of bytes, one report each."""

NONCE_SIZE: Final = 16
"""Bytes of a report's nonce."""

_VDAF_CLASS: Final = 0


class Usage(IntEnum):
    """What a seed is expanded to."""

    MEASUREMENT_SHARE = 1
    PROOF_SHARE = 2
    JOINT_RANDOMNESS = 3
    PROVE_RANDOMNESS = 4
    QUERY_RANDOMNESS = 5
    JOINT_SEED = 6
    JOINT_PART = 7


@final
@dataclass(frozen=True, slots=True)
class SeedExpansion:
    """XofTurboShake128 under the tags of one algorithm in one application.

    Parameters
    ----------
    field : NttField
        The field of what is derived.
    algorithm : int
        The algorithm's number in the draft.
    proofs : int
        How many proofs a report has.
    context : bytes
        The application's name.
    version : int
        The tag's first byte, which differs by draft.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> expansion = SeedExpansion(FIELD64, 0, 1, b"app", 18)
    >>> expansion.tag(Usage.PROOF_SHARE).hex()
    '1200000000000002617070'
    """

    field: NttField
    algorithm: int
    proofs: int
    context: bytes
    version: int

    def tag(self, usage: Usage) -> bytes:
        """Return the domain separation tag of a use.

        Parameters
        ----------
        usage : Usage
            The use.

        Returns
        -------
        bytes
        """
        numbers = bytes([self.version, _VDAF_CLASS]) + self.algorithm.to_bytes(4, "big")
        return numbers + usage.to_bytes(2, "big") + self.context

    def measurement_share(self, seeds: Rows, aggregator: int, length: int) -> Elements:
        """Return a helper's shares of encodings."""
        return self._elements(Usage.MEASUREMENT_SHARE, seeds, _row(aggregator), length)

    def proof_share(self, seeds: Rows, aggregator: int, length: int) -> Elements:
        """Return a helper's shares of all proofs."""
        return self._elements(Usage.PROOF_SHARE, seeds, _row(self.proofs, aggregator), length)

    def prove_randomness(self, seeds: Rows, length: int) -> Elements:
        """Return the prover's random elements."""
        return self._elements(Usage.PROVE_RANDOMNESS, seeds, _row(self.proofs), length)

    def query_randomness(self, verify_key: bytes, nonces: Rows, length: int) -> Elements:
        """Return the random elements that the verifiers share."""
        return self._elements(
            Usage.QUERY_RANDOMNESS, _row(*verify_key), _after(_row(self.proofs), nonces), length
        )

    def joint_randomness(self, seeds: Rows, length: int) -> Elements:
        """Return the random elements that the encoding's shares themselves fix."""
        return self._elements(Usage.JOINT_RANDOMNESS, seeds, _row(self.proofs), length)

    def joint_part(self, blinds: Rows, aggregator: int, nonces: Rows, share: Elements) -> Rows:
        """Return one share's part of the joint seed."""
        binder = _after(_row(aggregator), nonces, self.field.encoded(share))
        return XofTurboShake128(blinds, self.tag(Usage.JOINT_PART), binder).stream(SEED_SIZE)

    def joint_seed(self, parts: Rows) -> Rows:
        """Return the joint seeds that all parts, side by side, make."""
        zero = np.zeros((1, SEED_SIZE), np.uint8)
        return XofTurboShake128(zero, self.tag(Usage.JOINT_SEED), parts).stream(SEED_SIZE)

    def _elements(self, usage: Usage, seeds: Rows, binders: Rows, length: int) -> Elements:
        return XofTurboShake128(seeds, self.tag(usage), binders).elements(self.field, length)


def _row(*numbers: int) -> Rows:
    return np.array([numbers], np.uint8)


def _after(first: Rows, *parts: Rows) -> Rows:
    return np.concatenate([first.repeat(len(parts[0]), 0), *parts], axis=1)
