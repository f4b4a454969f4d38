"""What the server sees of three clients, exactly: over all values of masks, with keystreams as an oracle."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from sfumato.crypto.mask_stream import Words
from sfumato.errors import ParameterError
from sfumato.federated.secure_aggregation.masking import (
    SMALL_ORDER,
    channel_key,
    mask_vector,
    pair_seed,
    unmask_pair,
)

MODULUS = 4
PAIRS = ((0, 1), (0, 2), (1, 2))


class Oracle:
    """A keystream that maps a seed to the number that was drawn for it; modulo 4, one entry."""

    def __init__(self, masks: dict[bytes, int]) -> None:
        self.masks = masks

    def add(self, total: Words, seed: bytes) -> None:
        total += np.uint32(self.masks[seed])

    def subtract(self, total: Words, seed: bytes) -> None:
        total -= np.uint32(self.masks[seed])

    def reduce(self, total: Words) -> Words:
        total %= np.uint32(MODULUS)
        return total


def pair_name(one: int, other: int) -> bytes:
    return b"pair %d %d" % (min(one, other), max(one, other))


SEEDS = [*(b"own %d" % client for client in range(3)), *(pair_name(*pair) for pair in PAIRS)]


def oracles() -> Iterator[Oracle]:
    for drawn in itertools.product(range(MODULUS), repeat=len(SEEDS)):
        yield Oracle(dict(zip(SEEDS, drawn, strict=True)))


def masked(oracle: Oracle, values: Iterable[int]) -> list[int]:
    """What each client sends."""
    sent = []
    for client, value in enumerate(values):
        pairs = [(other, pair_name(client, other)) for other in range(3) if other != client]
        total = np.array([value], np.uint32)
        mask_vector(oracle, total, client, b"own %d" % client, pairs)  # type: ignore[arg-type]
        sent.append(int(total[0]))
    return sent


def view(values: tuple[int, ...], dropped: set[int], revealed: set[bytes]) -> Counter[tuple[int, ...]]:
    """The law of all that the server has: vectors that arrived and the masks that were revealed to it."""
    seen: Counter[tuple[int, ...]] = Counter()
    for oracle in oracles():
        vectors = [sent for client, sent in enumerate(masked(oracle, values)) if client not in dropped]
        seen[*vectors, *(oracle.masks[seed] for seed in sorted(revealed))] += 1
    return seen


def revealed(dropped: set[int]) -> set[bytes]:
    """Self-masks of survivors, and the pairs of who dropped out: what the rule of either one allows."""
    own = {b"own %d" % client for client in range(3) if client not in dropped}
    return own | {pair_name(*pair) for pair in PAIRS if dropped & set(pair)}


@pytest.mark.parametrize("dropped", [set(), {0}, {1}, {2}])
def test_the_view_depends_on_the_sum_of_the_survivors_alone(dropped: set[int]) -> None:
    first = view((1, 2, 3), dropped, revealed(dropped))
    same = [(3, 0, 3), (0, 3, 3)] if not dropped else []
    for other in same:
        assert view(other, dropped, revealed(dropped)) == first
    if dropped:
        (gone,) = dropped
        left, right = sorted({0, 1, 2} - dropped)
        moved = [1, 2, 3]
        moved[gone], moved[left], moved[right] = 0, (moved[left] + 3) % 4, (moved[right] + 1) % 4
        assert view(tuple(moved), dropped, revealed(dropped)) == first
        moved[left] = (moved[left] + 1) % 4
        assert view(tuple(moved), dropped, revealed(dropped)) != first
    else:
        assert view((1, 2, 2), dropped, revealed(dropped)) != first


@pytest.mark.parametrize("more", [{pair_name(0, 1), pair_name(0, 2)}], ids=["both secrets of one client"])
def test_both_secrets_of_a_client_give_its_vector_away(more: set[bytes]) -> None:
    """What the clients' rule prevents: with self-mask and key of client 0 equal sums are told apart."""
    assert view((1, 2, 3), set(), revealed(set())) == view((3, 0, 3), set(), revealed(set()))
    assert view((1, 2, 3), set(), revealed(set()) | more) != view((3, 0, 3), set(), revealed(set()) | more)


@pytest.mark.parametrize("dropped", [set(), {1}])
def test_a_late_vector_says_nothing_and_two_lists_say_all(dropped: set[int]) -> None:
    """A vector that comes after its client was called dropped stays masked by its self-mask."""
    late = view((1, 2, 3), set(), revealed({0}))
    assert late == view((0, 2, 3), set(), revealed({0}))
    lists = revealed({0}) | revealed(dropped)
    assert view((1, 2, 3), set(), lists) != view((0, 3, 3), set(), lists)


def test_pairs_cancel_and_are_taken_out() -> None:
    for number, oracle in enumerate(oracles()):
        if number % 37:
            continue
        sent = masked(oracle, (1, 2, 3))
        total = np.array([sent[0] + sent[2]], np.uint32)
        for survivor in (0, 2):
            oracle.subtract(total, b"own %d" % survivor)
            unmask_pair(oracle, total, survivor, 1, pair_name(survivor, 1))  # type: ignore[arg-type]
        assert oracle.reduce(total).tolist() == [(1 + 3) % MODULUS]


def test_seeds_agree_and_are_separate() -> None:
    one, other, third = (X25519PrivateKey.generate() for _ in range(3))
    left, right = one.public_key(), other.public_key()
    seed = pair_seed(one, right, b"d" * 32, 3, 8)
    assert seed == pair_seed(other, left, b"d" * 32, 8, 3)
    channel = channel_key(one, right, b"d" * 32, 3, 8)
    assert channel == channel_key(other, left, b"d" * 32, 3, 8)
    different = [
        pair_seed(one, right, b"e" * 32, 3, 8),
        pair_seed(one, right, b"d" * 32, 3, 9),
        pair_seed(third, right, b"d" * 32, 3, 8),
        channel_key(one, right, b"d" * 32, 8, 3),
        channel_key(one, right, b"e" * 32, 3, 8),
    ]
    assert len({seed, channel, *different}) == 7


def test_points_of_small_order_are_refused() -> None:
    key = X25519PrivateKey.generate()
    assert len(SMALL_ORDER) == 14
    for point in SMALL_ORDER:
        with pytest.raises(ParameterError, match=r"^a neighbor's key must be a usable point"):
            pair_seed(key, X25519PublicKey.from_public_bytes(point), bytes(32), 0, 1)
