"""Intervals for epsilon and delta of a composition: the best of closed forms and dominating pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol, TypeAlias, final

import numpy as np

from sfumato.errors import UnsupportedView
from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.decimals import at_most_decimal
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import fraction_down
from sfumato.privacy._outward import above, below
from sfumato.privacy.accountant import certified, closed_forms
from sfumato.privacy.accountant.agreement import intersection
from sfumato.privacy.accountant.delta_curve import DeltaCurve
from sfumato.privacy.accountant.planning import Pairs
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.pairs.pair import Pair

__all__ = [
    "Composition",
    "Parts",
    "charged_epsilon_interval",
    "delta_interval",
    "delta_on_curve",
    "epsilon_interval",
    "epsilon_interval_at_float",
    "maximum_loss",
    "quick_delta",
    "quick_epsilon",
]

_REACH: Final = 12.0
_FAR: Final = 1e9
"""An epsilon at which delta is about that at infinity."""
_COARSEST: Final = 1e-3
"""A coarser curve takes as long."""
_MOST: Final = 2**1000
"""So many runs reveal all, if one does with a chance that is not below the smallest here."""
_SMALL: Final = 1e-290
_REAL: Final = -1000.0
"""Log of a mass; smaller ones are those of empty bins."""


class Accountable(closed_forms.Views, Protocol):
    """A loss with all its views; one without a proof raises `UnsupportedView`."""

    def dominating_pair(self) -> Pair:
        """Return two distributions that dominate the outputs on any two neighbors."""


Terms: TypeAlias = Sequence[tuple[Accountable, int]]


class Composition(Protocol):
    """What was run, as a whole; hashable, and equal to what accounts alike."""

    @property
    def terms(self) -> Terms:
        """The parts with their counts."""

    def __hash__(self) -> int:
        """Return the hash of what was run."""


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """Some terms of a composition, as one by themselves."""

    terms: tuple[tuple[Accountable, int], ...]


class _Reading(NamedTuple):
    """Epsilon at a delta, or delta at an epsilon: how views and pairs bound it, and its worst value."""

    name: str
    closed: Callable[..., float]
    certified: Callable[..., Interval]
    worst: float


_EPSILON = _Reading("epsilon", closed_forms.smallest_epsilon, certified.epsilon_interval, math.inf)
_DELTA = _Reading("delta", closed_forms.smallest_delta, certified.delta_interval, 1.0)


@lru_cache(maxsize=8192)
def _quick(reading: _Reading, loss: Composition, argument: float) -> float:
    return reading.closed(loss.terms, argument)


quick_epsilon: Final[Callable[[Composition, float], float]] = partial(_quick, _EPSILON)
"""Return the smallest epsilon that closed views prove at a delta; see `PrivacyLoss.quick_epsilon`."""


def quick_delta(loss: Composition, epsilon: float) -> float:
    """Return the smallest delta that closed views prove at an epsilon; see `PrivacyLoss.quick_delta`."""
    return _quick(_DELTA, loss, epsilon if epsilon < math.inf else _FAR)


def epsilon_interval(loss: Composition, delta: float, precision: Precision) -> Interval:
    """Return the best bounds on epsilon; see `sfumato.privacy.PrivacyLoss.epsilon_interval`.

    The upper one is that at the largest float that is at most the decimal of ``delta``, where it is finite:
    that is what a ledger charges, whose deltas add up as decimals. Epsilon falls with delta. Where no lower
    one is needed, `charged_epsilon_interval` has the same upper one.

    Raises
    ------
    UnsupportedView
        If neither closed views nor dominating pairs exist for the whole composition.
    """
    upper = charged_epsilon_interval(loss, delta, precision).upper
    found = _narrowest(_EPSILON, loss, delta, precision)
    return Interval(found.lower, upper, found.tight)


def charged_epsilon_interval(loss: Composition, delta: float, precision: Precision) -> Interval:
    """Return the best bounds on what a ledger charges, which the upper end of `epsilon_interval` is.

    That is one reading, at the largest float that is at most the decimal of ``delta``, whose lower end holds
    at ``delta`` too; and one at ``delta`` where the first has no finite end.
    """
    charged = at_most_decimal(delta)
    found = _narrowest(_EPSILON, loss, charged, precision, also=None if charged == delta else delta)
    if charged == delta or found.upper < math.inf:
        return found
    return _narrowest(_EPSILON, loss, delta, precision)


def epsilon_interval_at_float(loss: Composition, delta: float, precision: Precision) -> Interval:
    """Return the best bounds on epsilon at the very float ``delta``; see `epsilon_interval`."""
    return _narrowest(_EPSILON, loss, delta, precision)


def delta_interval(loss: Composition, epsilon: float, precision: Precision) -> Interval:
    """Return the best bounds on delta, at infinity on the mass of infinite losses; see `epsilon_interval`."""
    if math.isinf(epsilon):
        return _at_infinity(loss)
    return _narrowest(_DELTA, loss, epsilon, precision.of_delta())


def delta_on_curve(loss: Composition, epsilon: float, precision: Precision) -> Interval:
    """Return the same as `delta_interval`, where many epsilons of one loss are asked for."""
    return _narrowest(_DELTA, loss, epsilon, precision.of_delta(), many=True)


def _narrowest(
    reading: _Reading,
    loss: Composition,
    argument: float,
    precision: Precision,
    *,
    many: bool = False,
    also: float | None = None,
) -> Interval:
    """Return bounds that are narrow enough if they are known already, and else what both proofs say.

    What is found is known for another argument ``also``, if it is finite.
    """
    known = _known(reading, loss, argument)
    if not known or not precision.met(known[0].lower, known[0].upper):
        found = _on_curve(loss, argument, precision) if many else None
        found = found or _proven(reading, loss, argument, precision, also)
        known[:] = [intersection(reading.name, *known, found)]
        if also is not None and found.upper < math.inf:
            there = _known(reading, loss, also)
            there[:] = [intersection(reading.name, *there, found)]
    return known[0]


@lru_cache(maxsize=8192)
def _known(reading: _Reading, loss: Composition, argument: float) -> list[Interval]:
    """Return the narrowest bounds proven so far, to be updated by who narrows them."""
    del reading, loss, argument
    return []


@contextmanager
def _floats() -> Iterator[None]:
    """Raise where numbers leave the range of floats; threads cost more than such small products do."""
    with np.errstate(all="ignore", over="raise", invalid="raise"), one_thread():
        yield


def _on_curve(loss: Composition, epsilon: float, precision: Precision) -> Interval | None:
    """Return bounds from the loss's own curve, if they are narrow enough."""
    try:
        with _floats():
            curve = _curve(loss, min(precision.relative, _COARSEST))
            found = curve.interval(epsilon) if curve else None
    except (ArithmeticError, ValueError):
        return None
    return found if found and precision.met(found.lower, found.upper) else None


