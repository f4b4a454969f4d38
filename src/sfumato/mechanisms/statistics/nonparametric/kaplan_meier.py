"""Kaplan-Meier survival curves on a public grid of times, with bands that include sampling and noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import as_table
from sfumato.mechanisms.statistics.null_draws import exceeded_by, null_draws
from sfumato.privacy.neighboring import Neighboring

__all__ = ["KaplanMeier", "SurvivalBand", "SurvivalCurve"]

_Array = NDArray[np.float64]
_MOST: Final = 4096


class SurvivalCurve(NamedTuple):
    """A survival curve at the times of the grid.

    Attributes
    ----------
    times : float64 array of shape (k,)
    survival : float64 array of shape (k,)
        Estimated probability to have no event up to each time; never rising, from 0 to 1.
    at_risk : float64 array of shape (k,)
        Estimated number of records without event or censoring before each interval.

    Examples
    --------
    >>> import numpy as np
    >>> curve = SurvivalCurve(np.array([1.0, 2.0]), np.array([0.9, 0.6]), np.array([100.0, 80.0]))
    >>> float(curve.survival[curve.times == 2.0][0])
    0.6
    """

    times: _Array
    survival: _Array
    at_risk: _Array


class SurvivalBand(NamedTuple):
    """Standard errors and ends of intervals of a survival curve.

    Attributes
    ----------
    standard_errors : float64 array of shape (k,)
    lower, upper : float64 array of shape (k,)
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> band = SurvivalBand(np.array([0.01]), np.array([0.88]), np.array([0.92]))
    >>> (band.upper - band.lower).round(2).tolist()
    [0.04]
    """

    standard_errors: _Array
    lower: _Array
    upper: _Array


class _Cells(NamedTuple):
    """Numbers of events of each interval, and of other records' ends there and after the last."""

    events: _Array
    others: _Array


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KaplanMeier(Query):
    r"""Events and censorings by time, counted in two trees, from which a survival curve follows.

    Parameters
    ----------
    times : sequence of positive, increasing numbers
        Ends of the intervals :math:`(t_{k-1}, t_k]`, the first of which begins at 0; public. The curve is
        estimated at these times. From 1 to 4,096.
    branching : int
        The most children of a node of the trees, at least 2. Fewer are better with Gaussian noise (4).
    actuarial : bool
        Whether those who are censored in an interval count as at risk for half of it, as where times are
        continuous and the grid is coarse, or for all of it, as where times are rounded up to the grid.

    Notes
    -----
    A record is a time and whether it was that of an event; else it was censored then. Beyond the last time
    it is censored, whatever is said of it. So a record is in one bin: an event in one of k intervals, or
    another end in one of k + 1. Intervals are gathered to nodes, nodes to larger ones, and all are counted,
    but for a root: in each of h levels a record is in one node.

    *Sensitivity.* A record that is added, removed or zeroed moves h counts by one (L1 h, L2
    :math:`\sqrt h`). One that is replaced leaves h nodes and enters h, at most 2 h counts by one. Bins depend
    on the record alone, and sums are of integers.

    The counts of the bins are estimated by least squares (Hay et al. 2010) and are unbiased; those at risk
    are what is left at each time. With 16 children at most a curve at up to 15 times has the noise of single
    counts. The estimate is post-processing, as are its bands.

    References
    ----------
    Kaplan, Meier, "Nonparametric estimation from incomplete observations" (JASA 1958); Gondara, Wang,
    "Differentially private survival function estimation" (MLHC 2020), noisy counts of events and those at
    risk; Cutler, Ederer, "Maximum utilization of the life table method in analyzing survival" (1958); Hay,
    Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency"
    (VLDB 2010).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> rng = np.random.default_rng(0)
    >>> event, censored = rng.exponential(24, 2000), rng.uniform(0, 60, 2000)
    >>> data = np.stack([np.minimum(event, censored), event <= censored], axis=1)
    >>> months = KaplanMeier(times=range(6, 37, 6), actuarial=True)
    >>> release = Laplace.for_query(months, epsilon=1.0).release(data, rng=1)
    >>> curve = months.estimate(release)
    >>> truth, band = np.exp(-curve.times / 24), months.survival_band(release, rng=2)
    >>> bool((band.lower <= truth).all()), bool((truth <= band.upper).all())
    (True, True)
    >>> bool((band.upper - band.lower).max() < 0.1)
    True
    """

    times: Sequence[float]
    branching: int = 16
    actuarial: bool = False

    def __post_init__(self) -> None:
        given: object = self.times
        remedy = "pass the public times at which the curve is wanted"
        if not isinstance(given, Sequence | np.ndarray) or not 1 <= len(given) <= _MOST:
            _check.refuse_type("times", f"hold from 1 to {_MOST} numbers", given, remedy)
        times = tuple(_check.positive("times", time, remedy) for time in np.asarray(given).tolist())
        if not all(before < after for before, after in pairwise(times)):
            _check.refuse("times", "increase", times, "sort them, and leave out repeated ones")
        object.__setattr__(self, "times", times)
        _check.integer("branching", self.branching, minimum=2, remedy="pass 16, or 4 with Gaussian noise")
        _check.instance("actuarial", self.actuarial, bool, "pass True or False")

    @property
    def step(self) -> int:
        """One."""
        return 1

    @property
    def entries(self) -> int:
        """The nodes of both trees."""
        return sum(map(len, _trees(len(self.times), self.branching)))

    @property
    def levels(self) -> int:
        """How many nodes each record is in."""
        return _height(len(self.times) + 1, self.branching)

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the counts of all nodes.

        Parameters
        ----------
        data : array of shape (n, 2)
            Each record's time, and whether it is that of an event: 0 or NaN if not, else any number.

        Returns
        -------
        array of int64, shape (entries,)
            Private.
        """
        table, size = as_table(data, 2), len(self.times)
        time = np.nan_to_num(table[:, 0].astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        event = np.nan_to_num(table[:, 1].astype(np.float64), nan=0.0) != 0
        bins = np.searchsorted(np.asarray(self.times), time, side="left")
        event &= bins < size
        counts = np.bincount(bins[event], minlength=size), np.bincount(bins[~event], minlength=size + 1)
        trees = _trees(size, self.branching)
        return np.concatenate([tree @ count for tree, count in zip(trees, counts, strict=True)])

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return one count a level by one, or two under replace-one.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        sides = 2 if neighboring is Neighboring.REPLACE_ONE else 1
        return Shift.entries(sides * self.levels, 1)

    def estimate(self, release: LatticeRelease) -> SurvivalCurve:
        """Return the survival curve.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        SurvivalCurve
            Products of the shares of survivors; what noise lets rise is levelled by the mean of the largest
            later and the smallest earlier value, which is no further from any falling curve.
        """
        cells = self._cells(np.asarray(self.check_release(release).value, np.float64))
        return SurvivalCurve(np.array(self.times), self._survival(cells), _at_risk(cells))

    def survival_band(
        self,
        release: LatticeRelease,
        level: float = 0.95,
        *,
        joint: bool = True,
        draws: int = 999,
        rng: int | np.random.Generator | None = None,
    ) -> SurvivalBand:
        """Return a confidence band for the population's survival at the times of the grid; post-processing.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        level : float
            Wanted coverage, strictly between 0 and 1.
        joint : bool
            Whether the band is to hold at all times together; else an interval for each time.
        draws : int
            How many samples are drawn; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        SurvivalBand

        Notes
        -----
        A parametric bootstrap: life tables of as many records, with the estimated shares of events and
        censorings, and fresh noise, estimated as the release was. Each is drawn around an estimate of its
        own, so that what noise hides of the shares is in the band. A joint band is as many standard errors
        wide everywhere as the drawn curves are off at their worst time. Coverage is right in the limit of
        many events, as far as censoring in an interval is as ``actuarial`` says.

        References
        ----------
        Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals"
        (AISTATS 2022); Nair, "Confidence bands for survival functions with censored data" (1984), equal
        precision.
        """
        error, (number, generator) = 1 - _check.unit_interval("level", level), null_draws(draws, rng)
        found = self._cells(np.asarray(self.check_release(release).value, np.float64))
        center = self._survival(found)
        around = self._drawn(found, release, number, generator)
        drawn = self._drawn(around, release, number, generator)
        off = self._survival(drawn) - self._survival(around)
        errors = off.std(axis=0)
        if joint:
            worst = np.abs(off) / np.maximum(errors, 1e-12)
            reach = exceeded_by(worst.max(axis=-1), error) * errors
        else:
            reach = exceeded_by(np.abs(off), error)
        return SurvivalBand(errors, np.maximum(center - reach, 0.0), np.minimum(center + reach, 1.0))

    @property
    def _exposure(self) -> float:
        """For which part of their interval the censored are at risk."""
        return 0.5 if self.actuarial else 1.0

    def _survival(self, cells: _Cells) -> _Array:
        """Return curves along the last axis."""
        exposed = _at_risk(cells) - (1 - self._exposure) * np.maximum(cells.others[..., :-1], 0.0)
        shares = np.clip(1 - cells.events / np.maximum(exposed, 1.0), 0.0, 2.0)
        return np.clip(_falling(np.asarray(np.cumprod(shares, axis=-1))), 0.0, 1.0)

    def _shares(self, cells: _Cells) -> tuple[_Array, _Array]:
        """Return which shares of those at risk have an event or are censored, if no event comes before."""
        survival, left = self._survival(cells), _at_risk(cells)
        before = np.concatenate([np.ones_like(survival[..., :1]), survival[..., :-1]], axis=-1)
        hazard = np.where(before > 0, 1 - survival / np.maximum(before, 1e-300), 1.0)
        after = np.concatenate([left[..., 1:], np.maximum(cells.others[..., -1:], 0.0)], axis=-1)
        exposed = 1 - hazard * (1 - self._exposure)
        ends = np.maximum(left * (1 - hazard) - after, 0.0) / exposed
        staying = left * (1 - hazard * self._exposure)
        return hazard, np.clip(ends / np.maximum(staying, 1e-300), 0.0, 1.0)

    def _cells(self, values: _Array) -> _Cells:
        """Return unbiased estimates of the bins' counts, by least squares along the last axis."""
        events, others = _decoders(len(self.times), self.branching)
        first = events.shape[1]
        return _Cells(values[..., :first] @ events.T, values[..., first:] @ others.T)

    def _drawn(
        self, cells: _Cells, release: LatticeRelease, number: int, generator: np.random.Generator
    ) -> _Cells:
        """Return so many estimates of the counts of samples that are alike, with fresh noise."""
        hazard, censored = self._shares(cells)
        left = np.broadcast_to(np.rint(_at_risk(cells)[..., 0]), (number,)).astype(np.int64)
        size = len(self.times)
        events, others = np.zeros((number, size)), np.zeros((number, size + 1))
        for place in range(size):
            leaving = generator.binomial(left, censored[..., place])
            first = generator.binomial(leaving, hazard[..., place] * self._exposure)
            events[:, place] = first + generator.binomial(left - leaving, hazard[..., place])
            others[:, place] = leaving - first
            left = left - leaving - events[:, place].astype(np.int64) + first
        others[:, size] = left
        trees = _trees(size, self.branching)
        exact = np.concatenate([events @ trees[0].T, others @ trees[1].T], axis=-1)
        return self._cells(exact + np.asarray(release.distribution.sample(exact.shape, generator)))


