"""What Mastic derives from seeds, and how it hashes what both aggregators must agree on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import final

import numpy as np

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField
from sfumato.crypto.vidpf.vidpf import Vidpf
from sfumato.crypto.vidpf.vidpf_steps import PROOF_SIZE
from sfumato.crypto.xof.turboshake import SEED_SIZE, XofTurboShake128
from sfumato.federated.vdaf.proof_system import ProofSystem
from sfumato.federated.vdaf.seed_expansion import Rows

__all__ = ["MasticComponents", "MasticSeeds", "MasticUsage"]


class MasticUsage(IntEnum):
    """What a seed of Mastic is expanded to."""

    PROVE_RANDOMNESS = 0
    PROOF_SHARE = 1
    QUERY_RANDOMNESS = 2
    JOINT_SEED = 3
    JOINT_PART = 4
    JOINT_RANDOMNESS = 5
    ONE_HOT_CHECK = 6
    PAYLOAD_CHECK = 7
    EVALUATION_PROOF = 8


@final
@dataclass(frozen=True, slots=True)
class MasticSeeds:
    r"""XofTurboShake128 under the tags of one function in one application.

    Parameters
    ----------
    field : NttField
        The field of what is derived.
    algorithm : int
        The function's number in the draft.
    context : bytes
        The application's name.
    version : int
        The draft's version byte.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> MasticSeeds(FIELD64, 0xFFFF0001, b"app", 0).tag(MasticUsage.PROOF_SHARE)
    b'mastic\x00\x01\xff\xff\x00\x01app'
    """

    field: NttField
    algorithm: int
    context: bytes
    version: int

    def tag(self, usage: MasticUsage) -> bytes:
        """Return the domain separation tag of a use.

        Parameters
        ----------
        usage : MasticUsage
            The use.

        Returns
        -------
        bytes
        """
        return b"mastic" + bytes([self.version, usage]) + self.algorithm.to_bytes(4, "big") + self.context

    def proof_share(self, seeds: Rows, length: int) -> Elements:
        """Return the helper's shares of proofs."""
        return self._elements(MasticUsage.PROOF_SHARE, seeds, _none(seeds), length)

    def prove_randomness(self, seeds: Rows, length: int) -> Elements:
        """Return the prover's random elements."""
        return self._elements(MasticUsage.PROVE_RANDOMNESS, seeds, _none(seeds), length)

    def query_randomness(self, verify_key: bytes, nonces: Rows, level: int, length: int) -> Elements:
        """Return the random elements that the verifiers share."""
        tail = np.frombuffer(level.to_bytes(2, "little"), np.uint8)[None].repeat(len(nonces), axis=0)
        key = np.frombuffer(verify_key, np.uint8)[None]
        binders = np.concatenate([nonces, tail], axis=1)
        return self._elements(MasticUsage.QUERY_RANDOMNESS, key, binders, length)

    def joint_randomness(self, seeds: Rows, length: int) -> Elements:
        """Return the random elements that the weight's shares themselves fix."""
        return self._elements(MasticUsage.JOINT_RANDOMNESS, seeds, _none(seeds), length)

    def joint_part(self, seeds: Rows, nonces: Rows, share: Elements) -> Rows:
        """Return one weight share's part of the joint seed."""
        binders = np.concatenate([nonces, self.field.encoded(share)], axis=1)
        return self._hashed(MasticUsage.JOINT_PART, seeds, binders, SEED_SIZE)

    def joint_seed(self, leader: Rows, helper: Rows) -> Rows:
        """Return the joint seeds that both parts make."""
        parts = np.concatenate([leader, helper], axis=1)
        return self._hashed(MasticUsage.JOINT_SEED, parts[:1, :0], parts, SEED_SIZE)

    def evaluation_proof(self, verify_key: bytes, nodes: Rows, counters: Rows, values: Rows) -> Rows:
        """Return what both aggregators must have alike.

        Parameters
        ----------
        verify_key : bytes
            Their common secret.
        nodes, counters, values : numpy.ndarray
            The nodes' proofs, what the counters are, and by how much values differ from their children's.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, 32)``.
        """
        empty = nodes[:1, :0]
        one_hot = self._hashed(MasticUsage.ONE_HOT_CHECK, empty, nodes, PROOF_SIZE)
        payload = self._hashed(MasticUsage.PAYLOAD_CHECK, empty, values, PROOF_SIZE)
        binders = np.concatenate([one_hot, counters, payload], axis=1)
        key = np.frombuffer(verify_key, np.uint8)[None]
        return self._hashed(MasticUsage.EVALUATION_PROOF, key, binders, PROOF_SIZE)

    def _elements(self, usage: MasticUsage, seeds: Rows, binders: Rows, length: int) -> Elements:
        return XofTurboShake128(seeds, self.tag(usage), binders).elements(self.field, length)

    def _hashed(self, usage: MasticUsage, seeds: Rows, binders: Rows, length: int) -> Rows:
        return XofTurboShake128(seeds, self.tag(usage), binders).stream(length)


@final
@dataclass(frozen=True, slots=True)
class MasticComponents:
    """What a function of Mastic is made of.

    Parameters
    ----------
    vidpf : Vidpf
        The point function, of a counter and a weight.
    proof : ProofSystem
        The weights' proof system.
    seeds : MasticSeeds
        What seeds become.

    Examples
    --------
    >>> from sfumato.federated import mastic_count
    >>> mastic_count(bits=4).components.vidpf.value_length
    2
    """

    vidpf: Vidpf
    proof: ProofSystem
    seeds: MasticSeeds


def _none(seeds: Rows) -> Rows:
    return np.zeros((len(seeds), 0), np.uint8)
