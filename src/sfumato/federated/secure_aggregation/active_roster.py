"""The roster of the active mode: the keys of all clients, which fix the graph, and the neighbors' signatures.

A server that chose the graph could surround a client with colluders. So the order of the circle is an output
of SHAKE256 on the keys of all, and every client computes it.

Guarantee: let the colluders be chosen before the keys are made, let SHAKE256 and SHA-256 be random oracles,
and let no ``degree / 2`` places in a row on the circle have ``threshold - degree / 2`` colluders, which
`plan_neighbors` makes likely for each of 2^60 lists of keys that the server may try (with all others as
neighbors: let fewer than ``threshold`` collude). If fewer than ``2 * quorum - clients`` clients collude, a
server that deviates in any way learns of the vectors of honest clients at most one sum: that of the honest
ones in one list of at least ``minimum_survivors``.

1. A client reveals shares only for a list that ``quorum`` clients signed, and signs one. Two lists would have
   ``2 * quorum - clients`` signers in common, one of them honest. So there is one list, one roster, and one
   set of those who shared; of each honest client at most one secret is revealed by honest clients, and its
   colluding neighbors are fewer than the threshold.
2. A self-mask is revealed only if an honest neighbor has verified its owner's signature of the set of those
   who shared. So two honest survivors whose self-masks are known both masked against one another if they are
   neighbors; and whose self-mask is not known stays masked, also by the masks of its pairs.
3. All honest signers have checked that each survivor has ``threshold`` surviving neighbors. If the honest
   survivors fell apart, there would be ``degree / 2`` places in a row without one of them, next to an honest
   survivor. On that side its surviving neighbors would be colluders, fewer than ``threshold - degree / 2``,
   and on the other at most ``degree / 2``: fewer than ``threshold`` together. So they are connected by masks
   that stay secret, and Lemma 6.1 of Bonawitz et al. (2017) applies; that encryption and key agreement may
   stand for ideal ones is the hybrid argument of their Theorem 6.5.

In the protocol of Bell et al. (2020) for malicious servers no client hears of all others; what it proves is
weaker, sums over several groups. Here a client receives some 256 bytes for each other one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.federated.secure_aggregation.graph import circle_neighbors, drawn_order, surviving_neighbors
from sfumato.federated.secure_aggregation.messages import KEY, SIGNATURE, bitmap, members
from sfumato.federated.secure_aggregation.parameters import SecureAggregation

__all__ = [
    "ActiveRoster",
    "check_survivors",
    "delivered_sharers",
    "key_context",
    "read_evidence",
    "read_roster",
    "roster_order",
    "roster_sizes",
    "transcript",
    "write_rosters",
]

_BOTH: int = 2 * KEY
_LABEL = b"sfumato secure aggregation 1 "


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActiveRoster:
    """What a client reads in its roster.

    Parameters
    ----------
    present : ndarray of bool, shape (clients,)
        Who advertised keys.
    transcript : bytes
        Digest of all keys.
    order : ndarray of int64, shape (clients,)
        Who stands at each place of the circle.
    neighbors : dict of int to bytes
        Keys and signature of each neighbor that advertised, in ascending order.
    """

    present: NDArray[np.bool_]
    transcript: bytes
    order: NDArray[np.int64]
    neighbors: dict[int, bytes]


def transcript(keys: Mapping[int, bytes]) -> bytes:
    """Return the digest of a list of keys."""
    return hashlib.sha256(b"".join(c.to_bytes(4, "big") + keys[c][:_BOTH] for c in sorted(keys))).digest()


def key_context(plan: SecureAggregation, digest: bytes) -> bytes:
    """Return what keys of pairs are bound to: two rosters give different keys."""
    return hashlib.sha256(_LABEL + b"context " + plan.digest + digest).digest()


def roster_order(plan: SecureAggregation, digest: bytes) -> NDArray[np.int64]:
    """Return the order of the circle that follows from a list of keys."""
    return drawn_order(hashlib.sha256(_LABEL + b"graph " + plan.digest + digest).digest(), plan.clients)


def roster_sizes(plan: SecureAggregation) -> tuple[int, int, int]:
    """Return the sizes that the body of a roster may have, as `Message.from_bytes` takes them."""
    size = -(-plan.clients // 8)
    return size, _BOTH, size + _BOTH * plan.clients + SIGNATURE * plan.neighbors


def write_rosters(
    plan: SecureAggregation, bodies: Mapping[int, bytes], neighbors: NDArray[np.int64]
) -> dict[int, bytes]:
    """Return each client's roster: who is there, all keys, and the signatures of its neighbors."""
    present = np.isin(np.arange(plan.clients), list(bodies))
    everyone = bitmap(present) + b"".join(bodies[client][:_BOTH] for client in sorted(bodies))
    return {
        client: everyone
        + b"".join(bodies[n][_BOTH:] for n in neighbors[client][present[neighbors[client]]].tolist())
        for client in sorted(bodies)
    }


