"""The ladder: a leaderboard that moves only when somebody is better by a step."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import GeneralizationBound
from sfumato.adaptive.generalization.transcripts import log_binomial, log_sum, transcript_bound
from sfumato.adaptive.holdout.query_mean import ROUNDING, Query, query_mean, row_count
from sfumato.numerics.randomness.one_process import OneProcess

__all__ = ["Ladder", "ladder_bound"]


@final
class Ladder(OneProcess):
    """A leaderboard over a test set: each submission learns the best loss so far, in whole steps.

    It is not private: it has no ``privacy_loss``. What it promises is that the best loss shown is near the
    best of the submissions' losses on the population, however they were chosen: `ladder_bound`.

    Parameters
    ----------
    test_set : array, frame, or tuple of arrays
        Independent draws from the population; not seen by those who submit.
    step : float
        A submission is better if its loss is lower by more than that; what is shown is a multiple of it.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    References
    ----------
    Blum, Hardt (2015), The Ladder: A Reliable Leaderboard for Machine Learning Competitions.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.random.default_rng(1).integers(0, 2, 10_000)
    >>> board = Ladder(labels, step=0.05)
    >>> board.submit(lambda labels: labels != 0), board.submit(lambda labels: np.zeros(len(labels)))
    (0.5, 0.0)
    >>> board.submit(lambda labels: labels != 1)
    0.0
    """

    _name, _remedy = "ladder", "submit where it was made"

    def __init__(self, test_set: Any, *, step: float = 0.01) -> None:
        self._test_set, self._rows = test_set, row_count("test_set", test_set)
        self.step = _step(step)
        self.submissions = 0
        self._best: Fraction | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Ladder(step={self.step}, {self.submissions} submissions)"

    def submit(self, losses: Query) -> float:
        """Score a submission and return the best score so far.

        Parameters
        ----------
        losses : callable
            From rows to one loss in [0, 1] for each, of that row alone.

        Returns
        -------
        float
            The submission's mean loss, to the nearest step, if it is below the best by more than a step; else
            the best one again.
        """
        self._check_process()
        with self._lock:
            mean = query_mean(losses, self._test_set, self._rows)
            self.submissions += 1
            step = Fraction(self.step)
            if self._best is None or mean < self._best - step:
                self._best = round(mean / step) * step
            return float(self._best)


def ladder_bound(*, rows: int, submissions: int, step: float, beta: float) -> GeneralizationBound:
    r"""Bound how far the best score shown is from the best of the submissions' losses on the population.

    Parameters
    ----------
    rows, submissions : int
    step : float
        Of the ladder.
    beta : float
        The probability with which the bound may fail.

    Returns
    -------
    GeneralizationBound
        That holds at all times together, up to that many submissions.

    Notes
    -----
    What is shown falls from multiple to multiple of the step; which submissions moved it and to where it
    moved fixes the next submission. Those are at most :math:`1 + \sum_j \binom{k-1}{j} \binom{v}{j}` ways for
    k submissions and v multiples. What is shown is within a step of the least mean so far.

    Examples
    --------
    >>> print(ladder_bound(rows=50_000, submissions=10_000, step=0.05, beta=0.05))
    All answers within 0.089 of the population (95 % sure). Proof: all transcripts of the ladder counted.
    """
    tried = _check.integer("submissions", submissions, minimum=1)
    apart = _step(step)
    values = round(1 / apart) + 1
    counts = [
        log_binomial(tried - 1, moves) + log_binomial(values, moves)
        for moves in range(min(values, tried - 1) + 1)
    ]
    return transcript_bound(
        rows=rows,
        log_count=log_sum([0.0, *counts]),
        beta=beta,
        sample_error=apart + ROUNDING,
        theorem="all transcripts of the ladder counted",
    )


def _step(step: object) -> float:
    size = _check.unit_interval("step", step)
    if not 1e-4 <= size <= 0.5:
        _check.refuse(
            "step", "be from 0.0001 to 0.5", step, "pass 0.01; `ladder_bound` says what one promises"
        )
    return size
