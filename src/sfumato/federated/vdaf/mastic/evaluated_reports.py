"""One aggregator's batch of Mastic reports: its shares of sums, and what proves them.

Both aggregators hash the proofs of all nodes above the prefixes asked for, and of their siblings; what each
node's value is above the sum of its children's; and the counter below the root, less its share of one. The
hashes are equal for honest reports. Where they are equal, and no proof's correction is zero (which the draft
does not ask for, and `Vidpf.decoded` does), at most one node of a level has values that are not
zero, they are the same on the whole path, and the counter is one (Davis, Mouris, Patton, Sarkar and Tsoutsos,
PoPETs 2025): so that a weight whose proof is verified below the root is the weight at every prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.idpf.tree_steps import KEY_SIZE
from sfumato.crypto.vidpf.verifiable_tree import VerifiableTree
from sfumato.crypto.vidpf.vidpf_steps import PROOF_SIZE
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
from sfumato.federated.vdaf.mastic.mastic_seeds import MasticComponents
from sfumato.federated.vdaf.seed_expansion import Rows

__all__ = ["EvaluatedReports", "MasticState"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class MasticState:
    """What one aggregator keeps of a batch until the verifiers have decided.

    Parameters
    ----------
    parameter : MasticParameter
        What was asked.
    output_shares : numpy.ndarray
        Its shares of what is summed: for each prefix a counter, and the weight.
    joint_seeds : numpy.ndarray
        The joint seeds that it computed itself; of no columns where there are none.
    sound : numpy.ndarray
        False for reports whose messages are malformed: they are never accepted.

    Examples
    --------
    >>> from sfumato.federated import MasticParameter, mastic_sum
    >>> asked = MasticParameter.of("0", "1", check_weights=True)
    >>> mastic = mastic_sum(bits=4, max_measurement=7)
    >>> made = mastic.shard(["0110", "1111"], [3, 7])
    >>> reports = mastic.reports(0, made.nonces, made.public_shares, made.input_shares[0])
    >>> state, _ = mastic.verify_init(bytes(32), asked, reports)
    >>> state.output_shares.shape, state.sound.tolist()
    ((2, 4, 1), [True, True])
    """

    parameter: MasticParameter
    output_shares: Elements
    joint_seeds: Rows
    sound: NDArray[np.bool_]


@final
class EvaluatedReports:
    """One aggregator's batch of reports, with what it remembers from one parameter to the next.

    Parameters
    ----------
    components : MasticComponents
        What the function is made of.
    aggregator : int
        0, the leader, or 1.
    nonces, public_shares, input_shares : numpy.ndarray
        The clients' messages.

    Examples
    --------
    >>> from sfumato.federated import MasticParameter, mastic_count
    >>> mastic = mastic_count(bits=4)
    >>> made = mastic.shard(["0110", "1111"], [1, 0])
    >>> reports = mastic.reports(1, made.nonces, made.public_shares, made.input_shares[1])
    >>> asked = [MasticParameter.of(text, check_weights=text == "01") for text in ("01", "011")]
    >>> [reports.verify(bytes(32), parameter)[1].shape for parameter in asked]
    [(2, 64), (2, 32)]
    """

    def __init__(
        self,
        components: MasticComponents,
        aggregator: int,
        nonces: Rows,
        public_shares: Rows,
        input_shares: Rows,
    ) -> None:
        self._proof, self._seeds = components.proof, components.seeds
        self._aggregator, self._nonces = aggregator, nonces
        self._tree = VerifiableTree(
            components.vidpf, aggregator, nonces, public_shares, input_shares[:, :KEY_SIZE]
        )
        self._joint = self._proof.circuit.joint_length > 0
        end = input_shares.shape[1] - (SEED_SIZE if self._joint else 0)
        self._peer = np.ascontiguousarray(input_shares[:, end:])
        self._encoded_proof = np.ascontiguousarray(input_shares[:, KEY_SIZE:end])
        self._own_seeds = self._encoded_proof
        if self._joint and not aggregator:
            self._own_seeds = np.ascontiguousarray(self._encoded_proof[:, -SEED_SIZE:])
            self._encoded_proof = np.ascontiguousarray(self._encoded_proof[:, :-SEED_SIZE])
        self.sound = self._tree.sound.copy()

    def verify(self, verify_key: bytes, parameter: MasticParameter) -> tuple[MasticState, Rows]:
        """Return a state, and the verifier shares for the other aggregator.

        Parameters
        ----------
        verify_key : bytes
            The aggregators' common secret.
        parameter : MasticParameter
            What is asked, at a level of the point function.

        Returns
        -------
        tuple of MasticState and numpy.ndarray
        """
        circuit, field = self._proof.circuit, self._proof.circuit.field
        values = self._tree.values(parameter.asked.bits)
        rows, count = values.shape[:2]
        flat = values[:, :, 1:].reshape(rows * count, circuit.encoded_length, field.limbs)
        weights = circuit.truncate(np.ascontiguousarray(flat))
        weights = weights.reshape(rows, count, circuit.output_length, field.limbs)
        outputs = np.concatenate([values[:, :, :1], weights], axis=2)
        outputs = outputs.reshape(rows, count * (1 + circuit.output_length), field.limbs)
        counters = field.encoded(
            field.added(self._tree.root_values()[:, :1], field.vector([self._aggregator]))
        )
        proved = np.empty((rows, PROOF_SIZE), np.uint8)
        for part in self._tree.blocks():
            proved[part] = self._seeds.evaluation_proof(
                verify_key, self._tree.proofs(part), counters[part], self._tree.checks(part)
            )
        shares = [proved]
        joint = self._nonces[:, :0]
        if parameter.check_weights:
            verifier, own, joint = self._checked(verify_key, parameter.level)
            shares += [verifier, own]
        state = MasticState(parameter, outputs, joint, self.sound.copy())
        return state, np.concatenate(shares, axis=1)

    def _checked(self, verify_key: bytes, level: int) -> tuple[Rows, Rows, Rows]:
        """Return encoded shares of the weights' verifiers, own parts of the joint seeds, and these seeds."""
        field, rows = self._proof.circuit.field, len(self._nonces)
        verifiers = np.empty((rows, self._proof.verifier_length * field.size), np.uint8)
        own, joint = (np.empty((rows, SEED_SIZE if self._joint else 0), np.uint8) for _ in range(2))
        share = self._tree.root_values()[:, 1:]
        share = field.subtracted(field.zeros(1), share) if self._aggregator else np.ascontiguousarray(share)
        for part in self._proof.blocks(rows):
            proof = self._proofs(part)
            drawn = field.zeros(len(proof), 0)
            if self._joint:
                own[part] = self._seeds.joint_part(self._own_seeds[part], self._nonces[part], share[part])
                parts = (self._peer[part], own[part]) if self._aggregator else (own[part], self._peer[part])
                joint[part] = self._seeds.joint_seed(*parts)
                drawn = self._seeds.joint_randomness(joint[part], self._proof.circuit.joint_length)
            random = self._seeds.query_randomness(
                verify_key, self._nonces[part], level, self._proof.query_length
            )
            verifier, hidden = self._proof.query(share[part], proof, random, drawn, 2)
            verifiers[part] = field.encoded(verifier)
            self.sound[part] &= hidden
        return verifiers, own, joint

    def _proofs(self, part: slice) -> Elements:
        if self._aggregator:
            return self._seeds.proof_share(self._own_seeds[part], self._proof.proof_length)
        elements, good = self._proof.circuit.field.decoded(self._encoded_proof[part])
        self.sound[part] &= good
        return elements
