"""Mastic: sums of weights of the clients whose strings begin with each of some prefixes, by two aggregators.

The function of draft-mouris-cfrg-mastic (Davis, Mouris, Patton, Sarkar and Tsoutsos, "Mastic: private
weighted heavy-hitters and attribute-based metrics", PoPETs 2025). A client has a string and a weight, of any
kind that Prio3 proves valid. While both aggregators follow the protocol, each learns the sums below the
prefixes that were asked for, and how many clients are there, and nothing else of a client; a report adds one
valid weight at most at every level, whatever its client sent. Sums are exact: they are differentially private
only if each aggregator adds noise to its share, as `MasticHeavyHitters` and `MasticAttributeMetrics` have it
do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.vidpf.vidpf import Vidpf
from sfumato.crypto.vidpf.vidpf_steps import PROOF_SIZE
from sfumato.federated.vdaf.circuits.circuit import Circuit, Measurements
from sfumato.federated.vdaf.mastic.evaluated_reports import EvaluatedReports, MasticState
from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
from sfumato.federated.vdaf.mastic.mastic_sharding import shard_weights
from sfumato.federated.vdaf.mastic.mastic_sizes import MasticSizes
from sfumato.federated.vdaf.poplar.sharding import bit_rows
from sfumato.federated.vdaf.report_batch import ShardedReports, check_verify_key, checked_rows, fresh_rows
from sfumato.federated.vdaf.seed_expansion import NONCE_SIZE, Rows

__all__ = ["Mastic"]

_VERSIONS: Final = (0,)
_BLOCK: Final = 512


@final
@dataclass(frozen=True, slots=True)
class Mastic(MasticSizes):
    """One function of the Mastic family; clients and both aggregators hold equal ones.

    All methods work on batches: arrays of bytes with a row for each report, and flags that tell which reports
    are accepted. What a method refuses with an error is a matter of the parameters, never of a report.

    Parameters
    ----------
    circuit : Circuit
        What weights are.
    algorithm : int
        The function's number in the draft.
    bits : int
        How long the strings are, from 1 to 65,535.
    context : bytes, optional
        The application's name, bound to all that is derived.
    version : int, optional
        The draft's version byte; only 0 is known.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from sfumato.federated import mastic_sum
    >>> mastic, key = mastic_sum(bits=4, max_measurement=7, context=b"survey"), bytes(range(32))
    >>> made = mastic.shard(["0110", "0111", "1111"], [5, 2, 7])
    >>> asked = MasticParameter.of("01", "10", "11", check_weights=True)
    >>> batches = [
    ...     mastic.reports(j, made.nonces, made.public_shares, made.input_shares[j]) for j in range(2)
    ... ]
    >>> sides = [mastic.verify_init(key, asked, batch) for batch in batches]
    >>> messages, accepted = mastic.verifier_shares_to_message(asked, [share for _, share in sides])
    >>> totals = []
    >>> for state, _ in sides:
    ...     outputs, agreed = mastic.verify_next(state, messages)
    ...     totals.append(mastic.aggregate(asked, outputs, accepted & agreed))
    >>> mastic.unshard(asked, totals), mastic.counts(asked, totals)
    ([7, 0, 7], [2, 0, 1])
    """

    circuit: Circuit
    algorithm: int
    bits: int
    context: bytes = b""
    version: int = 0

    def __post_init__(self) -> None:
        _check.instance("circuit", self.circuit, Circuit)
        if not 0 <= _check.integer("algorithm", self.algorithm) < 1 << 32:
            _check.refuse("algorithm", "be below 2**32", self.algorithm, "take it from the draft")
        _check.instance("context", self.context, bytes)
        if len(self.context) > 65_000:
            _check.refuse("len(context)", "be at most 65,000", len(self.context), "use a shorter name")
        if self.version not in _VERSIONS:
            _check.refuse("version", f"be one of {list(_VERSIONS)}", self.version, "both ends must speak it")
        Vidpf(self.bits, self.circuit.field, 1 + self.circuit.encoded_length)

    def shard(
        self,
        strings: Sequence[str] | NDArray[Any],
        weights: Measurements,
        nonces: Rows | None = None,
        rand: Rows | None = None,
    ) -> ShardedReports:
        """Return the shares of strings with weights, one for each of the two aggregators.

        Parameters
        ----------
        strings : sequence of str or numpy.ndarray
            Strings of the characters 0 and 1, all ``bits`` long; or an array of zeros and ones of shape
            ``(rows, bits)``.
        weights : sequence
            What the circuit measures, one for each string.
        nonces : numpy.ndarray, optional
            Of shape ``(rows, 16)``; fresh ones from the operating system by default.
        rand : numpy.ndarray, optional
            Of shape ``(rows, rand_size)``, secret; fresh by default. For test vectors only.

        Returns
        -------
        ShardedReports

        Raises
        ------
        ParameterError
            If a string or a weight is not of its kind, or there are not as many of both.
        """
        paths, encoded = bit_rows(strings, self.bits), self.circuit.encode(weights)
        rows = len(paths)
        if len(encoded) != rows:
            _check.refuse("len(weights)", f"be {rows}", len(encoded), "pass one weight for each string")
        nonces = (
            fresh_rows(rows, NONCE_SIZE)
            if nonces is None
            else checked_rows("nonces", nonces, rows, NONCE_SIZE)
        )
        rand = (
            fresh_rows(rows, self.rand_size)
            if rand is None
            else checked_rows("rand", rand, rows, self.rand_size)
        )
        public = np.empty((rows, self.public_share_size), np.uint8)
        inputs = [np.empty((rows, self.input_share_size(j)), np.uint8) for j in range(2)]
        for start in range(0, rows, _BLOCK):
            part = slice(start, start + _BLOCK)
            public[part], inputs[0][part], inputs[1][part] = shard_weights(
                self.components, paths[part], encoded[part], nonces[part], rand[part]
            )
        return ShardedReports(nonces, public, tuple(inputs))

    def reports(
        self, aggregator: int, nonces: Rows, public_shares: Rows, input_shares: Rows
    ) -> EvaluatedReports:
        """Return an aggregator's batch, which remembers the nodes above the last prefixes.

        Parameters
        ----------
        aggregator : int
            0, the leader, or 1.
        nonces, public_shares, input_shares : numpy.ndarray
            The clients' messages.

        Returns
        -------
        EvaluatedReports

        Raises
        ------
        ParameterError
            If the messages have another size.
        """
        if _check.integer("aggregator", aggregator) >= 2:
            _check.refuse("aggregator", "be below 2", aggregator, "count aggregators from 0, the leader")
        rows = len(nonces)
        checked_rows("nonces", nonces, rows, NONCE_SIZE)
        checked_rows("public_shares", public_shares, rows, self.public_share_size)
        checked_rows("input_shares", input_shares, rows, self.input_share_size(aggregator))
        return EvaluatedReports(self.components, aggregator, nonces, public_shares, input_shares)

    def verify_init(
        self, verify_key: bytes, parameter: MasticParameter, reports: EvaluatedReports
    ) -> tuple[MasticState, Rows]:
        """Return what an aggregator keeps, and its verifier shares for the other.

        Parameters
        ----------
        verify_key : bytes
            The aggregators' common secret, 32 bytes, unknown to clients.
        parameter : MasticParameter
            What is asked. No nonce may be verified twice at a level under a key, and parameters must follow
            one another (`MasticParameter.follows`): see `MasticAggregator`.
        reports : EvaluatedReports
            What `reports` returned.

        Returns
        -------
        tuple of MasticState and numpy.ndarray

        Raises
        ------
        ParameterError
            If the key has another size, or the parameter a level that the strings lack.
        """
        check_verify_key(verify_key)
        return reports.verify(verify_key, self.checked(parameter))

    def verifier_shares_to_message(
        self, parameter: MasticParameter, verifier_shares: Sequence[Rows]
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the message that both aggregators need to finish, and which reports pass.

        Parameters
        ----------
        parameter : MasticParameter
            What is asked.
        verifier_shares : sequence of numpy.ndarray
            One batch of messages from each aggregator, the leader's first.

        Returns
        -------
        tuple of numpy.ndarray
            Messages of shape ``(rows, message_size)``, and a flag for each report: those that fail are to be
            dropped, whatever the message.
        """
        if len(verifier_shares) != 2:
            rule, remedy = "be 2", "pass one batch from each aggregator"
            _check.refuse("len(verifier_shares)", rule, len(verifier_shares), remedy)
        rows, size = len(verifier_shares[0]), self.verifier_share_size(self.checked(parameter))
        first, second = (checked_rows("verifier_shares", share, rows, size) for share in verifier_shares)
        accepted = (first[:, :PROOF_SIZE] == second[:, :PROOF_SIZE]).all(axis=1)
        if not parameter.check_weights:
            return first[:, :0].copy(), np.asarray(accepted)
        field, end = self.circuit.field, size - self.message_size(parameter)
        total = field.zeros(rows, self.proof.verifier_length)
        for share in (first, second):
            elements, sound = field.decoded(share[:, PROOF_SIZE:end])
            total = field.added(total, elements)
            accepted = accepted & sound
        accepted = np.asarray(accepted & self.proof.decide(total))
        if not self.joint:
            return first[:, :0].copy(), accepted
        return self.seeds.joint_seed(first[:, end:], second[:, end:]), accepted

    def verify_next(self, state: MasticState, messages: Rows) -> tuple[Elements, NDArray[np.bool_]]:
        """Return an aggregator's output shares, and which reports it accepts.

        Parameters
        ----------
        state : MasticState
            What `verify_init` returned.
        messages : numpy.ndarray
            The verifier messages.

        Returns
        -------
        tuple of numpy.ndarray
            Shares of shape ``(rows, prefixes * (1 + output_length), limbs)``, and a flag for each report.
        """
        checked_rows("messages", messages, len(state.sound), self.message_size(state.parameter))
        same = (state.joint_seeds == messages).all(axis=1)
        return state.output_shares, np.asarray(state.sound & same)

    def aggregate(
        self, parameter: MasticParameter, output_shares: Elements, accepted: NDArray[np.bool_]
    ) -> bytes:
        """Return an aggregator's encoded share of the sums over accepted reports.

        Parameters
        ----------
        parameter : MasticParameter
            What was asked.
        output_shares : numpy.ndarray
            Its output shares.
        accepted : numpy.ndarray
            A flag for each report; both aggregators must use the same.

        Returns
        -------
        bytes
        """
        field = self.circuit.field
        self.checked(parameter)
        return field.encoded(field.summed(output_shares[accepted].swapaxes(0, 1))[None]).tobytes()

    def added(self, parameter: MasticParameter, aggregate_share: bytes, numbers: Sequence[int]) -> bytes:
        """Return an aggregate share with integers added, such as noise.

        Parameters
        ----------
        parameter : MasticParameter
            What was asked.
        aggregate_share : bytes
            The share.
        numbers : sequence of int
            Of any sign: for each prefix one for the counter, and one for each output of the weight.

        Returns
        -------
        bytes
        """
        field, share = self.circuit.field, self._share(parameter, aggregate_share)
        if len(numbers) != len(share):
            rule, remedy = f"be {len(share)}", "pass one number for each counter and output"
            _check.refuse("len(numbers)", rule, len(numbers), remedy)
        return field.encoded(field.added(share, field.vector(numbers))[None]).tobytes()

    def unshard(
        self, parameter: MasticParameter, aggregate_shares: Sequence[bytes], *, signed: bool = False
    ) -> list[Any]:
        """Return the sums of weights of which both aggregators' shares are given.

        Parameters
        ----------
        parameter : MasticParameter
            What was asked.
        aggregate_shares : sequence of bytes
            One from each aggregator.
        signed : bool, optional
            Whether sums may be negative, as with noise: those above half of the modulus then are.

        Returns
        -------
        list
            For each prefix what the circuit sums: an int, or a list of them.
        """
        rows = self._totals(parameter, aggregate_shares, signed)
        return [self.circuit.result(row[1:]) for row in rows]

    def counts(
        self, parameter: MasticParameter, aggregate_shares: Sequence[bytes], *, signed: bool = False
    ) -> list[int]:
        """Return how many clients' strings begin with each prefix.

        Parameters
        ----------
        parameter, aggregate_shares, signed
            As in `unshard`.

        Returns
        -------
        list of int
        """
        return [row[0] for row in self._totals(parameter, aggregate_shares, signed)]

    def _totals(
        self, parameter: MasticParameter, aggregate_shares: Sequence[bytes], signed: bool
    ) -> list[list[int]]:
        if len(aggregate_shares) != 2:
            remedy = "pass one from each aggregator"
            _check.refuse("len(aggregate_shares)", "be 2", len(aggregate_shares), remedy)
        field, each = self.circuit.field, 1 + self.circuit.output_length
        numbers = field.integers(field.added(*(self._share(parameter, share) for share in aggregate_shares)))
        if signed:
            numbers = [x - field.modulus if x > field.modulus // 2 else x for x in numbers]
        return [numbers[start : start + each] for start in range(0, len(numbers), each)]

    def _share(self, parameter: MasticParameter, share: bytes) -> Elements:
        _check.instance("aggregate_share", share, bytes)
        size = self.aggregate_share_size(parameter)
        if len(share) != size:
            _check.refuse("len(aggregate_share)", f"be {size}", len(share), "pass what aggregate returned")
        elements, sound = self.circuit.field.decoded(np.frombuffer(share, np.uint8)[None])
        if not sound[0]:
            rule, remedy = "hold elements of the field", "pass what aggregate returned"
            _check.refuse_type("aggregate_share", rule, share, remedy)
        row: Elements = elements[0]
        return row
