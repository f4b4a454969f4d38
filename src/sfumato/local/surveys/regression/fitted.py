"""A maximum of a likelihood with names for its coefficients: intervals and tests of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.special import chdtrc, ndtri

from sfumato import _check
from sfumato.local.surveys.inference.hypothesis_tests import Finding
from sfumato.local.surveys.regression.fitting import best_maximum
from sfumato.local.surveys.regression.likelihood import Array, Maximum, Objective
from sfumato.local.surveys.regression.profile_likelihood import profile_bounds
from sfumato.numerics.interval import Interval

__all__ = ["INTERCEPT", "Fitted"]

INTERCEPT: Final = "intercept"
"""The name of a model's first coefficient."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A maximum, and how the named coefficients follow from those that were searched.

    Parameters
    ----------
    problem : Objective
    best : Maximum
        Its maximum.
    starts : list of array
        Where the search began.
    names : tuple of str
        Of the coefficients as given.
    rows : array of names x coefficients
        ``rows @ searched + shift`` are the coefficients as given.
    shift : array
    reach : array
        For each of these, how far an end of an interval is looked for.
    """

    problem: Objective
    best: Maximum
    starts: list[Array]
    names: tuple[str, ...]
    rows: Array
    shift: Array
    reach: Array

    @property
    def coefficients(self) -> Array:
        """The coefficients as given: finite ones, also where the likelihood rises up to infinity."""
        return np.asarray(self.rows @ self.best.coefficients + self.shift)

    def index(self, name: str) -> int:
        """Return which coefficient has a name.

        Parameters
        ----------
        name : str
        """
        if name not in self.names:
            _check.refuse("name", f"be one of {', '.join(map(repr, self.names))}", name, "name a coefficient")
        return self.names.index(name)

    def interval(
        self, name: str, level: float, method: Literal["profile", "wald"], middle: float, error: float
    ) -> Interval:
        """Return an interval for a coefficient.

        Parameters
        ----------
        name : str
            One of `names`.
        level : float
            Wanted coverage.
        method : {"profile", "wald"}
        middle, error : float
            The estimate and its standard error, for Wald's.
        """
        wanted, index = _check.unit_interval("level", level), self.index(name)
        if method == "wald":
            half = float(ndtri((1 + wanted) / 2)) * error
            return Interval(middle - half, middle + half) if np.isfinite(half) else Interval(-np.inf, np.inf)
        if method != "profile":
            _check.refuse("method", "be 'profile' or 'wald'", method, "leave it out")
        reach, shift = float(self.reach[index]), float(self.shift[index])
        ends = profile_bounds(self.problem, self.best, self.rows[index], wanted, reach=reach)
        return Interval(ends[0] + shift, ends[1] + shift)

    def slopes_test(self, names: tuple[str, ...]) -> Finding:
        """Return the likelihood-ratio test of whether slopes are all 0.

        Parameters
        ----------
        names : tuple of str
            Among `names`, not the intercept; none for all slopes.
        """
        if INTERCEPT in names:
            _check.refuse("names", "be slopes", names, "leave out the intercept")
        slopes = names or tuple(name for name in self.names if name != INTERCEPT)
        dropped = sorted({self.index(name) for name in slopes})
        if not dropped:
            _check.refuse("names", "be one slope or more", names, "the model has an intercept only")
        space = np.linalg.qr(self.rows[dropped].T, mode="complete")[0][:, len(dropped) :]
        begin = [space @ (space.T @ start) for start in (self.best.coefficients, *self.starts)]
        null = best_maximum(self.problem, begin, space)
        statistic = 2 * max(0.0, self.best.height - null.height)
        return Finding(
            p_value=float(chdtrc(len(dropped), statistic)),
            method="likelihood ratio, approximate",
            statistic=statistic,
            degrees=len(dropped),
        )
