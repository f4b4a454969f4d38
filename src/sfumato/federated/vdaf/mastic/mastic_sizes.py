"""What a function of Mastic is made of, and how long its encoded messages are."""

from __future__ import annotations

from sfumato import _check
from sfumato.crypto.idpf.tree_steps import KEY_SIZE
from sfumato.crypto.vidpf.vidpf import Vidpf
from sfumato.crypto.vidpf.vidpf_steps import PROOF_SIZE
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.circuits.circuit import Circuit
from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
from sfumato.federated.vdaf.mastic.mastic_seeds import MasticComponents, MasticSeeds
from sfumato.federated.vdaf.proof_system import ProofSystem

__all__ = ["MasticSizes"]


class MasticSizes:
    """What follows from a circuit, the strings' length and the application's name.

    Examples
    --------
    >>> from sfumato.federated import mastic_histogram
    >>> mastic_histogram(bits=2, length=4, chunk_length=2).public_share_size
    257
    """

    __slots__ = ()

    circuit: Circuit
    algorithm: int
    bits: int
    context: bytes
    version: int

    @property
    def vidpf(self) -> Vidpf:
        """The point function, with a counter and a weight at every node."""
        length = 1 + self.circuit.encoded_length
        return Vidpf(self.bits, self.circuit.field, length, self.context, self.version)

    @property
    def proof(self) -> ProofSystem:
        """The weights' proof system."""
        return ProofSystem(self.circuit)

    @property
    def seeds(self) -> MasticSeeds:
        """What seeds become."""
        return MasticSeeds(self.circuit.field, self.algorithm, self.context, self.version)

    @property
    def components(self) -> MasticComponents:
        """Point function, proof system and seeds together."""
        return MasticComponents(self.vidpf, self.proof, self.seeds)

    @property
    def joint(self) -> bool:
        """Whether the circuit needs joint randomness."""
        return self.circuit.joint_length > 0

    @property
    def rand_size(self) -> int:
        """Random bytes that a client needs for a report."""
        return 2 * KEY_SIZE + SEED_SIZE * (3 if self.joint else 2)

    @property
    def public_share_size(self) -> int:
        """Bytes of an encoded public share."""
        return self.vidpf.public_share_size

    def input_share_size(self, aggregator: int) -> int:
        """Return the bytes of an aggregator's encoded input share.

        Parameters
        ----------
        aggregator : int
            0, the leader, or 1.

        Returns
        -------
        int
        """
        if aggregator:
            return KEY_SIZE + SEED_SIZE * (2 if self.joint else 1)
        proof = self.proof.proof_length * self.circuit.field.size
        return KEY_SIZE + proof + (2 * SEED_SIZE if self.joint else 0)

    def verifier_share_size(self, parameter: MasticParameter) -> int:
        """Return the bytes of an encoded verifier share.

        Parameters
        ----------
        parameter : MasticParameter
            What is asked.

        Returns
        -------
        int
        """
        verifier = self.proof.verifier_length * self.circuit.field.size if parameter.check_weights else 0
        return PROOF_SIZE + verifier + self.message_size(parameter)

    def message_size(self, parameter: MasticParameter) -> int:
        """Return the bytes of an encoded verifier message.

        Parameters
        ----------
        parameter : MasticParameter
            What is asked.

        Returns
        -------
        int
        """
        return SEED_SIZE if parameter.check_weights and self.joint else 0

    def aggregate_share_size(self, parameter: MasticParameter) -> int:
        """Return the bytes of an encoded aggregate share.

        Parameters
        ----------
        parameter : MasticParameter
            What was asked.

        Returns
        -------
        int
        """
        each = (1 + self.circuit.output_length) * self.circuit.field.size
        return len(self.checked(parameter).prefixes) * each

    def checked(self, parameter: MasticParameter) -> MasticParameter:
        """Return a parameter, or refuse one whose prefixes are longer than the strings.

        Parameters
        ----------
        parameter : MasticParameter
            What is asked.

        Returns
        -------
        MasticParameter

        Raises
        ------
        ParameterError
            If it is of another type, or its level too high.
        """
        _check.instance("parameter", parameter, MasticParameter)
        if parameter.level >= self.bits:
            _check.refuse("parameter.level", f"be below {self.bits}", parameter.level, "use shorter prefixes")
        return parameter