@lru_cache(maxsize=32)
def _curve(loss: Composition, relative: float) -> DeltaCurve | None:
    """Return the curve of a loss whose pairs are those of two neighbors; None if it would not be narrow."""
    try:
        pairs = [(term.dominating_pair(), count) for term, count in loss.terms]
    except UnsupportedView:
        return None
    if not pairs or not all(pair.enclosed for pair, _ in pairs) or all(p.variance for p, _ in pairs):
        return None
    curve = DeltaCurve(pairs, relative)
    return curve if curve.usable else None


@lru_cache(maxsize=8192)
def _proven(
    reading: _Reading, loss: Composition, argument: float, precision: Precision, also: float | None = None
) -> Interval:
    pairs, quick = _seen(reading, loss, argument)
    if pairs is None:
        return Interval(0.0, quick, tight=False)
    if quick == 0:
        return Interval(0.0, 0.0)
    tight = all(pair.enclosed for pair, _ in pairs)
    if reading is _EPSILON and argument == 0:
        # Where nothing may fail, epsilon is the largest loss.
        largest = maximum_loss(pairs) if tight else 0.0
        return intersection(reading.name, Interval(0.0, quick), Interval(largest, math.inf, tight))
    if not tight and _has_profile(loss.terms):
        return Interval(0.0, quick, tight=False)
    at_both = reading if also is None else reading._replace(certified=partial(reading.certified, also=also))
    found = _attempt(at_both, pairs, argument, precision, quick)
    pair = Interval(found.lower if tight else 0.0, found.upper, tight)
    best = intersection(reading.name, Interval(0.0, quick), pair)
    return _with_infinite_mass(reading, pairs, argument, best) if best.tight else best


def _with_infinite_mass(reading: _Reading, pairs: Pairs, argument: float, best: Interval) -> Interval:
    """Where one end is all that is known, ask how much is infinite for certain."""
    if reading is _EPSILON and best.upper == math.inf > best.lower:
        # Infinite for certain, or finite for all that is proven: then nothing is tight.
        certain = infinite_mass(pairs).lower > argument
        return Interval(math.inf if certain else best.lower, math.inf, certain)
    if reading is _DELTA and best.lower == 0 and best.upper == 1:
        # What is infinite exceeds every epsilon.
        return intersection(reading.name, best, Interval(infinite_mass(pairs).lower, 1.0))
    return best


