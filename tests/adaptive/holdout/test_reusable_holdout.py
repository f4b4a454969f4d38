"""The reusable holdout: what it costs, what it says, and that it does not believe an overfit analyst."""

from __future__ import annotations

import copy
import math
import os
import pickle
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.adaptive import ReusableHoldout, Thresholdout
from sfumato.errors import BudgetExceeded, ParameterError, RunExhausted, SimulatedCharge
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring


def made(train: NDArray[np.float64], holdout: NDArray[np.float64], **changes: float) -> ReusableHoldout:
    settings = {"threshold": 0.1, "noise": 2.0**-12, "overfits": 3, "queries": 50} | changes
    plan = Thresholdout(rows=len(holdout), **settings)  # type: ignore[arg-type]
    return ReusableHoldout(train, holdout, plan, rng=1)


def test_the_training_set_answers_until_it_is_too_far_off() -> None:
    train, holdout = np.full(4000, 0.75), np.full(5000, 0.25)
    reusable = made(train, holdout)
    agreed = reusable.ask(lambda rows: np.minimum(rows, 0.3))  # .3 and .25
    assert agreed.overfit is False
    assert agreed.value == pytest.approx(0.3, abs=1e-6)
    caught = reusable.ask(lambda rows: rows)
    assert caught.overfit is True
    assert caught.value == pytest.approx(0.25, abs=1 / 64)
    assert caught.value * 256 == int(caught.value * 256)
    low = reusable.ask(lambda rows: 1 - rows)  # the training set's mean may be too low as well
    assert low.overfit is True
    assert low.value == pytest.approx(0.75, abs=1 / 64)
    assert (reusable.asked, reusable.overfits_left) == (3, 1)
    assert repr(reusable) == "ReusableHoldout(47 queries and 1 overfits left)"


def test_an_answer_is_a_share_whatever_the_noise() -> None:
    found = []
    for seed in range(40):
        plan = Thresholdout(rows=1000, threshold=0.1, noise=4.0, overfits=1, queries=50)
        reusable = ReusableHoldout(np.ones(1000), np.zeros(1000), plan, rng=seed)
        while reusable.overfits_left:
            last = reusable.ask(lambda rows: rows)
        found.append(last.value)
    assert (min(found), max(found)) == (0.0, 1.0)


def test_it_ends_with_its_budget() -> None:
    reusable = made(np.ones(1000), np.zeros(1000))
    for _ in range(3):
        assert reusable.ask(lambda rows: rows).overfit
    with pytest.raises(RunExhausted, match="all 3 are used up"):
        reusable.ask(lambda rows: rows)
    short = made(np.ones(1000), np.ones(1000), queries=2)
    assert [short.ask(lambda rows: rows).overfit for _ in range(2)] == [False, False]
    with pytest.raises(RunExhausted, match="queries must be left for another answer, but all 2"):
        short.ask(lambda rows: rows)


def test_a_bad_query_uses_nothing_up() -> None:
    reusable = made(np.ones(100), np.zeros(100))
    for query in (
        lambda rows: rows[:-1],
        lambda rows: rows.mean(),
        lambda rows: rows[:, None],
        lambda rows: ["a"] * 100,
    ):
        with pytest.raises(ParameterError, match="one number for each row"):
            reusable.ask(query)
    assert (reusable.asked, reusable.overfits_left) == (0, 3)
    with pytest.raises(ZeroDivisionError):
        reusable.ask(lambda rows: 1 / 0)
    assert reusable.asked == 0
    odd = reusable.ask(lambda rows: np.where(np.arange(len(rows)) < 50, np.nan, 7.0))  # 0 and 1
    assert odd.value == 0.5


def test_the_loss_is_that_of_what_runs() -> None:
    plan = Thresholdout(rows=10_000, noise=0.01, overfits=4, queries=9)
    comparisons, answers = plan.comparisons, plan.answers
    assert comparisons.sensitivity == answers.sensitivity == Fraction(1, 10_000)
    assert (comparisons.threshold_scale, comparisons.query_scale, answers.scale) == (
        2 * Fraction(0.01),
        4 * Fraction(0.01),
        Fraction(0.01),
    )
    assert plan.privacy_loss.neighboring is Neighboring.REPLACE_ONE
    formula = 1e-4 / 0.01 * (1 / 2 + 2 * 4 / 4 + 4)
    assert formula <= plan.privacy_loss.epsilon() <= formula * 1.01
    # A row that is replaced moves a mean by no more than the sensitivity.
    rows = np.arange(50) / 49
    other = rows.copy()
    other[0] = 1.0
    small = Thresholdout(rows=50, noise=0.5)
    assert small.comparisons.sensitivity >= abs(Fraction(rows.mean()) - Fraction(other.mean()))


