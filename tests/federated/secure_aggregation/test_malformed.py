"""Mutated, oversized and hostile messages: each is refused with a reason, and memory stays bounded."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.errors import ParameterError
from sfumato.federated import SecureAggregation, SecureAggregationClient, SecureAggregationServer
from sfumato.federated.secure_aggregation.masking import SMALL_ORDER
from sfumato.federated.secure_aggregation.messages import KINDS

CLIENTS = 5
PLAN = SecureAggregation(
    clients=CLIENTS, length=3, bounds=(0, 9), bits=6, minimum_survivors=4, degree=4, active=True
)
Taker = Callable[[bytes], object]


def every_message() -> list[tuple[str, bytes, Taker]]:
    """Each kind of message with who takes it, in a round that has come to the point where it is taken."""
    found: list[tuple[str, bytes, Taker]] = []
    for last in KINDS:
        keys = [Ed25519PrivateKey.generate() for _ in range(CLIENTS)]
        register = {n: key.public_key().public_bytes_raw() for n, key in enumerate(keys)}
        server = SecureAggregationServer(PLAN, identities=register)
        clients = [
            SecureAggregationClient(PLAN, n, identity=key, identities=register) for n, key in enumerate(keys)
        ]
        found.append((last, *up_to(last, server, clients)))
    return found


def up_to(
    last: str, server: SecureAggregationServer, clients: list[SecureAggregationClient]
) -> tuple[bytes, Taker]:
    first = clients[0]
    sent = [client.advertise() for client in clients]
    for kind, step in (
        ("roster", "shares"),
        ("delivery", "vector"),
        ("survivors", "consent"),
        ("evidence", "unmask"),
    ):
        if last == server.phase:
            return sent[0], server.receive
        for message in sent:
            server.receive(message)
        steps: dict[str, Callable[[], dict[int, bytes]]] = {
            "roster": server.rosters,
            "delivery": server.deliveries,
            "survivors": lambda: dict.fromkeys(range(CLIENTS), server.survivors()),
            "evidence": lambda: dict.fromkeys(range(CLIENTS), server.evidence()),
        }
        given = steps[kind]()
        calls: dict[str, Callable[[SecureAggregationClient, bytes], bytes]] = {
            "shares": lambda client, data: client.share(data),
            "vector": lambda client, data: client.mask(data, [1, 2, 3]),
            "consent": lambda client, data: client.consent(data),
            "unmask": lambda client, data: client.unmask(data),
        }
        if last == kind:
            return given[0], partial(calls[step], first)
        sent = [calls[step](client, given[client.client]) for client in clients]
    return sent[0], server.receive


UNSIGNED = {"shares", "vector", "unmask"}
"""What a client says for itself: its body is its own, and only its size is checked on arrival. Of a list of
survivors a client does not read its own signature."""


def mutated(rng: random.Random, message: bytes, kind: str) -> bytes:
    """A change that no receiver may take: of header or size anywhere, of a bit where all is signed."""
    header = 4 + int.from_bytes(message[:4], "big")
    number = len(b'....{"client":0')  # whose it is, where nothing is signed, is for the transport to say
    data = bytearray(message)
    how = rng.randrange(4)
    if how == 0 and kind in {*UNSIGNED, "survivors"}:
        data[rng.randrange(number, header)] ^= 1 << rng.randrange(8)
    elif how == 0:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == 1:
        at = rng.randrange(len(data))
        del data[at : at + rng.randrange(1, 40)]
    elif how == 2:
        at = rng.randrange(len(data) + 1)
        data[at:at] = rng.randbytes(rng.randrange(1, 40))
    else:
        at = rng.randrange(number, header - 3)
        data[at : at + 4] = rng.randbytes(4)
    return bytes(data)


@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_mutated_messages_of_all_kinds_are_refused(count: int) -> None:
    rng = random.Random(7)
    messages = every_message()
    tried = 0
    while tried < count:
        kind, message, take = messages[tried % len(messages)]
        data = mutated(rng, message, kind)
        if data == message:
            continue
        tried += 1
        with pytest.raises(ParameterError, match=r"must"):
            take(data)
    for _, message, take in messages:  # what was refused has changed nothing
        take(message)
        with pytest.raises(ParameterError):
            take(message)  # once only


def test_messages_of_other_kinds_clients_and_rounds_are_refused() -> None:
    messages, others = every_message(), every_message()
    for kind, _, take in messages:
        for other, message, _ in messages:
            if other != kind:
                with pytest.raises(ParameterError):
                    take(message)
    # The same plan, and so the same digest, but other keys: a replay of a message signed or sealed in it.
    for (kind, _, take), (_, message, _) in zip(messages, others, strict=True):
        if kind not in UNSIGNED:
            with pytest.raises(ParameterError):
                take(message)
    for _, message, take in messages:
        take(message)


def test_points_of_small_order_are_refused() -> None:
    plan = SecureAggregation(clients=3, length=1, bounds=(0, 1), bits=2, minimum_survivors=2)
    server, client = SecureAggregationServer(plan), SecureAggregationClient(plan, 0)
    message = client.advertise()
    for point in SMALL_ORDER:
        for forged in (message[:-64] + point + message[-32:], message[:-32] + point):
            with pytest.raises(ParameterError, match="be two usable points"):
                server.receive(forged)
    server.receive(message)


def test_oversized_messages_take_no_memory() -> None:
    """Of 20 MB, with a right header: refused by their size, before anything is copied."""
    messages = every_message()
    for _, message, take in messages:
        header = 4 + int.from_bytes(message[:4], "big")
        huge = message[:header] + bytes(20_000_000)
        tracemalloc.start()
        with pytest.raises(ParameterError, match="have the size that the round says"):
            take(huge)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000
