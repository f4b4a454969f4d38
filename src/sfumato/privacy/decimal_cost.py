"""What a loss costs where people add up: its bounds as decimals, so that ten answers of 0.1 cost 1.

Guarantee: every number is at least the truth when it is read as the decimal that it is written as (see
`sfumato.numerics.decimals`). A bound that is a rational, such as the epsilon of Laplace noise, is taken as it
is; a bound that a person declared is the decimal that they wrote; every other bound is a float that was
rounded up, and is rounded up once more where its decimal is less than it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from sfumato.errors import UnsupportedView
from sfumato.numerics.decimals import at_most_decimal, decimal_of, decimal_up
from sfumato.numerics.rounding import mul_up
from sfumato.privacy.loss import PrivacyLoss

__all__ = [
    "delta_needed",
    "epsilon_cost",
    "gdp_cost",
    "meets",
    "pure_cost",
    "quick_epsilon_cost",
    "zcdp_cost",
]

Exact: TypeAlias = Fraction | float
"""A rational; a float only where it is infinite, or no number."""


_MANY: Final = 64
"""Of more parts each is rounded up before they are summed: exact sums of thousands of rationals are slow."""


@lru_cache(maxsize=4096)
def pure_cost(loss: PrivacyLoss) -> tuple[float, float]:
    """Return the epsilon of pure DP and the mass outside which it holds (basic composition)."""
    return _rounded(*_sum([(term.exact_pure(), count) for term, count in loss.terms]))


@lru_cache(maxsize=4096)
def zcdp_cost(loss: PrivacyLoss) -> tuple[float, float]:
    """Return rho and the mass outside which it holds (Bun and Steinke 2016, composition)."""
    return _rounded(*_sum([(term.exact_zcdp(), count) for term, count in loss.terms]))


@lru_cache(maxsize=4096)
def gdp_cost(loss: PrivacyLoss) -> tuple[float, float]:
    """Return the square of mu and the mass outside which it holds (Dong, Roth, Su 2022, composition)."""
    mass = _total([(term.exact_mass(term.gdp().delta), count) for term, count in loss.terms])
    mu = loss.gdp().mu
    return decimal_up(mul_up(mu, mu)), min(1.0, decimal_up(mass))


def epsilon_cost(loss: PrivacyLoss, delta: float, epsilon_at: Callable[[float], float]) -> float:
    """Return epsilon at ``delta``, which is read as a decimal too.

    Parameters
    ----------
    loss : PrivacyLoss
    delta : float
        In [0, 1).
    epsilon_at : callable
        From a delta to an upper bound on the loss's epsilon, both as the floats they are.

    Returns
    -------
    float
    """
    proven = decimal_up(epsilon_at(at_most_decimal(delta)))
    try:
        epsilon, mass = _sum([(term.exact_pure(), count) for term, count in loss.terms])
    except UnsupportedView:
        return proven
    return proven if mass > decimal_of(delta) else min(proven, decimal_up(epsilon))


@lru_cache(maxsize=4096)
def quick_epsilon_cost(loss: PrivacyLoss, delta: float) -> float:
    """Return what `PrivacyLoss.quick_epsilon` proves, as a decimal."""
    return epsilon_cost(loss, delta, loss.quick_epsilon)


def meets(loss: PrivacyLoss, epsilon: float, delta: float) -> bool:
    """Whether a loss is proven to be (epsilon, delta)-DP, of numbers as floats and as decimals."""
    return max(quick_epsilon_cost(loss, delta), loss.quick_epsilon(delta)) <= epsilon


def delta_needed(loss: PrivacyLoss, epsilon: float, delta: float) -> float:
    """Return 0 for a loss that is proven to be (epsilon, 0)-DP, else ``delta``.

    A mass that no noise and no threshold uses need not be charged, and without it epsilon is the exact sum of
    the parts' own: at a delta, Laplace noise of epsilon 0.5 has one of 0.49999998.

    Parameters
    ----------
    loss : PrivacyLoss
    epsilon, delta : float
        The guarantee that was asked for.

    Returns
    -------
    float
    """
    try:
        return 0.0 if delta and meets(loss, epsilon, 0.0) else delta
    except UnsupportedView:
        return delta


def _rounded(amount: Exact, mass: Exact) -> tuple[float, float]:
    return decimal_up(amount), min(1.0, decimal_up(mass))


def _sum(parts: Sequence[tuple[tuple[Exact, Exact], int]]) -> tuple[Exact, Exact]:
    return (
        _total([(amount, count) for (amount, _), count in parts]),
        _total([(mass, count) for (_, mass), count in parts]),
    )


def _total(parts: Sequence[tuple[Exact, int]]) -> Exact:
    # Nothing is multiplied with an infinite number: infinitely much, not at all, is nothing.
    parts = [(value, count) for value, count in parts if value and count]
    infinite = [float(value) for value, _ in parts if isinstance(value, float)]
    if infinite:
        return sum(infinite)
    products = (Fraction(value) * count for value, count in parts)
    if len(parts) <= _MANY:
        return sum(products, Fraction(0))
    return sum((decimal_of(decimal_up(product)) for product in products), Fraction(0))
