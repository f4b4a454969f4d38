"""Intervals for epsilon and delta of a composition, from the dominating pairs of its parts.

`planning` looks at a coarse discretisation and proves nothing; what it chooses only decides how narrow the
interval becomes that `inversion` proves. If it is not narrow enough, the next plan is finer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import exp_down, exp_up, log_down, log_up
from sfumato.privacy._outward import above, below
from sfumato.privacy.accountant.composed_losses import DeltaBound
from sfumato.privacy.accountant.enumeration import condensed, enumerated
from sfumato.privacy.accountant.inversion import Line
from sfumato.privacy.accountant.planning import NumericalPlan, Pairs, Saddle, Survey, survey
from sfumato.privacy.accountant.precision import Precision

__all__ = ["Order", "delta_interval", "epsilon_interval", "lower_delta", "upper_delta"]

_ROUNDS: Final = 8
_FIRST_PROPORTION: Final = 0.6
"""Proportion of the wanted width that the first plan aims at."""
_PROPORTION_OF_TWO: Final = 0.15
"""The same of two runs, whose cuts cost little."""
_PROPORTION_OF_MANY: Final = 0.9
"""The same of many parts, whose plans take the longest; bounds are narrower than planned."""
_ALIAS_PROPORTION: Final = 1e-3
"""Proportion of a plan's error that aliases and the end of the line may use up."""
_MAX_COST: Final = 4e9
"""Products of a bin and a point of the line, for one bound; some seconds."""
_EVEN: Final = 500.0
"""Bins of each part where distributions are added up one by one."""
_TINY: Final = 1e-300
_Saddle: TypeAlias = Callable[[Survey], Saddle]


class Order:
    """One order of the pairs with its present plan, made for an error that is measured in epsilon.

    Parameters
    ----------
    plan : NumericalPlan
    error : float
    saddle : callable, optional
        Where the next plan's integrand has its saddle point, from a closer look; there by default.
    """

    def __init__(self, plan: NumericalPlan, error: float, saddle: _Saddle | None = None) -> None:
        self._plan, self.error, self._saddle = plan, error, saddle or (lambda _: plan.saddle)

    def mirrored(self) -> Order:
        """Return the other order, with the same choices for a start."""
        return Order(self._plan.mirrored(), self.error, self._saddle)

    def condensed(self, *, upper: bool) -> DeltaBound | None:
        """Prepare a bound that no line is needed for; None where too many runs would have to be added up."""
        return condensed(self._plan.even(_EVEN).work(upper=upper), self._plan.saddle.tilt, upper=upper)

    def bound(self, error: float, *, upper: bool, spare: float = 1.0) -> DeltaBound:
        """Prepare one of the bounds, after a new plan if the error has changed.

        Each plan is made from the one before it, which is a closer look at the same pairs. Aliases use up the
        smaller a proportion of the error the smaller ``spare`` is.
        """
        if error != self.error:
            look = self._plan.survey()
            self._plan, self.error = look.plan(self._saddle(look), error), error
        plan, saddle = self._plan, self._plan.saddle
        work = plan.work(upper=upper)
        return enumerated(work, upper=upper, exact=plan.exact) or Line(
            work,
            tilt=saddle.tilt,
            smoothing=plan.smoothing,
            near=saddle.epsilon,
            log_delta=saddle.log_delta,
            log_precision=min(-3.0, math.log(spare * _ALIAS_PROPORTION * saddle.tilt * error)),
            upper=upper,
        )


def epsilon_interval(
    pairs: Pairs, delta: float, precision: Precision, known: float = math.inf, *, also: float | None = None
) -> Interval:
    """Return bounds on the epsilon of the composed pairs at ``delta``, strictly between 0 and 1.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
    delta : float
    precision : Precision
    known : float, optional
        An upper bound that is proven otherwise. Where none is found here, as what fails for certain takes up
        delta, the search ends as soon as the lower bound is close to it.
    also : float, optional
        A delta a little above the first: the bounds, if they are finite, hold for all between both.

    Returns
    -------
    Interval
        Holds the smallest epsilon at which the hockey-stick divergences of both orders are at most ``delta``.
        Wider than asked where the rounds end before it is narrow enough.
    """

    def saddle(look: Survey) -> Saddle:
        return look.saddle_at_delta(math.log(max(delta - look.infinite, _TINY * delta)))

    look = survey(pairs, delta)
    start = saddle(look)
    # Where epsilon is nearly 0, an error is measured against the standard deviation of the loss.
    scale = max(start.epsilon, 1e-3 * start.deviation)
    error = _proportion(look) * max(precision.relative * scale, precision.absolute)
    return _refined(
        Order(look.plan(start, error), error, saddle),
        lambda bound, enough: _upper_epsilon(bound, delta, enough),
        lambda bound: _lower_epsilon(bound, delta, also),
        precision,
        known,
        symmetric=_symmetric(pairs),
    )


