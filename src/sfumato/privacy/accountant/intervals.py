"""What is proven of a composition on both sides: closed views and composed dominating pairs together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np

from sfumato.errors import UnsupportedView
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import mul_down
from sfumato.privacy._outward import below
from sfumato.privacy.accountant import certified, closed
from sfumato.privacy.accountant.planning import Pairs
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.pairs.pair import Pair

__all__ = ["Composition", "delta_interval", "epsilon_interval", "quick_delta", "quick_epsilon"]


class Accountable(closed.Views, Protocol):
    """A loss with all its views; one without a proof raises `UnsupportedView`."""

    def dominating_pair(self) -> Pair:
        """Return two laws that dominate the outputs on any two neighbors."""


Terms: TypeAlias = Sequence[tuple[Accountable, int]]


class Composition(Protocol):
    """What was run, as a whole; hashable, and equal to what accounts alike."""

    @property
    def terms(self) -> Terms:
        """The parts with their counts."""

    def __hash__(self) -> int:
        """Return the hash of what was run."""


@lru_cache(maxsize=4096)
def quick_epsilon(loss: Composition, delta: float) -> float:
    """Return the least epsilon that closed views prove; see `PrivacyLoss.quick_epsilon`."""
    return closed.smallest_epsilon(loss.terms, delta)


@lru_cache(maxsize=4096)
def quick_delta(loss: Composition, epsilon: float) -> float:
    """Return the least delta that closed views prove; see `PrivacyLoss.quick_delta`."""
    return closed.smallest_delta(loss.terms, epsilon)


def epsilon_interval(loss: Composition, delta: float, precision: Precision) -> Interval:
    """Return the best bounds on epsilon; see `sfumato.privacy.PrivacyLoss.epsilon_interval`.

    Raises
    ------
    UnsupportedView
        If neither closed views nor dominating pairs exist for the whole composition.
    """
    known = _known_epsilon(loss, delta)
    if not known or not precision.met(known[0].lower, known[0].upper):
        known[:] = [_narrower(known, _epsilon_interval(loss, delta, precision))]
    return known[0]


def delta_interval(loss: Composition, epsilon: float, precision: Precision) -> Interval:
    """Return the best bounds on delta; see `epsilon_interval`."""
    known = _known_delta(loss, epsilon)
    precision = replace(precision, absolute=0.0)
    if not known or not precision.met(known[0].lower, known[0].upper):
        known[:] = [_narrower(known, _delta_interval(loss, epsilon, precision))]
    return known[0]


@lru_cache(maxsize=4096)
def _known_epsilon(loss: Composition, delta: float) -> list[Interval]:
    """Return the narrowest bounds proven so far, to be kept up by who narrows them."""
    del loss, delta
    return []


@lru_cache(maxsize=4096)
def _known_delta(loss: Composition, epsilon: float) -> list[Interval]:
    """Return the narrowest bounds proven so far, to be kept up by who narrows them."""
    del loss, epsilon
    return []


def _narrower(known: Sequence[Interval], found: Interval) -> Interval:
    """Return what two proofs say together."""
    if not known:
        return found
    return Interval(max(known[0].lower, found.lower), min(known[0].upper, found.upper), found.tight)


@lru_cache(maxsize=4096)
def _epsilon_interval(loss: Composition, delta: float, precision: Precision) -> Interval:
    pairs, missing = _pairs(loss.terms)
    try:
        quick = (
            quick_epsilon(loss, delta)
            if pairs is not None
            else closed.smallest_epsilon(loss.terms, delta, numeric=True)
        )
    except UnsupportedView as error:
        if pairs is None:
            raise UnsupportedView(f"{error}; {missing}") from None
        quick = math.inf
    if pairs is None:
        return Interval(0.0, quick, tight=False)
    if quick == 0:
        return Interval(0.0, 0.0)
    tight = all(pair.tight for pair, _ in pairs)
    if delta == 0:
        lower = math.fsum(mul_down(float(count), pair.supremum) for pair, count in pairs)
        return Interval(min(below(lower, 4.0), quick) if tight else 0.0, quick, tight)
    if not tight and _has_profile(loss.terms):
        return Interval(0.0, quick, tight=False)
    found = _attempt(certified.epsilon_interval, pairs, delta, precision, math.inf)
    upper = min(quick, found.upper)
    return Interval(min(found.lower, upper) if tight else 0.0, upper, tight)


@lru_cache(maxsize=4096)
def _delta_interval(loss: Composition, epsilon: float, precision: Precision) -> Interval:
    pairs, missing = _pairs(loss.terms)
    try:
        quick = (
            quick_delta(loss, epsilon)
            if pairs is not None
            else closed.smallest_delta(loss.terms, epsilon, numeric=True)
        )
    except UnsupportedView as error:
        if pairs is None:
            raise UnsupportedView(f"{error}; {missing}") from None
        quick = 1.0
    if pairs is None:
        return Interval(0.0, quick, tight=False)
    if quick == 0:
        return Interval(0.0, 0.0)
    tight = all(pair.tight for pair, _ in pairs)
    if not tight and _has_profile(loss.terms):
        return Interval(0.0, quick, tight=False)
    found = _attempt(certified.delta_interval, pairs, epsilon, precision, 1.0)
    upper = min(quick, found.upper)
    return Interval(min(found.lower, upper) if tight else 0.0, upper, tight)


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
    search: Callable[[Pairs, float, Precision], Interval],
    pairs: Pairs,
    argument: float,
    precision: Precision,
    worst: float,
) -> Interval:
    """Search, and know nothing where numbers leave the range of floats on the way."""
    try:
        with np.errstate(all="ignore", over="raise", invalid="raise"):
            found = search(pairs, argument, precision)
    except (ArithmeticError, ValueError):
        return Interval(0.0, worst)
    return found if found.lower <= found.upper else Interval(0.0, worst)


def _pairs(terms: Terms) -> tuple[Pairs | None, str]:
    """Return the dominating pairs of all terms, or None and what is missing."""
    try:
        return [(term.dominating_pair(), count) for term, count in terms], ""
    except UnsupportedView as error:
        return None, str(error)