def _at_risk(cells: _Cells) -> _Array:
    """Return how many are left before each interval: never rising, and at least 1."""
    ends = cells.others.copy()
    ends[..., :-1] += cells.events
    left = np.cumsum(ends[..., ::-1], axis=-1)[..., ::-1][..., :-1]
    return np.maximum(_falling(left), 1.0)


def _falling(values: NDArray[Any]) -> _Array:
    """Return the mean of the least before and the most after, along the last axis.

    Both are no further than the values, at the worst place, from any falling sequence.
    """
    after = np.maximum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray((np.minimum.accumulate(values, axis=-1) + after) / 2)


def _height(bins: int, branching: int) -> int:
    height = 1
    while branching**height < bins:
        height += 1
    return height


@lru_cache(maxsize=16)
def _trees(size: int, branching: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which bins each node holds: of events, in so many intervals, and of others, in one more."""
    bins = size + 1
    height, children = _height(bins, branching), 2
    while children**height < bins:
        children += 1
    place = np.arange(bins)
    levels = [place // children**level for level in range(height)]
    others = np.concatenate([np.arange(nodes[-1] + 1)[:, None] == nodes for nodes in levels]).astype(np.int64)
    events = others[:, :size]
    return events[events.any(axis=1)], others


@lru_cache(maxsize=16)
def _decoders(size: int, branching: int) -> tuple[_Array, _Array]:
    """Return what estimates the bins of both trees from their nodes, by least squares."""
    events, others = (np.linalg.pinv(tree.astype(np.float64)) for tree in _trees(size, branching))
    return events, others
