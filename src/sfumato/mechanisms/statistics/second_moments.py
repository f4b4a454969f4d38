"""Covariance matrices and principal components, from noisy second moments (Analyze Gauss)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import as_table
from sfumato.mechanisms.statistics.upper_triangle import product_sums, symmetric_matrix
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.privacy.neighboring import Neighboring

__all__ = ["PrincipalComponents", "SecondMoments"]

_BITS: Final = 20
_ONE: Final = 1 << _BITS
_MOST: Final = 1 << 10
_SLACK: Final = Fraction(1, 1 << 40)
"""More than float errors add to the norm of a clipped record, relative to it."""
_FAR: Final = 1e150
"""Entries are clipped to this before the record is, in radii, so that no square overflows."""
_Array = NDArray[np.float64]


class PrincipalComponents(NamedTuple):
    """Principal components of a noisy matrix.

    Attributes
    ----------
    values : float64 array of shape (k,)
        The largest eigenvalues, falling.
    vectors : float64 array of shape (d, k)
        Their eigenvectors, one in each column, of length 1; the entry of largest magnitude is positive.
    value_error : float
        All eigenvalues together are within this of those without noise, with probability at least the level.
    angle : float
        Then the largest angle between the space of the vectors and that without noise is at most this, in
        radians; a right angle where the noise may have exchanged components.

    Examples
    --------
    >>> components = PrincipalComponents(np.array([2.0]), np.array([[0.0], [1.0]]), 0.1, 0.05)
    >>> components.vectors[:, 0].tolist()
    [0.0, 1.0]
    """

    values: _Array
    vectors: _Array
    value_error: float
    angle: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecondMoments(Query):
    r"""The second moments of vectors, for their covariance matrix and its principal components.

    Parameters
    ----------
    columns : int
        How many numbers a record has, at most 1024.
    radius : float
        Records further than this from the centre are moved to that distance; public.
    center : sequence of floats, optional
        Public; the origin unless given.
    centered : bool
        True for the covariance matrix around the data's own mean: count and mean are measured with it, which
        doubles the sensitivity, and the number of records stays private. False for the sum of
        :math:`(x - c)(x - c)^T` around the public centre.

    Notes
    -----
    Guarantee: let z be a record's difference from the centre over the radius, clipped to length 1 (and with a
    one behind it where the mean is measured: then :math:`|z|^2 \le 2`). The query sums the upper triangle of
    :math:`zz^T`, the entries off the diagonal times :math:`\sqrt 2`: the L2 norm of what a record adds is
    :math:`\|zz^T\|_F = |z|^2`; under replace-one the difference of two has at most :math:`\sqrt 2` times
    that, as :math:`\langle z, z'\rangle^2 \ge 0`. Each entry of a record is rounded to 20 bits by itself,
    which adds half a step to each at most. NaN counts as 0. Gaussian noise fits an L2 norm: it is
    rotation-invariant noise on the matrix, with half of the variance off the diagonal; Dwork et al. add the
    same to all entries.

    References
    ----------
    Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis" (STOC 2014), Algorithm 1.

    Examples
    --------
    >>> from sfumato.mechanisms import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(size=(50_000, 1)) * [3.0, 4.0] + rng.normal(size=(50_000, 2))
    >>> query = SecondMoments(columns=2, radius=15.0)
    >>> release = Gaussian.for_query(query, epsilon=1.0, delta=1e-6).release(data, rng=1)
    >>> query.estimate(release).round().tolist()
    [[10.0, 12.0], [12.0, 17.0]]
    >>> components = query.principal_components(release, 1)
    >>> components.vectors[:, 0].round(1).tolist(), components.angle < 0.02
    ([0.6, 0.8], True)
    """

    columns: int
    radius: float
    center: Sequence[float] | None = None
    centered: bool = True

    def __post_init__(self) -> None:
        remedy = "pass how many numbers a record has"
        columns = _check.integer("columns", self.columns, minimum=1, remedy=remedy)
        if columns > _MOST:
            _check.refuse("columns", f"be at most {_MOST}", columns, "project the records first")
        radius = _check.positive("radius", self.radius, "pass the largest distance from the center")
        if not 1e-150 <= radius <= 1e150:
            _check.refuse("radius", "be from 1e-150 to 1e150", radius, "pass values in other units")
        object.__setattr__(self, "radius", radius)
        if self.center is not None:
            given: object = self.center
            if (
                not isinstance(given, Sequence | np.ndarray)
                or isinstance(given, str)
                or len(given) != columns
            ):
                rule = f"hold {columns} numbers"
                _check.refuse("center", rule, given, "leave it out for the origin")
            object.__setattr__(self, "center", tuple(_check.finite("center", each) for each in given))
        centered: object = self.centered
        if not isinstance(centered, bool):
            remedy = "pass False for moments around the public center"
            _check.refuse("centered", "be True or False", centered, remedy)

    @property
    def step(self) -> Fraction:
        """What one step is worth, in squared radii."""
        return Fraction(1, _ONE)

    @property
    def entries(self) -> int:
        """The upper triangle."""
        return self._width * (self._width + 1) // 2

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the exact sums in steps.

        Parameters
        ----------
        data : array of shape (n, columns)
            A vector for each record.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        z = self._clipped(as_table(data, self.columns).astype(np.float64))
        return product_sums(z, _ONE)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound of one record, or under replace-one of the difference of two.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        two, size = neighboring is Neighboring.REPLACE_ONE, self._width
        squared = 2 if self.centered else 1
        maximum = _ONE * squared * (1 + _SLACK) * (Fraction(math.sqrt(2) * (1 + 2.0**-50)) if two else 1)
        rounding = Fraction(math.isqrt(self.entries) + 1) * (1 if two else Fraction(1, 2))
        l2 = maximum + rounding
        linf = math.ceil(_ONE * (1 + _SLACK) * Fraction(1.4142136 if self.centered else 1) * (1 + two)) + 1
        # One record: sum z_i^2 + (2 / sqrt(2)) sum |z_i z_j| <= |z|^2 (1 + (size - 1) / sqrt(2)).
        one = squared * (1 + _SLACK) * Fraction(1 + (size - 1) * 0.7071068)
        l1 = math.ceil((2 if two else 1) * (one * _ONE + Fraction(self.entries, 2)))
        l1 = min(l1, math.ceil(l2 * (math.isqrt(self.entries) + 1)), linf * self.entries)
        return Shift(l0=self.entries, l1=l1, l2_squared=math.floor(l2**2), linf=min(linf, l1))

    def estimate(self, release: LatticeRelease) -> _Array:
        """Return the covariance matrix, with divisor n; or the sum of outer products around the centre.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        float64 array of shape (columns, columns)
            In the squared unit of the data, symmetric; noise may have given it negative eigenvalues.
        """
        return self._matrix(self._blocks(release)) * self.radius**2

    def principal_components(
        self, release: LatticeRelease, count: int, *, level: float = 0.95
    ) -> PrincipalComponents:
        r"""Return the components of largest variance, with bounds on what the noise did to them.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        count : int
            How many components, at most ``columns``.
        level : float
            With what probability over the noise the bounds hold, strictly between 0 and 1.

        Returns
        -------
        PrincipalComponents
            Of the matrix of `estimate`; post-processing. The bounds compare it with that of the clipped and
            rounded records.

        Notes
        -----
        *Noise.* A sum of fixed symmetric matrices :math:`A_k`, times independent numbers that are subgaussian
        with variance proxy :math:`\sigma^2`, has a spectral norm beyond t with probability at most
        :math:`2w e^{-t^2 / (2 \sigma^2 \|\sum A_k^2\|)}`, here with :math:`\|\sum A_k^2\| = (w + 1)/2` for w
        rows (Tropp 2012, Theorem 4.1, whose proof takes any subgaussian numbers; discrete Gaussian ones are
        by Canonne, Kamath, Steinke 2020). For other noise, the norm is at most that of the matrix of the
        half-widths of intervals for all entries (Bonferroni). *Eigenvalues* move by at most the norm e of the
        error (Weyl). *Vectors*: the sine of the angle is at most e over the distance of the last eigenvalue
        taken from the next one without noise (Davis, Kahan), itself at most e from the noisy one.

        With the mean, count n, mean m and moments M are each off by at most t, which bounds the error of
        :math:`M/n - mm^T`, as clipped records have :math:`|M| \le n` and :math:`|m| \le 1`.
        """
        number = _check.integer("count", count, minimum=1, remedy="pass how many components are wanted")
        if number > self.columns:
            _check.refuse("count", f"be at most {self.columns}, the columns", number, "pass fewer")
        chance, blocks = 1 - _check.unit_interval("level", level), self._blocks(release)
        error = self._error(release, blocks, chance)
        values, vectors = np.linalg.eigh(self._matrix(blocks))
        values, vectors = values[::-1], vectors[:, ::-1]
        gap = math.inf if number == self.columns else float(values[number - 1] - values[number]) - error
        sine = 0.0 if number == self.columns else error / gap if gap > 0 else 1.0
        chosen = vectors[:, :number]
        largest = np.abs(chosen).argmax(axis=0)
        chosen = chosen * np.where(chosen[largest, np.arange(number)] < 0, -1.0, 1.0)
        scale = self.radius**2
        return PrincipalComponents(values[:number] * scale, chosen, error * scale, math.asin(min(1.0, sine)))

    @property
    def _width(self) -> int:
        return self.columns + self.centered

    def _clipped(self, data: _Array) -> _Array:
        """Return records as vectors of length 1 at most, and a one behind each where the mean is measured."""
        center = np.zeros(self.columns) if self.center is None else np.array(self.center)
        with np.errstate(over="ignore"):
            z = (np.nan_to_num(data, nan=0.0, posinf=np.inf, neginf=-np.inf) - center) / self.radius
        z = np.clip(z, -_FAR, _FAR)
        z = z / np.maximum(np.sqrt((z**2).sum(axis=1, keepdims=True)), 1.0)
        return np.concatenate([z, np.ones((len(z), 1))], axis=1) if self.centered else z

    def _blocks(self, release: LatticeRelease) -> _Array:
        """Return the noisy moments as a symmetric matrix, in squared radii."""
        return symmetric_matrix(self.check_release(release).value, self._width)

    def _matrix(self, blocks: _Array) -> _Array:
        if not self.centered:
            return blocks
        size = max(1.0, float(blocks[-1, -1]))
        mean = np.clip(blocks[:-1, -1] / size, -1, 1)
        return np.asarray(blocks[:-1, :-1] / size - np.outer(mean, mean))

    def _error(self, release: LatticeRelease, blocks: _Array, chance: float) -> float:
        """Bound the spectral norm of the error of the matrix, in squared radii, but for a small chance."""
        width = self._width
        half = release.distribution.half_width(1 - chance / self.entries)[0] / _ONE
        norm = half * (1 + (width - 1) / math.sqrt(2))
        if isinstance(release.distribution, DiscreteGaussianDistribution):
            proxy = float(release.distribution.sigma) / _ONE
            norm = min(norm, proxy * math.sqrt((width + 1) * math.log(2 * width / chance)))
        norm *= 1 + 1e-12
        if not self.centered:
            return norm
        size = max(1.0, float(blocks[-1, -1]))
        off = 2 * norm / size
        mean = float(np.linalg.norm(np.clip(blocks[:-1, -1] / size, -1, 1)))
        return off + off * (2 * mean + off)
