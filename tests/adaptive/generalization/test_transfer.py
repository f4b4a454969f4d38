"""The transfer theorem: its numbers by brute force, and its two halves by enumeration of a small analysis."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.adaptive import transfer_bound
from sfumato.errors import ParameterError
from sfumato.privacy import Gaussian, Neighboring, PureDP

REPLACE = Neighboring.REPLACE_ONE


def test_the_split_of_beta_is_the_best_one() -> None:
    loss = Gaussian(2000.0, neighboring=REPLACE) * 50
    alpha, missed, beta = 0.03, 1e-5, 0.05
    found = transfer_bound(loss, sample_error=alpha, sample_beta=missed, beta=beta)
    delta, epsilon = found.parts["delta"], found.parts["epsilon"]
    assert loss.delta(epsilon) <= delta * (1 + 1e-9)
    shares = np.linspace(1e-4, 1 - 1e-4, 100_001)
    lost = 2 * delta / (1 + math.exp(epsilon))
    c, d = missed / (shares * beta), lost / ((1 - shares) * beta)
    brute = alpha + math.tanh(epsilon / 2) + float((c + 2 * d).min())
    assert found.error == pytest.approx(brute, rel=1e-6)
    assert found.error <= brute * (1 + 1e-6)
    for other in np.geomspace(1e-3, 0.6, 40):
        lost = 2 * loss.delta(other) / (1 + math.exp(other))
        excess = math.tanh(other / 2) + (math.sqrt(missed) + math.sqrt(2 * lost)) ** 2 / beta
        assert found.error <= 1.02 * (alpha + excess)


def test_pure_losses_need_no_delta() -> None:
    found = transfer_bound(PureDP(0.02, neighboring=REPLACE), sample_error=0.1, sample_beta=0.0, beta=0.01)
    assert found.error == pytest.approx(0.1 + math.tanh(0.01), rel=1e-9)
    assert not found.vacuous
    hopeless = transfer_bound(PureDP(9.0, neighboring=REPLACE), sample_error=0.0, sample_beta=0.0, beta=0.5)
    assert hopeless.vacuous
    assert "Vacuous" in str(hopeless)


def test_a_posterior_mean_is_near_the_populations() -> None:
    # Three rows of three kinds; the analyst reads one coin for each row, and asks for what the coins favor.
    population = np.array([0.2, 0.3, 0.5])
    for epsilon in (0.1, 0.7):
        lie = 1 / (1 + math.exp(epsilon))
        for coins in itertools.product([0, 1], repeat=3):
            likelihood = {
                rows: math.prod(
                    lie if coin != (row == 1) else 1 - lie for coin, row in zip(coins, rows, strict=True)
                )
                * math.prod(population[row] for row in rows)
                for rows in itertools.product(range(3), repeat=3)
            }
            total = sum(likelihood.values())
            for query in ([1, 0, 0], [0, 1, 0], [0.5, 0, 1]):
                posterior = sum(
                    weight * sum(query[row] for row in rows) / 3 for rows, weight in likelihood.items()
                )
                assert abs(posterior / total - population @ query) <= math.tanh(epsilon / 2)


def test_the_lemma_holds_for_every_event_of_small_mechanisms() -> None:
    """Random mechanisms, queries that are no means; and one that shows a row at times, which is close."""
    rng = np.random.default_rng(5)
    shown = 0.4 * np.eye(3, 4) + 0.6 * np.eye(4)[3]
    assert 0.6 < closest(1, np.ones(3) / 3, shown, np.eye(4, 3)) <= 1
    for size, _ in itertools.product((1, 2), range(40)):
        rows = list(itertools.product(range(3), repeat=size))
        mechanism = (
            0.5 * rng.dirichlet(np.full(4, 0.5), size=len(rows)) + 0.5 * np.eye(4)[[r[0] for r in rows]]
        )
        values = rng.integers(0, 2, (4, 3))
        queries = np.array([[max(v[x] for x in row) / size for row in rows] for v in values])
        assert closest(size, rng.dirichlet(np.ones(3)), mechanism, queries) <= 1 + 1e-9


def closest(size: int, population: np.ndarray, mechanism: np.ndarray, queries: np.ndarray) -> float:
    """Return the largest ratio of the two sides over events and epsilons; rows are of three kinds."""
    rows = list(itertools.product(range(3), repeat=size))
    weight, found = np.array([math.prod(population[x] for x in row) for row in rows]), 0.0
    neighbors = [
        (i, j)
        for i, j in itertools.product(range(len(rows)), repeat=2)
        if sum(x != y for x, y in zip(rows[i], rows[j], strict=True)) == 1
    ]
    for epsilon in (0.0, 0.3, 1.0):
        far = [np.maximum(mechanism[i] - math.exp(epsilon) * mechanism[j], 0).sum() for i, j in neighbors]
        for event in itertools.product([0, 1], repeat=4):
            joint = weight[:, None] * mechanism * np.array(event)
            excess = sum(joint[:, o] @ (queries[o] - weight @ queries[o]) for o in range(4))
            bound = math.tanh(epsilon / 2) * joint.sum() + 2 * max(far) / (1 + math.exp(epsilon))
            found = max(found, excess / bound)
    return found


def test_the_monitor_of_bassily_and_others_needs_more() -> None:
    """With the same lemma, for the best number of copies, on the losses of Gaussian noise."""
    copies = np.unique(np.geomspace(1, 1e5, 400).round())
    for stddev, answers, missed in itertools.product((200.0, 2000.0), (1, 50), (0.0, 1e-6, 1e-4)):
        loss, alpha, beta = Gaussian(stddev, neighboring=REPLACE) * answers, 0.03, 0.05
        found = transfer_bound(loss, sample_error=alpha, sample_beta=missed, beta=beta)
        for epsilon in np.geomspace(1e-3, 1.0, 30).tolist():
            lost = 2 * loss.delta(epsilon) / (1 + math.exp(epsilon))
            sure = 1 - (1 - beta) ** copies - copies * missed
            above = alpha + math.tanh(epsilon / 2) + copies * (missed + lost)
            assert found.error <= (above / np.where(sure > 0, sure, np.nan))[sure > 0].min() * (1 + 1e-3)


def test_bad_numbers_are_refused() -> None:
    loss = PureDP(0.1, neighboring=REPLACE)
    for changes, message in (
        ({"beta": 0.0}, "beta"),
        ({"beta": 1.0}, "beta"),
        ({"sample_error": -1.0}, "sample_error"),
        ({"sample_beta": 2.0}, "sample_beta"),
    ):
        with pytest.raises(ParameterError, match=message):
            transfer_bound(loss, **({"sample_error": 0.1, "sample_beta": 0.1, "beta": 0.1} | changes))
    with pytest.raises(ParameterError, match="replacing one row"):
        transfer_bound(PureDP(0.1), sample_error=0.1, sample_beta=0.1, beta=0.1)
