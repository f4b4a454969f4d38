"""What a client refuses: messages that are malformed, repeated, early, of another round, or ask too much."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.errors import ParameterError
from sfumato.federated import SecureAggregation, SecureAggregationClient, SecureAggregationServer
from sfumato.federated.secure_aggregation.identities import agreed_list
from sfumato.federated.secure_aggregation.messages import ENVELOPE, SERVER, Message, bitmap

CLIENTS = 6


class Round:
    """A round up to the survivors, with every message of the server."""

    def __init__(self, *, active: bool = False, number: int = 0) -> None:
        self.plan = SecureAggregation(
            clients=CLIENTS,
            length=3,
            bounds=(0, 9),
            bits=6,
            minimum_survivors=5,
            active=active,
            round_number=number,
        )
        keys = [Ed25519PrivateKey.generate() if active else None for _ in range(CLIENTS)]
        self.keys = keys
        known = {n: key.public_key().public_bytes_raw() for n, key in enumerate(keys) if key}
        self.register = known if active else None
        self.server = SecureAggregationServer(self.plan, identities=self.register)
        self.clients = [
            SecureAggregationClient(self.plan, n, identity=key, identities=self.register)
            for n, key in enumerate(keys)
        ]
        for client in self.clients:
            self.server.receive(client.advertise())
        self.rosters = self.server.rosters()

    def shared(self) -> Round:
        for client in self.clients:
            self.server.receive(client.share(self.rosters[client.client]))
        self.deliveries = self.server.deliveries()
        return self

    def masked(self, missing: int = CLIENTS) -> Round:
        """All send their vectors, but the missing one, which stays able to."""
        for client in self.clients:
            if client.client != missing:
                self.server.receive(client.mask(self.deliveries[client.client], [1, 2, client.client]))
        self.request = self.server.survivors()
        return self

    def survivors(self, *chosen: int) -> bytes:
        """A list of survivors that the server did not make."""
        body = bitmap(np.isin(np.arange(CLIENTS), chosen))
        return Message("survivors", SERVER, self.plan.digest, body).to_bytes()

    def changed(self, message: bytes, change: Callable[[bytes], bytes]) -> bytes:
        """A message with another body."""
        start = 4 + int.from_bytes(message[:4], "big")
        return message[:start] + change(message[start:])


def refused(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert text in str(caught.value)


def test_messages_come_once_and_in_order() -> None:
    run = Round()
    first = run.clients[0]
    refused(first.advertise, "advertise must be called once")
    refused(lambda: first.mask(run.rosters[0], [1, 2, 3]), "come once, in the order of the round")
    refused(lambda: first.unmask(run.rosters[0]), "come once, in the order of the round")
    refused(lambda: first.share(run.rosters[1]), "be for this client")
    run.shared()
    refused(lambda: first.share(run.rosters[0]), "come once, in the order of the round")
    refused(lambda: first.unmask(run.survivors(*range(6))), "come once, in the order of the round")
    run.masked()
    refused(lambda: first.mask(run.deliveries[0], [1, 2, 3]), "come once, in the order of the round")
    refused(lambda: first.consent(run.request), "be asked in the active mode")
    assert first.unmask(run.request)
    refused(lambda: first.unmask(run.request), "come once, in the order of the round")
    refused(lambda: first.unmask(run.survivors(0, 1, 2, 3, 4)), "come once, in the order of the round")


def test_rosters_that_are_refused() -> None:
    run = Round()
    client, roster = run.clients[2], run.rosters[2]
    row = 4 + 64

    def swap(body: bytes) -> bytes:
        return body[row : 2 * row] + body[:row] + body[2 * row :]

    def twice(body: bytes) -> bytes:
        return body[:row] + body[row : row + 4] + body[4:row] + body[2 * row :]

    own = (2).to_bytes(4, "big")
    tries = (
        (lambda body: body[:-1], "have the size that the round says"),
        (lambda body: body + bytes(row), "have the size that the round says"),
        (lambda body: body[: 2 * row], "the number of neighbors must be at least 3"),
        (swap, "list other clients once, in ascending order"),
        (lambda body: body[:row] * 3, "list other clients once"),
        (lambda body: body[: 2 * row] + own + body[2 * row + 4 :], "list other clients once"),
        (lambda body: body[: 4 * row] + (9).to_bytes(4, "big") + body[4 * row + 4 :], "list other clients"),
        (twice, "have distinct keys"),
        (lambda body: body[:36] + bytes(32) + body[row:], "be a usable point"),
    )
    for change, text in tries:
        refused(partial(client.share, run.changed(roster, change)), text)
    assert client.share(roster)  # what was refused changed nothing


def test_headers_that_are_refused() -> None:
    run, other = Round(), Round(number=1)
    client, roster = run.clients[0], run.rosters[0]
    digest = run.plan.digest.hex().encode()
    tries: tuple[tuple[Any, str], ...] = (
        (b"", "have a header and a body"),
        (b"\x00\x00\x00\x05abc", "have a header and a body"),
        (b"\xff\xff\xff\xff" + roster[4:], "have a header and a body"),
        (roster.replace(b'"version":1', b'"version":2'), "have a version of"),
        (roster.replace(b"sfumato.secure", b"sfumato.insecu"), "be a document of the format"),
        (roster.replace(b'"kind":"roster"', b'"kind":"shares"'), "be of the kind roster"),
        (roster.replace(b'"client":0', b'"client":"'), "be well-formed JSON"),
        (roster.replace(b'"client":0', b'"klient":0'), "be a header with"),
        (other.rosters[0], "be of this round"),
        (roster.replace(b'"client":0', b'"client": ', 1), "well-formed JSON"),
        (roster.replace(digest, digest.upper()), "have the one text of its header"),
        ("roster", "be bytes"),
    )
    for data, text in tries:
        refused(partial(client.share, data), text)
    assert client.share(roster)


def test_deliveries_that_are_refused() -> None:
    run = Round().shared()
    client, delivery = run.clients[0], run.deliveries[0]
    row = 4 + ENVELOPE

    def exchange(body: bytes) -> bytes:
        """The first two envelopes under one another's names."""
        return body[:4] + body[row + 4 : 2 * row] + body[row : row + 4] + body[4:row] + body[2 * row :]

    tries = (
        (lambda body: body[:-1] + bytes([body[-1] ^ 1]), "be sealed with the sender's key"),
        (exchange, "be sealed with the sender's key"),
        (lambda body: body[: 2 * row], "the number of neighbors must be at least 3"),
        (lambda body: body[: 3 * row] + body[:row], "list other clients once"),
    )
    for change, text in tries:
        message = run.changed(delivery, change)
        refused(partial(client.mask, message, [1, 2, 3]), text)
    refused(lambda: client.mask(delivery, [1.5, 2, 3]), "be 3 integers")
    assert client.mask(delivery, [1, 2, 3])