def delta_interval(pairs: Pairs, epsilon: float, precision: Precision, known: float = math.inf) -> Interval:
    """Return bounds on the delta of the composed pairs at a non-negative ``epsilon``.

    The greater of both orders' hockey-stick divergences lies inside; see `epsilon_interval`.
    """

    def saddle(look: Survey) -> Saddle:
        return look.saddle_at_epsilon(epsilon)

    # Which tails matter depends on the answer: a first look with very far ones decides.
    far = saddle(survey(pairs, _TINY))
    look = survey(pairs, max(_TINY, math.exp(far.log_delta)))
    start = saddle(look)
    if not _symmetric(pairs):
        # Beyond the largest loss of one order its saddle point lies nowhere.
        other = look.mirrored()
        there = saddle(other)
        if there.log_delta > start.log_delta:
            look, start = other, there
    # Beside what fails for certain, and below all floats, little of the rest need be known.
    spare = math.log(max(look.infinite, _TINY)) - start.log_delta
    error = _proportion(look) * precision.relative / start.tilt
    error *= min(math.exp(min(max(0.0, spare), 100.0)), 1 / (start.tilt * error))
    return _refined(
        Order(look.plan(start, error), error, saddle),
        lambda bound, enough: upper_delta(bound, epsilon, enough),
        lambda bound: lower_delta(bound, epsilon),
        precision,
        known,
        symmetric=_symmetric(pairs),
    )


def _proportion(look: Survey) -> float:
    """Return the proportion of the wanted width that the first plan aims at."""
    if look.two:
        return _PROPORTION_OF_TWO
    return _PROPORTION_OF_MANY if look.many else _FIRST_PROPORTION


def _symmetric(pairs: Pairs) -> bool:
    """Whether each pair is its own mirror image, so that one order is enough."""
    return all(pair.symmetric for pair, _ in pairs)


def _refined(
    first: Order,
    upper_bound: Callable[[DeltaBound, float], float],
    lower_bound: Callable[[DeltaBound], float],
    precision: Precision,
    known: float,
    *,
    symmetric: bool,
) -> Interval:
    """Bound with plans of falling error, until the interval is narrow enough or a plan costs too much.

    Each order's upper bound must hold; one order's lower bound is enough.
    """
    error = first.error
    lower = lower_bound(first.bound(error, upper=False))
    orders, uppers = [first], [upper_bound(first.bound(error, upper=True), lower)]
    if not symmetric:
        orders.append(first.mirrored())
        uppers.append(upper_bound(orders[1].bound(error, upper=True), lower))
    for _ in range(_ROUNDS):
        upper = max(uppers)
        worst = orders[uppers.index(upper)]
        if worst is not first:
            lower = max(lower, lower_bound(worst.bound(error, upper=False)))
        if precision.met(lower, known if upper == math.inf else upper):
            return Interval(lower, upper)
        wanted = precision.width(upper) / (upper - lower) if math.isfinite(upper) else 0.5
        error *= min(0.5, max(0.8 * wanted, 0.05))
        for i, order in enumerate(orders):
            if uppers[i] > lower:
                bound = order.bound(error, upper=True)
                # A line that ends too early bounds nothing, and still finer plans need longer ones.
                if bound.cut_short or (bound.cost > _MAX_COST and math.isfinite(uppers[i])):
                    return _without_lines(orders, lower, uppers, lower_bound, upper_bound)
                uppers[i] = min(uppers[i], upper_bound(bound, lower))
        if worst is first:
            lower = max(lower, lower_bound(first.bound(error, upper=False)))
    return _without_lines(orders, lower, uppers, lower_bound, upper_bound)


def _without_lines(
    orders: Sequence[Order],
    lower: float,
    uppers: Sequence[float],
    lower_bound: Callable[[DeltaBound], float],
    upper_bound: Callable[[DeltaBound, float], float],
) -> Interval:
    """Bound once more where few runs lie too unevenly for any line."""
    best = list(uppers)
    for i, order in enumerate(orders):
        if (below_it := order.condensed(upper=False)) and (above_it := order.condensed(upper=True)):
            lower = max(lower, lower_bound(below_it))
            best[i] = min(best[i], upper_bound(above_it, lower))
    return Interval(lower, max(best))


def _upper_epsilon(bound: DeltaBound, delta: float, enough: float) -> float:
    infinite = bound.infinite
    left = below(delta - above(infinite, 16.0), 4.0, delta) if infinite else delta
    if left <= 0:
        return math.inf
    log_left = log_down(left)
    quick = max(0.0, bound.chernoff_epsilon(log_left))
    return quick if quick <= enough else max(0.0, bound.solve(log_left))


def _lower_epsilon(bound: DeltaBound, delta: float, also: float | None) -> float:
    infinite = bound.infinite
    certain = below(infinite, 16.0) if infinite else 0.0
    if delta < certain:
        return math.inf
    delta = delta if also is None else also
    return max(0.0, bound.solve(log_up(above(delta - certain, 4.0, delta) if certain else delta)))


def upper_delta(bound: DeltaBound, epsilon: float, enough: float) -> float:
    """Return an upper bound on delta; a quick one if it is no greater than ``enough``."""
    infinite, log_rest = above(bound.infinite, 16.0), bound.log_chernoff(epsilon)
    quick = above(exp_up(log_rest) + infinite)
    if quick <= enough or _negligible(log_rest, infinite):
        return min(1.0, quick)
    return min(1.0, quick, above(exp_up(bound.log_bound(epsilon)[0]) + infinite))


def lower_delta(bound: DeltaBound, epsilon: float) -> float:
    """Return a lower bound on delta."""
    certain = max(0.0, below(bound.infinite, 16.0))
    if _negligible(bound.log_chernoff(epsilon), certain):
        return certain
    return max(0.0, below(exp_down(bound.log_bound(epsilon)[0]) + certain))


def _negligible(log_rest: float, certain: float) -> bool:
    """Whether what may be added is nothing to what is certain, or to any float."""
    return log_rest < math.log(max(certain, _TINY)) - 30
