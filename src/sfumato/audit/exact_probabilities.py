"""Exact auditing: the smallest epsilon of two output distributions whose probabilities are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from numbers import Rational
from typing import Any, TypeAlias, final

import numpy as np

from sfumato import _check
from sfumato.audit.input_pairs import InputPair, as_pairs
from sfumato.audit.worst_case_pairs import default_pairs
from sfumato.errors import ParameterError
from sfumato.mechanisms.base.additive import AdditiveMechanism
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import div_down, div_up, fraction_down, fraction_up, log_down, log_up

__all__ = ["Distribution", "ExactAudit", "exact_audit", "output_distributions"]

Distribution: TypeAlias = Mapping[Any, "Fraction | float | Interval"]
"""Each possible output with its probability, exact or enclosed."""

_SLACK = Fraction(1, 10**9)  # that probabilities given as floats may miss 1 by
_TAIL = 1e-17
_WIDEST = 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExactAudit:
    """What two distributions force.

    Parameters
    ----------
    epsilon_lower, epsilon_upper : float
        Bounds on the smallest epsilon at this delta over the pairs; next to each other where the
        probabilities are exact. Of additive noise the outputs that come up less than once in 1e17 runs are
        not listed, so that at delta 0 the upper bound is infinite.
    epsilon, delta : float
        The claim.
    violated : bool
        Whether ``epsilon_lower`` exceeds the claim.
    event : frozenset
        Outputs whose probabilities force it; it may leave out outputs of probability 0 on both inputs.
    pair : InputPair
        The two inputs, in the order in which the event tells them apart.

    Examples
    --------
    >>> result = exact_audit(({True: 0.75, False: 0.25}, {True: 0.25, False: 0.75}), epsilon=1.0)
    >>> result.violated, round(result.epsilon_upper, 3)
    (True, 1.099)
    """

    epsilon_lower: float
    epsilon_upper: float
    epsilon: float
    delta: float
    violated: bool
    event: frozenset[Any]
    pair: InputPair

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "holds on these pairs"
        return (
            f"epsilon {self.epsilon:g} at delta {self.delta:g}: {verdict}; exactly {self.epsilon_lower:.6g} "
            f"on {self.pair}"
        )


def exact_audit(
    distribution: tuple[Distribution, Distribution] | Callable[[Any], Distribution] | Mechanism,
    *,
    epsilon: float,
    delta: float = 0.0,
    pairs: Iterable[Any] | None = None,
) -> ExactAudit:
    """Compute the smallest epsilon at a delta from distributions with finitely many outputs.

    Parameters
    ----------
    distribution : two mappings, callable or Mechanism
        Two distributions, each a mapping of outputs to probabilities; or a function of the data that returns
        one; or a mechanism of ours that states its distribution (additive noise on one number, or
        ``probabilities``). Probabilities are ints, Fractions, floats (the rationals that they are) or
        enclosing Intervals.
    epsilon, delta : float
        The claim.
    pairs : iterable of (first, second), optional
        Neighboring inputs, where a function or a mechanism is given; an additive mechanism brings its own.

    Returns
    -------
    ExactAudit

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, probabilities are negative, or they do not add up to 1.

    Notes
    -----
    The smallest epsilon is the largest ``log((P(S) - delta) / Q(S))`` over all sets S of outputs, and the
    largest is reached by the outputs whose ratio P / Q is above some number (Neyman and Pearson). Both
    directions are taken. Sums are exact; quotient and logarithm are rounded outward.

    Examples
    --------
    >>> from fractions import Fraction
    >>> warner = {True: Fraction(3, 4), False: Fraction(1, 4)}
    >>> flipped = {True: Fraction(1, 4), False: Fraction(3, 4)}
    >>> result = exact_audit((warner, flipped), epsilon=1.0)
    >>> result.violated, round(result.epsilon_upper, 6)
    (True, 1.098612)
    """
    if epsilon != math.inf:
        epsilon = _check.non_negative("epsilon", epsilon)
    delta = _check.probability("delta", delta)
    worst: tuple[float, float, frozenset[Any], InputPair] | None = None
    highest = 0.0
    for pair, first, second in _distributions(distribution, pairs):
        for swapped in (False, True):
            likely, rare = (second, first) if swapped else (first, second)
            lower, event = _epsilon(likely, rare, delta, upper=False)
            upper, _ = _epsilon(likely, rare, delta, upper=True)
            highest = max(highest, upper)
            if worst is None or lower > worst[0]:
                turned = InputPair(first=pair.second, second=pair.first) if swapped else pair
                worst = (lower, upper, event, turned)
    if worst is None:
        _check.refuse("pairs", "hold at least one pair", pairs, "pass pairs=[(first, second), ...]")
    return ExactAudit(
        epsilon_lower=worst[0],
        epsilon_upper=highest,
        epsilon=epsilon,
        delta=delta,
        violated=worst[0] > epsilon,
        event=worst[2],
        pair=worst[3],
    )


@singledispatch
def output_distributions(mechanism: Any, first: Any, second: Any) -> tuple[Distribution, Distribution]:
    """Return the distributions of a mechanism's output on two inputs.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    probabilities = getattr(mechanism, "probabilities", None)
    if probabilities is None and (isinstance(mechanism, Mechanism) or not callable(mechanism)):
        rule = "be two distributions, or a function that returns one"
        remedy = "pass a function that returns a mapping"
        _check.refuse("distribution", rule, mechanism, remedy)
    released = [(probabilities or mechanism)(data) for data in (first, second)]
    distributions: list[Any] = [
        distribution
        if isinstance(distribution, Mapping)
        else dict(enumerate(np.asarray(distribution).tolist()))
        for distribution in released
    ]
    return distributions[0], distributions[1]


