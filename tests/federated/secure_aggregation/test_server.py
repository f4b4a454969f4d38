"""What the server refuses, and that mutated bytes are refused with a reason or change nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import SecureAggregation, SecureAggregationClient, SecureAggregationServer
from sfumato.federated.secure_aggregation.messages import SHARE

PLAN = SecureAggregation(clients=5, length=4, bounds=(0, 9), bits=6, minimum_survivors=4)
VECTORS = np.arange(20).reshape(5, 4) % 10


def body_changed(message: bytes, change: Callable[[bytes], bytes]) -> bytes:
    start = 4 + int.from_bytes(message[:4], "big")
    return message[:start] + change(message[start:])


def refused(server: SecureAggregationServer, message: bytes, text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        server.receive(message)
    assert text in str(caught.value)


def test_a_round_of_refusals_ends_with_the_right_sum() -> None:
    server, clients = SecureAggregationServer(PLAN), [SecureAggregationClient(PLAN, n) for n in range(5)]
    foreign = SecureAggregation(clients=9, length=4, bounds=(0, 3), bits=6, minimum_survivors=4)
    stranger = SecureAggregationClient(foreign, 7).advertise()
    refused(server, stranger, "be of this round")
    refused(
        server, stranger.replace(foreign.digest.hex().encode(), PLAN.digest.hex().encode()), "a client of"
    )
    keys = [client.advertise() for client in clients]
    refused(server, body_changed(keys[0], lambda b: bytes(32) + b[32:]), "be two usable points")
    refused(server, body_changed(keys[0], lambda b: b[:32] * 2), "be two usable points")
    for message in keys:
        server.receive(message)
        refused(server, message, "come once")
    with pytest.raises(ParameterError, match=r"^the round must be in the phase of shares, got 'keys'"):
        server.deliveries()
    rosters = server.rosters()
    refused(server, keys[0], "be of the kind shares")
    shares = [client.share(rosters[client.client]) for client in clients]
    refused(server, body_changed(shares[0], lambda b: b[:-96]), "one envelope for each neighbor")
    for message in shares:
        server.receive(message)
    refused(server, shares[3], "come once")
    deliveries = server.deliveries()
    vectors = [client.mask(deliveries[n], VECTORS[n]) for n, client in enumerate(clients)]
    refused(server, body_changed(vectors[0], lambda b: b + b), "have the size that the round says")
    for message in vectors[:4]:
        server.receive(message)
        refused(server, message, "come once")
    request = server.survivors()
    refused(server, vectors[4], "be of the kind unmask")
    answers = [client.unmask(request) for client in clients[:4]]
    refused(server, body_changed(answers[0], lambda b: b[:-SHARE]), "one share of each neighbor")
    refused(server, body_changed(answers[0], lambda b: b"\xff" * len(b)), "elements of the field")
    refused(server, answers[0].replace(b'"client":0', b'"client":4'), "come once, from a client")
    for message in answers:
        server.receive(message)
        refused(server, message, "come once")
    found = server.aggregate()
    assert found.survivors == (0, 1, 2, 3)
    assert np.array_equal(found.total, VECTORS[:4].sum(axis=0))
    refused(server, answers[0], "the round is over")


def four_of_five() -> tuple[SecureAggregationServer, list[bytes]]:
    """A round in which client 4 drops out before its vector, and the four answers."""
    server, clients = SecureAggregationServer(PLAN), [SecureAggregationClient(PLAN, n) for n in range(5)]
    for client in clients:
        server.receive(client.advertise())
    rosters = server.rosters()
    for client in clients:
        server.receive(client.share(rosters[client.client]))
    deliveries = server.deliveries()
    for number in range(4):
        server.receive(clients[number].mask(deliveries[number], VECTORS[number]))
    request = server.survivors()
    return server, [clients[number].unmask(request) for number in range(4)]


def without_seeds(answer: bytes) -> bytes:
    return body_changed(answer, lambda b: b[: 4 * SHARE])


@pytest.mark.parametrize("owner", [0, 4])
def test_a_wrong_share_is_found(owner: int) -> None:
    """Of a survivor's self-mask or of a dropped client's key: the commitment or the public key disagrees."""
    server, answers = four_of_five()
    # In the answer of client 1, whose neighbors are 0, 2, 3 and 4; X25519 ignores the lowest bits of a key.
    at = SHARE * (owner if owner < 1 else owner - 1) + 3
    answers[1] = body_changed(answers[1], lambda b: b[:at] + bytes([b[at] ^ 1]) + b[at + 1 :])
    # Client 3 gives no seed, so that the key of client 4 is needed.
    answers[3] = without_seeds(answers[3])
    for answer in answers:
        server.receive(answer)
    with pytest.raises(ParameterError, match=r"^the shares must give back the secret that was committed to"):
        server.aggregate()


@pytest.mark.parametrize("silent", [{3}, {0, 1, 2, 3}, {0, 2}, set()], ids=str)
def test_seeds_and_keys_give_the_same_sum(silent: set[int]) -> None:
    """Whoever gives the seeds of lost pairs, and whoever leaves them to the key that is shared."""
    server, answers = four_of_five()
    for number, answer in enumerate(answers):
        refused(server, body_changed(answer, lambda b: b[:-8]), "a seed of each that dropped out")
        refused(server, body_changed(answer, lambda b: b + bytes(32)), "a seed of each that dropped out")
        server.receive(without_seeds(answer) if number in silent else answer)
    assert np.array_equal(server.aggregate().total, VECTORS[:4].sum(axis=0))


def test_a_round_below_the_minimum_is_aborted_before_anything_is_unmasked() -> None:
    server, clients = SecureAggregationServer(PLAN), [SecureAggregationClient(PLAN, n) for n in range(5)]
    for client in clients:
        server.receive(client.advertise())
    rosters = server.rosters()
    for client in clients:
        server.receive(client.share(rosters[client.client]))
    deliveries = server.deliveries()
    for number in range(3):
        server.receive(clients[number].mask(deliveries[number], VECTORS[number]))
    with pytest.raises(ParameterError, match=r"^the round must have at least 4 clients in each phase"):
        server.survivors()
    refused(server, b"", "the round is over")
    with pytest.raises(ParameterError, match=r"^the round must be in the phase of unmask"):
        server.aggregate()


def test_mutated_messages_are_refused_or_harmless() -> None:
    """2,000 changes of a roster's header or length: each is refused, the right one is still answered."""
    rng = random.Random(4)
    server, clients = SecureAggregationServer(PLAN), [SecureAggregationClient(PLAN, n) for n in range(5)]
    for client in clients:
        server.receive(client.advertise())
    roster = server.rosters()[0]
    refusals, header = 0, 4 + int.from_bytes(roster[:4], "big")
    for _ in range(2000):
        data = bytearray(roster)
        kind = rng.randrange(3)
        at = rng.randrange(header if rng.random() < 0.9 else len(data))
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + rng.randrange(1, 40)]
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 40))
        if at < header or kind:
            with pytest.raises(ParameterError):
                clients[0].share(bytes(data))
            refusals += 1
    assert refusals > 1700
    assert clients[0].share(roster)
