"""Curves of a loss as numbers: privacy profile, trade-off, epsilon over steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.intervals import Composition
from sfumato.privacy.accountant.precision import STANDARD
from sfumato.privacy.interpretation.tradeoff import trade_off

__all__ = ["Curve", "Kind", "curve"]

Kind: TypeAlias = Literal["profile", "trade-off", "steps"]

_KINDS: Final = ("profile", "trade-off", "steps")
_MIN_DELTA: Final = 1e-10


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A curve known between two bounds, as numbers to plot or to store.

    Parameters
    ----------
    kind : {"profile", "trade-off", "steps", "loss"}
        What is bounded; see `PrivacyLoss.curve` and `LossVariable.curve`.
    x, lower, upper : ndarray of float, shape (points,)
        Abscissae, and the bounds at each of them.
    x_label, y_label : str
        Labels of the axes.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> curve = PureDP(1.0).curve("trade-off", points=5)
    >>> curve.x_label, bool((curve.lower <= curve.upper).all())
    ('false positive rate', True)
    """

    kind: Kind | Literal["loss"]
    x: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    x_label: str
    y_label: str


def curve(loss: Composition, kind: Kind, *, delta: float | None, points: int) -> Curve:
    """Return a curve; see `sfumato.privacy.PrivacyLoss.curve`."""
    if kind not in _KINDS:
        _check.refuse("kind", f"be one of {', '.join(_KINDS)}", kind, "pass one of these names")
    points = _check.integer("points", points, minimum=2, remedy="pass how many points to compute")
    if kind != "steps" and delta is not None:
        _check.refuse("delta", "be given for steps only", delta, "leave it out")
    if kind == "profile":
        return _profile(loss, points)
    if kind == "trade-off":
        rates = np.linspace(0.0, 1.0, points)
        lower, upper, _ = trade_off(loss, rates)
        labels = {"x_label": "false positive rate", "y_label": "smallest false negative rate"}
        return Curve(kind=kind, x=rates, lower=lower, upper=upper, **labels)
    if delta is None:
        _check.refuse("delta", "be given for steps", delta, "pass delta=1e-6 or the delta that is meant")
    return _steps(loss, _check.probability("delta", delta, "pass a small probability such as 1e-6"), points)


def _profile(loss: Composition, points: int) -> Curve:
    far = intervals.charged_epsilon_interval(loss, _MIN_DELTA, STANDARD).upper
    if math.isinf(far):
        far = 10.0
    epsilons = np.linspace(0.0, far, points)
    found = [intervals.delta_on_curve(loss, float(epsilon), STANDARD) for epsilon in epsilons]
    return _between("profile", epsilons, found, "epsilon", "delta")


def _steps(loss: Composition, delta: float, points: int) -> Curve:
    """Let every part have run the same proportion of its count, rounded up."""
    largest = max((count for _, count in loss.terms), default=0)
    done = np.unique(np.ceil(np.linspace(0, largest, min(points, largest + 1))).astype(np.int64))
    found = []
    for steps in done.tolist():
        terms = tuple((term, -(-count * steps // largest)) for term, count in loss.terms if steps)
        found.append(intervals.epsilon_interval(intervals.Parts(terms), delta, STANDARD))
    x_label = "steps of the part that runs most often"
    return _between("steps", done.astype(float), found, x_label, f"epsilon at delta {delta:g}")


def _between(
    kind: Kind, x: NDArray[np.float64], found: Sequence[Interval], x_label: str, y_label: str
) -> Curve:
    lower, upper = (np.array([bound[end] for bound in found]) for end in (0, 1))
    return Curve(kind=kind, x=x, lower=lower, upper=upper, x_label=x_label, y_label=y_label)