def test_lists_of_survivors_that_are_refused() -> None:
    run = Round().shared().masked(missing=5)
    client = run.clients[0]
    refused(lambda: client.unmask(run.survivors(0, 1, 2, 3)), "be at least 5")
    refused(lambda: client.unmask(run.survivors(1, 2, 3, 4, 5)), "have this client")
    beyond = run.changed(run.request, lambda body: bytes([body[0] | 128]))
    refused(lambda: client.unmask(beyond), "have no bit beyond the last one")
    answer = client.unmask(run.request)
    # One share of 40 bytes for each of the five neighbors: a self-mask's or a key's, never both; and the seed
    # that was agreed on with the one that dropped out.
    assert len(answer) - 4 - int.from_bytes(answer[:4], "big") == 5 * 40 + 32


def test_a_neighbor_without_shares_is_no_survivor() -> None:
    """The server that calls a client a survivor which never sealed its shares gets no answer."""
    run = Round()
    for client in run.clients[:5]:
        run.server.receive(client.share(run.rosters[client.client]))
    deliveries = run.server.deliveries()
    run.clients[0].mask(deliveries[0], [1, 2, 3])
    refused(lambda: run.clients[0].unmask(run.survivors(*range(6))), "only neighbors whose shares it holds")
    assert run.clients[0].unmask(run.survivors(*range(5)))


