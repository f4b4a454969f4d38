"""Bounds on epsilon and delta of a composition from the views that all of its parts prove.

A composition is a sequence of *terms*, each a loss that is not itself a repetition or a composition, with the
number of times it ran. Nothing here knows what kind of loss a term is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Final, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UnsupportedView
from sfumato.numerics.rounding import log1p_down, log_down, log_up
from sfumato.privacy import conversion
from sfumato.privacy._outward import UNIT, above, below, sum_above, times_above
from sfumato.privacy.best_bound import minimum_epsilon
from sfumato.privacy.gaussian_profile import log_profile
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["Terms", "Views", "gdp", "pure", "rdp", "smallest_delta", "smallest_epsilon", "split", "zcdp"]


class Views(Protocol):
    """What accounting asks of a loss; a view without a proof raises `UnsupportedView`.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> views: Views = Gaussian(2.0)
    >>> round(views.gdp().mu, 9)
    0.5
    """

    def log_profile(self, epsilon: float) -> float:
        """Bound the log of delta at ``epsilon``.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bound the Rényi divergence at every order.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """

    @classmethod
    def rdp_curves(cls, losses: Sequence[Self], orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `rdp_curve` of each of several losses of this class, in rows."""

    def zcdp(self) -> ZCDPView:
        """Bound the loss in approximate zCDP.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """

    def gdp(self) -> GDPView:
        """Bound the trade-off function by Gaussian DP, up to a mass.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """

    def pure(self) -> PureView:
        """Bound the loss itself, up to a mass.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """

    def pure_epsilon(self) -> float | Fraction:
        """Return the epsilon of `pure` before it is rounded to a float.

        Returns
        -------
        float or Fraction
            The epsilon of `pure`: exact as a Fraction, rounded up as a float.
        """

    @property
    def numeric(self) -> bool:
        """Whether `rdp_curve` is computed from a dominating pair, which says more and is asked instead."""

    def split(self) -> tuple[float, Sequence[tuple[Views, int]]]:
        """Part the loss into a mass of total failure and the terms that act otherwise.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : sequence of (PrivacyLoss, int)
            What runs otherwise, each part with its count.
        """


Terms: TypeAlias = Sequence[tuple[Views, int]]

_LARGEST_COUNT: Final = 2**53
"""Smaller ones are floats."""
_ROWS: Final = 256
"""Losses whose curves are made side by side."""


def pure(terms: Terms) -> PureView:
    """Add epsilons and deltas (basic composition); a repetition is rounded once, not for every run."""
    return PureView(
        sum_above(times_above(count, term.pure_epsilon()) for term, count in terms),
        min(1.0, sum_above(times_above(count, term.pure().delta) for term, count in terms)),
    )


def zcdp(terms: Terms) -> ZCDPView:
    """Add rhos and deltas (Bun and Steinke 2016, composition of approximate zCDP)."""
    views = [(term.zcdp(), count) for term, count in terms]
    return ZCDPView(
        sum_above(times_above(count, view.rho) for view, count in views),
        min(1.0, sum_above(times_above(count, view.delta) for view, count in views)),
    )


def gdp(terms: Terms) -> GDPView:
    """Add the squares of mu (Dong, Roth, Su 2022, composition of Gaussian DP) and the masses."""
    views = [(term.gdp(), count) for term, count in terms]
    delta = min(1.0, sum_above(times_above(count, view.delta) for view, count in views))
    if len(views) == 1 and views[0][1] == 1:
        return GDPView(views[0][0].mu, delta)
    # Scaled by the largest, so that no square overflows or vanishes.
    top = max((view.mu for view, _ in views), default=0.0)
    if top in {0.0, math.inf}:
        return GDPView(top, delta)
    squares = sum_above(times_above(count, above((view.mu / top) ** 2)) for view, count in views)
    return GDPView(above(top * math.sqrt(squares), 4.0), delta)