@output_distributions.register
def _(mechanism: AdditiveMechanism, first: Any, second: Any) -> tuple[Distribution, Distribution]:
    steps = [mechanism.grid.round(data) for data in (first, second)]
    distribution, reach = mechanism.distribution, mechanism.distribution.quantile_above(_TAIL)
    if not all(isinstance(step, int) for step in steps) or reach + abs(steps[0] - steps[1]) > _WIDEST:
        rule = f"be of noise on one number, within {_WIDEST} steps"
        _check.refuse("distribution", rule, mechanism, "pass a coarser grid")
    low, high = min(steps) - reach, max(steps) + reach
    # What lies beyond might have any ratio: it adds nothing to the lower bound, and all of it to the upper.
    distributions: list[dict[Hashable, Interval]] = [
        {
            "below": Interval(0.0, distribution.upper_tail(step - low + 1).upper),
            "above": Interval(0.0, distribution.upper_tail(high - step + 1).upper),
        }
        for step in steps
    ]
    for mine, step in zip(distributions, steps, strict=True):
        mine.update({k: distribution.pmf(k - step) for k in range(low, high + 1)})
    return distributions[0], distributions[1]


_Terms: TypeAlias = dict[Hashable, tuple[Fraction, Fraction]]


def _distributions(
    distribution: Any, pairs: Iterable[Any] | None
) -> Iterable[tuple[InputPair, _Terms, _Terms]]:
    if isinstance(distribution, tuple | list):
        if len(distribution) != 2 or pairs is not None:
            remedy = "pass two distributions alone, or a function with pairs"
            _check.refuse("distribution", "be two distributions, without pairs", distribution, remedy)
        yield InputPair(first="first", second="second"), _terms(distribution[0]), _terms(distribution[1])
        return
    for pair in as_pairs(default_pairs(distribution) if pairs is None else pairs):
        first, second = output_distributions(distribution, pair.first, pair.second)
        yield pair, _terms(first), _terms(second)


def _terms(distribution: Any) -> _Terms:
    if not isinstance(distribution, Mapping):  # what a user's function returned may be anything
        _check.refuse_type("distribution", "map outputs to probabilities", distribution, "pass a dict")
    terms: _Terms = {}
    for output, probability in distribution.items():
        ends = probability if isinstance(probability, Interval) else (probability, probability)
        terms[output] = (_rational(ends[0]), _rational(ends[1]))
    if sum(low for low, _ in terms.values()) > 1 + _SLACK or sum(high for _, high in terms.values()) < (
        1 - _SLACK
    ):
        raise ParameterError("distribution must add up to 1; list every output that has a probability")
    return terms


def _rational(value: Any) -> Fraction:
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
    else:
        number = Fraction(
            _check.finite("distribution", float(value) if isinstance(value, np.floating) else value)
        )
    if number < 0:
        _check.refuse(
            "distribution", "hold no negative probability", value, "pass probabilities, which sum to 1"
        )
    return number


def _epsilon(likely: _Terms, rare: _Terms, delta: float, *, upper: bool) -> tuple[float, frozenset[Any]]:
    """Return a bound on the smallest epsilon of one direction, and the event that forces it."""
    mine, theirs = (1, 0) if upper else (0, 1)
    absent = (Fraction(0), Fraction(0))
    ratios = [
        (probability[mine], rare.get(output, absent)[theirs], output)
        for output, probability in likely.items()
        if probability[mine]
    ]
    ratios.sort(key=lambda term: math.inf if not term[1] else _quotient(term[0], term[1]), reverse=True)
    best, size = 0.0, 0
    over, under, spent = Fraction(0), Fraction(0), Fraction(delta)
    for k, (p, q, _) in enumerate(ratios):
        over, under = over + p, under + q
        if over > spent:
            forced = _log(over - spent, under, upper=upper) if under else math.inf
            if forced > best:
                best, size = forced, k + 1
    return best, frozenset(output for _, _, output in ratios[:size])


def _quotient(p: Fraction, q: Fraction) -> float:
    try:
        return float(p / q)
    except OverflowError:
        return math.inf


def _log(p: Fraction, q: Fraction, *, upper: bool) -> float:
    if upper:
        return log_up(div_up(fraction_up(p), fraction_down(q))) if fraction_down(q) else math.inf
    return log_down(div_down(fraction_down(p), fraction_up(q)))