def flipped(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def exchanged(body: bytes, one: int, other: int) -> bytes:
    """Two parts of 64 bytes in one another's places."""
    parts = {one: body[other : other + 64], other: body[one : one + 64]}
    for at, part in parts.items():
        body = body[:at] + part + body[at + 64 :]
    return body


def test_the_active_mode_verifies_every_signature() -> None:
    run = Round(active=True)
    client, roster = run.clients[0], run.rosters[0]
    signatures = 1 + 64 * CLIENTS
    tries = (
        (lambda body: flipped(body, signatures), "be that of the client in the register"),
        (lambda body: exchanged(body, 1 + 64, 1 + 128), "be that of the client in the register"),
        (lambda body: exchanged(body, 1, 1 + 64), "have this client's keys"),
        (lambda body: body[:-64], "have one signature of each neighbor"),
        (lambda body: bytes([0b011111]) + body[1:], "have one signature of each neighbor"),
        (lambda body: bytes([0b111110]) + body[1:], "have this client's keys"),
        (lambda body: bytes([255]) + body[1:], "have no bit beyond the last one"),
        (lambda body: body[:65] + body[1:65] + body[129:], "have distinct keys"),
    )
    for change, text in tries:
        refused(partial(client.share, run.changed(roster, change)), text)
    run.shared()
    for change in (
        lambda body: bytes([body[0] ^ 0b100000]) + body[1:],
        lambda body: bytes([body[0] ^ 1]) + body[1:],
        lambda body: body[:-100],
    ):
        message = run.changed(run.deliveries[0], change)
        refused(partial(client.mask, message, [1, 2, 3]), "be of the neighbors among those who shared")
    run.masked()
    refused(lambda: client.unmask(run.request), "come once, in the order of the round")
    refused(lambda: client.consent(run.survivors(0, 1, 2)), "be at least 5")
    for change, text in (
        (lambda body: flipped(body, 1 + 64), "be that of the client in the register"),
        (lambda body: body[:-64], "with one signature of each"),
        (lambda body: bytes([0b011111]) + body[1:], "with one signature of each"),
    ):
        refused(partial(client.consent, run.changed(run.request, change)), text)
    for each in run.clients:
        run.server.receive(each.consent(run.request))
    refused(lambda: client.consent(run.survivors(0, 1, 2, 3, 4)), "come once, in the order of the round")
    evidence = run.server.evidence()
    refused(
        lambda: client.unmask(run.changed(evidence, lambda b: bytes([0b1111]) + b[1 : 1 + 4 * 64])),
        "be signed by 4 others",
    )
    refused(
        lambda: client.unmask(run.changed(evidence, lambda b: b[:1] + b[1:65] * 5)),
        "be that of the client in the register",
    )
    refused(lambda: client.unmask(run.changed(evidence, lambda b: b[:-64])), "have one signature of each")
    sharers, other = bytes([0b111111]), bytes([0b011111])
    lists = agreed_list(run.plan, run.server._transcript, sharers, other)
    signed = b"".join(key.sign(lists) for key in run.keys[:5] if key)
    refused(
        lambda: client.unmask(run.changed(evidence, lambda b: b[:1] + signed)),
        "be that of the client in the register",
    )
    assert client.unmask(evidence)
    refused(lambda: client.unmask(evidence), "come once, in the order of the round")


def test_identities_belong_to_the_active_mode() -> None:
    run, plain = Round(active=True), Round()
    key = run.keys[0]
    refused(lambda: SecureAggregationClient(plain.plan, 6), "client must be below 6")
    refused(lambda: SecureAggregationClient(plain.plan, 0, identity=key), "None in the other")
    refused(lambda: SecureAggregationClient(run.plan, 0, identities=run.register), "identity must be")
    refused(lambda: SecureAggregationServer(run.plan), "identities must be a distinct")
    refused(lambda: SecureAggregationServer(plain.plan, identities=run.register), "identities must be")
    assert run.register is not None
    for register in ({**run.register, 1: run.register[0]}, {**run.register, 7: bytes(32)}, {0: bytes(32)}):
        call = partial(SecureAggregationClient, run.plan, 0, identity=key, identities=register)
        refused(call, "identities must be a distinct Ed25519 public key of every client")
