"""Guess and check: intervals of the analyst's own, held against a holdout that says little but yes."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any, NamedTuple, final

from sfumato import _check
from sfumato.adaptive.holdout.mean_interval import mean_interval
from sfumato.adaptive.holdout.query_mean import ROUNDING, Query, query_mean, row_count
from sfumato.numerics.randomness.one_process import OneProcess

__all__ = ["CheckedGuess", "GuessAndCheck"]


class CheckedGuess(NamedTuple):
    """What a holdout says of a guess: an interval that is valid, the guess's own where it stands.

    Attributes
    ----------
    value : float
        The guess, or the holdout's rounded mean.
    lower, upper : float
        The population's mean is between them, as is that of all other answers, with the stated probability.
    stands : bool
        Whether the guess's interval is valid.

    Examples
    --------
    >>> CheckedGuess(0.5, 0.45, 0.55, stands=True).upper
    0.55
    """

    value: float
    lower: float
    upper: float
    stands: bool


@final
class GuessAndCheck(OneProcess):
    r"""A holdout without noise: it confirms an analyst's intervals, or tells its own mean.

    It is not private: it has no ``privacy_loss``, and answers are functions of the holdout's rows. Copies are
    the object itself, and other processes are refused: there beta would be spent once more.

    Parameters
    ----------
    holdout : array, frame, or tuple of arrays
        Independent draws from the population; not seen by whoever guesses.
    beta : float
        The probability with which any interval, of however many, may miss the population's mean.
    outcomes : int
        How many values the holdout's mean is rounded to.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    *Theorem.* With probability at least ``1 - beta`` every interval that is ever returned holds, for any
    strategy. *Proof.* The i-th question after f refuted guesses is fixed by which ones were refuted and by
    what was answered then: :math:`\binom{i-1}{f} g^f` ways. Each gets its own part of beta, :math:`\beta / (i
    (i+1) (f+2))` shared evenly by those ways, and Chernoff's interval at that part; over all i > f the parts
    add up to beta. A guess stands where its interval holds that one.

    References
    ----------
    Rogers, Roth, Smith, Srebro, Thakkar, Woodworth (2020), Guaranteed Validity for Empirical Approaches to
    Adaptive Data Analysis; Dwork and others (2015), EffectiveRounds.

    Examples
    --------
    >>> import numpy as np
    >>> checks = GuessAndCheck(np.random.default_rng(1).random(10_000))
    >>> checks.ask(lambda rows: rows, guess=0.5, width=0.05)
    CheckedGuess(value=0.5, lower=0.45, upper=0.55, stands=True)
    >>> checks.ask(lambda rows: rows < 0.1, guess=0.5, width=0.05).stands
    False
    """

    _name, _remedy = "checks", "ask where they were made"

    def __init__(self, holdout: Any, *, beta: float = 0.05, outcomes: int = 256) -> None:
        self._holdout, self._rows = holdout, row_count("holdout", holdout)
        self.beta = _check.unit_interval("beta", beta)
        self.outcomes = _check.integer("outcomes", outcomes, minimum=2)
        self.asked = self.refuted = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"GuessAndCheck({self.asked} asked, {self.refuted} refuted)"

    def ask(self, query: Query, *, guess: float, width: float) -> CheckedGuess:
        """Check a guess of a query's mean on the population.

        Parameters
        ----------
        query : callable
            From rows to one value in [0, 1] for each, of that row alone.
        guess : float
            From the training set, say.
        width : float
            How far from the guess the population's mean may be.

        Returns
        -------
        CheckedGuess

        Raises
        ------
        ParameterError
            If a number is outside its range, or the query does not return one number for each row.
        """
        middle = _check.share("guess", guess)
        half = _check.positive("width", width)
        self._check_process()
        with self._lock:
            return self._checked(query_mean(query, self._holdout, self._rows), middle, half)

    def _checked(self, mean: Fraction, middle: float, half: float) -> CheckedGuess:
        log_failure = self._log_failure()
        low, high = self._interval(mean, mean, log_failure)
        self.asked += 1
        lower, upper = max(0.0, middle - half), min(1.0, middle + half)
        if lower <= low and high <= upper:
            return CheckedGuess(middle, lower, upper, stands=True)
        self.refuted += 1
        # The answer depends on the rounded mean alone: its interval holds those of all means so rounded.
        last = self.outcomes - 1
        value, apart = Fraction(round(mean * last), last), Fraction(1, 2 * last)
        least, most = max(Fraction(0), value - apart), min(Fraction(1), value + apart)
        return CheckedGuess(float(value), *self._interval(least, most, log_failure), stands=False)

    def _log_failure(self) -> float:
        """Return the log of the part of beta that the next interval may use."""
        asked, refuted = self.asked + 1, self.refuted
        ways = math.log(math.comb(asked - 1, refuted)) + refuted * math.log(self.outcomes)
        shares = math.log(asked * (asked + 1)) + math.log(refuted + 2)
        return math.log(self.beta) - ways - shares

    def _interval(self, least: Fraction, most: Fraction, log_failure: float) -> tuple[float, float]:
        """Return what holds the intervals of all means between two; their ends rise with the mean."""
        low = mean_interval(float(least), self._rows, log_failure)[0]
        high = mean_interval(float(most), self._rows, log_failure)[1]
        return max(0.0, low - ROUNDING), min(1.0, high + ROUNDING)
