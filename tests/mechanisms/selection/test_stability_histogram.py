"""Stability histograms: the exact distribution against the loss, the exact threshold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Laplace, StabilityHistogram
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.numerics.enumeration import WORDS, enumerated, pieces
from tests.numerics.sources import ListedSource

REACH = 120


def pmf(distribution: str, width: float) -> np.ndarray:
    k = np.arange(-REACH, REACH + 1)
    mass = np.exp(-np.abs(k) / width) if distribution == "laplace" else np.exp(-(k**2) / (2 * width**2))
    return np.asarray(mass / mass.sum())


def outcome(count: int, noise: np.ndarray, threshold: int, probability: float = 1.0) -> np.ndarray:
    """The distribution of one key: hidden, or shown with a number."""
    if not count:
        return np.append(np.zeros(2 * REACH + 71), 1.0)
    chance = np.zeros(2 * REACH + 71)
    chance[count : count + noise.size] = noise
    numbers = np.arange(-REACH, REACH + 71)
    shown = np.where(numbers > threshold, chance, np.where(numbers == threshold, probability * chance, 0))
    return np.append(shown, (chance - shown).sum())


NOISES: list[tuple[str, Laplace | Gaussian]] = [
    ("laplace", Laplace(sensitivity=1, scale=Fraction(3, 2))),
    ("gaussian", Gaussian(sensitivity=1, stddev=2)),
]


@cases(("distribution", "noise"), NOISES)
@cases("threshold", [2, 5, 9])
@cases("heads", [Fraction(1), Fraction(3, 8)])
def test_the_loss_covers_the_exact_distribution(
    distribution: str, noise: Laplace | Gaussian, threshold: int, heads: Fraction
) -> None:
    mechanism = StabilityHistogram(noise=noise, threshold=threshold, probability=heads)
    mass = pmf(distribution, 1.5 if distribution == "laplace" else 2.0)
    tail = mass[threshold + REACH :].sum() + float(heads) * mass[threshold - 1 + REACH]
    assert mechanism.privacy_loss.split()[0] == pytest.approx(tail, rel=1e-9)
    greatest = 0.0
    for count in range(10):
        here, there = (outcome(n, mass, threshold, float(heads)) for n in (count, count + 1))
        for epsilon in (0.0, 0.3, 0.7, 1.5):
            bound = mechanism.privacy_loss.delta(epsilon)
            for p, q in ((here, there), (there, here)):
                excess = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                assert excess <= bound * (1 + 1e-9) + 1e-12
                greatest = max(greatest, excess / bound)
    assert greatest > 0.5


@cases(
    ("distribution", "l0", "neighboring"),
    [
        ("laplace", 1, Neighboring.ADD_REMOVE),
        ("laplace", 20, Neighboring.REPLACE_ONE),
        ("gaussian", 1, Neighboring.ZERO_OUT),
        ("gaussian", 20, Neighboring.ADD_REMOVE),
        ("gaussian", 1, Neighboring.REPLACE_ONE),
    ],
)
def test_the_threshold_is_the_least_that_meets_the_request(
    distribution: Any, l0: int, neighboring: Neighboring
) -> None:
    mechanism = StabilityHistogram.calibrated(
        epsilon=1.0, delta=1e-6, l0=l0, distribution=distribution, neighboring=neighboring
    )
    assert mechanism.privacy_loss.epsilon(1e-6) <= 1.0
    heads, step = Fraction(mechanism.probability), Fraction(1, 1 << 62)
    assert heads < 1
    lower = replace(mechanism, probability=heads + step)
    assert lower.privacy_loss.quick_epsilon(1e-6) > 1.0
    # The share of delta is used to the end: no more than that is shown of a key of a single unit.
    noise, share = mechanism.noise.distribution, (1e-6 if distribution == "laplace" else 5e-7) / l0
    shown = RandomizedThreshold(mechanism.threshold, heads).shown(noise, 1)
    assert shown.upper >= share * (1 - 1e-6)
    # l0 masses of m make 1 - (1 - m)**l0, a little less than l0 m.
    assert distribution == "gaussian" or 1 - (1 - Fraction(shown.upper)) ** l0 <= Fraction(1e-6) * (
        1 + Fraction(1, 10**12)
    )
    assert mechanism.neighboring is mechanism.privacy_loss.neighboring is neighboring


def test_every_key_of_a_unit_is_paid_for() -> None:
    noise = Laplace(sensitivity=1, scale=40, l0=20)
    loss = StabilityHistogram(noise=noise, threshold=500).privacy_loss
    mass = math.exp(-499 / 40) / (1 + math.exp(-1 / 40))
    assert loss.pure().epsilon == pytest.approx(0.5)
    assert loss.pure().delta == pytest.approx(20 * mass, rel=1e-3)


def test_the_exact_threshold_for_one_key() -> None:
    # P(1 + Z >= 15) = q^14 / (1 + q) with q = exp(-1): 6.1e-7. The coin adds what is left of 1e-6.
    mechanism = StabilityHistogram.calibrated(epsilon=1.0, delta=1e-6)
    above, at = math.exp(-14) / (1 + math.exp(-1)), math.exp(-13) * math.tanh(0.5)
    assert mechanism.threshold == 14
    assert float(mechanism.probability) == pytest.approx((1e-6 - above) / at, rel=1e-9)


def test_a_count_at_the_threshold_is_shown_by_the_coin_of_its_key() -> None:
    noise = Laplace(sensitivity=1, scale=Fraction(1, 60))  # next to none
    mechanism = StabilityHistogram(noise=noise, threshold=6, probability=Fraction(1, 4))
    counts = {key: 5 + key % 3 for key in range(60_000)}
    release = mechanism.release(counts, rng=3)
    shown = Counter(release.value.values())
    assert set(shown) == {6, 7}
    assert shown[7] == 20_000
    chances = {"shown": 0.25, "not": 0.75}
    found = {"shown": shown[6], "not": 20_000 - shown[6]}
    accepts_only(
        frequencies(found), chances, always={"shown": 1.0, "not": 0.0}, other={"shown": 0.75, "not": 0.25}
    )


def test_all_words_together_show_a_key_by_the_distribution() -> None:
    mechanism = StabilityHistogram(noise=Laplace(sensitivity=1, scale=1), threshold=8)

    def shown(word: int, sign: int) -> int:
        """What a key of 6 is shown with: 0 if it is hidden, 12 for all numbers from there on."""
        source = ListedSource([word << 1 | sign, *[1 << 63] * 600])
        return int(min(12, mechanism.release({"a": 6}, rng=source).value.get("a", 0)))

    distribution = pmf("laplace", 1.0)
    found: dict[int, Fraction] = {}
    for sign in (0, 1):
        part = pieces(lambda word, sign=sign: shown(word, sign), end=1 << 63)  # type: ignore[misc]
        for value, share in enumerated(lambda word, sign=sign: shown(word, sign), part).items():
            found[value] = found.get(value, Fraction(0)) + share / 2
    expected = {k: float(distribution[REACH + k - 6]) for k in range(8, 12)}
    expected |= {12: float(distribution[REACH + 6 :].sum()), 0: float(distribution[: REACH + 2].sum())}
    assert {value: float(share) for value, share in found.items()} == pytest.approx(expected, rel=1e-12)


def test_what_is_shown_is_at_least_the_threshold_and_no_absent_key() -> None:
    mechanism = StabilityHistogram(noise=Laplace(sensitivity=1, scale=3), threshold=8)
    keys = dict.fromkeys(range(500), 6) | {-1 - index: -(index % 3) for index in range(200)}
    value = mechanism.release(keys, rng=np.random.default_rng(11)).value
    assert min(value.values()) >= 8
    assert min(value) >= 0
    assert list(value.values()) == sorted(value.values(), reverse=True)


@cases("other", [0, 1, 12345, 1 << 63, WORDS - 1])
def test_the_order_tells_nothing_of_the_data(other: int) -> None:
    """Of equal noisy counts the one with the lesser word is first: a random order, not the data's."""
    mechanism = StabilityHistogram(noise=Laplace(sensitivity=1, scale=Fraction(1, 30)), threshold=2)
    noise, coins = [WORDS - 1] * 256, [0] * 2  # none at all

    def first(word: int) -> str:
        return str(
            next(
                iter(
                    mechanism.release({"a": 9, "b": 9}, rng=ListedSource([*noise, word, other, *coins])).value
                )
            )
        )

    found = enumerated(first, pieces(first))
    # Equal words keep the order of the data.
    assert found.get("a", 0) == Fraction(other + 1, WORDS)


