"""The estimate from reports about pairs of values: shares of rectangles, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato._display import Cell, html_table, named, shown
from sfumato.local.base.report_facts import report_facts
from sfumato.local.device.domains.columns import columns_of
from sfumato.local.device.domains.grid import Grid
from sfumato.local.device.domains.tree import Shape
from sfumato.local.frequency.consistency import made_consistent
from sfumato.local.frequency.shares import FrequencyShares
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.haar_variance import haar_weights
from sfumato.local.ranges.level_moments import LevelMoments
from sfumato.local.ranges.range_share import RangeShare, around, range_indices
from sfumato.local.ranges.variance import Places, of_levels
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import draw_map
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["GridErrorModel", "GridEstimate"]

_ROWS: Final = 20
_COLUMNS: Final = 8
_BLOCK: Final = 1 << 12
_SIGNS: Final = (-1.0, 2.0, -1.0)
_MASS: Final = (-1.0, 0.0, 1.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridErrorModel:
    r"""How far estimates of rectangles deviate, exactly.

    Parameters
    ----------
    shapes : tuple of Shape
        The binary trees of both values.
    pairs : list of tuple of int
        Which levels of both are reported together, 0 for "all".
    moments : tuple of LevelMoments
        Of each pair of levels.
    reports : tuple of int or float
        Of each; for planning, as many as are expected.

    Notes
    -----
    A rectangle is the product of two ranges, and the weight of a pair of coefficients is the product of their
    weights (`HaarErrorModel`). The variance is made up as that of a range is.
    """

    shapes: tuple[Shape, Shape]
    pairs: list[tuple[int, int]]
    moments: tuple[LevelMoments, ...]
    reports: tuple[float, ...]

    def variance(self, first: Places, last: Places, cumulative: Array) -> Array:
        """Return the variances of the estimates of rectangles.

        Parameters
        ----------
        first, last : int64 array, shape (2, rectangles)
            Indices of the first and the last of both values.
        cumulative : array
            What share lies before each index of both, from 0 on to 1: one row and one column more than there
            are indices.
        """
        axes = [haar_weights(shape, first[at], last[at]) for at, shape in enumerate(self.shapes)]
        sums = np.zeros((len(self.pairs), 4, first.shape[1]))
        for part, (one, other) in zip(sums, self.pairs, strict=True):
            for weight, rows in axes[0][one]:
                for beside, columns in axes[1][other]:
                    corners = cumulative[rows[:, None], columns[None, :]]
                    both, mass = weight * beside, _sum(corners, _MASS)
                    part += [both**2, both**2 * mass, 0 * both, both * _sum(corners, _SIGNS)]
        ends = np.stack([first, last + 1], axis=1)
        inside = _sum(cumulative[ends[0][:, None], ends[1][None, :]], (-1.0, 1.0))
        return of_levels(self.moments, self.reports, sums, np.clip(inside, 0.0, 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridEstimate(FrequencyShares):
    """The joint distribution of two ordered values among the respondents.

    Parameters
    ----------
    domain : Grid
        The pairs.
    reports : int
        How many were accepted.
    raw : array, shape (first values, second values)
        Unbiased estimates of each pair's share, with sum 1; NaN without reports.
    error_model : GridErrorModel
        How far rectangles' estimates deviate.
    loss : PrivacyLoss
        Of each respondent's own report.
    simulated : bool
        Whether a report's randomness followed from a seed.
    steps : tuple of str
        The consistency steps that were taken.
    processed : array, optional
        The estimates after those steps.

    Notes
    -----
    The target is the respondents' own shares. Variances and intervals are those of the raw estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local import Domain, HaarGrid
    >>> both = HaarGrid(epsilon=2.0, domains=(Domain(range(8)), Domain(range(8))))
    >>> estimate = both.simulate(np.full(64, 5_000), rng=1)
    >>> quarter = estimate.range((0, 0), (3, 3))
    >>> lower, upper, _ = quarter.interval(0.9999)
    >>> lower < 0.25 < upper
    True
    """

    domain: Grid
    reports: int
    raw: Array
    error_model: GridErrorModel
    loss: PrivacyLoss
    simulated: bool = False
    steps: tuple[str, ...] = ()
    processed: Array | None = None

    @property
    def variances(self) -> Array:
        """Estimated variances of the raw frequencies."""
        indices = np.indices(self.raw.shape).reshape(2, -1)
        return self._variance(indices, indices).reshape(self.raw.shape)

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        first, second = self.domain.first.values, self.domain.second.values
        rows: list[tuple[Cell, ...]] = [
            (
                named(first[row]),
                *(
                    (shown(float(self.frequencies[row, at])), f"[{lower[row, at]:.4g}, {upper[row, at]:.4g}]")
                    for at in range(min(len(second), _COLUMNS))
                ),
            )
            for row in range(min(len(first), _ROWS))
        ]
        left = self.raw.size - len(rows) * min(len(second), _COLUMNS)
        return html_table(
            f"Estimated shares of pairs, of {self.reports:,} reports",
            ("", *map(named, second[:_COLUMNS])),
            rows,
            more=f"and {left:,} more pairs" if left else "",
            facts={"in brackets": "95 % intervals"} | report_facts(self.loss, simulated=self.simulated),
        )

    def range(self, lower: Sequence[Any], upper: Sequence[Any]) -> RangeShare[float]:
        """Return the share of the pairs in a rectangle.

        Parameters
        ----------
        lower, upper : pair
            The smallest and the largest of both values, all inside; of `Bins` lower and upper edges.

        Returns
        -------
        RangeShare
            Of numbers.

        Raises
        ------
        ParameterError
            If they are no pairs of values (or edges), or one of the second comes before that of the first.
        """
        found = self.ranges([lower], [upper])
        share, variance = float(found.share[0]), float(found.variance[0])
        return RangeShare(share=share, variance=variance, reports=self.reports)

    def ranges(self, lower: Any, upper: Any) -> RangeShare[Array]:
        """Return the shares of many rectangles; see `range`.

        Parameters
        ----------
        lower, upper : list of pairs, or arrays of shape (rectangles, 2)
            As in `range`.

        Returns
        -------
        RangeShare
            Of arrays, one entry for each rectangle.
        """
        domains = (self.domain.first, self.domain.second)
        columns = zip(domains, columns_of(lower, 2), columns_of(upper, 2), strict=True)
        found = [range_indices(*column) for column in columns]
        first, last = (np.array([indices[end] for indices in found]) for end in (0, 1))
        reach = _reach(self.frequencies)
        ends = np.stack([first, last + 1], axis=1)
        share = _sum(reach[ends[0][:, None], ends[1][None, :]], (-1.0, 1.0))
        return RangeShare(share=share, variance=self._variance(first, last), reports=self.reports)

    def interval(self, level: float = 0.95) -> Interval[Array]:
        """Return an interval for each pair's share, which holds it with about the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Arrays of shape (first values, second values), within [0, 1].
        """
        return around(self.raw, self.variances, 1 - _check.unit_interval("level", level))

    def bands(self, level: float = 0.95) -> Interval[Array]:
        """Return intervals that hold all shares at once with about the stated probability (Bonferroni).

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Arrays of shape (first values, second values), within [0, 1].
        """
        return around(self.raw, self.variances, (1 - _check.unit_interval("level", level)) / self.raw.size)

    def consistent(self, step: str) -> GridEstimate:
        """Return the estimate after a named step of `sfumato.local.frequency.consistency`; the loss stays.

        Parameters
        ----------
        step : str
            Such as ``"norm-sub"``.

        Returns
        -------
        GridEstimate
            Its `frequencies` are the processed ones.
        """
        if not self.reports:
            _check.refuse("reports", "be at least 1 for a consistency step", self.reports, "collect some")
        found = made_consistent(self.frequencies.ravel(), self.variances.ravel(), step)
        return replace(self, processed=found.reshape(self.raw.shape), steps=(*self.steps, step))

    def of(self, first: Any, second: Any) -> float:
        """Return the frequency of one pair (of `Bins`, of the bins that numbers are in).

        Parameters
        ----------
        first, second : object
            A value of each domain; of `Bins`, any numbers within the edges.

        Returns
        -------
        float
            Its estimated share, after whatever steps were taken.
        """
        return float(self.frequencies.ravel()[self.domain.codes([(first, second)])[0]])

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw the shares as a map of colours, with the widest interval in its title; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float
            Coverage of each interval.

        Returns
        -------
        matplotlib.axes.Axes
            The first values go upwards, and the second ones to the right.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        lower, upper, _ = self.interval(level)
        names = (self.domain.first.values, self.domain.second.values)
        ax = draw_map(self.frequencies, names, ax=ax, label="share")
        ax.set_title(f"{100 * level:g} % intervals are at most {(upper - lower).max():.2g} wide")
        return ax

    def _variance(self, first: Places, last: Places) -> Array:
        """Return variances with the distribution that was found, made to lie between 0 and 1."""
        if not self.reports:
            return np.full(first.shape[1], np.inf)
        reach = np.clip(_reach(self.raw), 0.0, 1.0)
        starts = range(0, first.shape[1], _BLOCK)
        blocks = [slice(start, start + _BLOCK) for start in starts]
        return np.concatenate(
            [self.error_model.variance(first[:, block], last[:, block], reach) for block in blocks]
        )


def _reach(shares: Array) -> Array:
    """Return what share lies before each index of both values."""
    return np.pad(shares.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))


def _sum(corners: Array, weights: tuple[float, ...]) -> Array:
    """Return sums over the corners of rectangles, with the same weights along both sides."""
    return np.asarray(np.einsum("i,j,ijk->k", weights, weights, corners))
