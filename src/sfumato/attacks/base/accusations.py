"""Accusations: who is taken to be in the data, by scores above a threshold."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.target_guesses import TargetGuesses

__all__ = ["Accusations", "accusations", "as_truth"]

_HALVES = 0x68616C66


class Accusations(NamedTuple):
    """Accused targets and controls, and the threshold above which they are.

    Attributes
    ----------
    targets : TargetGuesses
        Who is in the data; where the truth is not known, everyone who was asked about.
    controls : TargetGuesses or None
        Who is not, but for those whose scores chose the threshold.
    threshold : float
        Infinite where nothing says what to choose.
    """

    targets: TargetGuesses
    controls: TargetGuesses | None
    threshold: float


def accusations(
    scores: NDArray[np.float64],
    *,
    truth: NDArray[np.bool_] | None,
    controls: NDArray[np.float64] | None,
    false_positive_rate: float,
    threshold: float | None = None,
) -> Accusations:
    """Accuse those who score above a threshold.

    Parameters
    ----------
    scores : array of shape (targets,)
        Higher for who looks present.
    truth : bool array of shape (targets,), optional
        Who is. The others become controls.
    controls : array, optional
        Scores of people who are not in the data.
    false_positive_rate : float
        That the threshold aims at.
    threshold : float, optional
        From theory. By default one half of the controls' scores, chosen by lot, sets it, and only the
        other half is counted: on the same scores it would look better than it is.

    Returns
    -------
    Accusations
    """
    rate = _check.unit_interval("false_positive_rate", false_positive_rate)
    others = np.zeros(0) if controls is None else np.asarray(controls, dtype=np.float64)
    known = truth is not None
    if truth is not None:
        others, scores = np.concatenate([others, scores[~truth]]), scores[truth]
    if not len(scores):
        remedy = "pass targets who are in the data"
        _check.refuse_state("truth", "be True for one target at least", "it is for none", remedy)
    if threshold is None:
        threshold, others = _chosen(others, rate)
    return Accusations(
        _accused(scores, threshold, known=known),
        _accused(others, threshold, known=True) if len(others) else None,
        threshold,
    )


def _chosen(others: NDArray[np.float64], rate: float) -> tuple[float, NDArray[np.float64]]:
    """Return a threshold by the half of the scores, and the other half."""
    if len(others) < 2:
        return math.inf, others
    mixed = np.random.default_rng(_HALVES).permutation(others)
    half = len(mixed) // 2
    ordered = np.sort(mixed[:half])
    return float(ordered[half - 1 - math.floor(rate * half)]), mixed[half:]


def _accused(scores: NDArray[np.float64], threshold: float, *, known: bool) -> TargetGuesses:
    above = scores > threshold
    right = np.ones(len(scores), dtype=np.bool_) if known else None
    return TargetGuesses(guesses=above, scores=scores, claimed=above, correct=right)


def as_truth(truth: ArrayLike | None, targets: int) -> NDArray[np.bool_] | None:
    """Return who is in the data, or refuse what is not a bool for each target."""
    if truth is None:
        return None
    flags = np.asarray(truth)
    if flags.dtype != np.bool_ or flags.shape != (targets,):
        _check.refuse_type("truth", "be one bool for each target", flags, "pass True for who is in the data")
    return flags
