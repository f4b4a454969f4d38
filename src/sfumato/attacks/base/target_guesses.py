"""Guesses of an attack about some people: what it claims, how sure it is, and where it is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.interval import Interval

__all__ = ["TargetGuesses", "inference_risk", "rate_interval"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetGuesses:
    """What an attack guessed about people, one entry each.

    Parameters
    ----------
    guesses : array of shape (people, ...)
        What it takes to be true: that the person is in the data, a value, a record's place in a table.
    scores : array of float, shape (people,)
        How sure it is: higher is surer. Only their order counts, unless the attack says more.
    claimed : bool array of shape (people,)
        Where the attack makes its claim; elsewhere it abstains.
    correct : bool array of shape (people,), optional
        Where the guess is the truth, if the curator gave it. For presence it is that the guess *would* be
        right were the person in the data: True everywhere, for members and for controls.

    Raises
    ------
    ParameterError
        If lengths or types do not fit, or a score is NaN.

    Examples
    --------
    >>> found = TargetGuesses(guesses=[1, 0, 1, 1], scores=[.9, .2, .8, .7],
    ...                       claimed=[True, False, True, True], correct=[True, True, True, False])
    >>> found.people, found.claims, found.hits
    (4, 3, 2)
    """

    guesses: NDArray[Any]
    scores: NDArray[np.float64]
    claimed: NDArray[np.bool_]
    correct: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        guesses, scores = np.asarray(self.guesses), np.asarray(self.scores, dtype=np.float64)
        if scores.ndim != 1 or not len(scores) or np.isnan(scores).any():
            remedy = "pass a score for each person"
            _check.refuse_type("scores", "be one number a person, at least one, none NaN", scores, remedy)
        if guesses.ndim < 1 or len(guesses) != len(scores):
            _check.refuse_type("guesses", "be one guess for each score", guesses, "pass them in one order")
        for name, value in (("guesses", guesses), ("scores", scores)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "claimed", _flags("claimed", self.claimed, len(scores)))
        if self.correct is not None:
            object.__setattr__(self, "correct", _flags("correct", self.correct, len(scores)))

    @property
    def people(self) -> int:
        """How many people the guesses are about."""
        return len(self.scores)

    @property
    def claims(self) -> int:
        """For how many the attack makes its claim."""
        return int(self.claimed.sum())

    @property
    def hits(self) -> int | None:
        """How many claims are right; None where the truth was not given."""
        return None if self.correct is None else int((self.claimed & self.correct).sum())


def _flags(name: str, values: Any, people: int) -> NDArray[np.bool_]:
    flags = np.asarray(values)
    if flags.dtype != np.bool_ or flags.shape != (people,):
        _check.refuse_type(name, "be one bool for each score", flags, "pass a bool array in the same order")
    return flags


def inference_risk(targets: TargetGuesses, controls: TargetGuesses | None) -> float | None:
    """Return how much of what controls do not give away targets do, as Giomi and others (2023) measure it.

    Parameters
    ----------
    targets, controls : TargetGuesses

    Returns
    -------
    float or None
        ``(success - baseline) / (1 - baseline)``; 0 where the baseline is 1, None where one is not known.
    """
    if controls is None or targets.hits is None or controls.hits is None:
        return None
    success, baseline = targets.hits / targets.people, controls.hits / controls.people
    return (success - baseline) / (1 - baseline) if baseline < 1 else 0.0


def rate_interval(hits: int, trials: int, risk: float) -> Interval:
    """Return Clopper and Pearson's interval; each end fails with a chance of at most ``risk``."""
    if trials == 0:
        return Interval(0.0, 1.0, tight=False)
    ends = (bound(hits, trials, risk) for bound in (lower_confidence_bound, upper_confidence_bound))
    lower, upper = (float(end) for end in ends)
    return Interval(lower, upper)
