"""The exact error of private counts and means, by the distribution of the noise that is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Protocol, Self, final, runtime_checkable

from sfumato import _check
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.rounding import div_up, expm1_up, fraction_up, log_up
from sfumato.privacy.neighboring import Neighboring

__all__ = ["EpsilonErrorModel", "ErrorModel", "NoisyCounts", "NoisyMean"]

_MOST: Final = 1 << 1000


@runtime_checkable
class ErrorModel(Protocol):
    """What a mechanism of anybody's must know for `sample_size`: its error.

    Examples
    --------
    >>> isinstance(NoisyCounts(epsilon=1.0), ErrorModel)
    True
    """

    def error(self, rows: int, confidence: float) -> float:
        """Return an upper bound on the error that holds with that confidence; it never rises with rows.

        Parameters
        ----------
        rows : int
            How many rows there are, at least 1.
        confidence : float
            Strictly between 0 and 1.

        Returns
        -------
        float
        """


@runtime_checkable
class EpsilonErrorModel(ErrorModel, Protocol):
    """An error that is also known at other epsilons, for `epsilon_for` and `tradeoff_table`.

    Notes
    -----
    Noise is taken to be independent of the rows. A model whose noise is not has an attribute
    ``independent = False``, as `NoisyQuantile` has; then standard errors are added in the place of variances.

    Examples
    --------
    >>> isinstance(NoisyMean(bounds=(0.0, 1.0), epsilon=1.0), EpsilonErrorModel)
    True
    """

    def stddev(self, rows: int) -> float:
        """Return the standard deviation that the noise adds to one answer.

        Parameters
        ----------
        rows : int
            How many rows there are, at least 1.

        Returns
        -------
        float
        """

    def with_epsilon(self, epsilon: float) -> EpsilonErrorModel:
        """Return the same at another epsilon; its error never rises with epsilon.

        Parameters
        ----------
        epsilon : float
            Positive.

        Returns
        -------
        EpsilonErrorModel
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCounts:
    r"""Counts with exact noise as shares of the rows: one count, a histogram, or tables of marginals.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee. With a delta the noise is Gaussian or Laplace, whichever has the smaller deviation.
    entries : int
        How many counts there are in all tables together; the error is the greatest of them.
    tables : int
        In how many tables a unit counts, once in each: 1 for a histogram, the number of tables for marginals.
    neighboring : Neighboring
        Under replace-one a unit moves two cells of each table, or a single count.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: the mechanism's own. Its noise is independent on each entry, so that the greatest error is at
    most h with exactly :math:`P(|Z| \le h)^{entries}`, for the discrete distribution that is drawn. Rows are
    public where shares are released. The error is that against the sample's own shares.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms"; Canonne,
    Kamath, Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> histogram = NoisyCounts(epsilon=0.5, entries=100)
    >>> histogram.error(rows=1000, confidence=0.95)
    0.015000000000000001
    """

    epsilon: float
    delta: float = 0.0
    entries: int = 1
    tables: int = 1
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    mechanism: Laplace | Gaussian = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        entries = _check.integer("entries", self.entries, minimum=1)
        tables = _check.integer("tables", self.tables, minimum=1)
        if entries > _MOST:
            _check.refuse("entries", "be at most 2**1000", entries, "count the cells of all tables")
        if tables > entries:
            _check.refuse(
                "tables", "be at most the number of entries", tables, "count the cells of all tables"
            )
        _check.instance("neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE")
        moved = 2 * tables if self.neighboring is Neighboring.REPLACE_ONE else tables
        settings = {"sensitivity": 1, "l0": min(entries, moved), "neighboring": self.neighboring}
        object.__setattr__(self, "mechanism", _smallest(self.epsilon, self.delta, settings))

    def error(self, rows: int, confidence: float) -> float:
        """Return the smallest error that no entry exceeds with that confidence.

        Parameters
        ----------
        rows : int
            What the counts are divided by.
        confidence : float
            Strictly between 0 and 1, for all entries together.

        Returns
        -------
        float
            Rounded up.
        """
        rows = _check.integer("rows", rows, minimum=1)
        return fraction_up(Fraction(_reach(self.mechanism, self.entries, confidence), rows))

    def stddev(self, rows: int) -> float:
        """Return the noise's standard deviation in one share.

        Parameters
        ----------
        rows : int

        Returns
        -------
        float
            To float accuracy.
        """
        rows = _check.integer("rows", rows, minimum=1)
        return float(Fraction(self.mechanism.distribution.stddev) / rows)

    def with_epsilon(self, epsilon: float) -> Self:
        """Return the same counts at another epsilon.

        Parameters
        ----------
        epsilon : float

        Returns
        -------
        NoisyCounts
        """
        return replace(self, epsilon=epsilon)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMean:
    """The mean of bounded values, or of each coordinate of a vector, by a noisy sum over a public n.

    Parameters
    ----------
    bounds : tuple of float
        Values are clamped to them.
    epsilon, delta : float
        The guarantee, under replacing one row. With a delta the noise is Gaussian or Laplace, whichever has
        the smaller deviation.
    dimension : int
        Coordinates, each within the bounds; the error is the greatest of them.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: the mechanism's own. Sums are rounded to the mechanism's grid, and half of a step is in the
    error. The error is that against the sample's own mean of clamped values.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms"; Canonne,
    Kamath, Steinke (2020), "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> age = NoisyMean(bounds=(0, 100), epsilon=1.0)
    >>> round(age.error(rows=10_000, confidence=0.95), 4)
    0.03
    """

    bounds: tuple[float, float]
    epsilon: float
    delta: float = 0.0
    dimension: int = 1
    mechanism: Laplace | Gaussian = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lower, upper = (_check.finite("bounds", bound) for bound in self.bounds)
        if not lower < upper:
            _check.refuse("bounds", "rise", self.bounds, "pass (lower, upper)")
        settings = {
            "sensitivity": fraction_up(Fraction(upper) - Fraction(lower)),
            "l0": _check.integer("dimension", self.dimension, minimum=1),
            "integral": False,
            "neighboring": Neighboring.REPLACE_ONE,
        }
        object.__setattr__(self, "mechanism", _smallest(self.epsilon, self.delta, settings))

    def error(self, rows: int, confidence: float) -> float:
        """Return the smallest error that no coordinate exceeds with that confidence, rounding included.

        Parameters
        ----------
        rows : int
        confidence : float
            Strictly between 0 and 1, for all coordinates together.

        Returns
        -------
        float
            Rounded up.
        """
        rows = _check.integer("rows", rows, minimum=1)
        steps = _reach(self.mechanism, self.dimension, confidence) + Fraction(1, 2)
        return fraction_up(steps * self.mechanism.grid.step / rows)

    def stddev(self, rows: int) -> float:
        """Return the noise's standard deviation in the mean.

        Parameters
        ----------
        rows : int

        Returns
        -------
        float
            To float accuracy.
        """
        rows = _check.integer("rows", rows, minimum=1)
        return float(Fraction(self.mechanism.distribution.stddev) * self.mechanism.grid.step / rows)

    def with_epsilon(self, epsilon: float) -> Self:
        """Return the same mean at another epsilon.

        Parameters
        ----------
        epsilon : float

        Returns
        -------
        NoisyMean
        """
        return replace(self, epsilon=epsilon)


def _smallest(epsilon: float, delta: float, settings: dict[str, Any]) -> Laplace | Gaussian:
    """Return the mechanism with the smaller standard deviation."""
    laplace = Laplace.calibrated(epsilon=epsilon, delta=delta, **settings)
    if not delta:
        return laplace
    gaussian = Gaussian.calibrated(epsilon=epsilon, delta=delta, **settings)
    found: list[Laplace | Gaussian] = [laplace, gaussian]
    return min(found, key=lambda one: one.distribution.stddev * float(one.grid.step))


def _reach(mechanism: Laplace | Gaussian, entries: int, confidence: float) -> int:
    """Return the smallest h that all independent draws are within, with that confidence."""
    confidence = _check.unit_interval("confidence", confidence, "pass a probability such as 0.95")
    outside = -expm1_up(div_up(log_up(confidence), float(entries)))
    return max(0, mechanism.distribution.quantile_above(math.nextafter(outside / 2, 0.0)) - 1)