def test_a_ledger_is_charged_before_the_first_query() -> None:
    plan = Thresholdout(rows=1000, noise=0.01, overfits=2, queries=9)
    rows = np.zeros(1000)
    with Ledger.open(
        None,
        budget=Budget.pure(epsilon=2.0),
        privacy_unit="row",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=Dataset(schema="holdout(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    ) as ledger:
        reusable = ReusableHoldout(rows, rows, plan, ledger=ledger, description="validation")
        (entry,) = ledger.entries()
        assert entry.loss == plan.privacy_loss == reusable.privacy_loss
        assert entry.description == "validation"
        assert reusable.receipt is not None
        reusable.ask(lambda rows: rows)
        with pytest.raises(BudgetExceeded):
            ReusableHoldout(rows, rows, Thresholdout(rows=1000, noise=0.001), ledger=ledger)
        with pytest.raises(SimulatedCharge):
            ReusableHoldout(rows, rows, plan, ledger=ledger, rng=1)
        assert len(ledger.entries()) == 1


def test_a_copy_is_the_same_and_no_other_process_has_it() -> None:
    reusable = made(np.ones(1000), np.zeros(1000))
    assert copy.deepcopy(reusable) is reusable
    assert copy.copy(reusable) is reusable
    with pytest.raises(ParameterError, match="one process"):
        pickle.dumps(reusable)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            reusable.ask(lambda rows: rows)
            found = b"answered"
        except ParameterError as error:
            found = str(error).encode()
        os.write(write, found)
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as told:
        assert "forked" in told.read()


def signs_agree(feature: int, rows: Any) -> NDArray[np.bool_]:
    """Return where the sign of a feature is the label."""
    return np.asarray((rows[0][:, feature] > 0) == rows[1])


def test_an_analyst_who_overfits_is_not_believed() -> None:
    """The no-signal experiment: features are noise, so that no classifier is right more often than not."""
    n, d, k = 2000, 1000, 200
    rng = np.random.default_rng(7)
    sides = {name: (rng.normal(size=(n, d)), rng.random(n) < 0.5) for name in ("train", "holdout", "fresh")}

    def accuracy(weights: NDArray[np.float64]) -> dict[str, float]:
        return {name: float(((x @ weights > 0) == y).mean()) for name, (x, y) in sides.items()}

    correlations = {
        name: ((2 * y - 1)[:, None] * x).mean(axis=0) for name, (x, y) in sides.items() if name != "fresh"
    }
    # The naive analyst chooses features on which training and holdout agree.
    agree = correlations["train"] * correlations["holdout"] > 0
    best = np.argsort(-np.abs(correlations["train"]) * agree)[:k]
    naive = np.zeros(d)
    naive[best] = np.sign(correlations["train"][best])
    found = accuracy(naive)
    assert found["holdout"] > 0.58
    assert abs(found["fresh"] - 0.5) < 0.05
    # The same analyst through the reusable holdout, which answers the correlations and the accuracy.
    plan = Thresholdout(rows=n, threshold=0.04, noise=0.004, overfits=30, queries=d + 1)
    reusable = ReusableHoldout(sides["train"], sides["holdout"], plan, rng=3)
    told = np.zeros(d)
    for feature in range(d):
        if not reusable.overfits_left > 1:
            break
        answer = reusable.ask(partial(signs_agree, feature))
        told[feature] = answer.value - 0.5
    chosen = np.argsort(-np.abs(told))[:k]
    weights = np.zeros(d)
    weights[chosen] = np.sign(told[chosen])
    stated = reusable.ask(lambda rows: (rows[0] @ weights > 0) == rows[1])
    fresh = accuracy(weights)
    assert fresh["train"] > 0.6
    assert stated.overfit
    assert abs(stated.value - fresh["fresh"]) < 0.05


def test_the_bound_is_of_the_best_theorem_and_noise_is_chosen_for_it() -> None:
    plan = Thresholdout.calibrated(rows=50_000, overfits=5, queries=200)
    best = plan.population_bound(beta=0.05)
    errors = {
        noise: replace(plan, noise=noise).population_bound(beta=0.05).error
        for noise in (2.0**-15, plan.noise / 2, 2 * plan.noise)
    }
    assert best.error <= 1.1 * min(errors.values())
    assert errors[2 * plan.noise] > 1.1 * min(errors.values())
    assert plan.threshold < best.error < 0.12
    assert Thresholdout(rows=20, noise=0.001).population_bound().vacuous
    missed, noise = 0.01, 2.0**-6
    near = Thresholdout(rows=1000, threshold=0.25, noise=noise, overfits=7, queries=9)
    logs = 2 * math.log(4 / missed) + 4 * math.log(4 * 9 / missed)
    steps = 2 * float(near.comparisons.grid.step) + 2.0**-20
    assert near._sample_error(missed) == pytest.approx(0.25 + noise * logs + steps, rel=1e-10)
    # Where threshold and noise are small, what an answer is rounded to is the most.
    fine = Thresholdout(rows=1000, threshold=1e-4, noise=2.0**-22, overfits=7, queries=9)
    logs, step = math.log(4 * 7 / missed), float(fine.answers.grid.step)
    assert fine._sample_error(missed) == pytest.approx(2.0**-22 * logs + 1 / 256 + step + 2.0**-20, rel=1e-10)
    private = Thresholdout(rows=10**9, overfits=40, queries=100_000, noise=2.0**-12)
    assert private.population_bound().theorem != best.theorem


def test_bad_parameters_are_refused() -> None:
    rows = np.zeros(10)
    plan = Thresholdout(rows=10, noise=0.1)
    for call, message in (
        (lambda: Thresholdout(rows=0, noise=0.1), "rows"),
        (lambda: Thresholdout(rows=10, noise=0.0), "noise"),
        (lambda: Thresholdout(rows=10, noise=0.1, threshold=1.0), "threshold"),
        (lambda: Thresholdout(rows=10, noise=0.1, overfits=0), "overfits"),
        (lambda: Thresholdout(rows=10, noise=0.1, queries=0), "queries"),
        (lambda: plan.population_bound(beta=0.0), "beta"),
        (lambda: ReusableHoldout(rows, rows[:9], plan), "for the 9 rows"),
        (lambda: ReusableHoldout(rows[:0], rows, plan), "train must have rows"),
        (lambda: ReusableHoldout(rows, None, plan), "holdout must have rows"),
        (lambda: ReusableHoldout(rows, rows, 3), "Thresholdout"),  # type: ignore[arg-type]
        (lambda: ReusableHoldout(rows, rows, plan, ledger="l.db"), "ledger"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError, match=message):
            call()