def infinite_mass(pairs: Pairs) -> Interval:
    """Bound the probability that the composed loss is infinite, in the order in which it is greater.

    Parameters
    ----------
    pairs : sequence of (Pair, int)

    Returns
    -------
    Interval
        Tight where all pairs are those of two neighbors.
    """
    orders = (False,) if all(pair.symmetric for pair, _ in pairs) else (False, True)
    least, most = 0.0, 0.0
    for swapped in orders:
        with np.errstate(all="ignore"):
            try:
                bins = [(pair.bins(pair.cuts(_REACH), swapped=swapped), n) for pair, n in pairs]
            except (ArithmeticError, ValueError):  # nothing is known of what is beyond all floats
                most = 1.0
                continue
            least = max(least, _any_mass([(float(part.certain), n) for part, n in bins], at_most=0.0))
            most = max(most, _any_mass([(float(part.only_p), n) for part, n in bins], at_most=1.0))
    tight = all(pair.enclosed for pair, _ in pairs)
    lower = max(0.0, below(least, 64.0)) if tight else 0.0
    return Interval(lower, min(1.0, above(most, 64.0)) if most else 0.0, tight)


def _any_mass(masses: Sequence[tuple[float, int]], *, at_most: float) -> float:
    """Return the probability of any event, each so many times tried; `at_most` where floats fail."""
    if any(mass >= 1 for mass, _ in masses):
        return 1.0
    if len(masses) == 1 and masses[0][1] == 1:
        return masses[0][0]
    if any(n > _MOST and 0 < mass < _SMALL for mass, n in masses):
        return at_most
    return -math.expm1(math.fsum(float(min(n, _MOST)) * math.log1p(-mass) for mass, n in masses))


@lru_cache(maxsize=8192)
def _at_infinity(loss: Composition) -> Interval:
    """Return the mass of infinite losses: no delta at any epsilon is smaller."""
    try:
        found = infinite_mass([(term.dominating_pair(), count) for term, count in loss.terms])
    except UnsupportedView:
        return Interval(0.0, closed_forms.smallest_delta(loss.terms, _FAR, numeric=True), tight=False)
    try:
        return intersection("delta", Interval(0.0, _quick(_DELTA, loss, _FAR)), found)
    except UnsupportedView:
        return found


def _seen(reading: _Reading, loss: Composition, argument: float) -> tuple[Pairs | None, float]:
    """Return the dominating pairs of all terms, or None, and what the closed views say.

    Where a part has no pair, curves that are computed from the other parts' pairs count as closed.
    """
    try:
        pairs = [(term.dominating_pair(), count) for term, count in loss.terms]
    except UnsupportedView as missing:
        try:
            return None, reading.closed(loss.terms, argument, numeric=True)
        except UnsupportedView as error:
            raise UnsupportedView(f"{error}; {missing}") from None
    try:
        return pairs, _quick(reading, loss, argument)
    except UnsupportedView:
        return pairs, reading.worst


def _has_profile(terms: Terms) -> bool:
    """Whether one mechanism ran once and has a profile, than which its pair proves no smaller delta."""
    if len(terms) != 1 or terms[0][1] != 1:
        return False
    try:
        terms[0][0].log_profile(1.0)
    except UnsupportedView:
        return False
    return True


def _attempt(
    reading: _Reading, pairs: Pairs, argument: float, precision: Precision, known: float
) -> Interval:
    """Search, and know nothing where numbers leave the range of floats on the way."""
    try:
        with _floats():
            found = reading.certified(pairs, argument, precision, known)
    except (ArithmeticError, ValueError):
        return Interval(0.0, reading.worst)
    if math.isnan(found.lower) or math.isnan(found.upper):
        return Interval(0.0, reading.worst)
    return intersection(reading.name, Interval(0.0, found.upper), Interval(found.lower, reading.worst))


def maximum_loss(pairs: Pairs) -> float:
    """Return a lower bound on the essential supremum of the composed loss, the greater of both orders.

    Parameters
    ----------
    pairs : sequence of (Pair, int)

    Notes
    -----
    One order holds throughout a composition, so that two unlike pairs may not add their largest losses of
    different orders. Where one pair's is infinite, so is the sum in its order, for no order's is negative.
    """
    if any(math.isinf(pair.supremum) for pair, _ in pairs):
        return math.inf
    orders = (False,) if all(pair.symmetric for pair, _ in pairs) else (False, True)
    sums = (
        sum((count * Fraction(_in_order(pair, swapped=swapped)) for pair, count in pairs), Fraction(0))
        for swapped in orders
    )
    return max(0.0, below(max(map(fraction_down, sums)), 4.0))


def _in_order(pair: Pair, *, swapped: bool) -> float:
    if pair.symmetric:
        return pair.supremum
    distribution = pair.bins(pair.cuts(_REACH), swapped=swapped).merged()
    return max(0.0, float(distribution.loss[distribution.log_mass > _REAL].max(initial=0.0)))
