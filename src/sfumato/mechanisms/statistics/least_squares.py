"""Linear regression by least squares, from noisy second moments."""

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
from sfumato.mechanisms.query.records import as_table, relative_positions
from sfumato.mechanisms.statistics.covariance import separated_bounds
from sfumato.mechanisms.statistics.null_draws import exceeded_by, null_draws
from sfumato.mechanisms.statistics.upper_triangle import (
    entries_of,
    product_sums,
    symmetric_matrix,
    without_negative_eigenvalues,
)
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CoefficientErrors", "LeastSquares", "LinearFit"]

_BITS: Final = 20
_ONE: Final = 1 << _BITS
_FLOOR: Final = 1.5


class LinearFit(NamedTuple):
    """A fitted linear function.

    Attributes
    ----------
    intercept : float
    slopes : float64 array of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> fit = LinearFit(intercept=3.0, slopes=np.array([0.5]))
    >>> float(fit.intercept + fit.slopes @ [10.0])
    8.0
    """

    intercept: float
    slopes: NDArray[np.float64]


class CoefficientErrors(NamedTuple):
    """Standard errors and intervals of the intercept, which is first, and of the slopes.

    Attributes
    ----------
    standard_errors : float64 array of shape (d + 1,)
    lower, upper : float64 array of shape (d + 1,)
        The ends of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> errors = CoefficientErrors(np.array([0.1, 0.2]), np.array([2.8, 0.1]), np.array([3.2, 0.9]))
    >>> (errors.upper - errors.lower).round(1).tolist()
    [0.4, 0.8]
    """

    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeastSquares(Query):
    r"""All second moments of features and a response, from which least squares follow.

    Parameters
    ----------
    bounds : sequence of tuples of two numbers
        Lower and upper bound of each feature, then of the response; records are clamped to them.

    Notes
    -----
    With each number's position in its bounds, from -1 to 1, and a one before them, a record is a vector z of
    d + 2 entries, and the query sums the upper triangle of :math:`zz^T`, the entries off the diagonal times
    :math:`\sqrt 2`. Then the L2 norm of what a record adds is :math:`|z|^2 \le d + 2`, under replace-one the
    difference of two has at most :math:`\sqrt 2 (d + 2)`, as :math:`\langle z, z'\rangle^2 \ge 0`; rounding
    each entry of a record to 20 bits adds at most half a step to each. The number of records is private.
    Gaussian noise fits an L2 norm.

    References
    ----------
    Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss" (STOC 2014); Wang, "Revisiting differentially private
    linear regression" (UAI 2018), sufficient statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, 50_000)
    >>> data = np.stack([x, 3 + 0.5 * x + rng.normal(0, 0.5, 50_000)], axis=1)
    >>> fit = Gaussian.for_query(LeastSquares(bounds=((0, 10), (0, 10))), epsilon=1.0, delta=1e-6)
    >>> line = fit.query.estimate(fit.release(data, rng=1))
    >>> round(line.intercept, 1), line.slopes.round(2).tolist()
    (3.0, [0.5])
    """

    bounds: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        given: object = self.bounds
        if not isinstance(given, tuple | list | np.ndarray) or len(given) < 2:
            remedy = "pass (lower, upper) for each feature and for the response"
            _check.refuse("bounds", "hold at least two pairs", given, remedy)
        object.__setattr__(self, "bounds", tuple(separated_bounds(pair) for pair in given))

    @property
    def step(self) -> Fraction:
        """What one step is worth."""
        return Fraction(1, _ONE)

    @property
    def entries(self) -> int:
        """The upper triangle."""
        size = len(self.bounds) + 1
        return size * (size + 1) // 2

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the exact sums in steps, of an array of shape (n, d + 1), the response last.

        Parameters
        ----------
        data : array of shape (n, d + 1)
            The features of each record, then its response.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        width = len(self.bounds)
        array = as_table(data, width)
        lower, upper = np.array(self.bounds).T
        z = np.concatenate(
            [np.ones((len(array), 1)), relative_positions(array, (lower, upper)) * 2 - 1], axis=1
        )
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
        size = len(self.bounds) + 1
        two = neighboring is Neighboring.REPLACE_ONE
        maximum = Fraction(_ONE) * size * (Fraction(math.sqrt(2) * (1 + 2.0**-50)) if two else 1)
        each = 1 if two else Fraction(1, 2)
        rounding, rounding_in_all = Fraction(math.isqrt(self.entries) + 1) * each, self.entries * each
        l2 = maximum + rounding
        linf = math.ceil(_ONE * math.sqrt(2) * (2 if two else 1)) + 1
        # Squares are at most 1, and those of two records differ by at most 1, that of the one not at all.
        pairs = size * (size - 1) // 2 * Fraction(math.sqrt(2) * (1 + 2.0**-50))
        l1 = math.ceil((size - 1 + 2 * pairs if two else size + pairs) * _ONE + rounding_in_all)
        return Shift(l0=self.entries, l1=l1, l2_squared=math.floor(l2**2), linf=linf)

    def estimate(self, release: LatticeRelease, *, ridge: float | None = None) -> LinearFit:
        """Return the line of least squares.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        ridge : float, optional
            Added to the diagonal of the features' moments, whose positions are from -1 to 1: 0 for plain
            moments. Unless given, as much as makes their least eigenvalue 1.5 times the norm of the noise,
            so that noise alone gives no steep slopes, and nothing where it is that large.

        Returns
        -------
        LinearFit
            In the unit of the data. The noisy moments are projected to what data can have: no negative
            eigenvalue.
        """
        given = (
            None if ridge is None else _check.non_negative("ridge", ridge, "leave it out to have it chosen")
        )
        moments = self._moments(self.check_release(release).value)
        found = self._coefficients(moments, float(release.stddev), given)
        return LinearFit(float(found[0]), found[1:])

    def coefficient_errors(
        self,
        release: LatticeRelease,
        level: float = 0.95,
        *,
        draws: int = 999,
        rng: int | np.random.Generator | None = None,
    ) -> CoefficientErrors:
        """Return standard errors and intervals of intercept and slopes, for the population; post-processing.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        level : float
            Wanted coverage of each interval, strictly between 0 and 1.
        draws : int
            How many samples are drawn; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        CoefficientErrors

        Notes
        -----
        A parametric bootstrap: normal samples with the released moments, with fresh noise, estimated as the
        release was. Intervals are as far to both sides of the estimate as the draws are from what they were
        drawn from, with the wanted probability. So coverage is right in the limit of many records, for
        features and residuals that are nearly normal and seldom outside the bounds.

        References
        ----------
        Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals"
        (AISTATS 2022).

        Examples
        --------
        >>> from sfumato.mechanisms import Gaussian
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(5, 1.5, 5000)
        >>> data = np.stack([x, 3 + 0.5 * x + rng.normal(0, 0.5, 5000)], axis=1)
        >>> query = LeastSquares(bounds=((0, 10), (0, 10)))
        >>> release = Gaussian.for_query(query, epsilon=1.0, delta=1e-6).release(data, rng=1)
        >>> errors = query.coefficient_errors(release, rng=2)
        >>> bool(errors.lower[1] < 0.5 < errors.upper[1]), errors.standard_errors.round(2).tolist()
        (True, [0.12, 0.02])
        """
        error = 1 - _check.unit_interval("level", level)
        fit, (number, generator) = self.estimate(release), null_draws(draws, rng)
        stddev, size = float(release.stddev), len(self.bounds) + 1
        moments = self._moments(release.value)
        count = max(float(size + 1), float(moments[0, 0]))
        mean = moments[0, 1:] / count
        values, vectors = np.linalg.eigh(moments[1:, 1:] / count - np.outer(mean, mean))
        root = vectors * np.sqrt(np.maximum(values, 1e-12))
        truth = self._coefficients(_second_moments(count, mean, root @ root.T * count), 0.0, 0.0)
        off = np.zeros((number, size - 1))
        for row in off:
            around = mean + root @ generator.standard_normal(size - 1) / math.sqrt(count)
            scatter = _scatter(root, round(count) - 1, generator)
            exact = entries_of(_second_moments(count, around, scatter))
            noise = np.asarray(release.distribution.sample(exact.size, generator)) * float(release.step)
            row[:] = self._coefficients(self._moments(exact + noise), stddev, None) - truth
        reach = exceeded_by(np.abs(off), error)
        center = np.append(fit.intercept, fit.slopes)
        return CoefficientErrors(off.std(axis=0), center - reach, center + reach)

    def _moments(self, value: NDArray[Any]) -> NDArray[np.float64]:
        """Return moments as a matrix, projected to what data can have."""
        return without_negative_eigenvalues(symmetric_matrix(value, len(self.bounds) + 1))

    def _coefficients(
        self, moments: NDArray[np.float64], stddev: float, ridge: float | None
    ) -> NDArray[np.float64]:
        """Return intercept and slopes in the unit of the data."""
        size = len(moments)
        inner = moments[:-1, :-1]
        if ridge is None:
            ridge = max(0.0, _FLOOR * stddev * math.sqrt(size) - float(np.linalg.eigvalsh(inner)[0]))
        found = np.linalg.lstsq(inner + ridge * np.eye(size - 1), moments[:-1, -1], rcond=None)[0]
        lower, upper = np.array(self.bounds).T
        scale, middle = (upper - lower) / 2, (upper + lower) / 2
        slopes = found[1:] * scale[-1] / scale[:-1]
        return np.append(middle[-1] + found[0] * scale[-1] - slopes @ middle[:-1], slopes)


def _second_moments(
    count: float, mean: NDArray[np.float64], scatter: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the moments of so many records, a one before each, with a mean and a scatter around it."""
    one = np.append(1.0, mean)
    found = count * np.outer(one, one)
    found[1:, 1:] += scatter
    return found


def _scatter(root: NDArray[np.float64], freedom: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Draw the scatter of normal records around their mean, by Bartlett's decomposition."""
    size = len(root)
    lower = np.tril(generator.standard_normal((size, size)), -1)
    lower[np.diag_indices(size)] = np.sqrt(generator.chisquare(np.maximum(1, freedom - np.arange(size))))
    half = root @ lower
    return np.asarray(half @ half.T)
