"""ALP: its exact distribution against its loss, what it draws, estimates and intervals."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import ALP
from sfumato.mechanisms.selection.alp import _places
from tests.cases import cases
from tests.chance import accepts_only, frequencies


def distribution(mechanism: ALP, counts: dict[str, int], seed: bytes) -> np.ndarray:
    """The exact probability of each table of bits, for a seed of the hash."""
    shape = mechanism.columns, mechanism.width
    size = shape[0] * shape[1]
    outcomes = np.array(list(itertools.product((0, 1), repeat=size)))
    options = []
    for count in counts.values():
        whole, rest = divmod(Fraction(min(count, mechanism.maximum)) / mechanism.unit, 1)
        options.append([(int(whole), 1 - rest), (int(whole) + 1, rest)])
    places, flip = _places(list(counts), seed, *shape), 1 / (mechanism.alpha + 2)
    total = np.zeros(len(outcomes))
    for lengths in itertools.product(*options):
        table = np.zeros(shape, int)
        for row, (length, _) in zip(places, lengths, strict=True):
            table[np.arange(shape[0])[:length], row[:length]] = 1
        differ = (outcomes != table.ravel()).sum(axis=1)
        chance = math.prod(float(share) for _, share in lengths)
        total += chance * flip**differ * (1 - flip) ** (size - differ)
    return total


@cases(("scale", "alpha", "maximum"), [(Fraction(3, 2), 2, 6), (1, 2, 4), (Fraction(1, 2), 5, 5), (2, 3, 9)])
@cases("seed", [b"seed", b"other"])
def test_the_loss_covers_the_exact_distribution(scale: Any, alpha: int, maximum: int, seed: bytes) -> None:
    mechanism = ALP(scale=scale, maximum=maximum, keys=1, alpha=alpha)
    claimed = mechanism.privacy_loss.epsilon(0.0)
    assert mechanism.columns * mechanism.width <= 8
    worst = 0.0
    chances = {
        (x, y): distribution(mechanism, {"a": x, "b": y}, seed)
        for x, y in itertools.product(range(maximum + 2), repeat=2)
    }
    for (x, y), here in chances.items():
        assert here.sum() == pytest.approx(1)
        for other in ((x + 1, y), (x, y + 1)):
            if other in chances:
                worst = max(worst, float(np.abs(np.log(here / chances[other])).max()))
    assert 0.5 * claimed < worst <= claimed * (1 + 1e-12)


def test_bits_come_as_often_as_the_distribution_says() -> None:
    mechanism = ALP(scale=Fraction(3, 2), maximum=6, keys=1, alpha=2)
    rng, seen = np.random.default_rng(3), Counter[tuple[bool, ...]]()
    for _ in range(1500):
        release = mechanism.release({"a": 4}, rng)
        places = _places(["a"], release.seed, mechanism.columns, mechanism.width)[0]
        seen[tuple(release.value[np.arange(2), places].tolist())] += 1

    def chances(second: Fraction, flip: Fraction) -> dict[Any, Any]:
        one = 1 - flip
        last = second * one + (1 - second) * flip
        return {
            (first, then): (one if first else flip) * (last if then else 1 - last)
            for first, then in itertools.product((True, False), repeat=2)
        }

    # A count of 4 is one unit of 3, and a third of another.
    accepts_only(
        frequencies(seen),
        chances(Fraction(1, 3), Fraction(1, 4)),
        rounded_down=chances(Fraction(0), Fraction(1, 4)),
        other_flips=chances(Fraction(1, 3), Fraction(2, 5)),
    )


def test_estimates_and_intervals() -> None:
    mechanism = ALP.calibrated(epsilon=0.5, maximum=4000, keys=150)
    counts = {f"key {rank}": 3000 // (rank + 1) for rank in range(150)}
    exact = np.array(list(counts.values()))
    errors, held, zeros = [], 0, []
    for seed in range(2):
        release = mechanism.release(counts, seed)
        errors.append(np.abs(release.estimate(counts) - exact).mean())
        lower, upper, _ = release.interval(counts, 0.8)
        held += int(((lower <= exact) & (exact <= upper)).sum())
        zeros.append(release.estimate(f"absent {k}" for k in range(300)).mean())
    # A few scales (2) each, whatever the domain.
    assert np.mean(errors) < 16
    assert np.mean(zeros) < 25
    assert held >= 0.8 * 300
    assert (upper - lower).mean() < 200
    assert mechanism.release({}, rng=1).estimate(["any"])[0] < 100


def test_kinds_of_keys_are_told_apart() -> None:
    mechanism = ALP(scale=0.25, maximum=100, keys=4)
    release = mechanism.release({"1": 90, 2: 60, b"1": 30, "gone": 0, "below": -5}, rng=2)
    found = release.estimate(["1", 1, b"1", 2, np.int64(2), "2"])
    assert found == pytest.approx([90, 0, 30, 60, 60, 0], abs=20)
    assert release.value.shape == (mechanism.columns, mechanism.width) == (134, 16)
    assert not release.value.flags.writeable
    clamped = mechanism.release({"a": 10**30}, rng=1)
    assert clamped.estimate(["a"])[0] == pytest.approx(100, abs=3)
    assert clamped.interval(["a"]).upper[0] == 100


@cases(("epsilon", "l1"), [(1.0, 1), (0.3, 1), (0.1, 5)])
def test_calibration_is_tight(epsilon: float, l1: int) -> None:
    mechanism = ALP.calibrated(epsilon=epsilon, maximum=100, keys=3, l1=l1)
    assert epsilon * (1 - 1e-6) < mechanism.privacy_loss.epsilon(0.0) <= epsilon


@cases(
    ("given", "message"),
    [
        ({"scale": 0}, "scale must"),
        ({"scale": 0.1}, "scale must be a fraction of at most 31 bits"),
        ({"maximum": 0}, "maximum must"),
        ({"maximum": 2**40}, "maximum must be at most"),
        ({"maximum": 2**30, "keys": 2**10}, "maximum must leave at most"),
        ({"keys": 0}, "keys must"),
        ({"l1": 0}, "l1 must"),
        ({"alpha": 0}, "alpha must"),
        ({"neighboring": None}, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ALP(**{"scale": 1, "maximum": 10, "keys": 2} | given)


def test_bad_data_is_refused_by_its_type_alone() -> None:
    mechanism = ALP(scale=1, maximum=10, keys=2)
    with pytest.raises(ParameterError, match="value must be a mapping"):
        mechanism.release(["a"])
    with pytest.raises(ParameterError, match="keys must be texts"):
        mechanism.release({("a", "b"): 2})
    with pytest.raises(ParameterError, match="counts must"):
        mechanism.release({"a": 0.5})
