"""The active mode on a sparse graph: what the proof needs, by enumeration, and servers that deviate."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy.stats import hypergeom

from sfumato.errors import ParameterError
from sfumato.federated import (
    SecureAggregation,
    SecureAggregationClient,
    SecureAggregationServer,
    plan_neighbors,
)
from sfumato.federated.secure_aggregation.active_roster import transcript
from sfumato.federated.secure_aggregation.graph import (
    NeighborGraph,
    circle_neighbors,
    drawn_order,
    surviving_neighbors,
)
from sfumato.federated.secure_aggregation.messages import ENVELOPE, SERVER, Message, bitmap

CLIENTS, DEGREE, THRESHOLD = 12, 6, 5
PLAN = SecureAggregation(
    clients=CLIENTS,
    length=2,
    bounds=(0, 9),
    bits=7,
    minimum_survivors=8,
    degree=DEGREE,
    threshold=THRESHOLD,
    active=True,
)


class Round:
    """A round up to the masked vectors, of which the server may change each message."""

    def __init__(self) -> None:
        keys = [Ed25519PrivateKey.generate() for _ in range(CLIENTS)]
        register = {n: key.public_key().public_bytes_raw() for n, key in enumerate(keys)}
        self.server = SecureAggregationServer(PLAN, identities=register)
        self.clients = [
            SecureAggregationClient(PLAN, n, identity=key, identities=register) for n, key in enumerate(keys)
        ]
        for client in self.clients:
            self.server.receive(client.advertise())
        rosters = self.server.rosters()
        for client in self.clients:
            self.server.receive(client.share(rosters[client.client]))
        self.near = self.server._graph.neighbors
        self.deliveries = self.server.deliveries()

    def mask(self, number: int, change: Callable[[bytes], bytes] = bytes) -> bytes:
        message = self.deliveries[number]
        start = 4 + int.from_bytes(message[:4], "big")
        return self.clients[number].mask(message[:start] + change(message[start:]), [number % 10, 1])


def refused(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert text in str(caught.value)


def survivors(chosen: set[int], signatures: dict[int, bytes]) -> bytes:
    body = bitmap(np.isin(np.arange(CLIENTS), list(chosen)))
    signed = b"".join(signatures[client] for client in sorted(chosen))
    return Message("survivors", SERVER, PLAN.digest, body + signed).to_bytes()


def test_every_client_computes_the_graph_that_the_server_has() -> None:
    order = drawn_order(b"seed", 40)
    assert sorted(order.tolist()) == list(range(40))
    assert order[:6].tolist() == [28, 20, 38, 33, 17, 21]
    for degree in (6, 39):
        graph = NeighborGraph(40, degree, order)
        chosen = np.arange(40) % 3 != 1
        for client in range(40):
            near = circle_neighbors(order, degree, client)
            assert np.array_equal(near, graph.neighbors[client])
            assert surviving_neighbors(order, degree, chosen)[client] == chosen[near].sum()
    keys = {1: b"a" * 64, 0: b"b" * 64}
    listed = bytes(4) + b"b" * 64 + bytes([0, 0, 0, 1]) + b"a" * 64
    assert transcript(keys) == hashlib.sha256(listed).digest()  # both ends must have the same bytes
    assert transcript(keys) == transcript(dict(sorted(keys.items()))) != transcript({0: b"b" * 64})


def connected(honest: list[int], clients: int, degree: int) -> bool:
    """Whether places on a circle are joined by steps of at most half the degree between one another."""
    found, edge = {honest[0]}, [honest[0]]
    while edge:
        at = edge.pop()
        near = {(at + step) % clients for step in range(-(degree // 2), degree // 2 + 1)}
        fresh = (near & set(honest)) - found
        found |= fresh
        edge += fresh
    return len(found) == len(honest)


def falls_apart(clients: int, degree: int, threshold: int, checked: int) -> int:
    """How many ways of being honest, dropped or corrupt disconnect the honest survivors, of those allowed."""
    half, apart, whole = degree // 2, 0, 0
    for state in itertools.product("hdc", repeat=clients):
        corrupt = [at for at, what in enumerate(state) if what == "c"]
        rows = (sum((at + step) % clients in corrupt for step in range(half)) for at in range(clients))
        honest = [at for at, what in enumerate(state) if what == "h"]
        if not honest or max(rows) >= threshold - half:
            continue
        alive = np.array([what != "d" for what in state])
        if (surviving_neighbors(np.arange(clients), degree, alive)[alive] < checked).any():
            continue
        whole += 1
        apart += not connected(honest, clients, degree)
    assert whole
    return apart


@pytest.mark.parametrize(("clients", "degree", "threshold"), [(10, 4, 4), (8, 4, 3), (9, 6, 5), (10, 6, 5)])
def test_honest_survivors_are_connected_whoever_is_dropped(clients: int, degree: int, threshold: int) -> None:
    """Over every choice of the dropped and the corrupt; with a check that is one lower, some fall apart."""
    assert falls_apart(clients, degree, threshold, threshold) == 0
    if (clients, degree) == (10, 4):
        assert falls_apart(clients, degree, threshold, threshold - 1) > 0


def test_the_plan_is_the_smallest_that_holds() -> None:
    plan = plan_neighbors(1000, dropout=0.05, corruption=0.05, active=True)
    assert (plan.degree, plan.threshold) == (108, 87)
    half = plan.degree // 2
    expected = 2.0**60 * 1000 * hypergeom.sf(plan.threshold - half - 1, 1000, 50, half)
    assert plan.security_failure == pytest.approx(expected, rel=1e-9, abs=0)
    assert plan.security_failure <= 2**-40
    expected = 1000 * hypergeom.sf(plan.degree - plan.threshold, 999, 50, plan.degree)
    assert plan.correctness_failure == pytest.approx(expected, rel=1e-9, abs=0)
    smaller, half = plan.degree - 2, plan.degree // 2 - 1
    for threshold in range(2 * smaller // 3 + 1, smaller + 1):
        security = 2.0**60 * 1000 * hypergeom.sf(threshold - half - 1, 1000, 50, half)
        correctness = 1000 * hypergeom.sf(smaller - threshold, 999, 50, smaller)
        assert security > 2**-40 or correctness > 2**-20
    few = plan_neighbors(9, dropout=0.1, corruption=0.2, active=True)
    assert (few.degree, few.threshold, few.security_failure) == (8, 6, 0)
    # Five of nine corrupt: a threshold of 6 would leave two lists with 5 signers in common, all corrupt.
    assert plan_neighbors(9, dropout=0.0, corruption=0.5, active=True).threshold == 7
    with pytest.raises(ParameterError, match=r"^dropout and corruption must leave a threshold"):
        plan_neighbors(9, dropout=0.1, corruption=0.7, active=True)


def test_a_list_that_isolates_a_client_is_refused() -> None:
    """The server drops a client's neighbors, so that its vector would stand alone."""
    run = Round()
    vectors = [run.mask(number) for number in range(CLIENTS)]
    signatures = {number: vector[-64:] for number, vector in enumerate(vectors)}
    alone = 0
    gone = set(run.near[alone][:2].tolist())
    chosen = set(range(CLIENTS)) - gone
    watching = next(n for n in sorted(chosen) if len(gone & set(run.near[n].tolist())) < 2)
    refused(
        lambda: run.clients[watching].consent(survivors(chosen, signatures)),
        "have 5 surviving neighbors each",
    )
    assert run.clients[watching].consent(survivors(set(range(CLIENTS)), signatures))


