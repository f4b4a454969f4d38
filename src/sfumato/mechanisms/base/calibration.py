"""Calibration: the smallest noise whose privacy loss meets a target (epsilon, delta)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.mechanisms.base.rational import drawn_epsilon, simplest_between
from sfumato.privacy.decimal_cost import meets
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["PrivacyTarget", "cheapest_noise", "minimum_noise", "minimum_pure_noise"]

_PURE_SLACK = Fraction(1, 1 << 30)
_SLACK = Fraction(1, 1 << 21)
_FIRST_RATIO = 1 + Fraction(1, 1 << 16)
_MINIMUM = Fraction(1, 1 << 64)
_WORTH = 1 - Fraction(1, 1 << 10)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyTarget:
    """An (epsilon, delta) guarantee that was asked for."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _check.probability("delta", self.delta))

    @classmethod
    def approximate(cls, epsilon: float, delta: float, remedy: str) -> PrivacyTarget:
        """Return a target whose delta must be positive; the remedy says what to use without one."""
        return cls(epsilon=epsilon, delta=_check.unit_interval("delta", delta, remedy))

    @property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as the decimal that it was written as, 1/10 for 0.1; as a float, where that is less."""
        return drawn_epsilon(self.epsilon)

    def met_by(self, loss: PrivacyLoss) -> bool:
        """Return whether the loss proves it, with numbers as floats and as decimals."""
        return meets(loss, self.epsilon, self.delta)


Price = Callable[[Fraction], PrivacyLoss]


def minimum_pure_noise(price: Price, request: PrivacyTarget, exact: Fraction) -> Fraction:
    """Return the simplest noise just above ``exact``, the smallest that is epsilon-DP.

    Parameters
    ----------
    price : callable
        Noise to loss.
    request : Request
        Its delta is not used.
    exact : Fraction
        Where the loss is epsilon at delta 0, in exact arithmetic.

    Returns
    -------
    Fraction
        Within 1e-9 of ``exact``, unless the loss rounds up by more.
    """
    pure = PrivacyTarget(epsilon=request.epsilon, delta=0.0)
    slack = _PURE_SLACK
    low = exact
    while True:
        noise = simplest_between(low, low * (1 + slack))
        if pure.met_by(price(noise)):
            return noise
        # The loss is rounded outward by a few ulps; the first step past them is taken.
        low = exact * (1 + slack / (1 << 20))
        slack *= 2


def minimum_noise(price: Price, request: PrivacyTarget, start: Fraction) -> Fraction:
    """Return the smallest noise that meets the request, to one part in a million, never below it.

    Parameters
    ----------
    price : callable
        Noise to loss.
    request : Request
    start : Fraction
        A guess; the closer, the fewer losses are computed.

    Returns
    -------
    Fraction
        Noise whose loss was seen to meet the request, with a small denominator.
    """

    def meets(noise: Fraction) -> bool:
        return request.met_by(price(noise))

    low, high = _bracket(meets, start)
    while high > low * (1 + _SLACK):
        middle = _short((low + high) / 2)
        low, high = (low, middle) if meets(middle) else (middle, high)
    simple = simplest_between(high, high * (1 + _SLACK))
    return simple if meets(simple) else high


def cheapest_noise(price: Price, request: PrivacyTarget, exact: Fraction) -> Fraction:
    """Return the simplest noise that is epsilon-DP, or less noise where a delta buys a thousandth of it.

    Parameters
    ----------
    price : callable
        Noise to loss.
    request : Request
    exact : Fraction
        Where the loss is epsilon at delta 0, in exact arithmetic.

    Returns
    -------
    Fraction
    """
    noise = minimum_pure_noise(price, request, exact)
    if request.delta > 0:
        # A delta saves one entry next to nothing, many entries a lot: not worth an odd scale otherwise.
        approximate = minimum_noise(price, request, noise)
        noise = approximate if approximate < noise * _WORTH else noise
    return noise


def _bracket(meets: Callable[[Fraction], bool], start: Fraction) -> tuple[Fraction, Fraction]:
    """Return noise that fails and noise that meets, in steps that grow away from the guess."""
    ratio, noise = _FIRST_RATIO, start
    if meets(start):
        while noise > start * _MINIMUM:
            last, noise = noise, _short(noise / ratio)
            if not meets(noise):
                return noise, last
            ratio = _short(ratio**4)
        return noise, noise
    while True:
        last, noise = noise, _short(noise * ratio)
        if meets(noise):
            return last, noise
        ratio = _short(ratio**4)


def _short(value: Fraction) -> Fraction:
    """Return a neighbor with at most 53 significant bits, to keep the search's fractions small."""
    return Fraction(float(value))
