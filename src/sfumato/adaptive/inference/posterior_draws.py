"""Draws from a posterior distribution: means, credible intervals, and how many draws they are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.release import read_only
from sfumato.numerics.interval import Interval

__all__ = ["PosteriorDraws", "chain_length"]

_Array = NDArray[np.float64]


def chain_length(draws: object, burn_in: object) -> tuple[int, int]:
    """Return how many draws are returned and how many are thrown away before them, or refuse either."""
    remedy = "pass 2000, or more for intervals near a level of 1"
    return _check.integer("draws", draws, minimum=100, remedy=remedy), _check.integer("burn_in", burn_in)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PosteriorDraws:
    """Parameters drawn from their posterior distribution, given a release and a prior.

    Parameters
    ----------
    values : float64 array of shape (draws, parameters)
        Read-only.
    names : tuple
        Of the parameters.

    Notes
    -----
    Credible intervals hold the parameters with the stated probability under the prior and the model. They
    promise no coverage for a fixed population: that depends on how well prior and model fit it.

    Examples
    --------
    >>> draws = PosteriorDraws(values=np.linspace(0, 1, 1001)[:, None], names=("share",))
    >>> draws.mean.tolist(), draws.credible_interval(0.9).lower.round(3).tolist()
    ([0.5], [0.05])
    """

    values: _Array
    names: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(np.asarray(self.values, dtype=np.float64)))
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names) or len(self.values) < 2:
            remedy = "pass an array with a row for each draw"
            _check.refuse_type("values", "have one column for each name, and two rows", self.values, remedy)

    @property
    def mean(self) -> _Array:
        """The posterior means."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def stddev(self) -> _Array:
        """The posterior standard deviations."""
        return np.asarray(self.values.std(axis=0, ddof=1))

    def credible_interval(self, level: float = 0.95) -> Interval[_Array]:
        """Return central credible intervals, one for each parameter.

        Parameters
        ----------
        level : float
            Posterior probability of each, strictly between 0 and 1.

        Returns
        -------
        Interval
            With as much probability on either side of it; no promise of coverage (see the class).
        """
        outside = (1 - _check.unit_interval("level", level)) / 2
        lower, upper = np.quantile(self.values, [outside, 1 - outside], axis=0)
        return Interval(lower, upper)

    def map(self, function: Callable[[_Array], Any], names: tuple[Any, ...]) -> PosteriorDraws:
        """Return draws of a function of the parameters, such as a difference.

        Parameters
        ----------
        function : callable
            From one draw, an array of the parameters, to a number or an array.
        names : tuple
            Of the results.

        Returns
        -------
        PosteriorDraws
        """
        found = np.array([np.atleast_1d(function(row)) for row in self.values], dtype=np.float64)
        return PosteriorDraws(values=found, names=names)

    @property
    def effective_draws(self) -> _Array:
        """How many independent draws have means as precise (Geyer 1992, initial positive sequence)."""
        return np.array([_effective(column) for column in self.values.T])


def _effective(column: _Array) -> float:
    """Return the number of draws over the sum of their correlations."""
    count = len(column)
    centered = column - column.mean()
    power = np.abs(np.fft.rfft(centered, 2 * count)) ** 2
    correlations = np.fft.irfft(power)[:count]
    if correlations[0] <= 0:
        return float(count)
    even = count // 2 * 2
    pairs = (correlations / correlations[0])[:even].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    time = 2 * float(pairs[: ends[0] if len(ends) else None].sum()) - 1
    return count / max(time, 1 / count)