def read_roster(plan: SecureAggregation, client: int, own: bytes, body: bytes) -> ActiveRoster:
    """Return what a roster says; signatures are not verified here."""
    size = -(-plan.clients // 8)
    present = members(body[:size], plan.clients)
    count = int(present.sum())
    end = size + _BOTH * count
    rows = [body[at : at + _BOTH] for at in range(size, end, _BOTH)]
    keys = dict(zip(np.flatnonzero(present).tolist(), rows, strict=True))
    if keys.get(client) != own:
        _check.refuse_state("the roster", "have this client's keys", "it has not", "end this round")
    digest = transcript(keys)
    order = roster_order(plan, digest)
    near = circle_neighbors(order, plan.neighbors, client)
    near = near[present[near]]
    if len(body) != end + SIGNATURE * len(near):
        rule = "have one signature of each neighbor"
        _check.refuse_state("the roster", rule, "it has not", "end this round")
    signed = {n: keys[n] + body[end + SIGNATURE * at :][:SIGNATURE] for at, n in enumerate(near.tolist())}
    return ActiveRoster(present=present, transcript=digest, order=order, neighbors=signed)


def delivered_sharers(
    roster: ActiveRoster, client: int, body: bytes | memoryview, senders: list[int]
) -> NDArray[np.bool_]:
    """Return the set of all who shared, among whom the client's neighbors are those whose envelopes came."""
    chosen = members(body, len(roster.order))
    near = [neighbor for neighbor in roster.neighbors if chosen[neighbor]]
    if near != senders or not chosen[client] or (chosen & ~roster.present).any():
        rule = "be of the neighbors among those who shared, all of whom are in the roster"
        _check.refuse_state("the envelopes", rule, "they are not", "end this round")
    return chosen


def check_survivors(
    plan: SecureAggregation,
    roster: ActiveRoster,
    sharers: NDArray[np.bool_],
    chosen: NDArray[np.bool_],
    signatures: bytes | memoryview,
) -> None:
    """Refuse a list of survivors that would let the server take the sum apart."""
    if (chosen & ~sharers).any() or len(signatures) != SIGNATURE * int(chosen.sum()):
        rule = "be among those who shared, with one signature of each"
        _check.refuse_state("the survivors", rule, "they are not", "end this round")
    if (surviving_neighbors(roster.order, plan.neighbors, chosen)[chosen] < plan.shares).any():
        rule = f"have {plan.shares} surviving neighbors each"
        _check.refuse_state("the survivors", rule, "one has fewer", "end this round")


def read_evidence(
    plan: SecureAggregation, client: int, survivors: NDArray[np.bool_], body: bytes
) -> dict[int, bytes]:
    """Return the signatures of a list of survivors by signer; they are not verified here."""
    size = -(-plan.clients // 8)
    signers = members(body[:size], plan.clients)
    numbers = np.flatnonzero(signers).tolist()
    if len(body) != size + SIGNATURE * len(numbers) or (signers & ~survivors).any():
        rule = "have one signature of each signer, all of them survivors"
        _check.refuse_state("the evidence", rule, "it has not", "end this round")
    if len(numbers) - bool(signers[client]) < plan.quorum - 1:
        rule = f"be signed by {plan.quorum - 1} others"
        _check.refuse_state("the survivors", rule, "fewer signed", "end this round")
    return {signer: body[size + SIGNATURE * at :][:SIGNATURE] for at, signer in enumerate(numbers)}
