"""The law of the best run, by its generating function, against the loss and the sampler."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import BudgetExceeded, ParameterError, SimulatedCharge
from sfumato.learning.tuning.tune import Runs, tune
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms import Laplace
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy import ZCDP, AdaptiveChoice, Neighboring, PureDP, RandomStopping
from tests.cases import cases
from tests.chance import accepts_only, pearson

CANDIDATES = (0, 1, 2)
SCORES = {"here": (4, 6, 1), "there": (5, 5, 0)}  # one unit moves each score by at most 1
NOISE = Laplace(sensitivity=1, scale=2)
REACH = 60
LAWS = [
    Runs.geometric(4),
    Runs.logarithmic(3),
    Runs.negative_binomial(3, 2.5),
    Runs.negative_binomial(3, -0.5),
]
LAWS.append(Runs.poisson(3))


def one_run(scores: tuple[int, ...]) -> np.ndarray:
    """The joint law of a run's candidate and noisy score, shape (candidates, scores)."""
    k = np.arange(-REACH, REACH + 1)
    q = math.exp(-1 / 2)
    rows = [(1 - q) / (1 + q) * q ** np.abs(k - score) for score in scores]
    return np.stack(rows) / len(scores)


def numbers(runs: Runs) -> np.ndarray:
    """The law of the number of runs, from its definition."""
    k = np.arange(0, 400)
    if runs.shape is None:
        logs = k * math.log(runs.mean) - np.array([math.lgamma(i + 1) for i in k])
    else:
        eta = runs.shape
        steps = [math.log((i + eta) / (i + 1)) if i else 0.0 for i in range(len(k) - 1)]
        logs = np.concatenate([[0.0], np.cumsum(steps)]) + k * math.log1p(-runs.stopping_probability)
        logs[0] = -np.inf
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def best_run(scores: tuple[int, ...], runs: Runs) -> np.ndarray:
    """The law of the best: first among equal scores, which are in random order."""
    joint = one_run(scores)
    chance, of = numbers(runs), joint.sum(axis=0)
    up_to = np.minimum(np.cumsum(of), 1.0)
    generating = (chance[:, None] * up_to[None, :] ** np.arange(len(chance))[:, None]).sum(axis=0)
    best = np.diff(np.concatenate([[chance[0]], generating]))
    return np.append((best * joint / of).ravel(), chance[0])


@cases("runs", LAWS, ids=repr)
def test_the_mean_is_what_was_asked(runs: Runs) -> None:
    chance = numbers(runs)
    assert (chance * np.arange(len(chance))).sum() == pytest.approx(runs.mean, rel=1e-7)


@cases("runs", LAWS, ids=repr)
def test_no_neighbor_is_further_than_the_loss_says(runs: Runs) -> None:
    loss = runs.loss(NOISE.privacy_loss)
    here, there = (best_run(SCORES[side], runs) for side in ("here", "there"))
    for p, q in ((here, there), (there, here)):
        for epsilon in (0.0, 0.3, 0.6, 1.0, 1.4):
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= loss.delta(epsilon) + 1e-12
    assert loss.epsilon(0.0) > NOISE.privacy_loss.epsilon(0.0)


def test_a_fixed_number_of_runs_would_be_caught() -> None:
    """The test above can fail: the best of a known number of runs shows what one run hardly does."""
    paid = Runs.geometric(4000).loss(PureDP(0.5))
    never = [(1 - chance) ** 4000 for chance in (1e-3, 1e-3 * math.exp(0.5))]
    assert math.log(never[0] / never[1]) > paid.epsilon(0.0)


def test_an_audit_finds_the_search_true_and_an_unpaid_one_false() -> None:
    """Where everything is tried and the best is told, the price of one run is not enough."""
    rng = np.random.default_rng(6)
    pairs = [((4, 4, 4), (5, 5, 5))]

    def paid(scores: tuple[int, ...], size: int) -> list[Any]:
        def once(candidate: int, source: RandomSource) -> tuple[int, None]:
            return NOISE.release(scores[candidate], rng=source).value, None

        found = (
            tune(once, CANDIDATES, NOISE.privacy_loss, runs=Runs.geometric(2), rng=rng) for _ in range(size)
        )
        return [(each.value.candidate, each.value.score) for each in found]

    claim = Runs.geometric(2).loss(NOISE.privacy_loss).epsilon(0.0)
    assert not audit(paid, epsilon=claim, pairs=pairs, trials=600).violated

    def unpaid(scores: tuple[int, ...], size: int) -> Any:
        tried = np.array(scores)[rng.integers(0, 3, (size, 25))]
        return NOISE.outputs(tried.ravel(), 1, rng)[0].reshape(size, 25).max(axis=1)

    assert audit(unpaid, epsilon=NOISE.privacy_loss.epsilon(0.0), pairs=pairs, trials=40_000).violated


def train(candidate: int, source: RandomSource) -> tuple[int, int]:
    score = NOISE.release(SCORES["here"][candidate], rng=source).value
    return score, score


