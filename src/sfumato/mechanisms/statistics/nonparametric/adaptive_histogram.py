"""Histograms whose bins follow the data: boxes are halved where noisy counts say that it pays (PrivTree)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release, read_only
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.records import as_numbers, as_table, relative_positions
from sfumato.mechanisms.statistics.covariance import separated_bounds
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution, SymmetricDistribution
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.rounding import add_up, div_up, fraction_up, log1p_up, sub_down, sub_up
from sfumato.numerics.sampling.integer_noise import discrete_laplace
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AdaptiveHistogram", "AdaptiveHistogramRelease"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.int64]
_DEEPEST: Final = 48
_REMEDY: Final = "pass epsilon= to AdaptiveHistogram.calibrated to have it chosen"
_BITS: Final = 16
_FINE: Final = 64
_WORTH: Final = 30


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptiveHistogramRelease(Release):
    """Bins, and a noisy count of each.

    Parameters
    ----------
    value : int64 array of shape (bins,)
        Noisy counts.
    lower, upper : float64 arrays of shape (bins, columns)
        Ends of the bins, which fill all between the bounds and do not overlap.
    distribution : SymmetricDistribution
        Of the noise of each count.
    loss, neighboring, receipt, simulated
        As in `Release`.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = AdaptiveHistogram.calibrated(bounds=((0.0, 1.0),), epsilon=1.0)
    >>> release = mechanism.release(np.random.default_rng(0).beta(2, 9, 5000)[:, None], rng=1)
    >>> release.lower.shape == release.upper.shape == (len(release.value), 1)
    True
    """

    lower: _Array
    upper: _Array
    distribution: SymmetricDistribution

    def __post_init__(self) -> None:
        for name in ("value", "lower", "upper"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def interval(self, level: float = 0.95) -> Interval[NDArray[Any]]:
        """Return an interval for the exact count of each bin.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1.

        Returns
        -------
        Interval of int64 arrays of shape (bins,)
            The noise of the counts is independent of the bins, so coverage holds for those that are shown.
        """
        half, _ = self.distribution.half_width(_check.unit_interval("level", level))
        return Interval(self.value - half, self.value + half)

    def count_between(self, lower: Any, upper: Any) -> Any:
        """Return estimated numbers of records in boxes, as if they were even within bins.

        Parameters
        ----------
        lower, upper : float or array
            Ends of the boxes: numbers for one column, else an entry for each column along the last axis.

        Returns
        -------
        float or array
            One number for each box; unbiased by noise, biased where records are not even within a bin.
        """
        columns = self.lower.shape[1]
        ends = [np.asarray(end, np.float64) for end in (lower, upper)]
        if columns == 1:
            ends = [end[..., None] for end in ends]
        low, high = (end[..., None, :] for end in ends)
        inside = np.minimum(high, self.upper) - np.maximum(low, self.lower)
        shares = np.prod(np.clip(inside / (self.upper - self.lower), 0.0, 1.0), axis=-1)
        found = shares @ self.value.astype(np.float64)
        return found if np.ndim(found) else float(found)

    def density(self) -> _Array:
        """Return the estimated density in each bin: counts below 0 count as 0, and it integrates to 1.

        Returns
        -------
        float64 array of shape (bins,)
        """
        counts = np.maximum(self.value, 0).astype(np.float64)
        volumes = np.prod(self.upper - self.lower, axis=1)
        if not counts.sum() > 0:
            counts = volumes
        return np.asarray(counts / counts.sum() / volumes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveHistogram(Mechanism):
    r"""A histogram with small bins where records are, of one column or several: PrivTree.

    Parameters
    ----------
    bounds : sequence of tuples of two numbers
        Lower and upper bound of each column, public; records are clamped to them.
    scale : int, float or Fraction
        :math:`\lambda`, of the discrete Laplace noise on the count that decides whether a box is halved.
    noise : Laplace
        On the count of each bin, of sensitivity 1 on whole numbers; under replace-one with an ``l0`` of at
        least 2. Its relation is the mechanism's.
    depth : int
        The most halvings, from 1 to 48; columns are halved in turn.
    threshold : int
        :math:`\theta`, above which a noisy count must be.

    Notes
    -----
    A box at depth i with c records has the biased count :math:`b = \max(\theta - d, c - i d)`, for :math:`d =
    \lceil\lambda\log 2\rceil`. It is halved if b and noise exceed :math:`\theta`; boxes at the greatest depth
    are not. The boxes that are not halved are the bins. Then each bin's count is released with fresh noise.
    An empty box is halved with a chance below 1/4, so that trees of nothing end.

    *Guarantee.* The halvings cost ``PureDP(split_epsilon)``, the counts the loss of ``noise``; the sum is the
    loss. *Proof.* Let D' have one record more than D. Only boxes that hold it differ, by one: a path. Let
    :math:`\rho(x)` be the logarithm of :math:`P[x + Z > \theta] / P[x - 1 + Z > \theta]`, which is at most
    :math:`1/\lambda` and does not rise with x, as Z is log-concave. A tree's chance under D' over that under
    D is the product of :math:`e^{\rho(b')}` over the halved boxes of the path, times at most 1 for the box at
    its end. Where :math:`c' - i d \le \theta - d` both are at the floor, and nothing differs. The others have
    :math:`b' = c' - i d \ge \theta - d + 1`, and from each to the next below it b' falls by at least d, as
    counts fall along the path. So from the last up they are at least :math:`\theta + 1 - d,\ \theta + 1,\
    \theta + 1 + d, \dots`, and with at most h of them, h the depth,

    .. math:: \epsilon = \tfrac 1\lambda + \tfrac 1\lambda + \rho(\theta + 1 + d) + \rho(\theta + 1 + 2d) +
        \dots

    summed up to h terms, each rounded up. The other way only the end of the path counts: :math:`1/\lambda`.
    Replacing a record removes one, for :math:`\epsilon`, and adds one, for :math:`1/\lambda`: split_epsilon
    is their sum under replace-one. A zeroed record counts nowhere, as a removed one. Given the bins a record
    is in one (or leaves one for another), which is what ``noise`` covers, for whatever bins came before.

    References
    ----------
    Zhang, Xiao, Xie, "PrivTree: a differentially private algorithm for hierarchical decompositions" (SIGMOD
    2016), Theorem 3.1 for continuous noise; the proof for whole numbers, a bounded depth and replace-one is
    given here.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = AdaptiveHistogram.calibrated(bounds=((0.0, 1e6),), epsilon=1.0)
    >>> incomes = np.random.default_rng(0).lognormal(10.5, 0.6, 20_000)[:, None]
    >>> release = mechanism.release(incomes, rng=1)
    >>> bool((release.upper - release.lower).min() < 4000), release.loss.epsilon(0.0) <= 1.0
    (True, True)
    >>> bool(abs(release.count_between(0, 40_000) - (incomes < 40_000).sum()) < 300)
    True
    """

    bounds: Sequence[tuple[float, float]]
    scale: Number
    noise: Laplace
    depth: int
    threshold: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", _boxes(self.bounds))
        _check.fraction(
            "scale", self.scale, "pass epsilon= to AdaptiveHistogram.calibrated to have it chosen"
        )
        depth = _check.integer("depth", self.depth, minimum=1)
        if depth > _DEEPEST:
            _check.refuse("depth", f"be at most {_DEEPEST}", depth, "pass fewer halvings")
        _check.integer("threshold", self.threshold)
        noise: object = self.noise
        moved = 2 if isinstance(noise, Laplace) and noise.neighboring is Neighboring.REPLACE_ONE else 1
        if not isinstance(noise, Laplace) or (noise.sensitivity, noise.integral) != (1, True):
            rule = "be Laplace noise on whole numbers that move by 1"
            _check.refuse("noise", rule, noise, _REMEDY)
        if noise.l0 < moved:
            _check.refuse("noise", f"have an l0 of at least {moved}", noise.l0, _REMEDY)

    @classmethod
    def calibrated(
        cls,
        *,
        bounds: Sequence[tuple[float, float]],
        epsilon: float,
        depth: int | None = None,
        split_share: float = 0.3,
        threshold: int | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> AdaptiveHistogram:
        """Return the mechanism that is epsilon-DP.

        Parameters
        ----------
        bounds
            As in the class.
        epsilon : float
        depth : int, optional
            The most halvings; unless given 16 for each column, and at most 48.
        split_share : float
            The part of epsilon that finds the bins.
        threshold : int, optional
            As in the class; unless given 30 over epsilon, some twenty times the noise of a bin's count. More
            is better for many even records, 0 for few.
        neighboring : Neighboring

        Returns
        -------
        AdaptiveHistogram
        """
        epsilon = _check.positive("epsilon", epsilon)
        share = _check.unit_interval("split_share", split_share) * epsilon
        _check.instance("neighboring", neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another")
        columns = len(_boxes(bounds))
        levels = (
            min(_DEEPEST, _BITS * columns) if depth is None else _check.integer("depth", depth, minimum=1)
        )
        scale = Fraction(math.ceil(_FINE * min(levels, 2) / share), _FINE)
        while _split_epsilon(scale, levels, neighboring) > share:
            scale = Fraction(math.floor(scale * _FINE * Fraction(65, 64)) + 1, _FINE)
        least = math.ceil(_WORTH / epsilon) if threshold is None else threshold
        rest = sub_down(epsilon, _split_epsilon(scale, levels, neighboring))
        moved = 2 if neighboring is Neighboring.REPLACE_ONE else 1
        noise = Laplace.calibrated(sensitivity=1, l0=moved, epsilon=rest, neighboring=neighboring)
        return cls(bounds=bounds, scale=plain(scale), noise=noise, depth=levels, threshold=least)

    @property
    def split_epsilon(self) -> float:
        """What the bins cost."""
        return _split_epsilon(Fraction(self.scale), self.depth, self.neighboring)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release: of the bins, and of their counts."""
        return PureDP(self.split_epsilon, neighboring=self.neighboring) + self.noise.privacy_loss

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected."""
        return self.noise.neighboring

    def release(self, value: Any, rng: Rng = None) -> AdaptiveHistogramRelease:
        """Find bins, and count their records.

        Parameters
        ----------
        value : numpy array of shape (n, columns), or (n,) for one column
            NaN counts as 0.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        AdaptiveHistogramRelease
        """
        source, codes = random_source(rng), self._codes(value)
        bins, depths = self._bins(codes, source)
        order = np.argsort(bins << (self.depth - depths))
        bins, depths = bins[order], depths[order]
        counted = self.noise.release(self._counts(codes, bins, depths), source)
        lower, upper = self._ends(bins, depths)
        return self._release_as(
            AdaptiveHistogramRelease,
            np.asarray(counted.steps),
            source,
            lower=lower,
            upper=upper,
            distribution=self.noise.distribution,
        )

    def _codes(self, value: Any) -> _Codes:
        """Return each record's smallest box, sorted: the bits of its positions, of the columns in turn."""
        columns = len(self.bounds)
        if columns == 1 and isinstance(value, np.ndarray) and value.ndim == 1:
            value = as_numbers(value, integral=False)[:, None]
        array = as_table(value, columns, name="value")
        lower, upper = np.array(self.bounds).T
        bits = -(-self.depth // columns)
        positions = np.floor(np.ldexp(relative_positions(array, (lower, upper)), bits)).astype(np.int64)
        positions = np.minimum(positions, (1 << bits) - 1)
        codes = np.zeros(len(array), np.int64)
        for level in range(self.depth):
            bit = bits - 1 - level // columns
            codes = (codes << 1) | ((positions[:, level % columns] >> bit) & 1)
        return np.sort(codes)

    def _bins(self, codes: _Codes, source: RandomSource) -> tuple[_Codes, _Codes]:
        """Return the boxes that are not halved, as the first bits of codes, and how many bits these are."""
        boxes, found, depths = np.zeros(1, np.int64), list[_Codes](), list[_Codes]()
        bias = _bias(Fraction(self.scale))
        for level in range(self.depth):
            counts = self._counts(codes, boxes, np.full(len(boxes), level))
            biased = np.maximum(counts - level * bias, self.threshold - bias)
            halved = biased + discrete_laplace(self.scale, len(boxes), source) > self.threshold
            found.append(boxes[~halved])
            depths.append(np.full(int((~halved).sum()), level))
            boxes = ((boxes[halved] << 1)[:, None] | np.arange(2)).ravel()
            if not len(boxes):
                break
        return np.concatenate([*found, boxes]), np.concatenate([*depths, np.full(len(boxes), self.depth)])

    def _counts(self, codes: _Codes, boxes: _Codes, depths: _Codes) -> NDArray[np.int64]:
        first = np.searchsorted(codes, boxes << (self.depth - depths))
        return np.searchsorted(codes, (boxes + 1) << (self.depth - depths)) - first

    def _ends(self, boxes: _Codes, depths: _Codes) -> tuple[_Array, _Array]:
        columns = len(self.bounds)
        place, bits = np.zeros((2, len(boxes), columns), np.int64)
        for level in range(self.depth):
            there = depths > level
            bit = (boxes >> np.maximum(depths - 1 - level, 0)) & 1
            column = level % columns
            place[there, column] = (place[there, column] << 1) | bit[there]
            bits[there, column] += 1
        low, high = np.array(self.bounds).T
        ends = (low + (high - low) * np.ldexp((place + one).astype(np.float64), -bits) for one in (0, 1))
        lower, upper = (np.clip(end, low, high) for end in ends)
        return lower, upper


def _boxes(bounds: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(bounds, tuple | list | np.ndarray) or not len(bounds):
        _check.refuse(
            "bounds", "hold a pair for each column", bounds, "pass ((lower, upper),) for one column"
        )
    return tuple(separated_bounds(pair) for pair in bounds)


def _bias(scale: Fraction) -> int:
    return math.ceil(float(scale) * math.log(2))


@lru_cache(maxsize=1024)
def _split_epsilon(scale: Fraction, depth: int, neighboring: Neighboring) -> float:
    """Return what the halvings cost, rounded up; the proof stands in the class."""
    noise, bias, one = DiscreteLaplaceDistribution(scale), _bias(scale), fraction_up(1 / scale)
    total = add_up(one, one) if depth > 1 else one
    for place in range(1, depth - 1):
        beyond = place * bias
        mass = sub_up(noise.upper_tail(beyond).upper, noise.upper_tail(beyond + 1).lower)
        total = add_up(total, log1p_up(div_up(mass, noise.upper_tail(1 - beyond).lower)))
    return add_up(total, one) if neighboring is Neighboring.REPLACE_ONE else total
