"""Kernel density estimates: noise with the kernel's own covariance, and bands that hold it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import as_numbers, relative_positions
from sfumato.mechanisms.statistics.covariance import separated_bounds
from sfumato.mechanisms.statistics.hypothesis_test.p_value import LARGEST, size_of_release
from sfumato.mechanisms.statistics.null_draws import exceeded_by, null_draws
from sfumato.privacy.neighboring import Neighboring

__all__ = ["DensityBand", "DensityEstimate", "KernelDensity"]

_Array = NDArray[np.float64]
_ONE: Final = 1 << 20
_FINE: Final = 256
_REACH: Final = 6
"""Lattice points to each side of a record's; beyond them the kernel rounds to 0 steps."""
_POINTS: Final = 129
_REMEDY: Final = "leave n out: the noisy values estimate it"


class DensityEstimate(NamedTuple):
    """An estimated density.

    Attributes
    ----------
    points : float64 array of shape (k,)
        Where.
    density : float64 array of shape (k,)
        Not clipped: noise may make it negative where there are hardly any records.

    Examples
    --------
    >>> import numpy as np
    >>> found = DensityEstimate(np.array([0.0, 0.5, 1.0]), np.array([0.8, 1.2, 0.8]))
    >>> float(found.points[found.density.argmax()])
    0.5
    """

    points: _Array
    density: _Array