def test_a_client_that_masked_against_fewer_is_no_survivor() -> None:
    """The server withholds one envelope from one client, which then lacks a mask that its neighbor has."""
    run = Round()
    victim = 3
    row = 4 + ENVELOPE
    left_out = run.near[victim][0]

    def change(body: bytes) -> bytes:
        mask = int.from_bytes(body[:2], "little") & ~(1 << int(left_out))
        return mask.to_bytes(2, "little") + body[2 + row :]

    refused(partial(run.mask, victim, lambda body: body[:2] + body[2 + row :]), "be of the neighbors among")
    vectors = {number: run.mask(number, change if number == victim else bytes) for number in range(CLIENTS)}
    signatures = {number: vector[-64:] for number, vector in vectors.items()}
    witness = int(run.near[victim][1])
    chosen = set(range(CLIENTS))
    refused(lambda: run.clients[witness].consent(survivors(chosen, signatures)), "be that of the client")
    refused(lambda: run.server.receive(vectors[victim]), "be that of the client in the register")
    for number in sorted(chosen - {victim}):
        run.server.receive(vectors[number])
    request = run.server.survivors()
    assert run.clients[witness].consent(request)


def test_two_lists_are_not_both_answered() -> None:
    """Half of the clients are shown one list, half another: neither has the signatures that are needed."""
    run = Round()
    vectors = [run.mask(number) for number in range(CLIENTS)]
    signatures = {number: vector[-64:] for number, vector in enumerate(vectors)}
    everyone = set(range(CLIENTS))
    lists = {n: everyone - {CLIENTS - 1} if n % 2 else everyone for n in range(CLIENTS - 1)}
    consents = {n: run.clients[n].consent(survivors(chosen, signatures)) for n, chosen in lists.items()}
    for n in lists:
        same = [m for m in lists if m % 2 == n % 2]
        body = bitmap(np.isin(np.arange(CLIENTS), same)) + b"".join(consents[m][-64:] for m in same)
        evidence = Message("evidence", SERVER, PLAN.digest, body).to_bytes()
        refused(partial(run.clients[n].unmask, evidence), "be signed by 7 others")
        both = bitmap(np.isin(np.arange(CLIENTS), list(lists)))
        joined = Message("evidence", SERVER, PLAN.digest, both + b"".join(c[-64:] for c in consents.values()))
        refused(partial(run.clients[n].unmask, joined.to_bytes()), "be that of the client in the register")


def test_the_sum_is_right_after_dropping_out_anywhere() -> None:
    run = Round()
    gone = {4}
    for number in sorted(set(range(CLIENTS)) - gone):
        run.server.receive(run.mask(number))
    request = run.server.survivors()
    for client in run.clients[5:] + run.clients[:4]:
        run.server.receive(client.consent(request))
    evidence = run.server.evidence()
    assert len(evidence) - 4 - int.from_bytes(evidence[:4], "big") == 2 + 64 * PLAN.quorum
    for client in run.clients[5:] + run.clients[:4]:
        run.server.receive(client.unmask(evidence))
    found = run.server.aggregate()
    assert found.survivors == tuple(sorted(set(range(CLIENTS)) - gone))
    assert found.total.tolist() == [sum(n % 10 for n in found.survivors), 11]
