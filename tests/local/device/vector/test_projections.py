"""Projections on devices: their vectors, which truths are near which, the candidates, and what is refused."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import ProjUnitRandomizer
from sfumato.local.device.vector import projections
from sfumato.local.device.vector.random_vectors import UNIT, normal_table, quantiles
from tests.chance import accepts_only
from tests.local.laws import have_moments, within

KNOWN = [[-3532, 10496, -2895, -2406, -3234], [-3188, 4755, 4461, 4211, -717]]
_MASK = (1 << 64) - 1


def mixed(word: int) -> int:
    """SplitMix64's output function, in Python's integers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _MASK
    return word ^ word >> 31


def by_hand(seed: int, number: int, dimension: int) -> list[int]:
    """One vector, number by number."""
    step, each, table = 0x9E3779B97F4A7C15, -(-dimension // 4), normal_table()
    started, found = mixed(seed + step & _MASK), []
    for at in range(dimension):
        word = mixed(started + (number * each + at // 4 + 1) * step & _MASK)
        found.append(int(table[word >> 16 * (at % 4) & 0xFFFF]))
    return found


def test_the_table_is_the_normal_distribution_in_whole_numbers() -> None:
    table = normal_table()
    assert (table[1 << 15 :] == -table[: 1 << 15]).all()
    assert (np.diff(table[: 1 << 15]) >= 0).all()
    assert table[0] == 1
    shares = table / UNIT
    for power, moment, off in ((2, 1, 1e-6), (4, 3, 2e-4), (6, 15, 1e-2)):
        assert (shares**power).mean() == pytest.approx(moment, abs=off)
    # A number of it exceeds each limit as often as a normal number does, to a few parts in 2^16.
    for limit in (0.1, 0.5, 1.0, 2.0, 3.0):
        assert (shares > limit).mean() == pytest.approx(math.erfc(limit / math.sqrt(2)) / 2, abs=5 / 2**16)
    # The same on every machine and for ever: reports are read by it.
    assert hashlib.sha256(table.astype("<i2").tobytes()).hexdigest()[:16] == "04e65ad34ebbb592"


def test_vectors_of_the_table_pass_for_independent_and_stay_the_same() -> None:
    seeds, numbers = np.arange(20_000, dtype=np.uint64), np.tile(np.arange(3), (20_000, 1))
    flat = quantiles(seeds, numbers, 5).reshape(20_000, 15) / UNIT
    n = len(flat)
    have_moments(flat, 1.0, tells=0.1)
    shared = flat.T @ flat / n - np.eye(15)
    accepts_only(within(shared, np.sqrt(2 / n)), 0.0, a_tenth_is_shared=0.1)
    following = within((flat[1:] * flat[:-1]).mean(axis=0), 1 / np.sqrt(n))
    accepts_only(following, 0.0, a_tenth_is_shared=0.1)
    known = quantiles(np.array([7], np.uint64), np.array([[0, 2]]), 5)[0]
    assert known.tolist() == KNOWN == [by_hand(7, number, 5) for number in (0, 2)]
    # A vector is that of its number, whatever others are asked for, and longer ones are others.
    assert quantiles(np.array([7], np.uint64), np.array([[2]]), 5)[0].tolist() == KNOWN[1:]


def test_candidates_are_directions_and_their_opposites_and_the_truth_is_seen_along_them() -> None:
    made = ProjUnitRandomizer(epsilon=1.0, dimension=6, candidates=10)
    seeds = np.array([3, 1 << 39], np.uint64)
    vectors = made.vectors(seeds, np.tile(np.arange(10), (2, 1)))
    assert (vectors[:, 5:] == -vectors[:, :5]).all()
    assert np.linalg.norm(vectors, axis=2) == pytest.approx(np.full((2, 10), UNIT * math.sqrt(6)), rel=1e-3)
    truths = np.array([[0.6, 0, 0, -0.8, 0, 0], [0, 1.0, 0, 0, 0, 0]])
    heights = np.einsum("rcd,rd->rc", vectors, truths) / (UNIT * math.sqrt(6))
    whole = made.along(seeds, truths)
    assert whole == pytest.approx(heights, abs=1e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projections, "PIECE", 24)  # two vectors at a time
        assert made.along(seeds, truths) == pytest.approx(whole, abs=1e-6)


def test_candidates_by_epsilon_and_the_best_number_of_near_ones() -> None:
    for epsilon, candidates in ((0.1, 128), (6.0, 128), (6.01, 256), (8.0, 256), (9.0, 1024), (40.0, 4096)):
        assert ProjUnitRandomizer(epsilon=epsilon, dimension=3).candidates == candidates
    # The near ones that are taken have nearly the least error of all.
    for epsilon in (0.5, 2.0, 5.0):
        made = ProjUnitRandomizer(epsilon=epsilon, dimension=50, candidates=64)
        generator, odds = np.random.default_rng(1), math.exp(epsilon)
        heights = -np.sort(-abs(generator.standard_normal((20_000, 32))), axis=1).mean(axis=0)
        gains = [heights[:near].sum() * (odds - 1) / (near * odds + 64 - near) for near in range(1, 33)]
        assert gains[made.near - 1] >= 0.997 * max(gains)


def test_parameters_that_break_a_rule() -> None:
    for candidates, rule in ((3, "be even"), (0, "be an integer"), (4098, "be at most 4096")):
        with pytest.raises(ParameterError, match=f"candidates must {rule}"):
            ProjUnitRandomizer(epsilon=1.0, dimension=3, candidates=candidates)
