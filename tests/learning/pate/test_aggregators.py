"""The laws of labels against enumeration, and the losses against the laws on every neighbor."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.learning.pate.aggregator import Aggregator
from sfumato.learning.pate.confident import ConfidentGNMax
from sfumato.learning.pate.gnmax import GNMax
from sfumato.learning.pate.interactive import InteractiveGNMax
from sfumato.learning.pate.lnmax import LNMax
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.privacy import DiscreteGaussian, Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.learning.pate.label_distribution import label_distribution, vote_divergence

REPLACE = Neighboring.REPLACE_ONE
AGGREGATORS: list[Aggregator] = [
    LNMax(scale=1.5),
    LNMax(scale=4, neighboring=REPLACE),
    GNMax(stddev=1.25),
    GNMax(stddev=4, neighboring=REPLACE),
    ConfidentGNMax(threshold=3, check_stddev=2, stddev=1),
    ConfidentGNMax(threshold=4, check_stddev=5, stddev=3, neighboring=REPLACE),
]


def noise_law(kind: str, parameter: float, reach: int) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(k) / parameter) if kind == "laplace" else np.exp(-(k**2) / (2 * parameter**2))
    return np.asarray(weights / weights.sum())


def enumerated(votes: list[int], kind: str, parameter: float, reach: int) -> np.ndarray:
    """Every value of every noise; ties are shared."""
    law = np.zeros(len(votes))
    pmf = noise_law(kind, parameter, reach)
    for noise in itertools.product(range(-reach, reach + 1), repeat=len(votes)):
        noisy = np.array(votes) + noise
        best = noisy == noisy.max()
        law += best / best.sum() * math.prod(pmf[k + reach] for k in noise)
    return law


@pytest.mark.parametrize("votes", [[4, 1, 0], [2, 2, 1], [0, 0, 5]])
def test_the_laws_are_those_of_every_noise(votes: list[int]) -> None:
    exact = enumerated(votes, "gaussian", 1.25, 9)
    assert label_distribution(GNMax(stddev=1.25), np.array(votes)) == pytest.approx(
        exact, rel=1e-9, abs=1e-11
    )
    exact = enumerated(votes, "laplace", 0.5, 13)
    assert label_distribution(LNMax(scale=0.5), np.array(votes)) == pytest.approx(exact, rel=1e-8, abs=1e-10)
    pmf = noise_law("gaussian", 2.0, 40)
    passes = pmf[np.arange(-40, 41) + max(votes) >= 3].sum()
    winner = enumerated(votes, "gaussian", 1.0, 9)
    found = label_distribution(ConfidentGNMax(threshold=3, check_stddev=2, stddev=1), np.array(votes))
    assert found == pytest.approx(np.append(passes * winner, 1 - passes), rel=1e-9, abs=1e-11)


def test_few_and_many_classes_have_laws_that_sum_to_one() -> None:
    rng = np.random.default_rng(1)
    for classes in (2, 3, 9, 10, 40):
        votes = rng.multinomial(60, np.ones(classes) / classes)
        for aggregator in (LNMax(scale=3), GNMax(stddev=3)):
            assert label_distribution(aggregator, votes).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=repr)
def test_no_neighbor_is_further_than_the_loss_says(aggregator: Aggregator) -> None:
    loss = aggregator.loss(questions=1)
    epsilons = (0.1, 0.5, 1.0, 2.0)
    bounds = [loss.delta(epsilon) for epsilon in epsilons]
    for votes in itertools.product(range(6), repeat=3):
        if sum(votes) != 5:
            continue
        law = label_distribution(aggregator, np.array(votes))
        for near in neighbors(votes, aggregator.teachers_moved):
            other = label_distribution(aggregator, np.array(near))
            for epsilon, bound in zip(epsilons, bounds, strict=True):
                assert np.maximum(law - math.exp(epsilon) * other, 0).sum() <= bound + 1e-12
        for order in (1.5, 4.0):
            assert vote_divergence(aggregator, np.array(votes), order) <= loss.rdp(order) + 1e-9


def neighbors(votes: tuple[int, ...], moved: int) -> set[tuple[int, ...]]:
    if moved == 0:
        return {votes}
    found = set()
    for old, new in itertools.permutations(range(len(votes)), 2):
        if votes[old]:
            changed = list(votes)
            changed[old] -= 1
            changed[new] += 1
            found |= neighbors(tuple(changed), moved - 1)
    return found


def test_half_the_noise_would_be_caught() -> None:
    """The test above can fail: the law with half the noise is further from a neighbor than the loss says."""
    bound = GNMax(stddev=2.5).loss(questions=1).delta(0.5)
    law, other = (label_distribution(GNMax(stddev=1.25), np.array(v)) for v in ([3, 2, 0], [2, 3, 0]))
    assert np.maximum(law - math.exp(0.5) * other, 0).sum() > bound


@cases("aggregator", AGGREGATORS, ids=repr)
def test_labels_follow_the_law(aggregator: Aggregator) -> None:
    votes = np.array([5, 4, 1])
    runs = 20_000
    labels, paid = aggregator.label(np.tile(votes, (runs, 1)), runs, SimulatedSource(3))
    law = label_distribution(aggregator, votes)
    counts = Counter((labels % len(law)).tolist())

    def wider(factor: float) -> dict[int, float]:
        noise = "scale" if isinstance(aggregator, LNMax) else "stddev"
        other = dataclasses.replace(aggregator, **{noise: factor * getattr(aggregator, noise)})
        return dict(enumerate(label_distribution(other, votes).tolist()))

    accepts_only(
        frequencies(counts),
        dict(enumerate(law.tolist())),
        wider=wider(1.25),
        narrower=wider(0.8),
        neighbor=dict(enumerate(label_distribution(aggregator, np.array([4, 5, 1])).tolist())),
    )
    assert paid == (labels >= 0).sum()


def test_interactive_labels_follow_the_surplus() -> None:
    aggregator = InteractiveGNMax(teachers=100, threshold=25, confidence=0.8, check_stddev=2, stddev=2)
    votes = np.array([[90, 10], [90, 10], [10, 90], [50, 50]])
    guess = np.array([[0.5, 0.5], [0.9, 0.1], [0.9, 0.1], [0.5, 0.5]])
    labels, paid = aggregator.label(votes, 10, SimulatedSource(1), guess)
    # answered; the student's own; the teachers know better; neither.
    assert (labels.tolist(), paid) == ([0, 0, 1, -1], 2)
    labels, paid = aggregator.label(votes, 1, SimulatedSource(1), guess)
    assert (labels.tolist(), paid) == ([0, 0, 0, -1], 1)
    for wrong in (None, guess[:2], guess * 3, guess.astype(int), guess * np.nan):
        with pytest.raises(ParameterError, match="probabilities must be"):
            aggregator.label(votes, 1, SimulatedSource(1), wrong)


def test_losses_are_the_published_ones() -> None:
    assert LNMax(scale=20).answer_loss.epsilon(0.0) == pytest.approx(0.1, rel=1e-12)
    assert GNMax(stddev=40).answer_loss.zcdp().rho == pytest.approx(1 / 1600, rel=1e-12)
    confident = ConfidentGNMax(threshold=1, check_stddev=150, stddev=40)
    assert confident.loss(questions=10, answers=3).zcdp().rho == pytest.approx(
        10 / (2 * 150**2) + 3 / 1600, rel=1e-12
    )
    two = GNMax(stddev=40, neighboring=REPLACE)
    assert two.answer_loss.zcdp().rho == pytest.approx(4 / 1600, rel=1e-12)
    assert two.teachers_moved == 2
    with pytest.raises(NeighboringMismatch):
        two.answer_loss + DiscreteGaussian(3)


@cases(
    ("make", "name"),
    [
        (lambda: GNMax(stddev=0), "stddev"),
        (lambda: LNMax(scale=math.nan), "scale"),
        (lambda: ConfidentGNMax(threshold=1.5, check_stddev=1, stddev=1), "threshold"),  # type: ignore[arg-type]
        (lambda: InteractiveGNMax(teachers=0, threshold=1, check_stddev=1, stddev=1), "teachers"),
        (
            lambda: InteractiveGNMax(teachers=1, threshold=1, confidence=2, check_stddev=1, stddev=1),
            "confidence",
        ),
        (lambda: GNMax(stddev=1, neighboring="add"), "neighboring"),  # type: ignore[arg-type]
        (lambda: GNMax(stddev=1).loss(questions=-1), "questions"),
        (lambda: GNMax(stddev=1).loss(questions=1, answers=2), "answers"),
    ],
)
def test_bad_parameters(make: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must"):
        make()


def test_a_label_that_hardly_any_noise_can_give_has_next_to_no_chance() -> None:
    # About 38 standard deviations behind, where the noise that is followed ends.
    for behind in range(30, 90):
        law = label_distribution(GNMax(stddev=1), np.array([0, behind]))
        assert law[0] <= math.exp(-(behind**2) / 4), behind
    for behind in range(700, 760):
        assert label_distribution(LNMax(scale=1), np.array([0, behind]))[0] <= behind * math.exp(-behind), (
            behind
        )
