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
from sfumato.mechanisms.query.records import as_table, exact_sum, relative_positions
from sfumato.mechanisms.statistics.covariance import separated_bounds
from sfumato.privacy.neighboring import Neighboring

__all__ = ["LeastSquares", "LinearFit"]

_BITS: Final = 20
_ONE: Final = 1 << _BITS


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
        rows, columns = np.triu_indices(width + 1)
        return np.array(
            [
                exact_sum(np.rint(z[:, i] * z[:, j] * (_ONE * _weight(i, j))).astype(np.int64))
                for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
            ]
        )

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
        rounding = Fraction(math.isqrt(self.entries) + 1) * (1 if two else Fraction(1, 2))
        l2 = maximum + rounding
        linf = math.ceil(_ONE * math.sqrt(2) * (2 if two else 1)) + 1
        l1 = math.ceil(l2 * (math.isqrt(self.entries) + 1))
        return Shift(
            l0=self.entries, l1=min(l1, linf * self.entries), l2_squared=math.floor(l2**2), linf=linf
        )

    def estimate(self, release: LatticeRelease) -> LinearFit:
        """Return the line of least squares.

        Parameters
        ----------
        release : LatticeRelease

        Returns
        -------
        Line
            In the unit of the data. The noisy moments are projected to what data can have (no negative
            eigenvalue), and ridged by the noise's own size, so that noise alone gives no steep slopes.
        """
        value, size = np.asarray(self.check_release(release).value), len(self.bounds) + 1
        rows, columns = np.triu_indices(size)
        moments = np.zeros((size, size))
        weights = np.array([_weight(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)])
        moments[rows, columns] = moments[columns, rows] = value / weights
        values, vectors = np.linalg.eigh(moments)
        moments = (vectors * np.maximum(values, 0)) @ vectors.T
        ridge = float(release.stddev) * math.sqrt(size)
        inner = moments[:-1, :-1] + ridge * np.eye(size - 1)
        inner[0, 0] -= ridge * (moments[0, 0] > ridge)
        found = np.linalg.solve(inner, moments[:-1, -1])
        lower, upper = np.array(self.bounds).T
        scale, middle = (upper - lower) / 2, (upper + lower) / 2
        slopes = found[1:] * scale[-1] / scale[:-1]
        intercept = float(middle[-1] + found[0] * scale[-1] - (slopes * middle[:-1]).sum())
        return LinearFit(intercept, np.asarray(slopes))


def _weight(i: int, j: int) -> float:
    return 1.0 if i == j else math.sqrt(2)
