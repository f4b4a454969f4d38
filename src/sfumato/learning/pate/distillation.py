"""A student that learns from the labels of a poll; it may be shown, and asked without limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import UNANSWERED
from sfumato.learning.pate.poll import Poll
from sfumato.learning.pate.teachers import Teachers
from sfumato.mechanisms.base.release import Release

__all__ = ["distill", "distill_in_rounds"]


def distill(student: Any, teachers: Teachers, poll: Poll, X: Any) -> Release:  # noqa: N803
    """Train a student on public examples that teachers label.

    Parameters
    ----------
    student : classifier
        An untrained one with scikit-learn's ``fit``; it is fitted in place.
    teachers : Teachers
    poll : Poll
        Asked about all examples that it has questions left for, in order.
    X : array of shape (n, ...)
        Public, unlabelled: no example of the private data.

    Returns
    -------
    Release
        Of the student, with the poll's loss: a function of its labels and public examples.

    Raises
    ------
    ParameterError
        If no example was answered; what the labels are is public.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sfumato.learning import GNMax, Poll, Teachers
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> teachers = Teachers.fit(
    ...     lambda number: LogisticRegression(), X, X[:, 0] > 0, units=np.arange(2000), count=20,
    ...     classes=[False, True], rng=1,
    ... )
    >>> poll = Poll(GNMax(stddev=2), questions=40, rng=1)
    >>> release = distill(LogisticRegression(), teachers, poll, rng.normal(size=(40, 2)))
    >>> release.value.predict(np.array([[3.0, 0.0], [-3.0, 0.0]])).tolist()
    [True, False]
    """
    _check_asked(teachers, poll)
    X = np.asarray(X)[: poll.questions_left]  # noqa: N806
    labels = poll.label(teachers.votes(X))
    _learn(student, teachers, X, labels)
    return _release_of(student, poll)


def distill_in_rounds(
    make: Callable[[], Any],
    teachers: Teachers,
    poll: Poll,
    X: Any,  # noqa: N803
    *,
    rounds: int = 2,
) -> Release:
    """Train a student round by round, so that it asks where it is wrong: for an interactive aggregator.

    Parameters
    ----------
    make : callable
        Returns an untrained classifier with ``fit``, ``predict_proba`` and ``classes_``.
    teachers : Teachers
    poll : Poll
        Its questions are shared out equally among the rounds.
    X : array of shape (n, ...)
        Public, unlabelled. Before the first round the student thinks all classes equally likely.
    rounds : int

    Returns
    -------
    Release
        Of the last student, with the poll's loss.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sfumato.learning import InteractiveGNMax, Poll, Teachers
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> teachers = Teachers.fit(
    ...     lambda number: LogisticRegression(), X, X[:, 0] > 0, units=np.arange(2000), count=20,
    ...     classes=[False, True], rng=1,
    ... )
    >>> aggregator = InteractiveGNMax(teachers=20, threshold=5, check_stddev=2, stddev=2)
    >>> poll = Poll(aggregator, questions=40, rng=1)
    >>> release = distill_in_rounds(LogisticRegression, teachers, poll, rng.normal(size=(40, 2)))
    >>> release.value.predict(np.array([[3.0, 0.0], [-3.0, 0.0]])).tolist()
    [True, False]
    """
    rounds = _check.integer("rounds", rounds, minimum=1)
    _check_asked(teachers, poll)
    X = np.asarray(X)[: poll.questions_left]  # noqa: N806
    labels = np.full(len(X), UNANSWERED, np.int64)
    student = None
    for rows in np.array_split(np.arange(len(X)), rounds):
        labels[rows] = poll.label(teachers.votes(X[rows]), _thoughts(student, teachers, X[rows]))
        known = labels[labels != UNANSWERED]
        if len(np.unique(known)) > 1:
            student = make()
            _learn(student, teachers, X, labels)
    if student is None:
        student = make()
        _learn(student, teachers, X, labels)
    return _release_of(student, poll)


def _check_asked(teachers: object, poll: object) -> None:
    _check.instance("teachers", teachers, Teachers, "pass Teachers.fit(...)")
    _check.instance("poll", poll, Poll, "pass Poll(GNMax(stddev=40), questions=...)")


def _learn(student: Any, teachers: Teachers, X: NDArray[Any], labels: NDArray[np.int64]) -> None:  # noqa: N803
    answered = labels != UNANSWERED
    if not answered.any():
        remedy = "ask more questions, or lower the aggregator's threshold"
        _check.refuse_state("poll", "answer at least one question", "it answered none", remedy)
    student.fit(X[answered], np.asarray(teachers.classes)[labels[answered]])


def _thoughts(student: Any, teachers: Teachers, X: NDArray[Any]) -> NDArray[np.float64]:  # noqa: N803
    """Return the student's probabilities in the order of the classes."""
    guess = np.zeros((len(X), len(teachers.classes)))
    if student is None:
        return guess + 1 / len(teachers.classes)
    if len(X):
        known = [teachers.classes.index(label) for label in np.asarray(student.classes_).tolist()]
        guess[:, known] = np.clip(student.predict_proba(X), 0.0, 1.0)
    return guess


def _release_of(student: Any, poll: Poll) -> Release:
    return Release(
        value=student,
        loss=poll.loss,
        neighboring=poll.aggregator.neighboring,
        receipt=poll.receipt,
        simulated=poll.simulated,
    )
