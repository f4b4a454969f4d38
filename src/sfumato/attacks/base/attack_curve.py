"""Curves of an attack over all thresholds: ROC for presence, precision and recall for values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.privacy.interpretation.plotting import label_text

__all__ = ["AttackCurve", "attack_curve", "counts_above", "draw", "roc", "thinned"]

_POINTS: Final = 400

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttackCurve:
    """What an attack achieves at each threshold of its scores, as it was seen: without intervals.

    Parameters
    ----------
    kind : {"roc", "precision-recall"}
        Of accusations against controls, or of guessed values.
    x, y : array of float, shape (points,)
        False and true positive rates, or recall and precision.
    x_label, y_label : str
        Of the axes.

    Examples
    --------
    >>> from sfumato.attacks.base.target_guesses import TargetGuesses
    >>> guesses = TargetGuesses(guesses=[1, 2, 3], scores=[.9, .5, .1], claimed=[True, True, True],
    ...                         correct=[True, False, True])
    >>> curve = attack_curve(guesses, None)
    >>> curve.x.round(3).tolist(), curve.y.round(3).tolist()
    ([0.333, 0.333, 0.667], [1.0, 0.5, 0.667])
    """

    kind: Literal["roc", "precision-recall"]
    x: Floats
    y: Floats
    x_label: str
    y_label: str


def attack_curve(targets: TargetGuesses, controls: TargetGuesses | None) -> AttackCurve | None:
    """Return the ROC curve against controls, or without them precision and recall; None without truth."""
    if controls is not None:
        false, true, _ = roc(targets.scores, controls.scores)
        labels = {"x_label": "false positive rate", "y_label": "true positive rate"}
        return AttackCurve(kind="roc", x=false, y=true, **labels)
    if targets.correct is None:
        return None
    order = np.argsort(-targets.scores, kind="stable")
    scores, right = targets.scores[order], np.cumsum(targets.correct[order])
    last = np.append(np.diff(scores) < 0, True)  # everyone at one score is claimed together
    claims = np.arange(1, len(scores) + 1)
    recall, precision = (right / len(scores))[last], (right / claims)[last]
    return AttackCurve(kind="precision-recall", x=recall, y=precision, x_label="recall", y_label="precision")


def counts_above(scores: Floats, cuts: Floats) -> NDArray[np.int64]:
    """Return how many scores exceed each cut."""
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), cuts, side="right"), dtype=np.int64)


def roc(members: Floats, others: Floats) -> tuple[Floats, Floats, float]:
    """Return false and true positive rates at every threshold, rising, and the area under them."""
    cuts = np.unique(np.concatenate([members, others]))[::-1]
    false, true = (np.append(counts_above(side, cuts) / len(side), 1.0) for side in (others, members))
    return false, true, float((np.diff(false) * (true[1:] + true[:-1])).sum() / 2)


def thinned(curve: AttackCurve) -> tuple[list[float], list[float]]:
    """Return some hundreds of the points, the ends among them, more where x is small."""
    last = len(curve.x) - 1
    even = np.linspace(0, last, _POINTS)
    early = np.geomspace(1, last + 1, _POINTS) - 1
    places = np.unique(np.concatenate([even, early]).astype(np.int64))
    return curve.x[places].tolist(), curve.y[places].tolist()


def draw(curve: AttackCurve, ax: Any, label: str) -> None:
    """Draw a curve into axes."""
    drawn: dict[str, Any] = {"drawstyle": "steps-post"} if curve.kind == "roc" else {}
    ax.plot(curve.x, curve.y, label=label_text(label), **drawn)
    ax.set_xlabel(curve.x_label)
    ax.set_ylabel(curve.y_label)
