"""The methods that every loss has: epsilon, delta, trade-off curve, attack risk, breakdown, plots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.precision import STANDARD, Precision
from sfumato.privacy.interpretation.breakdown import Explanation, explain
from sfumato.privacy.interpretation.curves import Curve, Kind, curve
from sfumato.privacy.interpretation.loss_variable import LossVariable
from sfumato.privacy.interpretation.plotting import draw
from sfumato.privacy.interpretation.risk import Risk, risk
from sfumato.privacy.interpretation.tradeoff import trade_off

__all__ = ["AccountedLoss"]


class AccountedLoss(ABC):
    """The numbers of a loss; every loss has them.

    Notes
    -----
    An interval is refined to the `Precision` that is asked for. The narrowest bounds proven so far are
    remembered, so that a number never gets worse when it is asked for again.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> loss = Gaussian(4.0) * 100
    >>> bounds = loss.epsilon_interval(1e-6)
    >>> bounds.lower < bounds.upper < bounds.lower * 1.001
    True
    >>> loss.epsilon(1e-6) == bounds.upper
    True
    """

    __slots__ = ()

    @property
    @abstractmethod
    def terms(self) -> intervals.Terms:
        """The parts that are neither repetitions nor compositions, each with its count."""

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the smallest epsilon that is proven at ``delta``: the upper end of `epsilon_interval`.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            An upper bound, rounded up; infinity where nothing finite is proven.

        Raises
        ------
        ParameterError
            If ``delta`` is outside [0, 1).
        UnsupportedView
            If no view exists for the whole loss.
        """
        return float(intervals.charged_epsilon_interval(self, _delta(delta), STANDARD).upper)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that is proven at ``epsilon``: the upper end of `delta_interval`.

        Parameters
        ----------
        epsilon : float
            At least 0; at infinity delta is the probability of an infinite loss.

        Returns
        -------
        float
            An upper bound, rounded up.

        Raises
        ------
        ParameterError
            If ``epsilon`` is negative.
        UnsupportedView
            If no view exists for the whole loss.
        """
        return float(intervals.delta_interval(self, _epsilon(epsilon), STANDARD).upper)

    def epsilon_interval(self, delta: float = 0.0, precision: Precision = STANDARD) -> Interval:
        """Return bounds on the epsilon of the declared pair at ``delta``, round-off included.

        Parameters
        ----------
        delta : float
            In [0, 1).
        precision : Precision
            How narrow the interval must be. Where it cannot be, it is wider, with a `PrecisionWarning`.

        Returns
        -------
        Interval
            ``tight`` is False where a part is known by an upper bound only; then ``lower`` is 0. Where an
            infinite upper end is ``tight``, epsilon is infinite: so is ``lower``.

        Raises
        ------
        ParameterError
            If ``delta`` is outside [0, 1).
        UnsupportedView
            If no view exists for the whole loss.

        Notes
        -----
        The upper end is the smallest of what the closed views prove (see `quick_epsilon`) and of the
        inversion of the composed dominating pairs (see `sfumato.privacy.accountant.certified`). The truth is
        that of the pairs that the parts declare: the worst two neighbors of each mechanism, in one order
        throughout.
        """
        found = intervals.epsilon_interval(self, _delta(delta), _precision(precision))
        # At delta 0 it is the loss that is not bounded.
        return _plain(precision.checked(found, f"epsilon at delta {delta!r}") if delta else found)

    def delta_interval(self, epsilon: float, precision: Precision = STANDARD) -> Interval:
        """Return bounds on the delta of the declared pair at a non-negative ``epsilon``.

        Parameters
        ----------
        epsilon : float
            At least 0; infinity for the probability of an infinite loss.
        precision : Precision
            How narrow the interval must be, relative to delta; its ``absolute`` is not used.

        Returns
        -------
        Interval
            ``tight`` is False where a part is known by an upper bound only; then ``lower`` is 0.

        Raises
        ------
        ParameterError
            If ``epsilon`` is negative.
        UnsupportedView
            If no view exists for the whole loss.
        """
        found = intervals.delta_interval(self, _epsilon(epsilon), _precision(precision))
        return _plain(precision.of_delta().checked(found, f"delta at epsilon {epsilon!r}"))

    def quick_epsilon(self, delta: float = 0.0) -> float:
        """Return the smallest epsilon that the closed views prove at ``delta``, in well under a millisecond.

        The smallest of: the exact profile of a single mechanism; the sum of pure epsilons; Gaussian DP (exact
        for continuous Gaussians); Rényi DP at its best order; and pure parts added to the bound of the rest.
        A mass of total failure is split off first. Never below `epsilon`.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            An upper bound, rounded up.

        Raises
        ------
        UnsupportedView
            If no such view exists for the whole loss.
        """
        return intervals.quick_epsilon(self, _delta(delta))

    def quick_delta(self, epsilon: float) -> float:
        """Return the smallest delta that the closed views prove at ``epsilon``; see `quick_epsilon`.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            An upper bound, rounded up.
        """
        return intervals.quick_delta(self, _epsilon(epsilon))

    @overload
    def trade_off(self, false_positive_rate: float, precision: Precision = ...) -> Interval[float]: ...
    @overload
    def trade_off(
        self, false_positive_rate: NDArray[np.float64], precision: Precision = ...
    ) -> Interval[NDArray[np.float64]]: ...
    def trade_off(
        self, false_positive_rate: ArrayLike, precision: Precision = STANDARD
    ) -> Interval[float] | Interval[NDArray[np.float64]]:
        """Return bounds on the smallest false negative rate of any attack that raises so many false alarms.

        Parameters
        ----------
        false_positive_rate : float or ndarray
            In [0, 1].
        precision : Precision
            Of the deltas that the bounds come from.

        Returns
        -------
        Interval
            The lower end is the guarantee: the loss is f-DP for it. An attack may toss a coin over which of
            two neighbors it takes for the null; for most losses that helps nobody.

        References
        ----------
        Dong, Roth, Su (2022), "Gaussian differential privacy": the duality of profiles and trade-offs.

        Examples
        --------
        >>> from sfumato.privacy import Gaussian
        >>> round(Gaussian(1.0).trade_off(0.05).lower, 3)
        0.74
        """
        return trade_off(self, false_positive_rate, _precision(precision))  # type: ignore[call-overload,no-any-return]

    def risk(
        self,
        *,
        false_positive_rates: Sequence[float] = (0.001, 0.01, 0.1),
        prior: float = 0.5,
        baseline: float = 0.01,
        precision: Precision = STANDARD,
    ) -> Risk:
        """Return what the best attack can do: advantage, rates, posterior, reconstruction.

        Parameters
        ----------
        false_positive_rates : sequence of float
            At which the best true positive rate is wanted; each strictly between 0 and 1.
        prior : float
            Probability, before the release, that the unit's data are there; strictly between 0 and 1.
        baseline : float
            Probability of guessing the unit's record without the release; strictly between 0 and 1.
        precision : Precision
            Of the deltas that the bounds come from.

        Returns
        -------
        Risk
            Intervals; print it for sentences with their upper ends.

        Examples
        --------
        >>> from sfumato.privacy import PureDP
        >>> print(PureDP(1.0).risk(false_positive_rates=[0.1]))
        An attacker who knows all other units gains at most 46.22 % over guessing if one is there.
        With false alarms in 10 % of cases it finds at most 27.2 % of the units; if 50 % are there, at most
        73.12 % of its accusations are right.
        With that prior it decides rightly in at most 73.11 % of cases.
        A record that it would guess with chance 1 % it reconstructs with chance at most 2.73 %.
        """
        return risk(
            self,
            false_positive_rates=false_positive_rates,
            prior=prior,
            baseline=baseline,
            precision=_precision(precision),
        )

    def loss_variable(self, *, reverse: bool = False) -> LossVariable:
        """Return the privacy loss of the composed pairs as a random variable: moments, tails, a picture.

        Parameters
        ----------
        reverse : bool
            Whether outcomes are drawn without the unit's data; by default they are drawn with them.

        Returns
        -------
        LossVariable
            Bounds on its moments, tails and quantiles.

        Raises
        ------
        UnsupportedView
            If a part has no dominating pair.

        Examples
        --------
        >>> from sfumato.privacy import Laplace
        >>> variable = (Laplace(1.0) * 10).loss_variable()
        >>> round(variable.mean.upper, 4), variable.support.upper < 10.001
        (3.6788, True)
        """
        for part, _ in self.terms:
            part.dominating_pair()
        return LossVariable(self, bool(reverse))

    def explain(self, delta: float) -> Explanation:
        """Return how much of epsilon at ``delta`` each part causes; print it, or read its ``rows``.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        Explanation
            One row per part, the largest proportion first.

        Examples
        --------
        >>> from sfumato.privacy import Gaussian, PureDP
        >>> print((Gaussian(2.0) + PureDP(0.01)).explain(1e-6).rows[0].part)
        Gaussian(noise_multiplier=2.0)
        """
        return explain(self, _delta(delta))

    def curve(self, kind: Kind = "profile", *, delta: float | None = None, points: int = 33) -> Curve:
        """Return the numbers of `plot`.

        Parameters
        ----------
        kind : {"profile", "trade-off", "steps"}
            Delta over epsilon; the smallest false negative rate over the false positive rate; or epsilon at
            ``delta`` over the number of steps done.
        delta : float, optional
            For "steps" only, where it is required.
        points : int
            How many, at least 2.

        Returns
        -------
        Curve
            Abscissae with lower and upper bounds.

        Examples
        --------
        >>> from sfumato.privacy import PureDP
        >>> curve = PureDP(1.0).curve("trade-off", points=3)
        >>> curve.x.tolist()
        [0.0, 0.5, 1.0]
        """
        return curve(self, kind, delta=delta, points=points)

    def plot(
        self, kind: Kind = "profile", *, delta: float | None = None, points: int = 33, ax: Any = None
    ) -> Any:
        """Draw a curve into ``ax``, or into new axes, and return the axes; never shows them.

        Parameters
        ----------
        kind, delta, points
            As for `curve`.
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn into.

        Raises
        ------
        MissingExtra
            If matplotlib is absent.
        """
        return draw(self.curve(kind, delta=delta, points=points), ax)


def _delta(value: object) -> float:
    return _check.probability("delta", value, "a mass of 1 promises nothing")


def _epsilon(value: object) -> float:
    return _check.at_least_zero("epsilon", value, "pass a bound on the loss")


def _precision(value: Precision) -> Precision:
    _check.instance("precision", value, Precision, "pass Precision(relative=1e-4)")
    return value


def _plain(found: Interval) -> Interval:
    """Return the same bounds as Python's own floats."""
    return Interval(float(found.lower), float(found.upper), found.tight)
