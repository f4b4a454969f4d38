"""Calibration: the smallest noise with a wanted privacy guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import log_down
from sfumato.privacy._outward import UNIT, above, below
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.gaussian_profile import log_profile
from sfumato.privacy.interpretation.tradeoff import trade_off
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["analytic_gaussian_stddev", "calibrate", "classical_gaussian_stddev"]

_FINEST: Final = 1e-6
_COARSE: Final = 1e-2
_STEPS: Final = 60
_LARGEST: Final = math.log(1e12)
_MAX_UP: Final = math.log(64.0)
_MAX_DOWN: Final = math.log(4.0)
"""Less noise costs more to account for than more noise does, so steps down are short."""
_CLOSE_BELOW: Final = -1e-12
"""A bound that meets the target by this much meets it also where sums are rounded in another order."""


def analytic_gaussian_stddev(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation of continuous Gaussian noise that is (epsilon, delta)-DP.

    Parameters
    ----------
    sensitivity : float
        Largest L2 distance between the answers on neighboring datasets.
    epsilon : float
        Non-negative.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        Standard deviation in the units of ``sensitivity``, rounded to the private side within about 1e-12.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP for real Gaussian noise, under the relation that the sensitivity is stated
    for. Noise drawn on a grid follows another distribution: calibrate `DiscreteGaussian` for it.

    References
    ----------
    Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy", Algorithm 1.

    Examples
    --------
    >>> round(analytic_gaussian_stddev(sensitivity=1.0, epsilon=1.0, delta=1e-5), 9)
    3.730631635
    """
    sensitivity = _check.positive("sensitivity", sensitivity, "pass how far one unit moves the answer")
    epsilon = _check.non_negative("epsilon", epsilon, "pass a bound on the loss such as 1.0")
    delta = _check.unit_interval("delta", delta, "pass a small probability such as 1e-6")
    log_delta = log_down(delta)
    low, high = 0.0, 1.0
    while log_profile(1 / high, epsilon) > log_delta:
        low, high = high, 2 * high
    while low == 0.0:
        if log_profile(2 / high, epsilon) > log_delta:
            low = high / 2
        else:
            high /= 2
    while (middle := 0.5 * (low + high)) not in {low, high} and high - low > 4 * UNIT * high:
        if log_profile(above(1 / middle, 1.0), epsilon) <= log_delta:
            high = middle
        else:
            low = middle
    stddev = above(high * sensitivity, 4.0)
    if math.isinf(stddev):
        _check.refuse("delta", "be reached by a finite standard deviation", delta, "allow a larger delta")
    return stddev


