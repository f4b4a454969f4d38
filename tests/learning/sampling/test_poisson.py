"""Poisson batches: exact coins, the whole law, and the node that prices them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.learning.sampling.bernoulli import heads
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.seed import KeyedStream, Seed
from sfumato.privacy import Gaussian, Neighboring, PoissonSubsampled
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.learning.sampling.schedules import fits


class _Script(KeyedStream):
    """Gives chosen bits: first those of the coins, then words."""

    def __init__(self, first: bytes, words: list[int]) -> None:
        self._first, self._words = first, words

    def bytes(self, count: int) -> bytes:
        taken, self._first = self._first[:count], self._first[count:]
        assert len(taken) == count
        return taken

    def words(self, count: int) -> np.ndarray:
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count
        return np.array(taken, np.uint64)


@cases("chance", [0.0, 0.5, 0.01, 1 / 3, 2.0**-16, 3 * 2.0**-17, 1 - 2.0**-53, 1e-300, 1.0])
def test_sixteen_bits_decide_every_coin_or_more_do(chance: float) -> None:
    exact = Fraction(chance)
    first = np.arange(0, 1 << 16, 1 << 8)
    near = int(exact * (1 << 16)) + np.arange(-2, 3)
    first = np.unique(np.append(first, near) & 0xFFFF).astype("<u2")
    for word in (0, 1 << 63, (1 << 64) - 1):
        later = sum(word << 64 * i for i in range(16))
        found = heads(first.size, exact, _Script(first.tobytes(), [word] * 17))
        expected = [
            place
            for place, bits in enumerate(first.tolist())
            if Fraction(((bits << 64) + word << 1024) + later, 1 << 1104) < exact
        ]
        assert found.tolist() == expected


def test_ties_are_settled_by_further_bits() -> None:
    chance = Fraction(1, 3)
    bits = [int(chance * (1 << width)) for width in (16, 80, 144)]
    words = [bits[1] - (bits[0] << 64), bits[2] - (bits[1] << 64)]
    first = bits[0].to_bytes(2, "little")
    for last, falls in ((words[1] - 1, 1), (words[1] + 1, 0)):
        assert heads(1, chance, _Script(first, [words[0], last])).size == falls


def test_a_chance_of_few_bits_has_no_ties() -> None:
    """A chance of 16 bits is decided by them alone: equal bits are not below it."""
    first = np.array([3, 4, 5], "<u2").tobytes()
    assert heads(3, Fraction(4, 1 << 16), _Script(first, [])).tolist() == [0]


def test_the_whole_law_of_small_batches() -> None:
    n, q, steps = 5, 0.3, 10_000
    sampler = PoissonSampler(population=n, sampling_probability=q, steps=steps, seed=11)

    def law(chance: float, alike: int = 1) -> dict[Hashable, float]:
        """The first so many share a coin."""
        found: dict[Hashable, float] = {}
        for coins in product([0, 1], repeat=n - alike + 1):
            whole = coins[:1] * (alike - 1) + coins
            found[tuple(i for i, coin in enumerate(whole) if coin)] = prod(
                chance if coin else 1 - chance for coin in coins
            )
        return found

    counts = Counter(tuple(batch.tolist()) for batch in sampler.batches())
    accepts_only(fits(counts), law(q), more=law(1.1 * q), two_share_a_coin=law(q, 2))


def test_an_examples_steps_are_independent() -> None:
    sampler = PoissonSampler(population=1, sampling_probability=0.5, steps=10_000, seed=12)
    coins = np.array([batch.size for batch in sampler.batches()]).reshape(-1, 4)

    def chain(stays: float) -> dict[tuple[int, ...], float]:
        """Each coin is as the one before with some chance."""
        return {
            four: prod((stays if a == b else 1 - stays for a, b in pairwise(four)), start=0.5)
            for four in product([0, 1], repeat=4)
        }

    counts = Counter(map(tuple, coins.tolist()))
    accepts_only(fits(counts), chain(0.5), sticky=chain(0.58), restless=chain(0.42))


def test_inclusion_counts_and_pairs_of_a_large_population() -> None:
    """Each example's count and the counts of neighbors in the list are those of independent coins."""
    n, q, steps = 200_000, 0.01, 100
    sampler = PoissonSampler(population=n, sampling_probability=q, steps=steps, seed=13)
    drawn = np.zeros((steps, n), bool)
    for step, batch in enumerate(sampler.batches()):
        drawn[step, batch] = True
    accepts_only(rate(int(drawn.sum()), drawn.size), q, more=1.02 * q, less=0.98 * q)
    # Pairs that have nothing in common, so that their counts are binomial.
    for pairs in (
        drawn[:, 1::2] & drawn[:, ::2],
        drawn[1::2] & drawn[::2],
        drawn[:, : n // 2] & drawn[:, n // 2 :],
    ):
        accepts_only(rate(int(pairs.sum()), pairs.size), q * q, drawn_to=1.3 * q * q, apart=0.7 * q * q)


def test_a_batch_is_a_pure_function_of_seed_and_step() -> None:
    make = {"population": 5000, "sampling_probability": 0.1, "steps": 10}
    first, second = PoissonSampler(**make, seed=5), PoissonSampler(**make, seed=5)  # type: ignore[arg-type]
    backwards = [second.batch(step).tolist() for step in range(9, -1, -1)][::-1]
    assert [batch.tolist() for batch in first.batches()] == backwards
    assert [batch.tolist() for batch in first.batches(7)] == backwards[7:]
    assert first.batch(0).dtype == np.int64
    assert len({tuple(batch) for batch in backwards}) == 10
    restored = PoissonSampler(**make, seed=Seed.of(first.seed).reveal())  # type: ignore[arg-type]
    assert restored.batch(3).tolist() == backwards[3]
    assert first.simulated
    assert not restored.simulated
    assert not PoissonSampler(**make).simulated  # type: ignore[arg-type]


def test_the_loss_is_that_of_the_node() -> None:
    sampler = PoissonSampler(population=1000, sampling_probability=0.02, steps=500)
    assert sampler.neighboring is Neighboring.ADD_REMOVE
    assert sampler.loss(1.3) == PoissonSubsampled(Gaussian(1.3), 0.02) * 500
    assert sampler.loss_of(1.3, 20) == PoissonSubsampled(Gaussian(1.3), 0.02) * 20
    assert sampler.loss_of(1.3, 0).epsilon(0.0) == 0
    assert sampler.expected_batch_size == 20
    assert PoissonSampler.of_batch_size(population=300, batch_size=3, steps=1).sampling_probability == 0.01
    assert sampler.distinct
    assert sampler.participation.max_steps(500) == 500


def test_bad_parameters_are_refused() -> None:
    good = {"population": 10, "sampling_probability": 0.5, "steps": 3}
    for name, values in {
        "population": (0, -1, 2.5, "x"),
        "sampling_probability": (0, -0.1, 1.1, float("nan"), "x"),
        "steps": (0, 1.5),
        "seed": (-1, 0.5),
    }.items():
        for value in values:
            with pytest.raises(ParameterError, match=f"{name} must"):
                PoissonSampler(**{**good, name: value})  # type: ignore[arg-type]
    sampler = PoissonSampler(**good)  # type: ignore[arg-type]
    for step in (-1, 3, 1.0):
        with pytest.raises(ParameterError, match="step must"):
            sampler.batch(step)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="steps must be at most the planned 3, got 4"):
        sampler.loss_of(1.0, 4)
    with pytest.raises(ParameterError, match="noise_multiplier must"):
        sampler.loss(-1.0)
    with pytest.raises(NeighboringMismatch, match="step must be under add/remove"):
        sampler.priced(Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE), 1)
    with pytest.raises(ParameterError, match="batch_size must be at most population"):
        PoissonSampler.of_batch_size(population=3, batch_size=4, steps=1)
