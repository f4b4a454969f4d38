"""The server of secure aggregation: it takes messages of clients, phase by phase, and ends with their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.mask_stream import SEED, MaskStream, word_type
from sfumato.crypto.prime_field import PRIME
from sfumato.federated.secure_aggregation.active_roster import (
    key_context,
    roster_order,
    transcript,
    write_rosters,
)
from sfumato.federated.secure_aggregation.bit_packing import add_unpacked, packed_size
from sfumato.federated.secure_aggregation.graph import NeighborGraph
from sfumato.federated.secure_aggregation.identities import (
    advertised,
    agreed_list,
    check_identities,
    shared_list,
    verify_signature,
)
from sfumato.federated.secure_aggregation.masking import SMALL_ORDER, unmask_pair
from sfumato.federated.secure_aggregation.messages import (
    ENVELOPE,
    KEY,
    LIMBS,
    SERVER,
    SHARE,
    SIGNATURE,
    Message,
    bitmap,
)
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.secure_aggregation.unmasking import Unmasking
from sfumato.numerics.randomness.source import SecureSource

__all__ = ["AggregatedSum", "SecureAggregationServer"]

_KEYS, _SHARES, _VECTORS, _CONSENTS, _UNMASK, _DONE = "keys", "shares", "vector", "consent", "unmask", "done"
_COMMITMENT: Final = 32

_REMEDY: Final = "drop the message"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AggregatedSum:
    """The sum of a round, and whose vectors are in it.

    Parameters
    ----------
    total : ndarray of int64, shape (length,)
        The sum of the survivors' vectors.
    survivors : tuple of int
        The clients whose vectors are in it.

    Examples
    --------
    >>> AggregatedSum(total=np.array([3]), survivors=(0, 2)).survivors
    (0, 2)
    """

    total: NDArray[np.int64]
    survivors: tuple[int, ...]


@final
class SecureAggregationServer:
    """The server in one round.

    Parameters
    ----------
    plan : SecureAggregation
        What all agreed on.
    identities : mapping of int to bytes, or None, default None
        In the active mode, the register of Ed25519 public keys that the clients use.

    Raises
    ------
    ParameterError
        If identities are missing or not needed.

    Notes
    -----
    Give every message to `receive`; then call in order `rosters`, `deliveries`, `survivors`, in the active
    mode `evidence`, and `aggregate`. Each ends a phase: who was not heard by then has dropped out. A message
    that is malformed, late or sent twice is refused and changes nothing. Vectors are added as they come; none
    is stored.

    Examples
    --------
    >>> plan = SecureAggregation(clients=3, length=1, bounds=(0, 9), bits=6, minimum_survivors=2)
    >>> server = SecureAggregationServer(plan)
    >>> server.phase
    'keys'
    """

    __slots__ = (
        "_advertised",
        "_answered",
        "_bodies",
        "_commitments",
        "_consents",
        "_context",
        "_graph",
        "_identities",
        "_paired",
        "_sealed",
        "_sharers",
        "_shares",
        "_signed",
        "_stream",
        "_survivors",
        "_total",
        "_transcript",
        "phase",
        "plan",
    )

    def __init__(self, plan: SecureAggregation, *, identities: Mapping[int, bytes] | None = None) -> None:
        _check.instance("plan", plan, SecureAggregation, "state the round first")
        self.plan, self.phase = plan, _KEYS
        self._identities = check_identities(plan, identities)
        self._graph = NeighborGraph(plan.clients, plan.neighbors, SecureSource())
        self._transcript, self._context = b"", plan.digest
        self._signed: dict[int, bytes] = {}
        self._bodies: dict[int, bytes] = {}
        self._commitments: dict[int, bytes] = {}
        self._consents: dict[int, bytes] = {}
        self._advertised, self._sharers, self._survivors = (np.zeros(plan.clients, bool) for _ in range(3))
        edges = plan.clients * plan.neighbors
        self._sealed = np.zeros((edges, ENVELOPE), np.uint8)
        self._shares = np.zeros((edges, LIMBS), np.uint64)
        self._answered, self._paired = np.zeros(edges, bool), np.zeros(edges, bool)
        self._stream = MaskStream(plan.length, bits=plan.bits)
        self._total = np.zeros(plan.length, word_type(plan.bits))

    def receive(self, data: bytes) -> None:
        """Take one message of a client.

        Parameters
        ----------
        data : bytes
            What a client returned, of the phase that is open.

        Raises
        ------
        ParameterError
            If it is malformed, of another phase or round, from a client that dropped out before, or sent
            twice.
        """
        plan, kind = self.plan, self.phase
        if kind == _DONE:
            _check.refuse_state("a message", "come before the end", "the round is over", "start a round")
        signature = SIGNATURE if plan.active else 0
        size = {
            _KEYS: (2 * KEY + signature,) * 2,
            _SHARES: (_COMMITMENT, _COMMITMENT + ENVELOPE * plan.neighbors),
            _VECTORS: (packed_size(plan.length, plan.bits) + signature,) * 2,
            _CONSENTS: (SIGNATURE,) * 2,
            _UNMASK: (0, (SHARE + SEED) * plan.neighbors),
        }[kind]
        each = {_SHARES: ENVELOPE, _UNMASK: math.gcd(SHARE, SEED)}.get(kind, 0)
        message = Message.from_bytes(data, kind, plan.digest, (size[0], each, size[1]))
        if not 0 <= message.client < plan.clients:
            _check.refuse_state("a message", "be of a client of the round", "it is of another", "drop it")
        {
            _KEYS: self._take_keys,
            _SHARES: self._take_shares,
            _VECTORS: self._take_vector,
            _CONSENTS: self._take_consent,
            _UNMASK: self._take_unmask,
        }[kind](message.client, message.body)

    def _take_keys(self, client: int, body: bytes | memoryview) -> None:
        _fresh(not self._advertised[client])
        keys, signature = bytes(body[: 2 * KEY]), bytes(body[2 * KEY :])
        if keys[:KEY] in SMALL_ORDER or keys[KEY:] in SMALL_ORDER or keys[:KEY] == keys[KEY:]:
            rule, found = "be two usable points", "one has a small order, or they are one"
            _check.refuse_state("the keys", rule, found, "drop the message")
        verify_signature(
            self._identities,
            client,
            signature,
            advertised(self.plan, client, keys),
            remedy="drop the message",
        )
        self._bodies[client] = bytes(body)
        self._advertised[client] = True

    def rosters(self) -> dict[int, bytes]:
        """End the phase of keys, and return for each client the keys of its neighbors.

        Returns
        -------
        dict of int to bytes

        Raises
        ------
        ParameterError
            If fewer than the minimum of survivors advertised keys.
        """
        self._end(_KEYS, _SHARES, self._advertised)
        plan, near = self.plan, self._graph.neighbors
        if plan.active:
            self._transcript = transcript(self._bodies)
            self._context = key_context(plan, self._transcript)
            order = roster_order(plan, self._transcript)
            self._graph = NeighborGraph(plan.clients, plan.neighbors, order)
            written = write_rosters(plan, self._bodies, self._graph.neighbors)
            return {client: self._message("roster", client, body) for client, body in written.items()}
        entries = {client: client.to_bytes(4, "big") + body for client, body in self._bodies.items()}
        return {
            client: self._message(
                "roster",
                client,
                b"".join([entries[n] for n in near[client][self._advertised[near[client]]].tolist()]),
            )
            for client in np.flatnonzero(self._advertised).tolist()
        }

    def _message(self, kind: str, client: int, body: bytes) -> bytes:
        return Message(kind, client, self.plan.digest, body).to_bytes()

    def _end(self, phase: str, following: str, heard: NDArray[np.bool_]) -> None:
        if self.phase != phase:
            rule = f"be in the phase of {phase}"
            _check.refuse("the round", rule, self.phase, "call the methods in their order")
        if int(heard.sum()) < self.plan.minimum_survivors:
            self.phase = _DONE
            rule = f"have at least {self.plan.minimum_survivors} clients in each phase"
            _check.refuse_state("the round", rule, "it has fewer and is aborted", "start another one")
        self.phase = following

    def _take_shares(self, client: int, body: bytes | memoryview) -> None:
        _fresh(self._advertised[client] and not self._sharers[client])
        slots = self._advertised[self._graph.neighbors[client]]
        if len(body) != _COMMITMENT + ENVELOPE * int(slots.sum()):
            rule = "have one envelope for each neighbor in the roster"
            _check.refuse_state("the message of shares", rule, "it has not", "drop the message")
        start = client * self.plan.neighbors
        rows = np.frombuffer(body[_COMMITMENT:], np.uint8).reshape(-1, ENVELOPE)
        of_client = self._sealed[start : start + self.plan.neighbors]
        if len(rows) == len(of_client):  # a copy of a whole slice is faster than one of chosen rows
            of_client[:] = rows
        else:
            of_client[slots] = rows
        self._commitments[client] = bytes(body[:_COMMITMENT])
        self._sharers[client] = True

    def deliveries(self) -> dict[int, bytes]:
        """End the phase of shares, and return for each client what its neighbors sealed for it.

        Returns
        -------
        dict of int to bytes

        Raises
        ------
        ParameterError
            If fewer than the minimum of survivors shared their secrets.
        """
        self._end(_SHARES, _VECTORS, self._sharers)
        width = self.plan.neighbors
        found = {}
        everyone = bitmap(self._sharers) if self.plan.active else b""
        for client in np.flatnonzero(self._sharers).tolist():
            slots = self._sharers[self._graph.neighbors[client]]
            edges = self._graph.opposite[client][slots]
            rows = np.empty((len(edges), 4 + ENVELOPE), np.uint8)
            rows[:, :4] = (edges // width).astype(">u4")[:, None].view(np.uint8)
            rows[:, 4:] = self._sealed[edges]
            found[client] = self._message("delivery", client, everyone + rows.tobytes())
        self._sealed = np.zeros((0, ENVELOPE), np.uint8)
        return found

    def _take_vector(self, client: int, body: bytes | memoryview) -> None:
        _fresh(self._sharers[client] and not self._survivors[client])
        size = packed_size(self.plan.length, self.plan.bits)
        if self.plan.active:
            signed = shared_list(self.plan, self._transcript, bitmap(self._sharers))
            verify_signature(self._identities, client, bytes(body[size:]), signed, remedy=_REMEDY)
            self._signed[client] = bytes(body[size:])
        add_unpacked(self._total, body[:size], self.plan.bits)
        self._survivors[client] = True

    def survivors(self) -> bytes:
        """End the phase of vectors, and return the list of survivors, one message for all of them.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If they are fewer than the minimum: nothing was unmasked.
        """
        self._end(_VECTORS, _CONSENTS if self.plan.active else _UNMASK, self._survivors)
        signatures = b"".join(self._signed[client] for client in sorted(self._signed))
        return self._message("survivors", SERVER, bitmap(self._survivors) + signatures)

    def _take_consent(self, client: int, body: bytes | memoryview) -> None:
        _fresh(self._survivors[client] and client not in self._consents)
        sharers, survivors = bitmap(self._sharers), bitmap(self._survivors)
        verify_signature(
            self._identities,
            client,
            bytes(body),
            agreed_list(self.plan, self._transcript, sharers, survivors),
            remedy="drop the message",
        )
        self._consents[client] = bytes(body)

    def evidence(self) -> bytes:
        """End the phase of consent, and return as many signatures as are needed, for all who signed.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If fewer than the minimum of survivors signed.
        """
        signers = np.isin(np.arange(self.plan.clients), list(self._consents))
        self._end(_CONSENTS, _UNMASK, signers)
        enough = sorted(self._consents)[: self.plan.quorum]
        signatures = b"".join(self._consents[client] for client in enough)
        chosen = np.isin(np.arange(self.plan.clients), enough)
        return self._message("evidence", SERVER, bitmap(chosen) + signatures)

    def _take_unmask(self, client: int, body: bytes | memoryview) -> None:
        near, opposite = self._graph.neighbors[client], self._graph.opposite[client]
        edges, lost = opposite[self._sharers[near]], self._sharers[near] & ~self._survivors[near]
        _fresh(self._survivors[client] and not self._answered[edges].any())
        size = SHARE * len(edges)
        if len(body) not in (size, size + SEED * int(lost.sum())):
            rule = "have one share of each neighbor that sealed one, and a seed of each that dropped out"
            _check.refuse_state("the message of unmask", rule, "it has not", "drop the message")
        shares = np.frombuffer(body[:size], "<u8").reshape(-1, LIMBS)
        if (shares >= PRIME).any():
            rule = "have elements of the field as shares"
            _check.refuse_state("the message of unmask", rule, "one is none", "drop the message")
        self._shares[edges] = shares
        self._answered[edges] = True
        if len(body) > size:
            seeds = bytes(body[size:])
            for at, dropped in enumerate(near[lost].tolist()):
                seed = seeds[SEED * at : SEED * (at + 1)]
                unmask_pair(self._stream, self._total, client, dropped, seed)
            self._paired[opposite[lost]] = True

    def aggregate(self) -> AggregatedSum:
        """End the round, and return the sum of the survivors' vectors.

        Returns
        -------
        AggregatedSum

        Raises
        ------
        ParameterError
            If too few survivors answered for some secret, or their shares do not give it back.
        """
        width = self.plan.neighbors
        answered = self._answered.reshape(-1, width)
        self._end(_UNMASK, _DONE, self._survivors)
        work = Unmasking(
            plan=self.plan,
            neighbors=self._graph.neighbors,
            answered=answered,
            shares=self._shares.reshape(self.plan.clients, width, -1),
            survivors=self._survivors,
            context=self._context,
            paired=self._paired.reshape(-1, width),
            points={client: body[:KEY] for client, body in self._bodies.items()},
            commitments=self._commitments,
        )
        work.remove_masks(self._stream, self._total, np.flatnonzero(self._sharers))
        survivors = np.flatnonzero(self._survivors).tolist()
        return AggregatedSum(total=self.plan.decoded(self._total, len(survivors)), survivors=tuple(survivors))


def _fresh(expected: bool) -> None:
    """Refuse a message of a client that dropped out, or that was heard in this phase before."""
    if not expected:
        rule = "come once, from a client that is still in the round"
        _check.refuse_state("a message", rule, "this one does not", "drop it")
