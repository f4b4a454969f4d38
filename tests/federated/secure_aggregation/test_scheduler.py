"""Any client or the server may end at any message; nothing is revealed twice, and the next round is right."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.federated import SecureAggregation, SecureAggregationClient, SecureAggregationServer

CLIENTS = 6
STEPS = ("keys", "shares", "vector", "unmask")


class Scheduler:
    """Delivers messages one at a time in any order; who is dead at a message sends nothing more."""

    def __init__(self, seed: int, client_ends: list[int], server_ends: int, number: int) -> None:
        self.plan = SecureAggregation(
            clients=CLIENTS, length=2, bounds=(0, 50), bits=9, minimum_survivors=3, round_number=number
        )
        self.random = random.Random(seed)
        self.ends, self.server_ends = client_ends, server_ends
        self.delivered = 0
        self.server = SecureAggregationServer(self.plan)
        self.clients = {n: SecureAggregationClient(self.plan, n) for n in range(CLIENTS)}
        self.answers: Counter[int] = Counter()
        self.old: list[tuple[SecureAggregationClient, str, bytes]] = []

    def alive(self, step: str) -> list[int]:
        """Who still sends in a step, in any order."""
        found = [n for n in self.clients if self.ends[n] > STEPS.index(step)]
        self.random.shuffle(found)
        return found

    def send(self, message: bytes) -> None:
        """The server ends, and another is started in its place, before the message of the number given."""
        if self.delivered == self.server_ends:
            self.server = SecureAggregationServer(self.plan)
        self.delivered += 1
        self.server.receive(message)

    def run(self, vectors: NDArray[np.int64]) -> tuple[tuple[int, ...], NDArray[np.int64]]:
        for n in self.alive("keys"):
            self.send(self.clients[n].advertise())
        rosters = self.server.rosters()
        for n in self.alive("shares"):
            if n in rosters:
                self.old.append((self.clients[n], "share", rosters[n]))
                self.send(self.clients[n].share(rosters[n]))
        deliveries = self.server.deliveries()
        for n in self.alive("vector"):
            if n in deliveries:
                self.old.append((self.clients[n], "mask", deliveries[n]))
                self.send(self.clients[n].mask(deliveries[n], vectors[n]))
        request = self.server.survivors()
        for n in self.alive("unmask"):
            self.old.append((self.clients[n], "unmask", request))
            answer = self.clients[n].unmask(request)
            self.answers[n] += 1
            self.send(answer)
        found = self.server.aggregate()
        return found.survivors, found.total


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 12), min_size=CLIENTS, max_size=CLIENTS),
    st.one_of(st.just(99), st.integers(0, 4 * CLIENTS)),
)
def test_anyone_may_end_anywhere(seed: int, ends: list[int], server_ends: int) -> None:
    vectors = np.random.default_rng(seed).integers(0, 51, (CLIENTS, 2))
    first = Scheduler(seed, ends, server_ends, number=0)
    alive = {n for n in range(CLIENTS) if ends[n] > 2}
    try:
        survivors, total = first.run(vectors)
    except ParameterError:
        # The round is over: too few were left, or the server lost what it had and starts a round of its own.
        answering = {n for n in range(CLIENTS) if ends[n] > 3}
        assert len(alive) < 4 or len(answering) < 4 or first.server_ends < 99
    else:
        assert set(survivors) == alive
        assert np.array_equal(total, vectors[sorted(alive)].sum(axis=0))
    # A server that comes back with old messages, or with a new state, gets nothing of the old clients again.
    for client, step, message in first.old:
        call = partial(client.mask, vector=[0, 0]) if step == "mask" else getattr(client, step)
        with pytest.raises(ParameterError):
            call(message)
    for client in first.clients.values():
        if ends[client.client] > 0:
            with pytest.raises(ParameterError, match=r"called once|come once"):
                client.advertise()
    assert all(count == 1 for count in first.answers.values())
    again = Scheduler(seed + 1, [9] * CLIENTS, 99, number=1)
    survivors, total = again.run(vectors)
    assert survivors == tuple(range(CLIENTS))
    assert np.array_equal(total, vectors.sum(axis=0))


PAIRS = ((0, 1), (0, 2), (1, 2))


def sent(values: tuple[int, ...], own: tuple[int, ...], pairs: tuple[int, ...]) -> tuple[int, ...]:
    """Masked bits of three clients, modulo 2, where signs do not matter."""
    at = dict(zip(PAIRS, pairs, strict=True))
    return tuple(
        (values[c] + own[c] + sum(mask for pair, mask in at.items() if c in pair)) % 2 for c in range(3)
    )


def two_rounds(
    first: tuple[int, ...], second: tuple[int, ...], dropped: int | None, *, fresh: bool
) -> Counter[tuple[object, ...]]:
    """The law of all that the server has of two rounds: vectors, self-masks, pairs of who dropped out."""
    seen: Counter[tuple[object, ...]] = Counter()
    bits = (0, 1)
    for one in itertools.product(bits, repeat=6):
        for two in itertools.product(bits, repeat=6) if fresh else [one]:
            left = sent(first, one[:3], one[3:])
            right = sent(second, two[:3], two[3:])
            shown = [*left, *one[:3]]
            kept = [c for c in range(3) if c != dropped]
            shown += [right[c] for c in kept] + [two[c] for c in kept]
            shown += [mask for pair, mask in zip(PAIRS, two[3:], strict=True) if dropped in pair]
            seen[tuple(shown)] += 1
    return seen


@pytest.mark.parametrize("dropped", [1, None])
def test_the_view_of_two_rounds_depends_on_the_two_sums_alone(dropped: int | None) -> None:
    base = two_rounds((1, 0, 0), (1, 1, 0), dropped, fresh=True)
    other = (0, 1, 1) if dropped is None else (0, 0, 1)
    assert two_rounds((0, 1, 0), other, dropped, fresh=True) == base
    assert two_rounds((0, 1, 1), other, dropped, fresh=True) != base
    # Keys that were used in both rounds show by how much each client's value has changed.
    reused = two_rounds((1, 0, 0), (1, 1, 0), dropped, fresh=False)
    assert two_rounds((0, 1, 0), other, dropped, fresh=False) != reused


def test_clients_that_the_server_invents_are_colluders() -> None:
    """Two of three are the server's: the sum less what it put in is the third one's vector, and it is allowed
    to be: without a register, `minimum_survivors` counts whoever the server says is there."""
    plan = SecureAggregation(clients=3, length=1, bounds=(0, 99), bits=9, minimum_survivors=3)
    server = SecureAggregationServer(plan)
    clients = [SecureAggregationClient(plan, n) for n in range(3)]
    for client in clients:
        server.receive(client.advertise())
    rosters = server.rosters()
    for n, client in enumerate(clients):
        server.receive(client.share(rosters[n]))
    deliveries = server.deliveries()
    for n, client in enumerate(clients):
        server.receive(client.mask(deliveries[n], [[42], [0], [0]][n]))
    request = server.survivors()
    for client in clients:
        server.receive(client.unmask(request))
    assert server.aggregate().total.tolist() == [42]