def classical_gaussian_stddev(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation that textbooks give, to compare with: nothing here uses it.

    Parameters
    ----------
    sensitivity : float
        Largest L2 distance between the answers on neighboring datasets.
    epsilon : float
        Positive, at most 1: beyond it the formula is not private.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        ``sensitivity * sqrt(2 log(1.25 / delta)) / epsilon``, rounded up.

    References
    ----------
    Dwork, Roth (2014), Theorem A.1, for epsilon below 1; Balle, Wang (2018), that it fails for large ones.

    Examples
    --------
    >>> round(classical_gaussian_stddev(sensitivity=1.0, epsilon=1.0, delta=1e-5), 3)
    4.845
    """
    sensitivity = _check.positive("sensitivity", sensitivity, "pass how far one unit moves the answer")
    if _check.positive("epsilon", epsilon, "pass a bound on the loss such as 1.0") > 1:
        remedy = "the formula fails beyond; use analytic_gaussian_stddev"
        _check.refuse("epsilon", "be at most 1", epsilon, remedy)
    delta = _check.unit_interval("delta", delta, "pass a small probability such as 1e-6")
    return above(sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon, 16.0)


def calibrate(
    make: Callable[[float], PrivacyLoss],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    advantage: float | None = None,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    tolerance: float = 1e-4,
) -> float:
    """Return the smallest noise for a wanted guarantee, rounded up.

    Parameters
    ----------
    make : callable
        From a positive float, such as a noise multiplier, to the loss of the whole run. More must never
        mean a greater loss.
    epsilon, delta : float
        The guarantee that is wanted: epsilon positive, delta in [0, 1).
    advantage : float, optional
        Instead of epsilon: the largest advantage of any attack over guessing, strictly between 0 and 1.
    true_positive_rate, false_positive_rate : float, optional
        Instead of epsilon: the largest true positive rate of any attack at a false positive rate.
    tolerance : float
        How far the answer may lie above the smallest one, relatively; from 1e-6 to below 1.

    Returns
    -------
    float
        A noise at which the certified upper bound is at most what is wanted. The smallest noise is proven to
        lie at most ``tolerance`` below, if ``make`` is monotone, its losses have tight pairs and floats
        resolve it; otherwise that holds for the smallest noise at which the accountant proves the guarantee.

    Raises
    ------
    ParameterError
        If no noise meets the guarantee, or every noise does, or ``make`` is not monotone or returns no loss.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, PoissonSubsampled
    >>> noise = calibrate(lambda z: PoissonSubsampled(Gaussian(z), 0.01) * 10_000, epsilon=1.0, delta=1e-5)
    >>> 3.8128168 <= noise <= 3.8128168 * (1 + 1e-4)
    True
    """
    if not callable(make):
        _check.refuse_type("make", "be a function of the noise", make, "pass lambda z: Gaussian(z)")
    tolerance = _check.unit_interval("tolerance", tolerance, "pass a relative width such as 1e-4")
    if tolerance < _FINEST:
        _check.refuse("tolerance", f"be at least {_FINEST}", tolerance, "floats cannot prove more")
    wanted = {"epsilon": epsilon, "advantage": advantage, "true_positive_rate": true_positive_rate}
    if sum(value is not None for value in wanted.values()) != 1:
        _check.refuse(
            "epsilon", "be given, or advantage or true_positive_rate instead", wanted, "name one target"
        )
    if epsilon is not None:
        target = _check.positive("epsilon", epsilon, "pass a bound on the loss such as 1.0")
        mass = _check.probability("delta", delta, "pass a small probability such as 1e-6")
        goal = _Goal(
            "epsilon", target, lambda loss, fine: intervals.charged_epsilon_interval(loss, mass, fine)
        )
    elif advantage is not None:
        target = _check.unit_interval("advantage", advantage, "pass a difference of rates such as 0.1")
        goal = _Goal("advantage", target, lambda loss, fine: intervals.delta_interval(loss, 0.0, fine))
    else:
        goal = _rate_goal(true_positive_rate, false_positive_rate)
    return _Search(make, goal, tolerance).smallest()


class _Goal(NamedTuple):
    """What is to be at most ``target``, and how to read it off a loss."""

    name: str
    target: float
    read: Callable[[PrivacyLoss, Precision], Interval]


def _rate_goal(true_positive_rate: object, false_positive_rate: object) -> _Goal:
    wanted = _check.unit_interval("true_positive_rate", true_positive_rate, "pass a rate such as 0.2")
    allowed = _check.unit_interval("false_positive_rate", false_positive_rate, "say at which rate")
    if wanted <= allowed:
        _check.refuse("true_positive_rate", f"be above {allowed}", wanted, "guessing alone reaches that")

    def read(loss: PrivacyLoss, precision: Precision) -> Interval:
        missed = trade_off(loss, allowed, precision)
        return Interval(below(1 - missed.upper), above(1 - missed.lower), missed.tight)

    return _Goal("true_positive_rate", wanted, read)


class _Reading(NamedTuple):
    """The logs of a noise and of what was found there over the target: both ends, and between them.

    ``smallest`` is below what finer readings can find, whether the bound is tight or not.
    """

    log_noise: float
    lower: float
    upper: float
    middle: float
    smallest: float


class _Search:
    """Two phases: coarse readings find the root, a few fine ones prove both of its ends."""

    def __init__(self, make: Callable[[float], PrivacyLoss], goal: _Goal, tolerance: float) -> None:
        self._make, self._goal, self._tolerance = make, goal, tolerance
        self._below: _Reading | None = None
        self._above: _Reading | None = None

    def smallest(self) -> float:
        """Return the smallest noise, rounded up."""
        root, slope = self._coarse()
        relative = 0.9 * self._tolerance * min(slope, 10.0)
        log_noise = root + 0.45 * self._tolerance
        high = math.inf
        for _ in range(_STEPS):
            precision = Precision(min(1e-2, max(relative, 1e-8)), relative * self._goal.target)
            found = self._read(log_noise, precision)
            if found.upper <= _CLOSE_BELOW:
                high = min(high, log_noise)
            elif found.lower > 0 and high - log_noise <= self._tolerance:
                return math.exp(high)
            elif found.lower <= 0:
                relative /= 2
            root = log_noise + found.middle / slope
            aim = root + 0.45 * self._tolerance
            log_noise = high - 0.98 * self._tolerance if high - self._tolerance < aim else aim
            if not math.isfinite(log_noise):
                break
        return self._bisected(found.log_noise, high)

    def _bisected(self, log_noise: float, high: float) -> float:
        """Return the smallest sufficient noise where no straight line leads there, as next to the ends."""
        tolerance = 0.01 * self._tolerance
        precision = Precision(max(tolerance, 1e-8), tolerance * self._goal.target)

        def enough(log_noise: float) -> bool:
            return self._read(log_noise, precision).upper <= _CLOSE_BELOW

        while math.isinf(high) and log_noise <= _LARGEST:
            if enough(log_noise):
                high = log_noise
            log_noise += _MAX_DOWN
        if math.isinf(high):
            self._unreachable(math.exp(_LARGEST))
        low = high - 10 * self._tolerance
        while low >= -_LARGEST and enough(low):
            low, high = low - 2 * (high - low), low
        while high - low > self._tolerance:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return math.exp(high)

    def _coarse(self) -> tuple[float, float]:
        """Return about where the target is met, and minus the slope of the log there."""
        coarse = Precision(_COARSE, _COARSE * self._goal.target)
        last, log_noise, slope = None, 0.0, 1.0
        for _ in range(_STEPS):
            found = self._read(log_noise, coarse)
            if last is not None and math.isfinite(last.middle) and math.isfinite(found.middle):
                fall = (last.middle - found.middle) / (found.log_noise - last.log_noise)
                slope = fall if fall > 0.02 else slope
            if abs(found.middle) <= 5 * _COARSE * max(1.0, slope) and last is not None:
                return log_noise + found.middle / slope, slope
            if self._above and self._below and self._above.log_noise - self._below.log_noise < _COARSE:
                return self._above.log_noise, slope
            last = found
            move = (
                found.middle / slope if math.isfinite(found.middle) else math.copysign(math.inf, found.middle)
            )
            log_noise = self._inside(log_noise + min(max(move, -_MAX_DOWN), _MAX_UP))
            if log_noise > _LARGEST:
                break
            if log_noise < -_LARGEST:
                name, target = self._goal.name, self._goal.target
                _check.refuse(
                    name, "be out of reach without noise", target, "every noise meets it: ask for less"
                )
        return self._unreachable(math.exp(min(log_noise, _LARGEST)))

    def _inside(self, log_noise: float) -> float:
        """Return a point between noise known to be too small and noise known to suffice."""
        low = -math.inf if self._below is None else self._below.log_noise
        high = math.inf if self._above is None else self._above.log_noise
        return log_noise if low < log_noise < high else 0.5 * (low + high)

    def _read(self, log_noise: float, precision: Precision) -> _Reading:
        noise, target = math.exp(log_noise), self._goal.target
        loss = self._make(noise)
        if not isinstance(loss, PrivacyLoss):
            _check.refuse_type("make", "return a PrivacyLoss", loss, "pass lambda z: Gaussian(z)")
        interval = self._goal.read(loss, precision)
        upper = _log_ratio(interval.upper, target)
        lower = _log_ratio(interval.lower, target) if interval.tight else upper
        middle = 0.5 * (lower + upper) if math.isfinite(lower) and math.isfinite(upper) else upper
        # Of a bound that is not tight nothing is known but its upper end, read as closely as was asked.
        width = max(precision.relative * interval.upper, precision.absolute)
        smallest = lower if interval.tight else _log_ratio(max(0.0, interval.upper - width), target)
        found = _Reading(log_noise, lower, upper, middle, smallest)
        for other in (self._below, self._above):
            if other is not None and _rises(*sorted((other, found))):
                _check.refuse(
                    "make",
                    f"return a loss whose {self._goal.name} falls as the noise grows",
                    loss,
                    "pass a function of the noise, such as lambda z: Gaussian(z) * 100",
                )
        if middle > 0 and (self._below is None or log_noise > self._below.log_noise):
            self._below = found
        if middle <= 0 and (self._above is None or log_noise < self._above.log_noise):
            self._above = found
        return found

    def _unreachable(self, noise: float) -> NoReturn:
        name, target = self._goal.name, self._goal.target
        _check.refuse(
            name,
            f"be met by some noise up to {noise:.3g}",
            target,
            "allow more, or pass a delta, which Gaussian noise needs; a part may not depend on the noise",
        )


def _log_ratio(value: float, target: float) -> float:
    return math.log(value / target) if value / target > 0 else -math.inf


def _rises(left: _Reading, right: _Reading) -> bool:
    """Whether more noise is proven to have lost more."""
    return right.smallest > left.upper + 1e-9
