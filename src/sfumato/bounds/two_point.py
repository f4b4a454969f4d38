"""Le Cam's two points: what cannot be known of two datasets that a loss hides from one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.numerics.rounding import mul_down, sub_down
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["TwoPointBound", "best_two_point_bound", "two_point_bound"]

_MOST: Final = 4096


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPointBound:
    """Every mechanism of a privacy loss errs so much on one of two datasets.

    Parameters
    ----------
    separation : float
        How far the true answers on the two datasets lie apart.
    units : int
        How many units the datasets differ in.
    overlap : float
        The least sum of both error probabilities of a test between them, rounded down: 1 less the total
        variation.
    mechanisms : str
        The class that the bound holds for.
    theorem : str
        What proves it.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> bound = two_point_bound(PureDP(1.0), separation=1.0)
    >>> round(bound.failure, 4), round(bound.absolute_error, 4)
    (0.2689, 0.2689)
    """

    separation: float
    units: int
    overlap: float
    mechanisms: str = "all mechanisms of that loss"
    theorem: str = "Le Cam's two points (Yu 1997), by the loss's total variation"

    @property
    def failure(self) -> float:
        """On one dataset an error of at least half the separation has at least this probability."""
        return self.overlap / 2

    @property
    def absolute_error(self) -> float:
        """On one dataset the expected absolute error is at least this."""
        return mul_down(mul_down(self.separation, self.overlap), 0.5)

    @property
    def squared_error(self) -> float:
        """On one dataset the expected squared error is at least this."""
        return mul_down(mul_down(mul_down(self.separation, self.separation), self.overlap), 0.25)

    def __str__(self) -> str:
        return (
            f"Expected error of at least {self.absolute_error:.6g} on one of two datasets "
            f"{self.units} apart, for {self.mechanisms}. Proof: {self.theorem}."
        )


def two_point_bound(loss: PrivacyLoss, *, separation: float, units: int = 1) -> TwoPointBound:
    r"""Bound the error of every mechanism of a loss on one of two datasets.

    Parameters
    ----------
    loss : PrivacyLoss
        The loss, under its own relation.
    separation : float
        The distance of the true answers on the two datasets.
    units : int
        How many units one dataset has and the other lacks (under replace-one: how many are replaced); more
        than 1 take `PrivacyLoss.group`.

    Returns
    -------
    TwoPointBound

    Raises
    ------
    ParameterError
        If the separation is not positive, or ``units`` is below 1.
    UnsupportedView
        If no theorem bounds the loss for groups.

    Notes
    -----
    Guarantee: for all mechanisms whose trade-off function is nowhere below that of the loss, biased or not,
    and for answers that are numbers. With output densities f and g and true answers a and b, :math:`|y - a| +
    |y - b| \ge |a - b|` gives errors whose sum is at least :math:`|a - b| \int \min(f, g)`, and :math:`(y -
    a)^2 + (y - b)^2 \ge (a - b)^2/2`; the integral is :math:`\min_\alpha (\alpha + T(\alpha)) = 1 -
    \delta(0)` for the trade-off function T. Where the trade-off function is symmetric it is attained at one
    unit, by a mechanism of this loss that answers a or b.

    References
    ----------
    Yu (1997), "Assouad, Fano, and Le Cam"; Dong, Roth, Su (2022), "Gaussian differential privacy", for
    trade-off functions; Acharya, Sun, Zhang (2021), "Differentially private Assouad, Fano, and Le Cam".

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> round(two_point_bound(Gaussian(1.0), separation=2.0, units=2).absolute_error, 4)
    0.3173
    """
    _check.instance("loss", loss, PrivacyLoss, "pass a mechanism's privacy_loss")
    separation = _check.positive("separation", separation, "pass how far the two true answers are apart")
    units = _check.integer("units", units, minimum=1, remedy="pass how many units the datasets differ in")
    overlap = max(0.0, sub_down(1.0, loss.group(units).delta(0.0)))
    return TwoPointBound(separation=separation, units=units, overlap=overlap)


def best_two_point_bound(loss: PrivacyLoss, *, separation: float, most: int = 64) -> TwoPointBound:
    """Return the two-point bound of the greatest expected error over the number of units.

    Parameters
    ----------
    loss : PrivacyLoss
        The loss, under its own relation.
    separation : float
        How far one more unit moves the answer, in one direction for all of them, as in a sum.
    most : int
        The most units to try, at most 4,096. So many can differ in a dataset.

    Returns
    -------
    TwoPointBound

    Raises
    ------
    ParameterError
        If the separation is not positive, or ``most`` is out of range.
    UnsupportedView
        If no theorem bounds the loss for groups; pass a ``most`` of 1.

    Notes
    -----
    Guarantee: that of `two_point_bound`. Powers of two are tried.

    References
    ----------
    Yu (1997), "Assouad, Fano, and Le Cam".

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> bound = best_two_point_bound(PureDP(0.1), separation=1.0)
    >>> bound.units, 2 < bound.absolute_error < 3
    (16, True)
    """
    separation = _check.positive("separation", separation, "pass how far one unit moves the answer")
    most = _check.integer("most", most, minimum=1)
    if most > _MOST:
        _check.refuse("most", f"be at most {_MOST}", most, "take fewer units")
    tried = [1 << power for power in range(most.bit_length())]
    found = [two_point_bound(loss, separation=mul_down(separation, float(k)), units=k) for k in tried]
    return max(found, key=lambda bound: bound.absolute_error)
