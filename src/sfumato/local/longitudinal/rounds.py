r"""Estimates of several rounds together, whose errors are not independent: the memos are the same.

A round's estimate is that of the memos, had the server seen them, plus what fresh randomization adds. The
second part is independent from round to round, the first is not: for devices that retain their value it is
the same each time. However many rounds there are, the error of the memos stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from scipy.special import ndtri

from sfumato import _check
from sfumato.local.frequency.variance import Array
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Rounds", "RoundsEstimate", "checked_rounds"]

Result = TypeVar("Result")


def checked_rounds(
    estimates: Sequence[Result], kind: type[Result], of_this: Callable[[Result], bool], what: str
) -> list[Result]:
    """Return the estimates of rounds, one or more of a kind and all of one protocol, or refuse them."""
    held = list(estimates)
    if not held or not all(isinstance(one, kind) and of_this(one) for one in held):
        found = f"{len(held)} were given, others among them" if held else "none was given"
        rule = f"be one or more {kind.__name__}s of this {what}"
        _check.refuse_state("estimates", rule, found, "pass what its own aggregators estimated")
    return held


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundsEstimate:
    """An estimate that combines several rounds, one number for each category (or one, of a mean).

    Parameters
    ----------
    values : array
        Unbiased.
    variances : array
        Their variances, or bounds on them; infinite where a round has no reports.
    limits : (float, float)
        Between which the truth lies.

    Examples
    --------
    >>> from sfumato.local import MemoizedOneBitMean
    >>> protocol = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 24.0))
    >>> rounds = protocol.rounds(protocol.simulate_rounds([8.0], [50_000], rounds=5, rng=1))
    >>> mean = rounds.mean()
    >>> lower, upper, _ = mean.interval(0.9999)
    >>> bool(lower[0] < 8.0 < upper[0]), bool(mean.stddev[0] == mean.variances[0] ** 0.5)
    (True, True)
    """

    values: Array
    variances: Array
    limits: tuple[float, float]

    @property
    def stddev(self) -> Array:
        """Standard deviations, or bounds on them."""
        return np.sqrt(self.variances)

    def interval(self, level: float = 0.95) -> Interval[Array]:
        """Return an interval for each, for many reports: normal, with the estimated variances.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1; it is at least that where the variances are
            bounds.

        Returns
        -------
        Interval
            Arrays within `limits`.
        """
        away = -float(ndtri((1 - _check.unit_interval("level", level)) / 2)) * self.stddev
        middle = np.nan_to_num(self.values)
        return Interval(np.clip(middle - away, *self.limits), np.clip(middle + away, *self.limits))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rounds:
    r"""The estimates of rounds in which the same devices were asked.

    Parameters
    ----------
    values : array, shape (rounds, numbers)
        Unbiased estimates.
    variances : array, shape (rounds, numbers)
        Their variances.
    permanent : array, shape (rounds, numbers)
        The part of these that comes from memos.
    limits : (float, float)
        Between which each truth lies.
    loss : PrivacyLoss
        Of all that one device reports, in whatever number of rounds.
    simulated : bool
        Whether a report's randomness followed from a seed.

    Examples
    --------
    Averaging rounds reduces the fresh noise of each, but not the noise of the memos:

    >>> from sfumato.local import MemoizedOneBitMean
    >>> protocol = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 24.0), permanent_epsilon=4.0)
    >>> rounds = protocol.rounds(protocol.simulate_rounds([8.0], [50_000], rounds=5, rng=1))
    >>> bool(rounds.permanent.mean() < rounds.mean().variances[0] < rounds.variances.mean())
    True
    >>> change = rounds.change()
    >>> bool(abs(change.values[0]) < 5 * change.stddev[0])
    True
    """

    values: Array
    variances: Array
    permanent: Array
    limits: tuple[float, float]
    loss: PrivacyLoss
    simulated: bool = False

    def mean(self) -> RoundsEstimate:
        r"""Return the mean over rounds.

        Returns
        -------
        RoundsEstimate
            With a bound on the variances.

        Notes
        -----
        The variance is a bound: with T rounds :math:`\left(\frac1T \sum_t \sigma_t\right)^2 + \frac{1}{T^2}
        \sum_t \phi_t`, :math:`\sigma_t^2` being the memos' part and :math:`\phi_t` the fresh part of round t.
        It holds whatever devices take part in each round and however their values change (the first parts by
        the triangle inequality of standard deviations, the fresh ones are independent), and is exact if all
        devices take part in all rounds and none changes.
        """
        count = len(self.values)
        known = np.isfinite(self.permanent)  # not where a round has so few reports that it gives no variance
        left = np.subtract(self.variances, self.permanent, out=np.zeros(known.shape), where=known)
        fresh = left.sum(axis=0) / count**2
        variances = np.sqrt(self.permanent).mean(axis=0) ** 2 + fresh
        return RoundsEstimate(values=self.values.mean(axis=0), variances=variances, limits=self.limits)

    def change(self, first: int = 0, last: int = -1, *, covariance: Array | float = 0.0) -> RoundsEstimate:
        """Return the last of two rounds less the first.

        Parameters
        ----------
        first, last : int
            Indices of the rounds; negative ones count from the last round.
        covariance : array, optional
            Of the two estimates, as ``oracle.round_covariance`` gives it for a proportion of devices whose
            values stay. Left out, it is taken as 0: as covariances are never negative, the variance is then
            an upper bound, and too large where most devices' values stay.

        Returns
        -------
        RoundsEstimate
            Of the difference.

        Raises
        ------
        ParameterError
            If there is no such round, or the covariance has another shape.
        """
        shared = np.asarray(covariance, np.float64)
        if shared.shape not in ((), self.values.shape[1:]) or not np.isfinite(shared).all():
            rule = f"be {self.values.shape[1]} finite numbers, or one"
            _check.refuse_type("covariance", rule, shared, "leave it out for a bound")
        first, last = self._index("first", first), self._index("last", last)
        one, other = self.variances[first], self.variances[last]
        return RoundsEstimate(
            values=self.values[last] - self.values[first],
            variances=np.maximum(one + other - 2 * shared, 0.0),
            limits=(self.limits[0] - self.limits[1], self.limits[1] - self.limits[0]),
        )

    def _index(self, name: str, given: int) -> int:
        """Return the index of a round, counted from the first, or as a negative number from the last."""
        index: object = given
        count = len(self.values)
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not -count <= index < count:
            _check.refuse(
                name, f"be a round's index from {-count} to {count - 1}", index, "count rounds from 0"
            )
        return int(index)
