"""Propose-test-release: propose a sensitivity, test privately that the data satisfies it, then release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, Final, Protocol, Self, final, runtime_checkable

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_pure_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.local_sensitivity.bounded_column import BoundedColumn, as_proportion
from sfumato.mechanisms.local_sensitivity.smooth_sensitivity import stable_depth
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.sampling.integer_noise import discrete_laplace, exact_scale
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.thresholded import DistanceTest

__all__ = ["ProposeTestRelease", "StableQuantile", "Statistic"]

_FARTHEST: Final = 1 << 50
_ROUNDING: Final = Fraction(1, 1 << 45)


@runtime_checkable
class Statistic(Protocol):
    """A function of the data that knows how far the data is from where it is unstable.

    Examples
    --------
    >>> isinstance(StableQuantile(bounds=(0.0, 1000.0)), Statistic)
    True
    """

    def value(self, data: Any) -> Any:
        """Return the exact answer, a real number.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        int or float
            Private.
        """

    def distance(self, data: Any, bound: Fraction) -> Any:
        """Return how far the data is from where one unit moves the value by more than ``bound``.

        An int, or infinity: one unit moves it by at most 1, and it is 0 (or less) for both of two neighbors
        whenever their values differ by more than the bound. The smallest number of units to change until the
        local sensitivity exceeds the bound is such a number.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.
        bound : int or float
            On how far one unit may move the value.

        Returns
        -------
        int
            How many records must change; private.
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableQuantile:
    """A quantile, for `ProposeTestRelease`.

    Parameters
    ----------
    quantile : int, float or Fraction
        Strictly between 0 and 1. Of n records it is the one at rank ``ceil(quantile n)``.
        Taken as the nearest fraction with a denominator of at most 2**20.
    bounds : tuple of two numbers
        Records are clamped to them; NaN counts as 0.
    grid : Grid, optional
        What records are rounded to: 1 for int bounds, else 2**-40 of the larger bound.

    Notes
    -----
    The distance is the smallest depth of spans that are wider than the bound; that it fits under each of the
    relations is proven in the notes of `sfumato.mechanisms.local_sensitivity.smooth_sensitivity`. Where n is
    public it is the number of records to replace until the local sensitivity exceeds the bound.

    Examples
    --------
    >>> import numpy as np
    >>> median = StableQuantile(bounds=(0, 100))
    >>> median.value(np.arange(101)), median.distance(np.arange(101), 10)
    (50, 10)
    """

    bounds: tuple[Number, Number]
    quantile: Number = Fraction(1, 2)
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        column = BoundedColumn.settle(self.bounds, self.grid)
        object.__setattr__(self, "bounds", column.bounds)
        object.__setattr__(self, "grid", column.grid)
        object.__setattr__(self, "quantile", as_proportion("quantile", self.quantile))

    def value(self, data: Any) -> int | float:
        """Return the quantile: private.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        int or float
            Private.
        """
        column = BoundedColumn(self.bounds, self.grid)
        return column.value(int(column.around(column.ranks(data), Fraction(self.quantile), 1).left[0]))

    def distance(self, data: Any, bound: Fraction) -> int:
        """Return the smallest depth of wider spans: private. Time: that of sorting.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.
        bound : int or float
            On how far one unit may move the value.

        Returns
        -------
        int
            How many records must change; private.
        """
        column = BoundedColumn(self.bounds, self.grid)
        ranks = column.ranks(data)
        around = column.around(ranks, Fraction(self.quantile), ranks.size)
        steps = min(math.floor(bound / self.grid.step), 1 << 61)
        return stable_depth(around, steps, _FARTHEST)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease(Mechanism):
    r"""An answer with noise for a proposed sensitivity, or none where the data is too close to breaking it.

    Parameters
    ----------
    statistic : Statistic
        What is answered; `StableQuantile` is one.
    bound : int, float or Fraction
        The proposed sensitivity, public. An int without a grid means whole answers.
    test_scale : int, float or Fraction
        Scale of the Laplace noise on the distance.
    threshold : int
        The noisy distance must reach this.
    scale : int, float or Fraction
        Scale of the Laplace noise on the answer.
    grid : Grid, optional
        What answers are rounded to.
    neighboring : Neighboring
        The relation that the distance is about.

    Notes
    -----
    Guarantee: ``DistanceTest(DiscreteLaplace(test_scale), threshold)`` and the loss of `Laplace` with
    sensitivity ``bound``, the same whether an answer was given or not: :math:`1/t + s/b` with a delta of
    :math:`P(Z \ge \tau)`. Conditions: those of `Statistic.distance`; the statistic fails for no data. Proof:
    that of `sfumato.privacy.DistanceTest`, which uses just these two properties of the distance.

    References
    ----------
    Dwork, Lei, "Differential privacy and robust statistics" (STOC 2009).

    Examples
    --------
    >>> import numpy as np
    >>> median = ProposeTestRelease.calibrated(
    ...     statistic=StableQuantile(bounds=(0.0, 1000.0)), bound=0.1, epsilon=1.0, delta=1e-6
    ... )
    >>> data = np.random.default_rng(0).normal(50, 1, 2000)
    >>> round(median.release(data, rng=6).value, 1), median.release(data[:40], rng=6).value
    (50.0, None)
    """

    statistic: Statistic
    bound: Number
    test_scale: Number
    threshold: int
    scale: Number
    grid: Grid | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        given: object = self.statistic
        if isinstance(given, type) or not isinstance(given, Statistic):
            remedy = "pass StableQuantile(...), or an object with value(data) and distance(data, bound)"
            _check.refuse_type("statistic", "be a Statistic", given, remedy)
        object.__setattr__(self, "bound", as_bound("bound", self.bound))
        remedy = "pass epsilon= and delta= to ProposeTestRelease.calibrated to have it chosen"
        for name in ("test_scale", "scale"):
            object.__setattr__(self, name, as_number(name, getattr(self, name), remedy))
        exact_scale("test_scale", self.test_scale)
        threshold = _check.integer("threshold", self.threshold, minimum=1, remedy=remedy)
        object.__setattr__(self, "threshold", threshold)
        _ = self.privacy_loss  # the parts check the rest

    @classmethod
    def calibrated(
        cls,
        *,
        statistic: Statistic,
        bound: Number,
        epsilon: float,
        delta: float,
        grid: Grid | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> Self:
        """Return the mechanism that spends half of epsilon on the test, and delta on its errors.

        Parameters
        ----------
        epsilon : float
        delta : float
            Positive; by how much the threshold must exceed the noise.
        statistic, bound, grid, neighboring
            As in the class.

        Returns
        -------
        ProposeTestRelease
        """
        request, bound = PrivacyTarget(epsilon=epsilon, delta=delta), as_bound("bound", bound)
        if not request.delta:
            _check.refuse(
                "delta", "be positive", delta, "pass a small one, such as 1e-6: the test may fail to refuse"
            )

        def price(scale: Fraction) -> DiscreteLaplace:
            return DiscreteLaplace(scale, 1, neighboring=neighboring)

        def of(half: PrivacyTarget) -> Self:
            test = minimum_pure_noise(price, half, 1 / half.exact_epsilon)
            threshold = max(1, math.floor(float(test) * -math.log(2 * request.delta)) - 1)
            while DistanceTest(price(test), threshold).mass > request.delta:
                threshold += 1
            noise = Laplace.calibrated(
                sensitivity=bound, epsilon=half.epsilon, grid=grid, neighboring=neighboring
            )
            return cls(
                statistic=statistic,
                bound=bound,
                test_scale=plain(test),
                threshold=threshold,
                scale=noise.scale,
                grid=None if noise.integral else noise.grid,
                neighboring=neighboring,
            )

        found = of(PrivacyTarget(epsilon=request.epsilon / 2, delta=0.0))
        if found.privacy_loss.pure().epsilon <= request.epsilon:
            return found
        # The sum of both halves may be rounded up.
        return of(PrivacyTarget(epsilon=float(request.exact_epsilon * (1 - _ROUNDING) / 2), delta=0.0))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release, answered or refused."""
        test = DiscreteLaplace(Fraction(self.test_scale), 1, neighboring=self.neighboring)
        return DistanceTest(test, self.threshold) + self._noise.privacy_loss

    def distance_needed(self, beta: float) -> int:
        """Return a distance from which on the answer is given with probability at least ``1 - beta``.

        Parameters
        ----------
        beta : float
            Strictly between 0 and 1.

        Returns
        -------
        int
            In records.
        """
        odds = -math.log(_check.unit_interval("beta", beta)) * (1 + 1e-9)
        return self.threshold + math.ceil(Fraction(self.test_scale) * Fraction(odds))

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the statistic of the data, or refuse.

        Parameters
        ----------
        value
            The data, as the statistic takes it.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a number, or of None: the test was not passed. Both cost the same.
        """
        source = random_source(rng)
        distance = _whole(self.statistic.distance(value, Fraction(self.bound)))
        noisy = distance + discrete_laplace(Fraction(self.test_scale), None, source)
        # Drawn whether it is released or not: neither time nor an error then follows the test.
        answer = self._noise.release(self.statistic.value(value), source).value
        return self._release_as(Release, answer if noisy >= self.threshold else None, source)

    @property
    def _noise(self) -> Laplace:
        return Laplace(
            sensitivity=self.bound,
            scale=self.scale,
            grid=self.grid,  # type: ignore[arg-type]
            neighboring=self.neighboring,
        )


def _whole(distance: object) -> int:
    """Return a distance cut to what the noise can be added to; that moves no two further apart."""
    if isinstance(distance, float) and distance == math.inf:
        return _FARTHEST
    if not isinstance(distance, Integral):
        # The type is shown, never the value.
        _check.refuse_type("distance", "be an int or infinity", distance, "round it down")
    return max(0, min(_FARTHEST, int(distance)))
