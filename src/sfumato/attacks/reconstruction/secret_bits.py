"""Guessed bits against the true ones, and the ceiling that a privacy loss puts on how many are right."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.loss_bounds import AttackBound, bit_accuracy_bound
from sfumato.attacks.base.target_guesses import TargetGuesses, rate_interval
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["as_bits", "bit_ceiling", "guessed_bits"]


def as_bits(name: str, values: ArrayLike, people: int | None) -> NDArray[np.bool_]:
    """Return one bit for each person, or refuse what is no bit."""
    bits = np.asarray(values)
    if bits.ndim != 1 or not len(bits) or (people is not None and len(bits) != people):
        _check.refuse_type(name, "be one bit for each person", bits, "pass them in the order of the columns")
    if bits.dtype != np.bool_ and not np.isin(bits, (0, 1)).all():
        _check.refuse_type(name, "be 0 or 1", bits, "code the secret as a bit")
    return bits.astype(np.bool_)


def guessed_bits(
    guesses: NDArray[np.bool_],
    scores: NDArray[np.float64],
    bits: NDArray[np.bool_] | None,
    claimed: NDArray[np.bool_] | None = None,
) -> TargetGuesses:
    """Return guesses of bits; all of them are claimed unless it is said of whom."""
    return TargetGuesses(
        guesses=guesses,
        scores=scores,
        claimed=np.ones(len(guesses), dtype=np.bool_) if claimed is None else claimed,
        correct=None if bits is None else guesses == bits,
    )


def bit_ceiling(
    targets: TargetGuesses, loss: PrivacyLoss | None, prior: float | None, confidence: float
) -> tuple[AttackBound, ...]:
    """Return the bound on independent bits, where a prior, the truth and a loss are known.

    A bit that is 0 is taken for an absent record: sums of bits have the same distribution. So add/remove,
    zero-out and replace-one all bound the change of one bit.
    """
    hits = targets.hits
    if hits is None or loss is None or prior is None:
        return ()
    if loss.neighboring is not None and not isinstance(loss.neighboring, Neighboring):
        return ()
    seen = rate_interval(hits, targets.people, (1 - confidence) / 6)
    condition = f"bits independent, each 1 with chance {prior:g}; mean over bits and noise"
    allowed = bit_accuracy_bound(loss, prior)
    return (AttackBound(name="accuracy", seen=seen, allowed=allowed, condition=condition),)
