"""The steps of Prio3 on rows of messages, without checks of their sizes: `Prio3` calls them in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.circuits.circuit import Circuit
from sfumato.federated.vdaf.proof_system import ProofSystem
from sfumato.federated.vdaf.report_batch import VerifyState
from sfumato.federated.vdaf.seed_expansion import Rows, SeedExpansion

__all__ = ["ReportSteps"]


@final
@dataclass(frozen=True, slots=True)
class ReportSteps:
    """What a client and an aggregator compute for a block of reports.

    Parameters
    ----------
    circuit : Circuit
        What is measured.
    shares : int
        How many aggregators there are.
    proofs : int
        How many proofs a report has.
    expansion : SeedExpansion
        What seeds become.

    Examples
    --------
    >>> from sfumato.federated import prio3_count
    >>> prio3_count().steps.proofs_length
    5
    """

    circuit: Circuit
    shares: int
    proofs: int
    expansion: SeedExpansion

    @property
    def joint(self) -> bool:
        """Whether the circuit needs joint randomness."""
        return self.circuit.joint_length > 0

    @property
    def proof(self) -> ProofSystem:
        """The proof system."""
        return ProofSystem(self.circuit)

    @property
    def proofs_length(self) -> int:
        """Elements of all proofs."""
        return self.proof.proof_length * self.proofs

    def split(self, elements: Elements) -> list[Elements]:
        """Return what belongs to each proof."""
        return np.split(elements, self.proofs, axis=1)

    def blocks(self, rows: int) -> Iterator[slice]:
        """Return slices of reports that are computed at once."""
        return self.proof.blocks(rows)

    def shard(self, encoded: Elements, nonces: Rows, rand: Rows) -> tuple[Rows, Rows]:
        """Return public shares and the leader's input shares of encodings."""
        field, expansion = self.circuit.field, self.expansion
        seeds = rand.reshape(len(rand), -1, SEED_SIZE)
        each = 2 if self.joint else 1
        share, parts = encoded, []
        for j in range(1, self.shares):
            start = (j - 1) * each
            helper = expansion.measurement_share(seeds[:, start], j, self.circuit.encoded_length)
            share = field.subtracted(share, helper)
            if self.joint:
                parts.append(expansion.joint_part(seeds[:, start + 1], j, nonces, helper))
        public, blind, joint = nonces[:, :0], nonces[:, :0], field.zeros(len(rand), 0)
        if self.joint:
            blind = seeds[:, -2]
            public = np.concatenate([expansion.joint_part(blind, 0, nonces, share), *parts], axis=1)
            joint = self._joint_randomness(expansion.joint_seed(public))
        random = expansion.prove_randomness(seeds[:, -1], self.proof.prove_length * self.proofs)
        proofs = [
            self.proof.prove(encoded, chosen, drawn)
            for chosen, drawn in zip(self.split(random), self.split(joint), strict=True)
        ]
        proof = np.concatenate(proofs, axis=1)
        for j in range(1, self.shares):
            seed = seeds[:, (j - 1) * each]
            proof = field.subtracted(proof, expansion.proof_share(seed, j, self.proofs_length))
        return public, np.concatenate([field.encoded(share), field.encoded(proof), blind], axis=1)

    def verify(
        self, verify_key: bytes, aggregator: int, nonces: Rows, public: Rows, message: Rows
    ) -> tuple[VerifyState, Rows]:
        """Return an aggregator's states and verifier shares."""
        field, expansion = self.circuit.field, self.expansion
        share, proof, sound = self._opened(aggregator, message)
        seeds, own, joint = nonces[:, :0], nonces[:, :0], field.zeros(len(nonces), 0)
        if self.joint:
            own = expansion.joint_part(message[:, -SEED_SIZE:], aggregator, nonces, share)
            parts = public.copy()
            parts[:, aggregator * SEED_SIZE : (aggregator + 1) * SEED_SIZE] = own
            seeds = expansion.joint_seed(parts)
            joint = self._joint_randomness(seeds)
        random = expansion.query_randomness(verify_key, nonces, self.proof.query_length * self.proofs)
        verifiers = []
        halves = zip(self.split(proof), self.split(random), self.split(joint), strict=True)
        for shared, chosen, drawn in halves:
            verifier, hidden = self.proof.query(share, shared, chosen, drawn, self.shares)
            verifiers.append(verifier)
            sound &= hidden
        encoded = field.encoded(np.concatenate(verifiers, axis=1))
        state = VerifyState(self.circuit.truncate(share), seeds, sound)
        return state, np.concatenate([encoded, own], axis=1)

    def _opened(self, aggregator: int, message: Rows) -> tuple[Elements, Elements, NDArray[np.bool_]]:
        length, expansion = self.circuit.encoded_length, self.expansion
        if aggregator:
            share = expansion.measurement_share(message[:, :SEED_SIZE], aggregator, length)
            proof = expansion.proof_share(message[:, :SEED_SIZE], aggregator, self.proofs_length)
            return share, proof, np.ones(len(message), np.bool_)
        end = message.shape[1] - (SEED_SIZE if self.joint else 0)
        elements, sound = self.circuit.field.decoded(message[:, :end])
        return elements[:, :length], elements[:, length:], sound

    def _joint_randomness(self, seeds: Rows) -> Elements:
        return self.expansion.joint_randomness(seeds, self.circuit.joint_length * self.proofs)
