"""The Tukey median: a point of the plane that is deep within the data, by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon, plain
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.query.records import as_table, relative_positions
from sfumato.mechanisms.selection.exponential import Exponential
from sfumato.mechanisms.statistics.covariance import separated_bounds
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TukeyMedian", "tukey_depths"]

_MOST: Final = 64
_Steps = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TukeyMedian(Mechanism):
    r"""A point of a grid in the plane, the likelier the deeper it lies within the data: a robust mean.

    Parameters
    ----------
    bounds : tuple of two tuples of two numbers
        Lower and upper bound of the first number of a record, and of the second; public.
    epsilon : int, float or Fraction
        Taken as the exact rational.
    points : int
        How many points the grid has on either axis, its ends included, from 2 to 64. Records are rounded to
        the nearest one.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: epsilon-DP of bounded range, by `Exponential` over all points of the grid. The score is the
    Tukey depth: the smallest number of records in a closed half-plane around the point. One more record adds
    0 or 1 to the number in each half-plane, and so to the depth of each point: monotone under add/remove. A
    replaced record, or one that becomes zero, moves the depth by at most 1 either way. Depths are those of
    the rounded records, computed exactly with whole numbers.

    Some point of the plane has at least a third of the records on each side of each line through it; the
    depth of data that is symmetric around a point is greatest there. Records far out move a deep point
    little, wherever they are: up to a third of them in bad faith cannot lead it away (Donoho, Gasko 1992).
    For one number per record take `Quantile`, for a mean `InverseSensitivity` or `HeavyTailedMean`.

    References
    ----------
    Tukey, "Mathematics and the picturing of data" (1975), depth; McSherry, Talwar, "Mechanism design via
    differential privacy" (FOCS 2007); Donoho, Gasko, "Breakdown properties of location estimates based on
    halfspace depth and projected outlyingness" (Annals of Statistics 1992).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = np.concatenate([rng.normal([3.0, -2.0], 1.0, (800, 2)), np.full((200, 2), 10.0)])
    >>> median = TukeyMedian(bounds=((-10.0, 10.0), (-10.0, 10.0)), epsilon=1.0, points=41)
    >>> median.release(data, rng=1).value.round(1).tolist()
    [3.0, -2.0]
    >>> median.utility_bound(0.05)
    10
    """

    bounds: tuple[tuple[float, float], tuple[float, float]]
    epsilon: Number
    points: int = 32
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    _choice: Exponential = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given: object = self.bounds
        if not isinstance(given, tuple | list) or len(given) != 2:
            _check.refuse("bounds", "be a pair of (lower, upper)", given, "pass bounds for each number")
        object.__setattr__(self, "bounds", (separated_bounds(given[0]), separated_bounds(given[1])))
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        if _check.integer("points", self.points, minimum=2, remedy="pass more") > _MOST:
            remedy = "release one on a coarse grid, then one within narrower bounds"
            _check.refuse("points", f"be at most {_MOST}", self.points, remedy)
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        monotone = self.neighboring is Neighboring.ADD_REMOVE
        choice = Exponential(
            sensitivity=1,
            scale=plain((1 if monotone else 2) / drawn_epsilon(self.epsilon)),
            candidates=tuple(range(self.points**2)),
            monotone=monotone,
            neighboring=self.neighboring,
        )
        object.__setattr__(self, "_choice", choice)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._choice.privacy_loss

    def utility_bound(self, beta: float) -> int:
        """Return by how many records the point is less deep than the deepest at most, but for a chance.

        Parameters
        ----------
        beta : float
            The chance, strictly between 0 and 1.

        Returns
        -------
        int
            Whatever the data.
        """
        return math.floor(self._choice.utility_bound(beta))

    def depths(self, value: Any) -> _Steps:
        """Return the depth of each point of the grid: private, for tests and for the data's owner.

        Parameters
        ----------
        value : array, frame or list of rows, of shape (n, 2)
            Two numbers for each record; NaN counts as 0.

        Returns
        -------
        int64 array of shape (points, points)
            By the first number's position, then by the second's.
        """
        table = as_table(value, 2)
        lower, upper = np.array(self.bounds).T
        at = np.rint(relative_positions(table, (lower, upper)) * (self.points - 1)).astype(np.int64)
        counts = np.bincount(at[:, 0] * self.points + at[:, 1], minlength=self.points**2)
        return tukey_depths(counts.reshape(self.points, self.points))

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release a deep point.

        Parameters
        ----------
        value : array, frame or list of rows, of shape (n, 2)
            Two numbers for each record; NaN counts as 0.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a float64 array of shape (2,).
        """
        source = random_source(rng)
        return self._release_as(Release, self.outputs(value, 1, source)[0], source)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw the points of many releases at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        float64 array of shape (size, 2)
        """
        chosen = np.asarray(self._choice.outputs(self.depths(value).ravel(), size, rng), dtype=np.int64)
        at = np.stack([chosen // self.points, chosen % self.points], axis=1)
        lower, upper = np.array(self.bounds).T
        return lower + (upper - lower) * (at / (self.points - 1))


def tukey_depths(counts: _Steps) -> _Steps:
    """Return the Tukey depth of each point of a square grid, of so many records at each of its points.

    Parameters
    ----------
    counts : int64 array of shape (g, g)

    Returns
    -------
    int64 array of shape (g, g)

    Notes
    -----
    A half-plane with the fewest records around a point has no other point of the grid on its border: one
    that has is turned a little. For each direction of two points of the grid, turned a little, the points are
    in one order: by their distance across it, then along it. The half-planes that end at a point hold those
    up to it, or those from it on. Time is a sort of all points for each direction, whatever the counts.

    Examples
    --------
    >>> tukey_depths(np.ones((3, 3), np.int64)).tolist()
    [[1, 2, 1], [2, 5, 2], [1, 2, 1]]
    """
    side = len(counts)
    x, y = (axis.ravel() for axis in np.indices(counts.shape))
    flat, total = counts.ravel(), int(counts.sum())
    depths = np.full(side * side, total, np.int64)
    for a, b in _directions(side):
        order = np.argsort((a * y - b * x) * (4 * side**2) + (a * x + b * y))
        upto = np.empty_like(flat)
        upto[order] = np.cumsum(flat[order])
        np.minimum(depths, upto, out=depths)
        np.minimum(depths, total - upto + flat, out=depths)
    return depths.reshape(counts.shape)


def _directions(side: int) -> Iterator[tuple[int, int]]:
    """Yield each direction from one point of the grid to another once, of two opposite ones the first."""
    for a in range(side):
        for b in range(1 - side, side):
            if math.gcd(a, b) == 1 and (a, b) > (0, 0):
                yield a, b
