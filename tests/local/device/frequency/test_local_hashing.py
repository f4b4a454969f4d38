"""Local hashing: exact odds for every seed, a hash without likes, and that the law is drawn."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import BinaryLocalHashingRandomizer, Domain, OptimalLocalHashingRandomizer
from sfumato.local.device.frequency.local_hashing import hashed, keys_of
from sfumato.numerics import _kernels
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate
from tests.local.laws import below_exponential, worst_odds

KINDS: list[Any] = [OptimalLocalHashingRandomizer, BinaryLocalHashingRandomizer]


@cases("kind", KINDS)
@cases("epsilon", [0.05, 0.5, 1.0, 4.0])
def test_the_odds_of_all_reports_are_those_of_epsilon(kind: Any, epsilon: float) -> None:
    made = kind(epsilon=epsilon, domain=Domain(range(9)))
    for seed in (0, 1, 12345, 2**32 - 1):
        # A seed is drawn evenly, whatever is true.
        odds = worst_odds(partial(made.probabilities, seed=seed), range(9))
        assert below_exponential(odds, epsilon, 1 - 1e-9)


def test_buckets_are_those_of_the_paper() -> None:
    for epsilon, buckets in ((0.1, 2), (0.5, 3), (1.0, 4), (2.0, 8), (4.0, 56), (20.0, 1 << 16)):
        made = OptimalLocalHashingRandomizer(epsilon=epsilon, domain=Domain(range(9)))
        assert made.buckets == buckets
        assert BinaryLocalHashingRandomizer(epsilon=epsilon, domain=Domain(range(9))).buckets == 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_the_law(kind: Any) -> None:
    made, n = kind(epsilon=1.0, domain=Domain(range(50))), 40_001
    records = made.randomize_batch(np.full(n, 33), 4).records
    seeds, buckets = made.opened(records)
    assert made.well_formed(records).all()
    assert made.layout.genuine(records).all()
    assert len(np.unique(seeds)) > n - 10
    high = hashed(seeds, keys_of(np.array([33]))).astype(np.uint64)
    true = (high * np.uint64(made.buckets) >> np.uint64(32)).astype(int)
    away = np.bincount((buckets.astype(int) - true) % made.buckets, minlength=made.buckets)

    def law(device: Any) -> dict[int, float]:
        p, others = float(device.truth.chance), made.buckets - 1
        return {0: p, **dict.fromkeys(range(1, made.buckets), (1 - p) / others)}

    even = dict.fromkeys(range(made.buckets), 1 / made.buckets)
    sharper = law(kind(epsilon=1.1, domain=made.domain))
    accepts_only(frequencies(dict(enumerate(away.tolist()))), law(made), even=even, of_epsilon_11_10=sharper)
    # Seeds are even in every bit.
    for ones in (seeds[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)).sum(axis=0).tolist():
        accepts_only(rate(ones, n), 0.5, tilted=0.53)


def test_buckets_beyond_the_last_are_not_well_formed() -> None:
    made = OptimalLocalHashingRandomizer(epsilon=0.5, domain=Domain(range(9)))  # 3 buckets in 2 bits
    records = made.layout.pack(np.arange(4, dtype=np.uint64) << np.uint64(32))
    assert made.well_formed(records).tolist() == [True, True, True, False]


def test_keys_are_one_to_one_and_differ_in_their_low_bits() -> None:
    low = np.uint32((1 << 20) - 1)
    assert (np.bincount(keys_of(np.arange(1 << 20)) & low) == 1).all()
    for rest in (0, 777):
        alike = keys_of((np.arange(1 << 12) << 20) + rest)
        assert len(np.unique(alike & low)) == 1 << 12
    some = np.unique(np.random.default_rng(1).integers(0, 1 << 32, 1 << 17))
    assert len(np.unique(keys_of(some))) == len(some)


# Differences of places in high bits only, of one bit, and of neighbours: where such a mixer would fail first.
FAR = [*(1 << bit for bit in range(32)), 3 << 18, 3 << 30, (1 << 32) - 1, 77, 65_535, 123_457]


@pytest.mark.parametrize("buckets", [2, 4, 56])
@pytest.mark.parametrize("place", [0, 5])
def test_pairs_are_hashed_alike_as_often_as_by_chance(place: int, buckets: int) -> None:
    source, pieces, size = np.random.default_rng(buckets), 8, 1 << 21
    others = np.array([place ^ far for far in FAR])
    edges = -(-(np.arange(buckets + 1, dtype=np.int64) << 32) // buckets)
    alike = np.zeros(len(others), np.int64)
    for _ in range(pieces):
        seeds = source.integers(0, 2**32, size, dtype=np.uint32)
        own = hashed(seeds, keys_of(np.array([place]))).astype(np.uint64)
        bucket = (own * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)
        low, span = edges[:-1].astype(np.uint32)[bucket], np.diff(edges).astype(np.uint32)[bucket]
        _kernels.count_hashes(seeds, low, span, keys_of(others), alike)
    n, q = pieces * size, 1 / buckets
    for count in (alike.min(), alike.max()):
        accepts_only(rate(int(count), n), q, a_fiftieth_more=1.02 * q, a_fiftieth_less=0.98 * q)


@pytest.mark.parametrize("buckets", [2, 4, 56])
def test_triples_are_hashed_alike_as_often_as_by_chance(buckets: int) -> None:
    source = np.random.default_rng(buckets)
    n, q = 1 << 18, 1 / buckets**2
    seeds = source.integers(0, 2**32, n, dtype=np.uint32)
    for places in (
        [0, 1, 2],
        [5, 8, 11],
        [255, 256, 257],
        [0, 1 << 31, 1 << 30],
        source.integers(0, 1 << 16, 3),
    ):
        hashes = hashed(seeds[None, :], keys_of(np.array(places))[:, None]).astype(np.uint64)
        one, two, three = hashes * np.uint64(buckets) >> np.uint64(32)
        both = int(((one == two) & (two == three)).sum())
        accepts_only(rate(both, n), q, third_bound_to_two=1 / buckets, never=0.0)


def test_odd_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="domain must have at most"):
        OptimalLocalHashingRandomizer(epsilon=1.0, domain=Domain(range(1 << 33)))
    with pytest.raises(ParameterError, match="epsilon must be above"):
        OptimalLocalHashingRandomizer(epsilon=1e-30, domain=Domain(range(4)))
