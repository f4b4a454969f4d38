"""Poplar1: how many clients' strings begin with each of some prefixes, counted by two aggregators.

The function Poplar1 of draft-irtf-cfrg-vdaf (Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai, "Lightweight
techniques for private heavy hitters", IEEE S&P 2021). While both aggregators follow the protocol, each learns
the counts of the prefixes that were asked for, level by level, and nothing else of a client's string; a
report counts once at most at every level, whatever its client sent. The counts are exact: they are
differentially private only if each aggregator adds noise to its share, as `Poplar1HeavyHitters` has it do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import FIELD255, Elements, PrimeField
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.idpf.idpf import Idpf
from sfumato.crypto.idpf.tree_steps import KEY_SIZE
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.poplar.sharding import bit_rows, sharded
from sfumato.federated.vdaf.poplar.sketch import SketchedReports, SketchState
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
from sfumato.federated.vdaf.report_batch import ShardedReports, check_verify_key, checked_rows, fresh_rows
from sfumato.federated.vdaf.seed_expansion import NONCE_SIZE, Rows

__all__ = ["Poplar1"]

_VERSIONS: Final = {20: 18}
_BLOCK: Final = 512
_SKETCH: Final = 3


@final
@dataclass(frozen=True, slots=True)
class Poplar1:
    """Poplar1 for strings of some number of bits; clients and both aggregators hold equal ones.

    All methods work on batches: arrays of bytes with a row for each report, and flags that tell which reports
    are accepted. What a method refuses with an error is a matter of the parameters, never of a report.

    Parameters
    ----------
    bits : int
        How long the strings are, from 1 to 65,536.
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
    >>> poplar, key = Poplar1(bits=4, context=b"survey"), bytes(range(32))
    >>> made, asked = poplar.shard(["0110", "0111", "1111"]), AggregationParameter.of("01", "10", "11")
    >>> batches = [
    ...     poplar.reports(j, made.nonces, made.public_shares, made.input_shares[j]) for j in range(2)
    ... ]
    >>> sides = [poplar.verify_init(key, asked, batch) for batch in batches]
    >>> messages, sound = poplar.verifier_shares_to_message(asked, [share for _, share in sides])
    >>> answers = [poplar.verify_next(state, messages) for state, _ in sides]
    >>> _, accepted = poplar.verifier_shares_to_message(asked, [share for share, _ in answers])
    >>> accepted &= sound & answers[0][1] & answers[1][1]
    >>> totals = [poplar.aggregate(asked, state.output_shares, accepted) for state, _ in sides]
    >>> poplar.unshard(asked, totals)
    [2, 0, 1]
    """

    bits: int
    context: bytes = b""
    draft: int = 20

    def __post_init__(self) -> None:
        if _check.integer("bits", self.bits, minimum=1) > 1 << 16:
            _check.refuse("bits", "be at most 65,536", self.bits, "use shorter strings, or hash them")
        _check.instance("context", self.context, bytes)
        if len(self.context) > 65_000:
            _check.refuse("len(context)", "be at most 65,000", len(self.context), "use a shorter name")
        if self.draft not in _VERSIONS:
            _check.refuse("draft", f"be one of {sorted(_VERSIONS)}", self.draft, "both ends must speak it")

    @property
    def idpf(self) -> Idpf:
        """The point function, with a data and an authenticator element at every node."""
        return Idpf(self.bits, 2, self.context, _VERSIONS[self.draft])

    @property
    def rand_size(self) -> int:
        """Random bytes that a client needs for a report."""
        return 2 * KEY_SIZE + 3 * SEED_SIZE

    @property
    def public_share_size(self) -> int:
        """Bytes of an encoded public share."""
        return self.idpf.public_share_size

    @property
    def input_share_size(self) -> int:
        """Bytes of each aggregator's encoded input share."""
        return KEY_SIZE + SEED_SIZE + 2 * (self.bits - 1) * FIELD64.size + 2 * FIELD255.size

    def aggregate_share_size(self, parameter: AggregationParameter) -> int:
        """Return the bytes of an encoded aggregate share.

        Parameters
        ----------
        parameter : AggregationParameter
            What was asked.

        Returns
        -------
        int
        """
        return len(parameter.prefixes) * self.field(parameter).size

    def field(self, parameter: AggregationParameter) -> PrimeField:
        """Return the field of a parameter's counts.

        Parameters
        ----------
        parameter : AggregationParameter
            What is asked.

        Returns
        -------
        PrimeField

        Raises
        ------
        ParameterError
            If its prefixes are longer than the strings.
        """
        _check.instance("parameter", parameter, AggregationParameter)
        if parameter.level >= self.bits:
            _check.refuse("parameter.level", f"be below {self.bits}", parameter.level, "use shorter prefixes")
        return self.idpf.field(parameter.level)

    def shard(
        self, measurements: Sequence[str] | NDArray[Any], nonces: Rows | None = None, rand: Rows | None = None
    ) -> ShardedReports:
        """Return the shares of strings, one for each of the two aggregators.

        Parameters
        ----------
        measurements : sequence of str or numpy.ndarray
            Strings of the characters 0 and 1, all ``bits`` long; or an array of zeros and ones of shape
            ``(rows, bits)``.
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
            If a string has another length or other characters.
        """
        paths = bit_rows(measurements, self.bits)
        rows = len(paths)
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
        inputs = [np.empty((rows, self.input_share_size), np.uint8) for _ in range(2)]
        for start in range(0, rows, _BLOCK):
            part = slice(start, start + _BLOCK)
            public[part], inputs[0][part], inputs[1][part] = sharded(
                self.idpf, paths[part], nonces[part], rand[part]
            )
        return ShardedReports(nonces, public, tuple(inputs))

    def reports(
        self, aggregator: int, nonces: Rows, public_shares: Rows, input_shares: Rows
    ) -> SketchedReports:
        """Return an aggregator's batch, which remembers the nodes of the last prefixes.

        Parameters
        ----------
        aggregator : int
            0, the leader, or 1.
        nonces, public_shares, input_shares : numpy.ndarray
            The clients' messages.

        Returns
        -------
        SketchedReports

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
        checked_rows("input_shares", input_shares, rows, self.input_share_size)
        return SketchedReports(self.idpf, aggregator, nonces, public_shares, input_shares)

    def verify_init(
        self, verify_key: bytes, parameter: AggregationParameter, reports: SketchedReports
    ) -> tuple[SketchState, Rows]:
        """Return what an aggregator keeps, and its shares of the sketch for the other.

        Parameters
        ----------
        verify_key : bytes
            The aggregators' common secret, 32 bytes, unknown to clients.
        parameter : AggregationParameter
            What is asked. No nonce may be verified twice at a level under a key, and parameters must follow
            one another (`AggregationParameter.follows`): see `Poplar1Aggregator`.
        reports : SketchedReports
            What `reports` returned.

        Returns
        -------
        tuple of SketchState and numpy.ndarray

        Raises
        ------
        ParameterError
            If the key has another size, or the parameter a level that the strings lack.
        """
        check_verify_key(verify_key)
        self.field(parameter)
        return reports.sketch(verify_key, parameter)

    def verifier_shares_to_message(
        self, parameter: AggregationParameter, verifier_shares: Sequence[Rows]
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the message of a round: the opened sketch, then nothing but which reports pass.

        Parameters
        ----------
        parameter : AggregationParameter
            What is asked.
        verifier_shares : sequence of numpy.ndarray
            One batch of messages from each aggregator, the leader's first; all of the same round.

        Returns
        -------
        tuple of numpy.ndarray
            Messages, of no columns in the second round, and a flag for each report: those that fail are to
            be dropped, whatever the message.
        """
        if len(verifier_shares) != 2:
            rule, remedy = "be 2", "pass one batch from each aggregator"
            _check.refuse("len(verifier_shares)", rule, len(verifier_shares), remedy)
        field, rows = self.field(parameter), len(verifier_shares[0])
        last = verifier_shares[0].shape[1:] == (field.size,)
        count = 1 if last else _SKETCH
        total, accepted = field.zeros(rows, count), np.ones(rows, np.bool_)
        for message in verifier_shares:
            encoded = checked_rows("verifier_shares", message, rows, count * field.size)
            elements, sound = field.decoded(encoded)
            total = field.added(total, elements)
            accepted &= sound
        if not last:
            return field.encoded(total), accepted
        return np.zeros((rows, 0), np.uint8), accepted & ~total.any(axis=(1, 2))

    def verify_next(self, state: SketchState, messages: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        """Return an aggregator's verifier shares of the second round, and which reports are sound here.

        Parameters
        ----------
        state : SketchState
            What `verify_init` returned.
        messages : numpy.ndarray
            The first round's messages.

        Returns
        -------
        tuple of numpy.ndarray
        """
        field = self.field(state.parameter)
        opened, sound = field.decoded(
            checked_rows("messages", messages, len(state.sound), _SKETCH * field.size)
        )
        share = field.added(field.multiplied(state.corrections[:, 0], opened[:, 0]), state.corrections[:, 1])
        if state.aggregator:
            square = field.multiplied(opened[:, 0], opened[:, 0])
            share = field.added(share, field.subtracted(square, field.added(opened[:, 1], opened[:, 2])))
        return field.encoded(share[:, None]), sound & state.sound

    def aggregate(
        self, parameter: AggregationParameter, output_shares: Elements, accepted: NDArray[np.bool_]
    ) -> bytes:
        """Return an aggregator's encoded share of the counts over accepted reports.

        Parameters
        ----------
        parameter : AggregationParameter
            What was asked.
        output_shares : numpy.ndarray
            Its output shares.
        accepted : numpy.ndarray
            A flag for each report; both aggregators must use the same.

        Returns
        -------
        bytes
        """
        field = self.field(parameter)
        return field.encoded(field.summed(output_shares[accepted].swapaxes(0, 1))[None]).tobytes()

    def added(self, parameter: AggregationParameter, aggregate_share: bytes, numbers: Sequence[int]) -> bytes:
        """Return an aggregate share with integers added, such as noise.

        Parameters
        ----------
        parameter : AggregationParameter
            What was asked.
        aggregate_share : bytes
            The share.
        numbers : sequence of int
            One for each prefix, of any sign.

        Returns
        -------
        bytes
        """
        field, count = self.field(parameter), len(parameter.prefixes)
        if len(numbers) != count:
            _check.refuse("len(numbers)", f"be {count}", len(numbers), "pass one number for each prefix")
        total = field.added(self._share(parameter, aggregate_share), field.vector(numbers))
        return field.encoded(total[None]).tobytes()

    def unshard(
        self, parameter: AggregationParameter, aggregate_shares: Sequence[bytes], *, signed: bool = False
    ) -> list[int]:
        """Return the counts of which both aggregators' shares are given.

        Parameters
        ----------
        parameter : AggregationParameter
            What was asked.
        aggregate_shares : sequence of bytes
            One from each aggregator.
        signed : bool, optional
            Whether counts may be negative, as with noise: those above half of the modulus then are.

        Returns
        -------
        list of int
            One for each prefix.
        """
        if len(aggregate_shares) != 2:
            remedy = "pass one from each aggregator"
            _check.refuse("len(aggregate_shares)", "be 2", len(aggregate_shares), remedy)
        field = self.field(parameter)
        total = field.added(*(self._share(parameter, share) for share in aggregate_shares))
        counts = field.integers(total)
        return [x - field.modulus if signed and x > field.modulus // 2 else x for x in counts]

    def _share(self, parameter: AggregationParameter, share: bytes) -> Elements:
        _check.instance("aggregate_share", share, bytes)
        size = self.aggregate_share_size(parameter)
        if len(share) != size:
            _check.refuse("len(aggregate_share)", f"be {size}", len(share), "pass what aggregate returned")
        elements, sound = self.field(parameter).decoded(np.frombuffer(share, np.uint8)[None])
        if not sound[0]:
            rule, remedy = "hold elements of the field", "pass what aggregate returned"
            _check.refuse_type("aggregate_share", rule, share, remedy)
        row: Elements = elements[0]
        return row
