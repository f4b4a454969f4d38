"""The estimate from reports about levels: shares of ranges, a distribution, quantiles, with intervals."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.consistency import STEPS, made_consistent
from sfumato.local.frequency.shares import TabledShares
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.consistency import isotonic
from sfumato.local.ranges.range_share import RangeShare, around, drawn_places, range_indices
from sfumato.local.ranges.variance import Places, RangeErrorModel
from sfumato.mechanisms.base.release_table import Rows, drawn
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import draw_line
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["RangeEstimate"]

_BLOCK: Final = 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeEstimate(TabledShares):
    """The distribution of ordered values among the respondents.

    Parameters
    ----------
    domain : Domain or Bins
        The values, in their order.
    reports : int
        How many were accepted.
    raw : array
        Unbiased estimates of each value's share, with sum 1; NaN without reports.
    error_model : RangeErrorModel
        How far ranges' estimates deviate.
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
    The target is the respondents' own shares; that only some respondents were asked of each level is inside
    the error. Variances and intervals are those of the raw estimates, before any step.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local import Domain, HaarHistogram
    >>> ages = HaarHistogram(epsilon=2.0, domain=Domain(range(64)))
    >>> estimate = ages.simulate(np.full(64, 5_000), rng=1)
    >>> adults = estimate.range(16, 63)
    >>> lower, upper, _ = adults.interval(0.9999)
    >>> lower < 0.75 < upper, estimate.quantile(0.5) in range(28, 36)
    (True, True)
    """

    domain: Domain | Bins
    reports: int
    raw: Array
    error_model: RangeErrorModel
    loss: PrivacyLoss
    simulated: bool = False
    steps: tuple[str, ...] = ()
    processed: Array | None = None

    @property
    def variances(self) -> Array:
        """Estimated variances of the raw frequencies."""
        indices = np.arange(len(self.raw))
        return self._variance(indices, indices)

    def range(self, lower: Any, upper: Any) -> RangeShare[float]:
        """Return the share of the values from one to another.

        Parameters
        ----------
        lower, upper
            The first and the last value, both inside; of `Bins` the lower and the upper edge.

        Returns
        -------
        RangeShare
            Of numbers.

        Raises
        ------
        ParameterError
            If they are no values (or edges), or the second comes before the first.
        """
        found = self.ranges([lower], [upper])
        return RangeShare(
            share=float(found.share[0]), variance=float(found.variance[0]), reports=self.reports
        )

    def ranges(self, lower: ArrayLike | list[Any], upper: ArrayLike | list[Any]) -> RangeShare[Array]:
        """Return the shares of many ranges; see `range`.

        Parameters
        ----------
        lower, upper : array or list
            The first and the last value of each range, as in `range`.

        Returns
        -------
        RangeShare
            Of arrays, one entry for each range.
        """
        first, last = range_indices(self.domain, lower, upper)
        reach = _reach(self.frequencies)
        return RangeShare(
            share=reach[last + 1] - reach[first], variance=self._variance(first, last), reports=self.reports
        )

    def cdf(self) -> RangeShare[Array]:
        """Return for each value (or upper edge of a bin) the share of those up to it.

        Returns
        -------
        RangeShare
            Of arrays, in the order of the domain.
        """
        last = np.arange(len(self.raw))
        return RangeShare(
            share=_reach(self.frequencies)[1:], variance=self._variance(0 * last, last), reports=self.reports
        )

    def interval(self, level: float = 0.95) -> Interval[Array]:
        """Return an interval for each value's share, which holds it with about the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Arrays over the values, within [0, 1].
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
            Arrays over the values, within [0, 1].
        """
        risk = (1 - _check.unit_interval("level", level)) / len(self.raw)
        return around(self.raw, self.variances, risk)

    def cdf_bands(self, level: float = 0.95) -> Interval[Array]:
        """Return intervals that hold the whole of `cdf` at once with about the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Arrays over the values, within [0, 1]; neither end ever falls.

        Notes
        -----
        Bonferroni's, over all values but the last, whose share is 1. As shares never fall, the lower ends
        may be made to grow and the upper ones too: what holds stays.
        """
        risk = (1 - _check.unit_interval("level", level)) / max(1, len(self.raw) - 1)
        return self._cdf_bands(risk)

    def _cdf_bands(self, risk: float) -> Interval[Array]:
        reported = replace(self, processed=None).cdf()
        lower, upper, _ = around(reported.share, reported.variance, risk)
        lower[-1] = upper[-1] = 1.0
        rising = np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]
        return Interval(*rising)

    def quantile(self, q: float) -> Any:
        """Return the smallest value up to which at least a share of ``q`` lies.

        Parameters
        ----------
        q : float
            Strictly between 0 and 1.

        Returns
        -------
        A value of the domain; for `Bins` a number, as if shares were even within a bin.

        Notes
        -----
        Of the nearest distribution function that never falls (`consistent` with ``"isotonic"``), if no step
        was taken.
        """
        share = _check.unit_interval("q", q)
        if not self.reports:
            _check.refuse("reports", "be at least 1 for a quantile", self.reports, "collect some")
        smooth = self if self.steps else self.consistent("isotonic")
        reach = np.maximum.accumulate(_reach(smooth.frequencies))
        reach[-1] = max(float(reach[-1]), 1.0)
        index = int(np.searchsorted(reach[1:], share))
        if isinstance(self.domain, Bins):
            start, stop = self.domain.edges[index : index + 2].tolist()
            inside = reach[index + 1] - reach[index]
            return float(start + (stop - start) * np.clip((share - reach[index]) / inside, 0.0, 1.0))
        return self.domain.values[index]

    def quantile_interval(
        self, q: float, level: float = 0.95, *, simultaneous: bool = False
    ) -> Interval[Any]:
        r"""Return a first and a last value between which a quantile lies with about the stated probability.

        Parameters
        ----------
        q : float
            Strictly between 0 and 1.
        level : float
            Wanted coverage, strictly between 0 and 1.
        simultaneous : bool
            Whether the intervals of all q are to hold at once.

        Returns
        -------
        Interval
            Two values of the domain; for `Bins` a lower and an upper edge.

        Notes
        -----
        Let F be the respondents' distribution function, Q the smallest index with :math:`F(Q) \ge q`, and L
        and U bands around F. The interval is from the smallest x with :math:`\max_{y \le x} U(y) \ge q` to
        the smallest x with :math:`\min_{y \ge x} L(y) \ge q`. *For all q at once*: where the bands hold
        everywhere, :math:`U(Q) \ge F(Q) \ge q`, and :math:`L(x) \le F(x) < q` for all x before Q. *For one
        q*: the first inequality needs U at Q alone, and the second L at the index before Q alone, as
        :math:`\min_{y \ge x} L(y) \le L(Q - 1)` for all x before Q. These two indices do not depend on the
        reports; so ends with half the risk each, index by index, suffice.
        """
        share, risk = _check.unit_interval("q", q), 1 - _check.unit_interval("level", level)
        if simultaneous:
            low, high, _ = self.cdf_bands(level)
        else:
            reported = replace(self, processed=None).cdf()
            low, high, _ = around(reported.share, reported.variance, risk)
            low[-1] = high[-1] = 1.0
        first = int(np.argmax(np.maximum.accumulate(high) >= share))
        last = int(np.argmax(np.minimum.accumulate(low[::-1])[::-1] >= share))
        if isinstance(self.domain, Bins):
            return Interval(float(self.domain.edges[first]), float(self.domain.edges[last + 1]))
        values = self.domain.values
        return Interval(values[first], values[last])

    def consistent(self, step: str) -> RangeEstimate:
        """Return the estimate after a named step; post-processing, and the loss stays.

        Parameters
        ----------
        step : str
            ``"isotonic"``: the nearest distribution function that never falls, between 0 and 1; or a step of
            `sfumato.local.frequency.consistency` on the values' shares, such as ``"norm-sub"``.

        Returns
        -------
        RangeEstimate
            Its `frequencies` are the processed ones.

        Notes
        -----
        Isotonic leaves long ranges nearly as they are; the others are made for single values, and move mass
        between distant ones. Variances and intervals stay those of the raw estimates.
        """
        if step != "isotonic" and step not in STEPS:
            _check.refuse("step", f"be one of isotonic, {', '.join(STEPS)}", step, 'pass "isotonic"')
        if not self.reports:
            _check.refuse("reports", "be at least 1 for a consistency step", self.reports, "collect some")
        if step == "isotonic":
            inner = np.clip(isotonic(np.cumsum(self.frequencies)[:-1]), 0.0, 1.0)
            found = np.diff(inner, prepend=0.0, append=1.0)
        else:
            found = made_consistent(self.frequencies, self._of_nothing(), step)
        return replace(self, processed=found, steps=(*self.steps, step))

    def _of_nothing(self) -> Array:
        """Return variances of values that nobody has, others being alike frequent or one having all."""
        size = len(self.raw)
        indices, even = np.arange(size), np.arange(size + 1) / size
        found = self.error_model.variance(indices, indices, even)
        for part, at in ((indices[1:], 0), (indices[:1], size - 1)):
            one = (np.arange(size + 1) > at).astype(float)
            found[part] = np.maximum(found[part], self.error_model.variance(part, part, one))
        return found

    def of(self, value: Hashable) -> float:
        """Return the frequency of one value (of `Bins`, of the bin that a number is in).

        Parameters
        ----------
        value : hashable
            A value of the domain; of `Bins`, any number within the edges.

        Returns
        -------
        float
            Its estimated share, after whatever steps were taken.
        """
        return float(self.frequencies[self.domain.codes([value])[0]])

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return columns for a table: value (or edges), frequency, interval, standard deviation.

        Parameters
        ----------
        level : float
            Coverage of each interval.

        Returns
        -------
        dict of list or array
            The columns, as frames take them.
        """
        lower, upper, _ = self.interval(level)
        values = list(self.domain.values)
        return {
            "value": values,
            "frequency": self.frequencies,
            "lower": lower,
            "upper": upper,
            "stddev": self.stddev,
        }

    def plot(self, ax: Any = None, *, level: float = 0.95, cumulative: bool = False) -> Any:
        """Draw the shares with their intervals, or the distribution function; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        level : float
            Coverage of each interval, or of the whole band around `cdf`.
        cumulative : bool
            Whether `cdf` is drawn, within `cdf_bands`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        if isinstance(self.domain, Bins) and not cumulative:
            lower, upper = self.domain.edges[:-1].tolist(), self.domain.edges[1:].tolist()
            edges = {"lower_edge": lower, "upper_edge": upper}
            ax = drawn(Rows(edges, self.frequencies, self.interval(level)), ax)
        else:
            share = self.cdf().share if cumulative else self.frequencies
            ends = self.cdf_bands(level) if cumulative else self.interval(level)
            ax = draw_line(drawn_places(self.domain), share, ends, ax=ax)
        ax.set_ylabel("share up to it" if cumulative else "share")
        return ax

    def _variance(self, first: Places, last: Places) -> Array:
        """Return variances with the distribution that was found, made to rise from 0 to 1."""
        if not self.reports:
            return np.full(len(first), np.inf)
        reach = _reach(self.raw)
        rising = (np.maximum.accumulate(reach) + np.minimum.accumulate(reach[::-1])[::-1]) / 2
        rising = np.clip(rising, 0.0, 1.0)
        rising[-1] = 1.0
        starts = range(0, len(first), _BLOCK)
        blocks = [slice(start, start + _BLOCK) for start in starts]
        parts = [self.error_model.variance(first[block], last[block], rising) for block in blocks]
        return np.concatenate([*parts, np.zeros(0)])


def _reach(shares: Array) -> Array:
    """Return what share lies before each index, and 1 at last (NaN without reports)."""
    return np.concatenate([[0.0], np.cumsum(shares)])
