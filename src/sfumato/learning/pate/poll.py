"""A poll: so many questions to the teachers, paid for before the first of them."""

from __future__ import annotations

import os
import threading
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import Aggregator, as_votes
from sfumato.ledger.ledger import Ledger
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["Poll"]


@final
class Poll:
    """A number of questions that teachers may be asked, and how many of them they may answer.

    The whole loss is charged when the poll is made, whatever will be asked: it depends on no vote. A poll is
    one account: it is safe among threads, and cannot be copied, pickled or used by a forked process.

    Parameters
    ----------
    aggregator : Aggregator
    questions : int
        The most examples that may be asked about.
    answers : int, optional
        The most of them that teachers answer; all, unless given.
    ledger : Ledger, optional
        Charged at once. Without one nobody keeps the account but the caller.
    delta : float
        Where the ledger reads the charge's own guarantee.
    description : str
        For people who read the ledger.
    rng : None, int, numpy Generator or RandomSource
        None draws from the operating system's entropy; anything seeded only simulates.

    Raises
    ------
    BudgetExceeded
        The charge does not fit; no vote was looked at.

    Notes
    -----
    Guarantee: ``loss``, under the aggregator's relation (`Aggregator.loss`), for the labels of all calls
    together and everything made of them, a student above all. Condition: votes are of teachers of whom one
    unit changes as many as the aggregator says, on questions that depend on public examples and earlier
    labels only.

    Examples
    --------
    >>> from sfumato.learning.pate.gnmax import GNMax
    >>> poll = Poll(GNMax(stddev=5), questions=3, rng=1)
    >>> poll.label(np.array([[90, 5, 5], [10, 70, 20]])).tolist(), poll.questions_left
    ([0, 1], 1)
    """

    __slots__ = ("_aggregator", "_answers", "_lock", "_loss", "_process", "_questions", "_receipt", "_source")

    def __init__(
        self,
        aggregator: Aggregator,
        *,
        questions: int,
        answers: int | None = None,
        ledger: Ledger | None = None,
        delta: float = 0.0,
        description: str = "labels by PATE",
        rng: Rng = None,
    ) -> None:
        _check.instance("aggregator", aggregator, Aggregator, "pass GNMax(stddev=40)")
        _check.ledger(ledger)
        self._loss = aggregator.loss(questions=questions, answers=answers)
        self._aggregator = aggregator
        self._questions, self._answers = int(questions), int(questions if answers is None else answers)
        self._source = random_source(rng)
        self._lock, self._process = threading.Lock(), os.getpid()
        self._receipt: Receipt | None = None
        if ledger is not None:
            self._receipt = ledger.charge(
                self._loss, delta=delta, description=description, simulated=self._source.simulated
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a Poll must be used where it was made, got a copy or a pickle of it; pass the poll on"
        )

    def __repr__(self) -> str:
        left = f"questions_left={self._questions}, answers_left={self._answers}"
        return f"Poll({self._aggregator!r}, {left}, loss={self._loss!r})"

    @property
    def aggregator(self) -> Aggregator:
        """What answers."""
        return self._aggregator

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the whole poll."""
        return self._loss

    @property
    def receipt(self) -> Receipt | None:
        """Proof of the charge, where there is a ledger."""
        return self._receipt

    @property
    def simulated(self) -> bool:
        """Whether the randomness comes from a seed; such labels protect nobody."""
        return self._source.simulated

    @property
    def questions_left(self) -> int:
        """How many more examples may be asked about."""
        return self._questions

    @property
    def answers_left(self) -> int:
        """How many more of them teachers may answer."""
        return self._answers

    def label(self, votes: Any, probabilities: Any = None) -> NDArray[np.int64]:
        """Label examples.

        Parameters
        ----------
        votes : int array of shape (n, classes)
            Private: the teachers' votes, one a teacher in each row.
        probabilities : float array of shape (n, classes), optional
            What the student thinks of the examples, where the aggregator is interactive.

        Returns
        -------
        int64 array of shape (n,)
            Places among the classes, and -1 where there is no answer.

        Raises
        ------
        ParameterError
            If there are more examples than questions left; nothing was asked.
        """
        array = as_votes(votes)
        if os.getpid() != self._process:
            rule = "be asked by the process that made it"
            _check.refuse_state("poll", rule, "this process is a fork of it", "make another poll")
        with self._lock:
            if len(array) > self._questions:
                remedy = "make another poll, which is another charge"
                rule = f"have at most {self._questions} rows, the questions left"
                _check.refuse_state("votes", rule, f"there are {len(array)}", remedy)
            labels, answered = self._aggregator.label(array, self._answers, self._source, probabilities)
            self._questions -= len(array)
            self._answers -= answered
        return labels
