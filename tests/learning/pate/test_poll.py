"""A poll is paid for before it is opened, and ends; students learn from it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, NeighboringMismatch, ParameterError, SimulatedCharge
from sfumato.learning.pate.confident import ConfidentGNMax
from sfumato.learning.pate.distillation import distill, distill_in_rounds
from sfumato.learning.pate.gnmax import GNMax
from sfumato.learning.pate.interactive import InteractiveGNMax
from sfumato.learning.pate.poll import Poll
from sfumato.learning.pate.teachers import Teachers
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.run_time import run_time

if run_time(__name__):
    from sklearn.linear_model import LogisticRegression


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open(
        None,
        budget=Budget.approximate(epsilon=2.0, delta=1e-5),
        privacy_unit="patient",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="patients(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    ) as opened:
        yield opened


def test_the_whole_poll_is_charged_at_once(ledger: Ledger) -> None:
    aggregator = ConfidentGNMax(threshold=50, check_stddev=60, stddev=20)
    poll = Poll(aggregator, questions=30, answers=10, ledger=ledger, delta=1e-6)
    (entry,) = ledger.entries()
    assert entry.loss == aggregator.loss(questions=30, answers=10) == poll.loss
    assert poll.receipt is not None
    assert not poll.simulated
    poll.label(np.tile([90, 10], (20, 1)))
    assert len(ledger.entries()) == 1
    assert (poll.questions_left, poll.answers_left) == (10, 0)


def test_no_more_questions_than_paid_for() -> None:
    poll = Poll(GNMax(stddev=5), questions=3, answers=2, rng=1)
    with pytest.raises(ParameterError, match="votes must have at most 3 rows"):
        poll.label(np.ones((4, 2), int))
    assert poll.label(np.tile([90, 10], (3, 1))).tolist() == [0, 0, -1]
    with pytest.raises(ParameterError, match="votes must have at most 0 rows"):
        poll.label(np.ones((1, 2), int))
    assert poll.label(np.ones((0, 2), int)).tolist() == []
    assert "questions_left=0" in repr(poll)


def test_what_does_not_fit_is_refused_before_votes_are_seen(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        Poll(GNMax(stddev=5), questions=1000, ledger=ledger, delta=1e-6)
    with pytest.raises(SimulatedCharge):
        Poll(GNMax(stddev=50), questions=1, ledger=ledger, delta=1e-6, rng=1)
    with pytest.raises(NeighboringMismatch):
        Poll(GNMax(stddev=50, neighboring=Neighboring.REPLACE_ONE), questions=1, ledger=ledger, delta=1e-6)
    assert not ledger.entries()
    with pytest.raises(ParameterError, match="aggregator must be"):
        Poll("gnmax", questions=1)  # type: ignore[arg-type]
    for wrong in (np.ones(3, int), np.ones((2, 2)), np.ones((2, 1), int)):
        with pytest.raises(ParameterError, match="votes must be"):
            Poll(GNMax(stddev=5), questions=3, rng=1).label(wrong)


def test_a_poll_is_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    poll = Poll(GNMax(stddev=5), questions=3, rng=1)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a Poll must be used where it was made"):
            copied(poll)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(poll.label, np.ones((1, 2), int)) for _ in range(20)]
    assert sum(each.exception() is None for each in asked) == 3
    fresh = Poll(GNMax(stddev=5), questions=3, rng=1)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(ParameterError, match="poll must be asked by the process that made it"):
        fresh.label(np.ones((1, 2), int))


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def taught(X: np.ndarray, y: np.ndarray) -> Teachers:
    return Teachers.fit(
        lambda number: LogisticRegression(),
        X,
        y,
        units=np.arange(len(X)),
        count=50,
        classes=["no", "yes"],
        rng=1,
    )


def test_a_student_learns_what_the_teachers_know() -> None:
    X, y = problem()
    teachers = taught(X[:2000], y[:2000])
    poll = Poll(ConfidentGNMax(threshold=30, check_stddev=10, stddev=5), questions=300, answers=200, rng=1)
    release = distill(LogisticRegression(), teachers, poll, X[2000:2500])
    assert release.loss == poll.loss
    assert release.simulated
    assert poll.questions_left == 0
    assert (release.value.predict(X[2500:]) == y[2500:]).mean() > 0.93


def test_a_student_asks_again_where_it_is_wrong() -> None:
    X, y = problem()
    teachers = taught(X[:2000], y[:2000])
    aggregator = InteractiveGNMax(teachers=50, threshold=15, confidence=0.97, check_stddev=8, stddev=5)
    poll = Poll(aggregator, questions=400, answers=150, rng=1)
    release = distill_in_rounds(LogisticRegression, teachers, poll, X[2000:2500], rounds=3)
    assert (release.value.predict(X[2500:]) == y[2500:]).mean() > 0.9
    assert poll.answers_left > 0  # the student's own labels stand in for the rest
    assert release.neighboring is Neighboring.ADD_REMOVE


def test_a_poll_without_answers_teaches_nothing() -> None:
    X, y = problem()
    poll = Poll(ConfidentGNMax(threshold=500, check_stddev=1, stddev=1), questions=10, rng=1)
    with pytest.raises(ParameterError, match="poll must answer at least one question"):
        distill(LogisticRegression(), taught(X[:500], y[:500]), poll, X[500:510])


def test_a_ledgers_path_is_no_ledger() -> None:
    with pytest.raises(ParameterError, match="ledger must be an open ledger"):
        Poll(GNMax(stddev=5), questions=3, ledger="x")  # type: ignore[arg-type]