class DensityBand(NamedTuple):
    """Standard errors and ends of intervals of a density.

    Attributes
    ----------
    points : float64 array of shape (k,)
    standard_errors : float64 array of shape (k,)
    lower, upper : float64 array of shape (k,)
        At least 0.

    Examples
    --------
    >>> import numpy as np
    >>> band = DensityBand(np.array([0.5]), np.array([0.05]), np.array([1.1]), np.array([1.3]))
    >>> (band.upper - band.lower).round(1).tolist()
    [0.2]
    """

    points: _Array
    standard_errors: _Array
    lower: _Array
    upper: _Array


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDensity(Query):
    r"""Sums of a narrower normal kernel on a lattice, from which a kernel density estimate follows.

    Parameters
    ----------
    bounds : tuple of two numbers
        Public; records are clamped to them.
    bandwidth : float
        :math:`h`, the standard deviation of the normal kernel: from public numbers, or from what was
        released before (`normal_reference`). At least a thousandth of the bounds' distance, and at most it.
    reflect : bool
        Whether the estimate is reflected at the bounds, where the density ends there: else a part of the
        kernel's mass is lost beyond them.

    Notes
    -----
    With :math:`s = h/\sqrt 2`, the lattice has the distance s and :math:`g(z) = e^{-z^2/2}`, a record at x
    adds :math:`g((u - x)/s)` at each lattice point u, from 6 s below the bounds to 6 s above. The kernel h
    is g with itself: :math:`\sum_u g((t - u)/s)\,g((u - x)/s) = \sqrt\pi\, e^{-(t - x)^2/2h^2}` up to a
    10,000th. So the density at any t is a sum over the noisy lattice with weights g, post-processing. It has
    the noise of the Gaussian process of Hall, Rinaldo and Wasserman, whose covariance is the kernel: at each
    point :math:`\sigma/(\sqrt{2\pi} h n)`, for noise :math:`\sigma` that hides a vector of norm 1; and it is
    drawn exactly.

    *Sensitivity.* A record is rounded to a 256th of s, and its values to multiples of :math:`2^{-20}`: a
    table of integers, of which a record reads one line of 13. So the norms of what it adds are the largest of
    256 lines, exactly (the L2 norm is :math:`\pi^{1/4} = 1.33`). As no entry is negative, replacing a record
    moves the squared L2 norm by at most twice, the L1 norm by twice, and no entry by more than 1.

    References
    ----------
    Hall, Rinaldo, Wasserman, "Differential privacy for functions and functional data" (JMLR 2013); Ferrando,
    Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS 2022).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Gaussian
    >>> query = KernelDensity(bounds=(-4, 4), bandwidth=0.4)
    >>> noisy = Gaussian.for_query(query, epsilon=1.0, delta=1e-6)
    >>> release = noisy.release(np.random.default_rng(0).normal(size=5000), rng=1)
    >>> points, density = query.estimate(release, points=[-1.0, 0.0, 1.0])
    >>> density.round(2).tolist()
    [0.25, 0.36, 0.24]
    >>> band = query.density_band(release, rng=2)
    >>> smoothed = np.exp(-(band.points**2) / 2 / 1.16) / np.sqrt(2 * np.pi * 1.16)
    >>> bool((band.lower <= smoothed).all()), bool((smoothed <= band.upper).all())
    (True, True)
    """

    bounds: tuple[float, float]
    bandwidth: float
    reflect: bool = False

    def __post_init__(self) -> None:
        lower, upper = separated_bounds(self.bounds)
        object.__setattr__(self, "bounds", (lower, upper))
        bandwidth = _check.positive("bandwidth", self.bandwidth, "pass one from public numbers")
        if not (upper - lower) / 1000 <= bandwidth <= upper - lower:
            rule = "be from a thousandth of the bounds' distance to all of it"
            _check.refuse("bandwidth", rule, bandwidth, "pass another, or other bounds")
        _check.instance("reflect", self.reflect, bool, "pass True or False")

    @classmethod
    def normal_reference(
        cls,
        *,
        bounds: tuple[float, float],
        stddev: float,
        n: float,
        noise: float = 0.0,
        reflect: bool = False,
    ) -> Self:
        """Return the query with the bandwidth that is best for a normal density, noise included.

        Parameters
        ----------
        bounds, reflect
            As in the class.
        stddev, n : float
            Of the records, and their number: public, guessed, or released before (by `Variance`).
        noise : float
            Standard deviation of the noise that hides a vector of L2 norm 1: 4.2 for epsilon 1 and delta
            1e-6. Without it this is Silverman's rule, 1.06 stddev over the fifth root of n.

        Returns
        -------
        KernelDensity

        Examples
        --------
        >>> plain, noisy = (
        ...     KernelDensity.normal_reference(bounds=(0, 10), stddev=1.0, n=1000, noise=noise)
        ...     for noise in (0.0, 4.2)
        ... )
        >>> round(plain.bandwidth, 2), round(noisy.bandwidth, 2)
        (0.27, 0.3)
        """
        width = float(np.subtract(*separated_bounds(bounds)[::-1]))
        deviation, count = _check.positive("stddev", stddev), _check.positive("n", n)
        hidden = _check.non_negative("noise", noise)
        tried = width * np.geomspace(1e-3, 1.0, 3001)
        bias = tried**4 * 3 / (32 * math.sqrt(math.pi) * deviation**5)
        sampling = 1 / (2 * math.sqrt(math.pi) * count * tried)
        noises = width * (hidden / (math.sqrt(2 * math.pi) * count * tried)) ** 2
        best = float(tried[(bias + sampling + noises).argmin()])
        return cls(bounds=bounds, bandwidth=min(best, width), reflect=reflect)

    @property
    def step(self) -> Fraction:
        """What one step is worth."""
        return Fraction(1, _ONE)

    @property
    def entries(self) -> int:
        """The points of the lattice."""
        return math.ceil((self.bounds[1] - self.bounds[0]) / self._spacing) + 2 * _REACH + 2

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the sums of the narrower kernel at the points of the lattice.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record; NaN counts as 0.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private. Exact for fewer than 2**32 records.
        """
        lower, upper = self.bounds
        positions = relative_positions(as_numbers(data, integral=False), self.bounds)
        # A float product that is rounded to an integer: a function of the record alone.
        fine = np.rint(positions * ((upper - lower) / self._spacing * _FINE)).astype(np.int64)
        counts = np.bincount(fine, minlength=_FINE * (self.entries - 2 * _REACH))
        by_place = counts.reshape(-1, _FINE) @ _table()
        total = np.zeros(self.entries, np.int64)
        for offset in range(2 * _REACH + 1):
            total[offset : offset + len(by_place)] += by_place[:, offset]
        return total

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the largest norms of a line of the table, or of what two records differ by.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        sides, table = 2 if neighboring is Neighboring.REPLACE_ONE else 1, _table()
        return Shift(
            l0=sides * table.shape[1],
            l1=sides * int(table.sum(axis=1).max()),
            l2_squared=sides * int((table**2).sum(axis=1).max()),
            linf=int(table.max()),
        )

    def estimate(
        self, release: LatticeRelease, *, points: ArrayLike | None = None, n: int | None = None
    ) -> DensityEstimate:
        """Return the estimated density.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        points : array of shape (k,), optional
            Where, between the bounds; 129 even points unless given.
        n : int, optional
            How many records there are, where that is public: the release must be under replace-one or
            zero-out. Unless given, the noisy values estimate it.

        Returns
        -------
        DensityEstimate

        Raises
        ------
        NeighboringMismatch
            If n is given and the release is under add/remove.
        """
        where = self._points(points)
        size = None if n is None else size_of_release(self.check_release(release), n, _REMEDY)
        values = np.asarray(self.check_release(release).value, np.float64)
        return DensityEstimate(where, values @ self._weights(where) / _counted(values, size))

    def density_band(
        self,
        release: LatticeRelease,
        level: float = 0.95,
        *,
        points: ArrayLike | None = None,
        n: int | None = None,
        joint: bool = True,
        draws: int = 399,
        rng: int | np.random.Generator | None = None,
    ) -> DensityBand:
        """Return a confidence band for the density, smoothed by the kernel; post-processing.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        level : float
            Wanted coverage, strictly between 0 and 1.
        points, n
            As in `estimate`.
        joint : bool
            Whether the band is to hold at all points together; else an interval for each point.
        draws : int
            How many samples are drawn; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        DensityBand

        Notes
        -----
        A smoothed bootstrap: as many records as are estimated are drawn from an estimated density, with fresh
        noise, and estimated as the release was; each around an estimate of its own. The target is the density
        that the kernel smoothes, as without noise: no band knows how much the kernel hides. Coverage is right
        in the limit of many records.
        """
        error, (number, generator) = 1 - _check.unit_interval("level", level), null_draws(draws, rng)
        size = None if n is None else size_of_release(self.check_release(release), n, _REMEDY)
        where = self._points(points)
        weights, (cells, kernel) = self._weights(where), self._cells()
        onto = self._weights(cells)

        def drawn(values: _Array) -> tuple[_Array, _Array]:
            """Return noisy values of samples from densities that values give, and what they would be."""
            shares = np.maximum(values @ onto, 0.0) + 1e-300
            shares /= shares.sum(axis=-1, keepdims=True)
            counts = np.minimum(np.rint(_counted(values, size)), LARGEST).astype(np.int64)[..., 0]
            sample = generator.multinomial(counts, shares, None if values.ndim > 1 else number)
            noise = np.asarray(release.distribution.sample((number, self.entries), generator))
            return sample @ kernel + noise * float(self.step), shares @ kernel

        seen = np.asarray(self.check_release(release).value, np.float64)
        around, _ = drawn(seen)
        again, exact = drawn(around)
        off = again @ weights / _counted(again, size) - exact @ weights
        center, errors = seen @ weights / _counted(seen, size), off.std(axis=0)
        if joint:
            worst = (np.abs(off) / np.maximum(errors, 1e-300)).max(axis=-1)
            reach = exceeded_by(worst, error) * errors
        else:
            reach = exceeded_by(np.abs(off), error)
        return DensityBand(where, errors, np.maximum(center - reach, 0.0), np.maximum(center + reach, 0.0))

    @property
    def _spacing(self) -> float:
        return self.bandwidth / math.sqrt(2)

    @property
    def _lattice(self) -> _Array:
        return np.asarray(self.bounds[0] + (np.arange(self.entries) - _REACH) * self._spacing, np.float64)

    def _points(self, points: ArrayLike | None) -> _Array:
        lower, upper = self.bounds
        if points is None:
            return np.linspace(lower, upper, _POINTS)
        try:
            where = np.asarray(points, np.float64)
        except (TypeError, ValueError):
            where = np.full(1, np.nan)
        if where.ndim != 1 or not where.size or not ((lower <= where) & (where <= upper)).all():
            rule = f"be numbers from {lower:g} to {upper:g}, the bounds"
            _check.refuse_type("points", rule, points, "pass public points between the bounds")
        return where

    def _weights(self, where: _Array) -> _Array:
        """Return what makes a density of the lattice's values, but for the number of records."""
        images = [where]
        if self.reflect:
            images += [2 * bound - where for bound in self.bounds]
        total = sum(_kernel((self._lattice[:, None] - image) / self._spacing) for image in images)
        return np.asarray(total / (math.sqrt(2) * math.pi * self.bandwidth))

    def _cells(self) -> tuple[_Array, _Array]:
        """Return points that stand for records, and the values of the lattice of a record there."""
        lower, upper = self.bounds
        number = max(2, math.ceil(2 * (upper - lower) / self._spacing))
        cells = lower + (np.arange(number) + 0.5) * (upper - lower) / number
        return cells, _kernel((cells[:, None] - self._lattice) / self._spacing)


def _kernel(distance: NDArray[Any]) -> _Array:
    return np.asarray(np.exp(-0.5 * distance**2))


def _counted(values: _Array, size: int | None) -> _Array:
    """Return how many records values are of, at least 1, with an axis of length 1."""
    found: _Array = values.sum(axis=-1, keepdims=True) / math.sqrt(2 * math.pi)
    if size is not None:
        found = np.full(found.shape, float(size))
    return np.maximum(found, 1.0)


@lru_cache(maxsize=1)
def _table() -> NDArray[np.int64]:
    """Return the kernel in steps, at the lattice points around a record, for each place between two."""
    place = np.arange(_FINE)[:, None] / _FINE
    offset = np.arange(-_REACH, _REACH + 1)[None]
    table = np.rint(_kernel(offset - place) * _ONE).astype(np.int64)
    table.flags.writeable = False
    return table
