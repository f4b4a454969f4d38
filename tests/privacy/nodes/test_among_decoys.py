"""Decoys against the law of all messages, enumerated in full, and against exact sums."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import (
    AmongDecoys,
    Neighboring,
    PureDP,
    RandomizedResponse,
    Shuffled,
    SupportResponse,
    loss_from_json,
)
from tests.cases import cases

mpmath.mp.dps = 40


def enumerated(report: list[float], even: list[float], decoys: int, chance: float) -> dict[object, float]:
    """Return the law of what is seen: each message as often as it came, of one report and the decoys sent."""
    distribution: Counter[object] = Counter()
    silent = len(even)
    each = [*(chance * mass for mass in even), 1 - chance]
    for messages in itertools.product(range(silent + 1), repeat=decoys):
        for first, mass in enumerate(report):
            seen = tuple(sorted((first, *messages)))
            distribution[seen] += mass * math.prod(each[message] for message in messages)  # type: ignore[assignment]
    return dict(distribution)


@cases(
    ("categories", "decoys", "epsilon_0", "chance"),
    [
        (2, 6, 1.0, 1.0),
        (2, 5, 3.0, 0.5),
        (3, 5, 2.0, 0.75),
        (4, 4, 16.0, 1.0),
        (3, 0, 1.0, 1.0),
        (5, 4, 6.0, 0.9),
    ],
)
def test_all_that_is_seen_lies_below(categories: int, decoys: int, epsilon_0: float, chance: float) -> None:
    weights = [math.exp(epsilon_0)] + [1.0] * (categories - 1)
    first = [weight / sum(weights) for weight in weights]
    second = [first[1], first[0], *first[2:]]
    even = [1 / categories] * categories
    distributions = [enumerated(report, even, decoys, chance) for report in (first, second)]
    loss = AmongDecoys(RandomizedResponse(epsilon_0, categories), decoys, chance)
    for share in (0.0, 0.05, 0.3, 0.6, 0.9, 0.99):
        epsilon = share * epsilon_0
        true = sum(
            max(0.0, mass - math.exp(epsilon) * distributions[1][seen])
            for seen, mass in distributions[0].items()
        )
        assert true <= loss.delta(epsilon) * (1 + 1e-12) + 1e-14
        assert loss.delta(epsilon) <= true * 1.001 + 1e-12
    assert loss.delta(epsilon_0 * 1.0000001) == 0


def exact(epsilon_0: float, categories: int, decoys: int, epsilon: float) -> mpmath.mpf:
    """Return the divergence with all decoys sent: of counts in the two categories, by their binomials."""
    e0, k, s = mpmath.exp(mpmath.mpf(epsilon_0)), categories, mpmath.exp(mpmath.mpf(epsilon))
    total, messages = mpmath.mpf(0), decoys + 1
    for x in range(messages + 1):
        for y in range(messages + 1 - x):
            even = mpmath.binomial(messages, x) * mpmath.binomial(messages - x, y)
            even *= mpmath.mpf(1) / k ** (x + y) * (1 - mpmath.mpf(2) / k) ** (messages - x - y)
            tilt = (e0 - 1) * k / (mpmath.mpf(messages) * k)
            total += even * max(0, (1 + tilt * x) - s * (1 + tilt * y))
    return total * k / (k + e0 - 1)


@pytest.mark.parametrize(
    ("epsilon_0", "categories", "decoys"), [(16.0, 2, 30), (16.0, 5, 30), (3.0, 3, 25), (16.0, 20, 20)]
)
def test_many_decoys_meet_an_exact_sum(epsilon_0: float, categories: int, decoys: int) -> None:
    loss = AmongDecoys(RandomizedResponse(epsilon_0, categories), decoys, 1)
    for epsilon in (0.0, 0.4, 1.5, 2.5):
        true = exact(epsilon_0, categories, decoys, epsilon)
        assert true * (1 - mpmath.mpf(1e-12)) <= loss.delta(epsilon) <= true * mpmath.mpf(1.002) + 1e-30


def test_a_sum_of_bits_meets_the_binomial_mechanism() -> None:
    # A bit that is told, among fair ones: how many are set, against one more.
    decoys = 2000
    mass = [math.comb(decoys, x) / 2**decoys for x in range(decoys + 1)]
    loss = AmongDecoys(RandomizedResponse(30.0, 2), decoys, 1)
    for epsilon in (0.05, 0.2, 0.3):
        shifted = zip([*mass, 0.0], [0.0, *mass], strict=True)
        true = sum(max(0.0, here - math.exp(epsilon) * there) for here, there in shifted)
        assert true <= loss.delta(epsilon) * (1 + 1e-9)
        assert loss.delta(epsilon) <= true * 1.001


def test_decoys_of_overlapping_supports() -> None:
    # Two bits, each set with 1/4 in the common law: the reports of unary encoding.
    p, q = 0.5, 0.25
    reports = list(itertools.product((0, 1), repeat=2))

    def distribution(chances: tuple[float, float]) -> list[float]:
        return [math.prod(c if b else 1 - c for c, b in zip(chances, bits, strict=True)) for bits in reports]

    distributions = [
        enumerated(distribution(chances), distribution((q, q)), 4, 0.5) for chances in ((p, q), (q, p))
    ]
    loss = AmongDecoys(SupportResponse(math.log(3) * (1 + 1e-15), q, q * q), 4, 0.5)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        true = sum(
            max(0.0, mass - math.exp(epsilon) * distributions[1][seen])
            for seen, mass in distributions[0].items()
        )
        assert true <= loss.delta(epsilon) * (1 + 1e-12)


def test_others_reports_are_decoys_too() -> None:
    # Randomized response of n clients hides like n - 1 decoys, each sent with the blanket's chance.
    epsilon_0, k, n = 2.0, 4, 300
    chance = Fraction(k / (k + math.exp(epsilon_0) - 1))
    one, same = Shuffled(RandomizedResponse(epsilon_0, k), n), RandomizedResponse(epsilon_0, k)
    assert AmongDecoys(same, n - 1, chance).epsilon(1e-7) == pytest.approx(one.epsilon(1e-7), rel=1e-9)


def test_more_decoys_hide_more() -> None:
    told = RandomizedResponse(16.0, 10)
    for losses in (
        [AmongDecoys(told, n, 0.5) for n in (0, 10, 300, 10**6)],
        [AmongDecoys(told, 200, chance) for chance in (1e-9, 0.01, 0.5, 1 - 2**-60, 1)],
    ):
        epsilons = [loss.epsilon(1e-7) for loss in losses]
        assert all(after <= before * (1 + 1e-6) for before, after in itertools.pairwise(epsilons))
    loss = AmongDecoys(told, 500, Fraction(1, 3))
    assert loss_from_json(loss.to_json()) == loss
    assert not loss.epsilon_interval(1e-7).tight
    assert loss.pure().epsilon == 16.0
    assert AmongDecoys(told, 0, 1).epsilon(0.5) == pytest.approx(told.epsilon(0.5), rel=1e-6)
    assert np.isfinite(loss.rdp_curve(np.array([2.0, 30.0]))).all()


def test_chances_next_to_0_and_1_are_those_of_none_and_of_all() -> None:
    told = RandomizedResponse(3.0, 4)
    for chance, decoys in ((Fraction(5e-324), 0), (1 - Fraction(1, 10**400), 6), (1 - Fraction(1, 2**60), 6)):
        near, ends = AmongDecoys(told, 6, chance), AmongDecoys(told, decoys, 1)
        for epsilon in (0.0, 0.5, 1.5):
            assert near.delta(epsilon) == pytest.approx(ends.delta(epsilon), rel=1e-6)


def test_what_has_no_proof_is_refused() -> None:
    told = RandomizedResponse(1.0, 4)
    with pytest.raises(NeighboringMismatch, match="replace-one"):
        AmongDecoys(RandomizedResponse(1.0, 4, neighboring=Neighboring.ADD_REMOVE), 5, 1)
    with pytest.raises(UnsupportedView, match="names no distribution"):
        AmongDecoys(PureDP(1.0, neighboring=Neighboring.REPLACE_ONE), 5, 1)
    for decoys in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="decoys must be"):
            AmongDecoys(told, decoys, 1)  # type: ignore[arg-type]
    for chance in (0, -0.5, 1.5, math.nan):
        with pytest.raises(ParameterError, match="chance must be"):
            AmongDecoys(told, 5, chance)
