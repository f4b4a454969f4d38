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
from sfumato.privacy.accountant.inversion import Line
from sfumato.privacy.accountant.planning import Pairs, Plan, Saddle, Survey, survey
from sfumato.privacy.accountant.precision import Precision

__all__ = ["delta_interval", "epsilon_interval"]

_ROUNDS: Final = 8
_FIRST_SHARE: Final = 0.6
"""Share of the wanted width that the first plan aims at."""
_ALIAS_SHARE: Final = 1e-3
"""Share of a plan's error that aliases and the end of the line may use up."""
_MOST_COST: Final = 4e9
"""Products of a bin and a point of the line, for one bound; some seconds."""
_TINY: Final = 1e-300
_Saddle: TypeAlias = Callable[[Survey], Saddle]


class _Order:
    """One order of the pairs, with its saddle point and its present plan."""

    def __init__(self, look: Survey, saddle: _Saddle) -> None:
        self._look, self._saddle = look, saddle
        self.saddle = saddle(look)
        self._error = math.nan
        self._plan: Plan | None = None

    def lay(self, error: float, *, upper: bool) -> Line:
        """Plan for an error, measured in epsilon, and lay the line of one of the bounds.

        Each plan is made from the one before it, which is a closer look at the same pairs.
        """
        plan = self._plan
        if plan is None or error != self._error:
            if plan is not None:
                self._look = plan.survey()
                self.saddle = self._saddle(self._look)
            plan = self._look.plan(self.saddle, error)
            self._plan, self._error = plan, error
        tilt = self.saddle.tilt
        return Line(
            plan.work(upper=upper),
            tilt=tilt,
            smoothing=plan.smoothing,
            near=self.saddle.epsilon,
            log_delta=self.saddle.log_delta,
            log_precision=min(-3.0, math.log(_ALIAS_SHARE * tilt * error)),
            upper=upper,
        )


def epsilon_interval(pairs: Pairs, delta: float, precision: Precision) -> Interval:
    """Return bounds on the epsilon of the composed pairs at ``delta``, strictly between 0 and 1.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
    delta : float
    precision : Precision

    Returns
    -------
    Interval
        Holds the least epsilon at which the hockey-stick divergences of both orders are at most ``delta``.
        Wider than asked where the rounds end before it is narrow enough.
    """

    def saddle(look: Survey) -> Saddle:
        return look.saddle_at_delta(math.log(max(delta - look.infinite, _TINY * delta)))

    orders = [_Order(look, saddle) for look in _looks(pairs, delta)]
    # Where epsilon is nearly 0, an error is measured against the spread of the loss.
    scale = max(max(order.saddle.epsilon, 1e-3 * order.saddle.deviation) for order in orders)
    error = _FIRST_SHARE * max(precision.relative * scale, precision.absolute)
    orders.sort(key=lambda order: -order.saddle.epsilon)
    return _refined(
        orders,
        lambda line, enough: _upper_epsilon(line, delta, enough),
        lambda line: _lower_epsilon(line, delta),
        error,
        precision,
    )


def delta_interval(pairs: Pairs, epsilon: float, precision: Precision) -> Interval:
    """Return bounds on the delta of the composed pairs at a non-negative ``epsilon``.

    The greater of both orders' hockey-stick divergences lies inside; see `epsilon_interval`.
    """

    def saddle(look: Survey) -> Saddle:
        return look.saddle_at_epsilon(epsilon)

    # Which tails matter depends on the answer: a first look with very far ones tells.
    least = max(math.exp(saddle(look).log_delta) for look in _looks(pairs, _TINY))
    orders = [_Order(look, saddle) for look in _looks(pairs, max(_TINY, least))]
    orders.sort(key=lambda order: -order.saddle.log_delta)
    return _refined(
        orders,
        lambda line, enough: _upper_delta(line, epsilon, enough),
        lambda line: _lower_delta(line, epsilon),
        _FIRST_SHARE * precision.relative / orders[0].saddle.tilt,
        precision,
    )


def _looks(pairs: Pairs, delta: float) -> list[Survey]:
    """Look at the orders; where each pair is its own mirror image, one is enough."""
    both = not all(pair.symmetric for pair, _ in pairs)
    return [survey(pairs, delta, swapped=swapped) for swapped in ((False, True) if both else (False,))]


def _refined(
    orders: Sequence[_Order],
    upper_bound: Callable[[Line, float], float],
    lower_bound: Callable[[Line], float],
    error: float,
    precision: Precision,
) -> Interval:
    """Bound with plans of falling error, until the interval is narrow enough or a plan costs too much.

    Each order's upper bound must hold; one order's lower bound is enough. The order that seems the worse one
    comes first, so that a quick bound often does for the other.
    """
    lower, uppers = 0.0, [math.inf] * len(orders)
    for _ in range(_ROUNDS):
        for i, order in enumerate(orders):
            if uppers[i] > lower:
                line = order.lay(error, upper=True)
                if line.cost > _MOST_COST and math.isfinite(uppers[i]):
                    return Interval(lower, max(uppers))
                uppers[i] = min(uppers[i], upper_bound(line, lower))
                if i == 0:
                    lower = max(lower, lower_bound(order.lay(error, upper=False)))
        upper = max(uppers)
        worst = uppers.index(upper)
        if worst > 0:
            lower = max(lower, lower_bound(orders[worst].lay(error, upper=False)))
        if precision.met(lower, upper):
            break
        wanted = precision.width(upper) / (upper - lower) if math.isfinite(upper) else 0.5
        error *= min(0.5, max(0.8 * wanted, 0.05))
    return Interval(lower, max(uppers))


def _upper_epsilon(line: Line, delta: float, enough: float) -> float:
    infinite = line.work.infinite
    left = below(delta - above(infinite, 16.0), 4.0, delta) if infinite else delta
    if left <= 0:
        return math.inf
    log_left = log_down(left)
    quick = max(0.0, line.chernoff_epsilon(log_left))
    return quick if quick <= enough else max(0.0, line.solve(log_left))


def _lower_epsilon(line: Line, delta: float) -> float:
    infinite = line.work.infinite
    certain = below(infinite, 16.0) if infinite else 0.0
    if delta < certain:
        return math.inf
    return max(0.0, line.solve(log_up(above(delta - certain, 4.0, delta) if certain else delta)))


def _upper_delta(line: Line, epsilon: float, enough: float) -> float:
    infinite = above(line.work.infinite, 16.0)
    quick = above(exp_up(line.log_chernoff(epsilon)) + infinite)
    return quick if quick <= enough else min(1.0, quick, above(exp_up(line.log_bound(epsilon)[0]) + infinite))


def _lower_delta(line: Line, epsilon: float) -> float:
    return max(0.0, below(exp_down(line.log_bound(epsilon)[0]) + below(line.work.infinite, 16.0)))
