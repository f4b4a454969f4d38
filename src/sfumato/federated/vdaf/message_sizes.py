"""How long the encoded messages of Prio3 are."""

from __future__ import annotations

from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.circuits.circuit import Circuit
from sfumato.federated.vdaf.proof_system import ProofSystem

__all__ = ["MessageSizes"]


class MessageSizes:
    """Sizes in bytes that follow from a circuit, and how many shares and proofs there are.

    Examples
    --------
    >>> from sfumato.federated import prio3_histogram
    >>> prio3_histogram(length=4, chunk_length=2).verifier_share_size
    128
    """

    __slots__ = ()

    circuit: Circuit
    shares: int
    proofs: int

    @property
    def joint(self) -> bool:
        """Whether the circuit needs joint randomness."""
        return self.circuit.joint_length > 0

    @property
    def rand_size(self) -> int:
        """Random bytes that a client needs for a report."""
        return SEED_SIZE * self.shares * (2 if self.joint else 1)

    @property
    def public_share_size(self) -> int:
        """Bytes of an encoded public share."""
        return SEED_SIZE * self.shares if self.joint else 0

    def input_share_size(self, aggregator: int) -> int:
        """Return the bytes of an aggregator's encoded input share; 0 is the leader."""
        blind = SEED_SIZE if self.joint else 0
        if aggregator:
            return SEED_SIZE + blind
        return (
            self.circuit.encoded_length + ProofSystem(self.circuit).proof_length * self.proofs
        ) * self.circuit.field.size + blind

    @property
    def verifier_share_size(self) -> int:
        """Bytes of an encoded verifier share."""
        elements = self.proofs * ProofSystem(self.circuit).verifier_length
        return elements * self.circuit.field.size + self.message_size

    @property
    def message_size(self) -> int:
        """Bytes of an encoded verifier message."""
        return SEED_SIZE if self.joint else 0

    @property
    def aggregate_share_size(self) -> int:
        """Bytes of an encoded aggregate share."""
        return self.circuit.output_length * self.circuit.field.size
