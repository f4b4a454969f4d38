"""Private selection from private candidates: the exact distribution of the best run against the loss."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import BestRun, Laplace, PrivateCandidates
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.choice import choose
from sfumato.privacy import Gaussian, Neighboring, PoissonStopping, PureDP, RandomStopping
from tests.cases import cases
from tests.mechanisms.selection import distributions
from tests.numerics.enumeration import WORDS, enumerated, pieces, residues
from tests.numerics.sources import ListedSource

Stopping = RandomStopping | PoissonStopping
BASE = math.log(3)
# One run of either dataset: scores 0, 1, 2 with these weights; no quotient is above 3.
WEIGHTS = {"here": (6, 3, 1), "there": (5, 2, 3)}
DISTRIBUTIONS: list[Stopping] = [
    RandomStopping(PureDP(BASE), 1.0, 0.2),
    RandomStopping(PureDP(BASE), 0.0, 0.05),
    RandomStopping(PureDP(BASE), -0.5, 0.1),
    RandomStopping(PureDP(BASE), 4.0, 0.4),
    PoissonStopping(PureDP(BASE), 3.0),
]


def run(value: str, source: RandomSource) -> tuple[float, str]:
    weights = np.array(WEIGHTS[value])
    score = int(choose(np.zeros(3, int), 1, multiplicity=weights, rng=source))
    return float(score), "abc"[score]


def number_of_runs(loss: Stopping) -> np.ndarray:
    """The distribution of the number of runs from 0 on, by its definition."""
    k = np.arange(3_000)
    if isinstance(loss, PoissonStopping):
        logs = k * math.log(loss.mean) - loss.mean - np.array([math.lgamma(i + 1) for i in k])
        return np.asarray(np.exp(logs))
    weights = [0.0, 1.0]
    for i in range(1, 2_999):
        weights.append(weights[-1] * (1 - loss.stopping_probability) * (i + loss.shape) / (i + 1))
    return np.array(weights) / sum(weights)


def best(one: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """The distribution of the best score, with that of no run in front."""
    reached = np.minimum(np.cumsum([0.0, *one]), 1.0)
    whole = np.array([(runs * x ** np.arange(runs.size)).sum() for x in reached])
    return np.append(runs[0], np.diff(whole))


@cases("loss", DISTRIBUTIONS, ids=repr)
def test_the_loss_covers_the_exact_distribution(loss: Stopping) -> None:
    runs = number_of_runs(loss)
    here, there = (best(np.array(WEIGHTS[name]) / 10, runs) for name in ("here", "there"))
    claimed = loss.epsilon(0.0)
    retained = here > 0
    assert float(np.abs(np.log(here[retained] / there[retained])).max()) <= claimed
    for epsilon in (0.0, 0.5, 1.0):
        assert distributions.hockey_stick(here, there, epsilon) <= loss.delta(epsilon)
        assert distributions.hockey_stick(there, here, epsilon) <= loss.delta(epsilon)


@cases("loss", DISTRIBUTIONS, ids=repr)
def test_all_words_together_follow_the_distribution(loss: Stopping) -> None:
    """The first word tells how often to run, and one each the score of a run: all of up to three runs."""
    mechanism = PrivateCandidates(run=run, loss=loss)
    score = [
        ((0, (WORDS * 6 // 10) - 1), Fraction(6, 10)),
        ((WORDS * 6 // 10 + 1, WORDS * 9 // 10 - 1), Fraction(3, 10)),
    ]
    score.append(((WORDS * 9 // 10 + 1, WORDS - 1), Fraction(1, 10)))

    def runs(word: int) -> int:
        """How many words of scores are read before a result is released, at most 4."""
        source = ListedSource([word, *[1] * 3])
        try:
            mechanism.release("here", rng=source)
        except StopIteration:
            return 4
        return len(source.requests) - 1

    distribution = number_of_runs(loss)
    one = np.array(WEIGHTS["here"]) / 10
    found_pieces = pieces(runs)
    assert sum(share for _, share in found_pieces) == 1
    for ends, share in found_pieces:
        count = runs(sum(ends) // 2)
        if count == 4:
            continue
        assert float(share) == pytest.approx(distribution[count], rel=1e-9)

        def released(*words: int, first: int = sum(ends) // 2) -> int:
            value = mechanism.release("here", rng=ListedSource([first, *words, *[1 << 63] * 4])).value
            assert value is None or value.output == "abc"[int(value.score)]
            return -1 if value is None else int(value.score)

        found = enumerated(released, *[score] * count)
        reached = np.cumsum([0.0, *one]) ** count
        expected = dict(enumerate(np.diff(reached))) if count else {-1: 1.0}
        assert {key: float(chance) for key, chance in found.items()} == pytest.approx(expected)


@cases("loss", DISTRIBUTIONS, ids=repr)
@cases("beta", [0.7, 0.1, 1e-3])
def test_the_best_run_is_among_the_best_share(loss: Stopping, beta: float) -> None:
    share = PrivateCandidates(run=run, loss=loss).utility_bound(beta)
    runs = number_of_runs(loss)
    missed = float((runs * (1 - share) ** np.arange(runs.size)).sum())
    if share < 1:
        assert beta * (1 - 1e-6) < missed <= beta * (1 + 1e-9)
    else:
        assert runs[0] > beta * (1 - 1e-9)


def test_candidates_are_taken_at_random() -> None:
    def released(value: int, candidate: str, source: RandomSource) -> tuple[int, str]:
        return value, candidate

    mechanism = PrivateCandidates(
        run=released, loss=RandomStopping(PureDP(0.1), 1.0, 0.5), candidates=["a", "b", "c"]
    )
    # All scores are equal: the first run wins, so that each candidate is as likely.
    for first in (0, WORDS // 2 + 5):  # one run, or two

        def candidate(*words: int, first: int = first) -> str:
            return str(mechanism.release(7, rng=ListedSource([first, *words])).value.candidate)

        distribution = enumerated(candidate, *[residues(3)] * (1 if not first else 2))
        assert distribution == dict.fromkeys("abc", Fraction(1, 3))
    assert mechanism.mean_runs == pytest.approx(2, rel=1e-9)
    assert PrivateCandidates(run=run, loss=DISTRIBUTIONS[-1]).mean_runs == 3.0


def test_odd_scores_have_their_rank() -> None:
    scores = itertools.cycle([math.nan, -math.inf, 3, np.float64("nan"), math.inf])
    mechanism = PrivateCandidates(
        run=lambda value, source: (next(scores), "output"), loss=RandomStopping(PureDP(0.1), 200.0, 0.5)
    )
    assert mechanism.release(None, rng=1).value == BestRun(math.inf, "output")
    lone = PrivateCandidates(run=lambda value, source: (math.nan, value), loss=DISTRIBUTIONS[0])
    assert lone.release("data", rng=1).value.output == "data"


def test_a_private_base_is_priced_and_marked() -> None:
    noise = Laplace(sensitivity=1, scale=4, neighboring=Neighboring.REPLACE_ONE)
    mechanism = PrivateCandidates(
        run=lambda value, source: (noise.release(value, rng=source).value, None),
        loss=RandomStopping(noise.privacy_loss, 1.0, 0.2),
    )
    release = mechanism.release(10, rng=1)
    assert release.simulated
    assert release.value == mechanism.release(10, rng=1).value
    assert not mechanism.release(10).simulated
    assert release.neighboring is mechanism.neighboring is Neighboring.REPLACE_ONE
    assert release.loss.epsilon(0.0) == pytest.approx(0.75)
    renyi = PrivateCandidates(run=run, loss=PoissonStopping(Gaussian(5.0), 10.0))
    assert renyi.privacy_loss.epsilon(1e-6) < 4 * Gaussian(5.0).epsilon(1e-6)


def test_bad_parameters_are_refused() -> None:
    stopping = RandomStopping(PureDP(0.1), 1.0, 0.5)
    calls: list[tuple[Any, str]] = [
        (lambda: PrivateCandidates(run=5, loss=stopping), "run must be callable"),  # type: ignore[arg-type]
        (lambda: PrivateCandidates(run=run, loss=PureDP(1.0)), "loss must be a RandomStopping"),  # type: ignore[arg-type]
        (lambda: PrivateCandidates(run=run, loss=stopping, candidates=[]), "candidates must hold"),
        (lambda: PrivateCandidates(run=run, loss=PoissonStopping(PureDP(1.0), 1e9)), "mean must be at most"),
        (lambda: PrivateCandidates(run=run, loss=RandomStopping(PureDP(1.0), 1e6, 0.5)), "shape must be"),
        (lambda: PrivateCandidates(run=lambda v, s: "secret", loss=stopping).release(1), "run must return"),  # type: ignore[arg-type, return-value]
        (
            lambda: PrivateCandidates(run=lambda v, s: ("secret", 1), loss=stopping).release(1),
            "run must return a pair of a real score",
        ),
    ]
    for call, message in calls:
        with pytest.raises(ParameterError, match=message) as caught:
            call()
        assert "secret" not in str(caught.value)