@pytest.mark.parametrize(
    ("runs", "others"),
    [(Runs.geometric(4), Runs.geometric(2)), (Runs.poisson(3), Runs.poisson(1.4))],
    ids=["geometric", "poisson"],
)
def test_the_best_run_follows_its_law(runs: Runs, others: Runs) -> None:
    law = best_run(SCORES["here"], runs)
    rng = np.random.default_rng(4)
    count = 800
    observed = np.zeros(len(law))
    for _ in range(count):
        value = tune(train, CANDIDATES, NOISE.privacy_loss, runs=runs, rng=rng).value
        place = len(law) - 1 if value is None else value.candidate * (2 * REACH + 1) + value.score + REACH
        observed[place] += 1
    order = np.argsort(law)
    groups = np.searchsorted(np.cumsum(law[order]), np.linspace(0.03, 0.97, 15))

    def grouped(values: np.ndarray) -> dict[int, float]:
        """Some fifteen groups of outcomes that are about as likely as each other."""
        return dict(enumerate(np.add.reduceat(values[order], np.unique(np.append(0, groups))).tolist()))

    accepts_only(
        pearson({group: int(times) for group, times in grouped(observed).items()}),
        grouped(law),
        fewer_runs=grouped(best_run(SCORES["here"], others)),
        one_run=grouped(np.append(one_run(SCORES["here"]).ravel(), 0.0)),
        neighbor=grouped(best_run(SCORES["there"], runs)),
    )


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open(
        None,
        budget=Budget.approximate(epsilon=4.0, delta=1e-5),
        privacy_unit="patient",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="patients(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    ) as opened:
        yield opened


def test_the_search_is_charged_before_its_first_run(ledger: Ledger) -> None:
    seen = []

    def watched(candidate: str, source: RandomSource) -> tuple[float, str]:
        seen.append(len(ledger.entries()))
        return 1.0, candidate

    best = tune(watched, ["a"], PureDP(0.1), runs=Runs.geometric(3), ledger=ledger, description="rates")
    assert set(seen) == {1}
    (entry,) = ledger.entries()
    assert entry.loss == best.loss == RandomStopping(PureDP(0.1), 1.0, 1 / 3)
    assert entry.description == "rates"
    assert best.receipt is not None
    assert not best.simulated


def test_what_does_not_fit_is_never_run(ledger: Ledger) -> None:
    def never(candidate: str, source: RandomSource) -> tuple[float, str]:
        raise AssertionError

    with pytest.raises(BudgetExceeded):
        tune(never, ["a"], PureDP(2.0), runs=Runs.geometric(3), ledger=ledger)
    with pytest.raises(SimulatedCharge):
        tune(never, ["a"], PureDP(0.1), runs=Runs.geometric(3), ledger=ledger, rng=1)
    assert not ledger.entries()


def test_the_worst_candidate_sets_the_price() -> None:
    losses = [ZCDP(0.01), ZCDP(0.02)]
    best = tune(train, (0, 1), losses, runs=Runs.logarithmic(5), rng=1)
    assert best.loss == Runs.logarithmic(5).loss(AdaptiveChoice(tuple(losses)))
    assert best.loss.epsilon(1e-6) == pytest.approx(
        Runs.logarithmic(5).loss(ZCDP(0.02)).epsilon(1e-6), rel=1e-6
    )


@cases(
    ("changes", "name"),
    [
        ({"train": 3}, "train"),
        ({"candidates": []}, "candidates"),
        ({"candidates": "abc"}, "candidates"),
        ({"base_loss": 0.5}, "base_loss"),
        ({"base_loss": [PureDP(0.1)]}, "base_loss"),
        ({"runs": 10}, "runs"),
        ({"train": lambda candidate, source: "secret"}, "run"),
        ({"train": lambda candidate, source: ("secret", 1)}, "run"),
    ],
)
def test_misuse(changes: dict[str, Any], name: str) -> None:
    usual: dict[str, Any] = {"train": train, "candidates": CANDIDATES, "base_loss": NOISE.privacy_loss}
    arguments = usual | {"runs": Runs.geometric(3), "rng": 1} | changes
    with pytest.raises(ParameterError, match=f"^{name} must") as raised:
        tune(**arguments)
    assert "secret" not in str(raised.value)


@cases(
    ("make", "name"),
    [
        (lambda: Runs.geometric(1), "mean"),
        (lambda: Runs.poisson(0), "mean"),
        (lambda: Runs.geometric(math.inf), "mean"),
        (lambda: Runs.negative_binomial(3, -1), "shape"),
        (lambda: Runs.geometric(3).loss("loss"), "loss"),  # type: ignore[arg-type]
    ],
)
def test_bad_laws(make: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must"):
        make()


def test_a_ledgers_path_is_no_ledger() -> None:
    loss = Laplace(sensitivity=1, scale=1).privacy_loss
    with pytest.raises(ParameterError, match="ledger must be an open ledger, got 'x'"):
        tune(lambda _, source: (1.0, source), [1], loss, runs=Runs.geometric(2), ledger="x")  # type: ignore[arg-type]