def test_a_key_of_that_count_is_shown() -> None:
    mass = pmf("laplace", 2.0)
    for heads, beta in itertools.product((Fraction(1), Fraction(1, 2), Fraction(1, 64)), (0.3, 0.01, 1e-6)):
        mechanism = StabilityHistogram(noise=Laplace(sensitivity=1, scale=2), threshold=20, probability=heads)
        count = mechanism.utility_bound(beta)
        hidden = [outcome(n, mass, 20, float(heads))[-1] for n in (count, count - 1)]
        assert hidden[0] <= beta < hidden[1]


def test_edges() -> None:
    mechanism = StabilityHistogram.calibrated(epsilon=1.0, delta=1e-6)
    for counts in ({}, {"a": 0}, {"a": -3}):
        release = mechanism.release(counts, rng=1)
        assert release.value == {}
        assert release.loss == mechanism.privacy_loss
    assert list(mechanism.release({"a": 10**400, "b": 10**6}, rng=1).value) == ["a", "b"]
    assert mechanism.release({"a": 100}, rng=1).simulated
    assert not mechanism.release({"a": 100}).simulated


def test_bad_parameters_are_refused() -> None:
    noise = Laplace(sensitivity=1, scale=1)
    calls: list[tuple[Any, str]] = [
        (lambda: StabilityHistogram(noise=Laplace(sensitivity=2, scale=1), threshold=5), "noise must be"),
        (lambda: StabilityHistogram(noise=Laplace(sensitivity=1.0, scale=1), threshold=5), "noise must be"),
        (lambda: StabilityHistogram(noise=Laplace(l1=1, scale=1), threshold=5), "noise must be"),
        (lambda: StabilityHistogram(noise="laplace", threshold=5), "noise must be"),  # type: ignore[arg-type]
        (lambda: StabilityHistogram(noise=noise, threshold=0), "threshold must be an integer"),
        (lambda: StabilityHistogram(noise=noise, threshold=5, probability=0), "probability must be"),
        (
            lambda: StabilityHistogram(noise=noise, threshold=5, probability=Fraction(1, 3)),
            "probability must be at most 1, a multiple",
        ),
        (lambda: StabilityHistogram.calibrated(epsilon=1.0, delta=0.0), "delta must be"),
        (
            lambda: StabilityHistogram.calibrated(
                epsilon=1.0,
                delta=1e-6,
                distribution="x",  # type: ignore[arg-type]
            ),
            "distribution must be",
        ),
        (lambda: StabilityHistogram.calibrated(epsilon=1.0, delta=1e-6, l0=0), "l0 must be"),
        (lambda: StabilityHistogram(noise=noise, threshold=5).release({"secret": 0.5}), "counts must be"),
        (lambda: StabilityHistogram(noise=noise, threshold=5).release(["secret"]), "value must be a mapping"),
    ]
    for call, message in calls:
        with pytest.raises(ParameterError, match=message) as caught:
            call()
        assert "secret" not in str(caught.value)