def rdp(terms: Terms, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add Rényi divergences of the same orders (Mironov 2017, Proposition 1)."""
    total = np.zeros_like(orders)
    for curve, count in _curves(terms, orders):
        if count < _LARGEST_COUNT:
            total += curve * float(count)
        else:
            # A count beyond all floats is infinite, and infinitely many times nothing is nothing.
            times = times_above(count, Fraction(1))
            total += np.multiply(curve, times, out=np.zeros_like(orders), where=curve > 0)
    return np.nextafter(total * (1 + 2 * (len(terms) + 1) * UNIT), np.inf)


def _curves(terms: Terms, orders: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.float64], int]]:
    """Yield the curve of each term; of many, neighbors of one class side by side."""
    for kind, group in groupby(terms, lambda term: type(term[0])):
        alike = list(group)
        for start in range(0, len(alike), _ROWS):
            losses, counts = zip(*alike[start : start + _ROWS], strict=True)
            curves = kind.rdp_curves(losses, orders) if len(losses) > 1 else [losses[0].rdp_curve(orders)]
            yield from zip(curves, counts, strict=True)


def split(terms: Terms) -> tuple[float, list[tuple[Views, int]]]:
    r"""Part a composition into one mass of total failure and the terms that act otherwise.

    Notes
    -----
    If each term's pair is, for both datasets, a mixture of a revealing output with weight :math:`\delta_i`
    and of the term's remainder, then at least one revealing output occurs with probability
    :math:`1 - \prod (1 - \delta_i)`, and otherwise the remainders are composed (the argument of Kairouz, Oh
    and Viswanath 2015).
    """
    masses: list[tuple[float, int]] = []
    remainder: list[tuple[Views, int]] = []
    for term, count in terms:
        delta, parts = term.split()
        remainder += [(part, times * count) for part, times in parts]
        if delta:
            masses.append((delta, count))
    return _any_of(masses), remainder


def _any_of(masses: Sequence[tuple[float, int]]) -> float:
    """Return the chance that any of independent failures occurs, each counted as often as it is tried."""
    if not masses:
        return 0.0
    if len(masses) == 1 and masses[0][1] == 1:
        return masses[0][0]
    hazard = sum_above(times_above(count, -log1p_down(-delta)) for delta, count in masses)
    return min(1.0, above(-math.expm1(-hazard), 8.0))


def smallest_epsilon(terms: Terms, delta: float, *, numeric: bool = False) -> float:
    """Return the smallest epsilon that any view proves at ``delta``, rounded up; infinity where none does.

    Parameters
    ----------
    terms : sequence of (loss, int)
    delta : float
    numeric : bool
        Whether curves that take milliseconds are asked too.

    Raises
    ------
    UnsupportedView
        If no view exists for the whole composition.
    """
    mass, rest = split(terms)
    if delta < mass:
        return math.inf
    left = delta if mass == 0 else max(0.0, below((delta - mass) / (1 - mass), 4.0, delta / (1 - mass)))
    return max(0.0, _epsilon(rest, left, numeric))


def smallest_delta(terms: Terms, epsilon: float, *, numeric: bool = False) -> float:
    """Return the smallest delta that any view proves at ``epsilon``, rounded up; see `smallest_epsilon`."""
    mass, rest = split(terms)
    log_delta = _log_delta(rest, epsilon, numeric) if mass < 1 else -math.inf
    delta = 0.0 if math.isinf(log_delta) else min(1.0, above(math.exp(log_delta), 4.0))
    return delta if mass == 0 else min(1.0, above(mass + (1 - mass) * delta, 4.0))


def _epsilon(terms: Terms, delta: float, numeric: bool) -> float:
    """Take the smallest epsilon over all proofs, with the terms of pure DP inside or added afterwards.

    A part that is pure with ``e`` turns (epsilon, delta)-DP of the rest into (epsilon + e, delta)-DP of the
    whole.
    """
    certain, rest = _certain(terms)
    if not rest and delta == 0:
        return certain
    candidates = [certain] if not rest else []
    proofs = _EPSILON_PROOFS + ((_numeric_rdp_epsilon,) if numeric else ())
    if delta > 0:
        candidates += _proved(proofs, terms, delta, needed=len(rest) == len(terms))
        if rest and len(rest) < len(terms):
            alone = _proved(proofs, rest, delta, needed=not candidates)
            candidates += [above(certain + e) for e in alone]
    return min(candidates, default=math.inf)


def _log_delta(terms: Terms, epsilon: float, numeric: bool) -> float:
    """Take the smallest log delta over all proofs, as `_epsilon` does."""
    certain, rest = _certain(terms)
    if not rest and epsilon >= certain:
        return -math.inf
    proofs = _DELTA_PROOFS + ((_numeric_rdp_log_delta,) if numeric else ())
    candidates = [0.0, *_proved(proofs, terms, epsilon, needed=len(rest) == len(terms))]
    if rest and len(rest) < len(terms):
        alone = _proved(proofs, rest, max(0.0, below(epsilon - certain)), needed=len(candidates) == 1)
        candidates += alone if epsilon > certain else []
    return min(candidates)


def _certain(terms: Terms) -> tuple[float, list[tuple[Views, int]]]:
    """Sum the epsilons of the terms of pure DP and return the other terms."""
    epsilons, rest = [], []
    for term, count in terms:
        try:
            view = term.pure()
        except UnsupportedView:
            view = PureView(math.inf, 0.0)
        if view.delta or math.isinf(view.epsilon):
            rest.append((term, count))
        else:
            epsilons.append(times_above(count, term.pure_epsilon()))
    return sum_above(epsilons), rest


def _proved(proofs: Sequence[_Proof], terms: Terms, argument: float, *, needed: bool = True) -> list[float]:
    """Return what each proof says that exists; there must be one, unless pure DP says something already."""
    found, missing = [], []
    for proof in proofs:
        try:
            found.append(proof(terms, argument))
        except UnsupportedView as error:
            missing.append(str(error))
    if needed and not found:
        raise UnsupportedView("; ".join(dict.fromkeys(missing)))
    return found


def _profile(terms: Terms) -> Callable[[float], float]:
    if len(terms) != 1 or terms[0][1] != 1:
        raise UnsupportedView("a composition has no profile in closed form")
    return terms[0][0].log_profile


def _profile_epsilon(terms: Terms, delta: float) -> float:
    log_delta = log_down(delta)
    return minimum_epsilon(_profile(terms), log_delta, start=conversion.zcdp_start(_rho(terms), log_delta))


def _profile_log_delta(terms: Terms, epsilon: float) -> float:
    return min(0.0, _profile(terms)(epsilon))


def _gdp_epsilon(terms: Terms, delta: float) -> float:
    mu, mass = gdp(terms)
    if delta < mass:
        return math.inf
    return conversion.gdp_epsilon(mu, delta if mass == 0 else max(0.0, below(delta - mass)))


def _gdp_log_delta(terms: Terms, epsilon: float) -> float:
    mu, mass = gdp(terms)
    log_delta = log_profile(mu, epsilon)
    return log_delta if mass == 0 else min(0.0, above(math.log(math.exp(log_delta) + mass), 8.0, 1.0))


def _pure_epsilon(terms: Terms, delta: float) -> float:
    epsilon, mass = pure(terms)
    return epsilon if delta >= mass else math.inf


def _pure_log_delta(terms: Terms, epsilon: float) -> float:
    largest, mass = pure(terms)
    return log_up(mass) if epsilon >= largest else 0.0


def _rdp_epsilon(terms: Terms, delta: float) -> float:
    if (instead := _instead_of_numeric(terms)) is None:
        return _numeric_rdp_epsilon(terms, delta)
    rho, mass = instead
    if delta < mass or math.isinf(rho):
        return math.inf
    return conversion.zcdp_epsilon(rho, delta if mass == 0 else max(0.0, below(delta - mass)))


def _rdp_log_delta(terms: Terms, epsilon: float) -> float:
    if (instead := _instead_of_numeric(terms)) is None:
        return _numeric_rdp_log_delta(terms, epsilon)
    rho, mass = instead
    return log_up(min(1.0, above(conversion.zcdp_delta(rho, epsilon) + mass))) if rho < math.inf else 0.0


def _instead_of_numeric(terms: Terms) -> ZCDPView | None:
    """Return what zCDP says of all where a curve is not in closed form, or None where all are."""
    slow = next((term for term, _ in terms if term.numeric), None)
    if slow is None:
        return None
    try:
        return zcdp(terms)
    except UnsupportedView:
        raise UnsupportedView(f"{slow!r} has no rdp view in closed form") from None


def _numeric_rdp_epsilon(terms: Terms, delta: float) -> float:
    log_delta = log_down(delta)
    rho = _rho(terms)
    centre = math.sqrt(-log_delta / rho) if 0 < rho < math.inf else 1.0
    return conversion.rdp_epsilon(partial(rdp, terms), log_delta, centre=centre)


def _numeric_rdp_log_delta(terms: Terms, epsilon: float) -> float:
    rho = _rho(terms)
    centre = max((epsilon - rho) / (2 * rho), 1 / (1 + rho)) if 0 < rho < math.inf else 1.0
    return conversion.rdp_log_delta(partial(rdp, terms), epsilon, centre=centre)


def _rho(terms: Terms) -> float:
    """Return the zCDP parameter, which says where to look for the best order; infinity if unknown."""
    try:
        return zcdp(terms).rho
    except UnsupportedView:
        return math.inf


_Proof: TypeAlias = Callable[[Terms, float], float]
_EPSILON_PROOFS: tuple[_Proof, ...] = (_pure_epsilon, _profile_epsilon, _gdp_epsilon, _rdp_epsilon)
_DELTA_PROOFS: tuple[_Proof, ...] = (_pure_log_delta, _profile_log_delta, _gdp_log_delta, _rdp_log_delta)
