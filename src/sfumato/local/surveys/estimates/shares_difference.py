"""The differences of the shares of several categories between two groups, each with a design of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.surveys.estimates.category_shares import Shares
from sfumato.local.surveys.estimates.intervals import difference_bounds, normal_quantile, share_bounds
from sfumato.local.surveys.estimates.matrix_shares import MatrixShares
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.numerics.interval import Interval

__all__ = ["SharesDifference"]

_Estimated: TypeAlias = Shares | MatrixShares


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharesDifference:
    r"""The share of each category in one group less that in another, independent one: this week and last.

    Parameters
    ----------
    first, second : Shares or MatrixShares
        Of independent respondents. The designs may differ, the categories may not.

    Examples
    --------
    >>> from sfumato.local.surveys import ForcedCategory
    >>> often = ForcedCategory(names=("never", "once", "often"), truth="3/5")
    >>> last = often.estimate({"never": 300, "once": 150, "often": 50})
    >>> week = often.estimate({"never": 250, "once": 170, "often": 80})
    >>> found = SharesDifference(first=week, second=last)
    >>> found.difference.round(4).tolist()
    [-0.1667, 0.0667, 0.1]
    >>> lower, upper, _ = found.interval(simultaneous=True)
    >>> bool((lower < found.difference).all() and (found.difference < upper).all())
    True
    """

    first: _Estimated
    second: _Estimated

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            given: object = getattr(self, name)
            if not isinstance(given, Shares | MatrixShares):
                remedy = "pass what design.estimate(answers) returns for several categories"
                _check.refuse_type(name, "be Shares or MatrixShares", given, remedy)
        if tuple(self.first.design.categories) != tuple(self.second.design.categories):
            found = f"they are {self.first.design.categories} and {self.second.design.categories}"
            remedy = "name them alike, in one order"
            _check.refuse_state("second", "have the categories of first", found, remedy)

    @property
    def difference(self) -> NDArray[np.float64]:
        """Unbiased estimates, raw: they add up to 0; NaN where nobody answered in a group."""
        return self.first.shares - self.second.shares

    @property
    def maximum_likelihood(self) -> NDArray[np.float64]:
        """The likeliest differences: of shares within [0, 1] that add up to 1."""
        return self.first.maximum_likelihood - self.second.maximum_likelihood

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Unbiased estimate of the raw differences' covariance, of sampling and randomization together."""
        return self.first.covariance + self.second.covariance

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard deviations of the raw differences."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def interval(
        self,
        level: float = 0.95,
        method: Literal["wilson", "clopper-pearson"] = "wilson",
        *,
        simultaneous: bool = False,
    ) -> Interval[NDArray[np.float64]]:
        r"""Return an interval for the difference of each category's shares in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"wilson", "clopper-pearson"}
            The intervals of the shares that it is made of. The first has the level approximately; of
            `MatrixShares` it takes what the profile likelihood's and the normal one reach. The second covers
            at least with it, always, is wider, and is of `Shares` alone.
        simultaneous : bool
            Whether the level is that of all categories at once; else it is that of each.

        Returns
        -------
        Interval
            Arrays over the categories, within [-1, 1].

        Notes
        -----
        As `PrevalenceDifference.interval`, for each category. At once each of k takes the k-th part of the
        risk (Bonferroni), whatever the dependence of the estimates; of two categories each difference is the
        other's negative, and one takes all.
        """
        risk = 1 - _check.unit_interval("level", level)
        count = len(self.first.design.categories)
        if simultaneous and count > 2:
            risk /= count
        if method == "clopper-pearson":
            one, two = (_exact(part, name, 1 - risk / 2) for name, part in self._parts)
            return Interval(np.maximum(one.lower - two.upper, -1), np.minimum(one.upper - two.lower, 1))
        if method != "wilson":
            _check.refuse("method", "be 'wilson' or 'clopper-pearson'", method, "leave it out")
        if not (self.first.respondents and self.second.respondents):
            return Interval(np.full(count, -1.0), np.full(count, 1.0))
        one, two = (_near(part, 1 - risk) for _, part in self._parts)
        lower, upper, _ = difference_bounds(self.first.shares, one, self.second.shares, two)
        likeliest = self.maximum_likelihood
        return Interval(
            np.clip(np.minimum(lower, likeliest), -1, 1), np.clip(np.maximum(upper, likeliest), -1, 1)
        )

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        ends = zip(lower.tolist(), upper.tolist(), strict=True)
        columns = (
            self.first.design.categories,
            self.difference.tolist(),
            self.maximum_likelihood.tolist(),
            ends,
        )
        rows = zip(*columns, strict=True)
        return estimate_html("Estimated differences of shares, intervals at once", rows)

    def __str__(self) -> str:
        if not (self.first.respondents and self.second.respondents):
            return "nobody answered in a group"
        lower, upper, _ = self.interval(simultaneous=True)
        rows = zip(self.first.design.categories, self.difference, lower, upper, strict=True)
        each = ", ".join(
            f"{name} {value:+.4f} ({low:+.4f} to {high:+.4f})" for name, value, low, high in rows
        )
        return f"{each}; 95 % intervals at once"

    @property
    def _parts(self) -> tuple[tuple[str, _Estimated], ...]:
        return ("first", self.first), ("second", self.second)


def _exact(part: _Estimated, name: str, level: float) -> Interval[NDArray[np.float64]]:
    """Return intervals of the shares that cover at least with the level."""
    if isinstance(part, MatrixShares):
        remedy = "leave method out, or take a design of Shares"
        _check.refuse_state("method", "be 'wilson' for MatrixShares", f"{name} is of that kind", remedy)
    return part.interval(level)


def _near(part: _Estimated, level: float) -> Interval[NDArray[np.float64]]:
    """Return approximate intervals around the raw shares, also beyond 0 and 1."""
    if isinstance(part, Shares):
        floor = np.array([float(mass) for mass in part.design.floor])
        ends = share_bounds(part.counts, part.respondents, level, "wilson")
        lower, upper = np.sort([(end - floor) / float(part.design.slope) for end in ends], axis=0)
        return Interval(lower, upper)
    if part.respondents < 2:
        return Interval(np.full(len(part.shares), -np.inf), np.full(len(part.shares), np.inf))
    half = normal_quantile((1 + level) / 2) * part.stddev
    found = part.interval(level)
    return Interval(np.minimum(found.lower, part.shares - half), np.maximum(found.upper, part.shares + half))
