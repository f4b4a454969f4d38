"""Prio3: sums of measurements that are proved valid to aggregators of whom none sees a measurement.

The verifiable distributed aggregation function of draft-irtf-cfrg-vdaf (Corrigan-Gibbs and Boneh 2017; its
analysis: Davis, Patton, Rosulek and Schoppmann, PoPETs 2023). While one aggregator is honest, the others
learn the sum over accepted reports and nothing else of honest clients. While all aggregators follow the
protocol, an invalid report is accepted with negligible probability only. The sum itself is exact: it is not
differentially private unless aggregators add noise to their shares of it (`Prio3.added`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.federated.vdaf.circuits.circuit import Circuit, Measurements
from sfumato.federated.vdaf.message_sizes import MessageSizes
from sfumato.federated.vdaf.report_batch import (
    ShardedReports,
    VerifyState,
    check_verify_key,
    checked_rows,
    fresh_rows,
)
from sfumato.federated.vdaf.report_steps import ReportSteps
from sfumato.federated.vdaf.seed_expansion import NONCE_SIZE, Rows, SeedExpansion

__all__ = ["Prio3"]

_VERSIONS: Final = {20: 18}
"""The first byte of domain separation tags, for each draft that is known."""


@final
@dataclass(frozen=True, slots=True)
class Prio3(MessageSizes):
    """One function of the Prio3 family; clients and aggregators hold equal ones.

    All methods work on batches: arrays of bytes with a row for each report, and flags that tell which reports
    are accepted. What a method refuses with an error is a matter of the parameters, never of a report.

    Parameters
    ----------
    circuit : Circuit
        What is measured.
    algorithm : int
        The function's number in the draft.
    shares : int, optional
        How many aggregators there are, from 2 to 255.
    proofs : int, optional
        How many proofs a report has, from 1 to 255; more than one for the small field.
    context : bytes, optional
        The application's name, bound to all that is derived.
    draft : int, optional
        The draft whose messages are spoken; only 20 is known.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from sfumato.federated import prio3_histogram
    >>> prio3 = prio3_histogram(length=4, chunk_length=2, context=b"survey")
    >>> reports, key = prio3.shard([2, 3, 2]), bytes(range(32))
    >>> sides = [
    ...     prio3.verify_init(key, j, reports.nonces, reports.public_shares, reports.input_shares[j])
    ...     for j in range(2)
    ... ]
    >>> messages, accepted = prio3.verifier_shares_to_message([share for _, share in sides])
    >>> totals = []
    >>> for state, _ in sides:
    ...     outputs, agreed = prio3.verify_next(state, messages)
    ...     totals.append(prio3.aggregate(outputs, accepted & agreed))
    >>> prio3.unshard(totals)
    [0, 0, 2, 1]
    """

    circuit: Circuit
    algorithm: int
    shares: int = 2
    proofs: int = 1
    context: bytes = b""
    draft: int = 20

    def __post_init__(self) -> None:
        _check.instance("circuit", self.circuit, Circuit)
        if not 0 <= _check.integer("algorithm", self.algorithm) < 1 << 32:
            _check.refuse("algorithm", "be below 2**32", self.algorithm, "take it from the draft")
        for name, least in (("shares", 2), ("proofs", 1)):
            if _check.integer(name, getattr(self, name), minimum=least) > 255:
                _check.refuse(name, "be at most 255", getattr(self, name), "use fewer")
        _check.instance("context", self.context, bytes)
        if len(self.context) > 65_000:
            _check.refuse("len(context)", "be at most 65,000", len(self.context), "use a shorter name")
        if self.draft not in _VERSIONS:
            _check.refuse("draft", f"be one of {sorted(_VERSIONS)}", self.draft, "both ends must speak it")

    def shard(
        self, measurements: Measurements, nonces: Rows | None = None, rand: Rows | None = None
    ) -> ShardedReports:
        """Return the shares of measurements, one for each aggregator, with the proofs.

        Parameters
        ----------
        measurements : sequence
            What the circuit measures.
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
            If a measurement is out of range.
        """
        encoded = self.circuit.encode(measurements)
        rows = len(encoded)
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
        inputs = [np.empty((rows, self.input_share_size(j)), np.uint8) for j in range(self.shares)]
        for part in self.steps.blocks(rows):
            public[part], leader = self.steps.shard(encoded[part], nonces[part], rand[part])
            inputs[0][part] = leader
            each = inputs[1].shape[1]
            for j in range(1, self.shares):
                inputs[j][part] = rand[part, (j - 1) * each : j * each]
        return ShardedReports(nonces, public, tuple(inputs))

    def verify_init(
        self, verify_key: bytes, aggregator: int, nonces: Rows, public_shares: Rows, input_shares: Rows
    ) -> tuple[VerifyState, Rows]:
        """Return what an aggregator keeps, and its verifier shares for the others.

        Parameters
        ----------
        verify_key : bytes
            The aggregators' common secret, 32 bytes, unknown to clients.
        aggregator : int
            Whose shares these are; 0 is the leader.
        nonces : numpy.ndarray
            Of shape ``(rows, 16)``; no nonce may be verified twice under a key.
        public_shares, input_shares : numpy.ndarray
            The clients' messages.

        Returns
        -------
        tuple of VerifyState and numpy.ndarray
            The messages are of shape ``(rows, verifier_share_size)``.

        Raises
        ------
        ParameterError
            If the key or the messages have another size.
        """
        check_verify_key(verify_key)
        if _check.integer("aggregator", aggregator) >= self.shares:
            _check.refuse(
                "aggregator", f"be below {self.shares}", aggregator, "count aggregators from 0, the leader"
            )
        rows = len(nonces)
        checked_rows("nonces", nonces, rows, NONCE_SIZE)
        checked_rows("public_shares", public_shares, rows, self.public_share_size)
        checked_rows("input_shares", input_shares, rows, self.input_share_size(aggregator))
        outputs = self.circuit.field.zeros(rows, self.circuit.output_length)
        seeds = np.empty((rows, self.message_size), np.uint8)
        sound = np.zeros(rows, np.bool_)
        out = np.empty((rows, self.verifier_share_size), np.uint8)
        for part in self.steps.blocks(rows):
            state, out[part] = self.steps.verify(
                verify_key, aggregator, nonces[part], public_shares[part], input_shares[part]
            )
            outputs[part], seeds[part], sound[part] = state.output_shares, state.joint_seeds, state.sound
        return VerifyState(outputs, seeds, sound), out

    def verifier_shares_to_message(self, verifier_shares: Sequence[Rows]) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the message that all aggregators need to finish, and which reports pass.

        Parameters
        ----------
        verifier_shares : sequence of numpy.ndarray
            One batch of messages from each aggregator, the leader's first.

        Returns
        -------
        tuple of numpy.ndarray
            Messages of shape ``(rows, message_size)``, and a flag for each report: those that fail are to be
            dropped, whatever the message.
        """
        if len(verifier_shares) != self.shares:
            _check.refuse(
                "len(verifier_shares)",
                f"be {self.shares}",
                len(verifier_shares),
                "pass one batch from each aggregator",
            )
        field, rows = self.circuit.field, len(verifier_shares[0])
        end = self.verifier_share_size - self.message_size
        total = field.zeros(rows, self.steps.proof.verifier_length * self.proofs)
        accepted, parts = np.ones(rows, np.bool_), []
        for message in verifier_shares:
            checked_rows("verifier_shares", message, rows, self.verifier_share_size)
            elements, sound = field.decoded(message[:, :end])
            total = field.added(total, elements)
            accepted &= sound
            parts.append(message[:, end:])
        for verifier in self.steps.split(total):
            accepted &= self.steps.proof.decide(verifier)
        if not self.joint:
            return np.zeros((rows, 0), np.uint8), accepted
        return self.steps.expansion.joint_seed(np.concatenate(parts, axis=1)), accepted

    def verify_next(self, state: VerifyState, messages: Rows) -> tuple[Elements, NDArray[np.bool_]]:
        """Return an aggregator's output shares, and which reports it accepts.

        Parameters
        ----------
        state : VerifyState
            What it kept.
        messages : numpy.ndarray
            The verifier messages.

        Returns
        -------
        tuple of numpy.ndarray
            Shares of shape ``(rows, output_length, limbs)``, and a flag for each report.
        """
        checked_rows("messages", messages, len(state.sound), self.message_size)
        same = (state.joint_seeds == messages).all(axis=1)
        return state.output_shares, np.asarray(state.sound & same)

    def aggregate(self, output_shares: Elements, accepted: NDArray[np.bool_]) -> bytes:
        """Return an aggregator's encoded share of the sum over accepted reports.

        Parameters
        ----------
        output_shares : numpy.ndarray
            Its output shares.
        accepted : numpy.ndarray
            A flag for each report; all aggregators must use the same.

        Returns
        -------
        bytes
        """
        chosen = output_shares if accepted.all() else output_shares[accepted]
        return self.circuit.field.encoded(self.circuit.field.total(chosen)[None]).tobytes()

    def added(self, aggregate_share: bytes, numbers: Sequence[int]) -> bytes:
        """Return an aggregate share with integers added: another share of disjoint reports, or noise.

        Parameters
        ----------
        aggregate_share : bytes
            The share.
        numbers : sequence of int
            One for each output, of any sign.

        Returns
        -------
        bytes

        Examples
        --------
        >>> from sfumato.federated import prio3_count
        >>> prio3 = prio3_count()
        >>> prio3.unshard([prio3.added(bytes(8), [-3]), bytes(8)], signed=True)
        -3
        """
        if len(numbers) != self.circuit.output_length:
            _check.refuse(
                "len(numbers)",
                f"be {self.circuit.output_length}",
                len(numbers),
                "pass one number for each output",
            )
        field = self.circuit.field
        total = field.added(self._share(aggregate_share), field.vector(numbers))
        return field.encoded(total[None]).tobytes()

    def merged(self, aggregate_shares: Sequence[bytes]) -> bytes:
        """Return one aggregator's share of the sum over several batches of different reports.

        Parameters
        ----------
        aggregate_shares : sequence of bytes
            Its shares.

        Returns
        -------
        bytes
        """
        field = self.circuit.field
        total = field.zeros(self.circuit.output_length)
        for share in aggregate_shares:
            total = field.added(total, self._share(share))
        return field.encoded(total[None]).tobytes()

    def unshard(self, aggregate_shares: Sequence[bytes], *, signed: bool = False) -> Any:
        """Return the aggregate of which all aggregators' shares are given.

        Parameters
        ----------
        aggregate_shares : sequence of bytes
            One from each aggregator.
        signed : bool, optional
            Whether sums may be negative, as with noise: those above half of the modulus then are.

        Returns
        -------
        int or list of int
        """
        if len(aggregate_shares) != self.shares:
            _check.refuse(
                "len(aggregate_shares)",
                f"be {self.shares}",
                len(aggregate_shares),
                "pass one from each aggregator",
            )
        field = self.circuit.field
        merged = self.merged(aggregate_shares)
        totals = field.integers(self._share(merged))
        if signed:
            totals = [x - field.modulus if x > field.modulus // 2 else x for x in totals]
        return self.circuit.result(totals)

    def _share(self, share: bytes) -> Elements:
        _check.instance("aggregate_share", share, bytes)
        if len(share) != self.aggregate_share_size:
            _check.refuse(
                "len(aggregate_share)",
                f"be {self.aggregate_share_size}",
                len(share),
                "pass what aggregate returned",
            )
        elements, sound = self.circuit.field.decoded(np.frombuffer(share, np.uint8)[None])
        if not sound[0]:
            _check.refuse_type(
                "aggregate_share", "hold elements of the field", share, "pass what aggregate returned"
            )
        row: Elements = elements[0]
        return row

    @property
    def steps(self) -> ReportSteps:
        """The steps on rows of messages."""
        version = _VERSIONS[self.draft]
        expansion = SeedExpansion(self.circuit.field, self.algorithm, self.proofs, self.context, version)
        return ReportSteps(self.circuit, self.shares, self.proofs, expansion)
