"""Lower bounds on the error of a workload's answers, computed for its own matrix.

>>> import numpy as np
>>> bound = svd_error_bound(np.eye(8), mu=1.0)
>>> round(bound.error, 6), bound.mechanisms
(1.0, 'Gaussian noise on linear measurements')

A bound holds for the class of mechanisms that it names, and says nothing about others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.bounds.gamma_norm import FactorizationNorm, factorization_norm
from sfumato.bounds.nuclear_norm import Floats, nuclear_norm_down, to_unit, unit_weights
from sfumato.mechanisms.factorization.strategies.optimal_strategy import as_workload, optimal_strategy
from sfumato.numerics.rounding import (
    div_down,
    expm1_up,
    fraction_down,
    fraction_up,
    mul_up,
    sqrt_up,
)

__all__ = [
    "WorkloadBound",
    "bound_of",
    "maximum_error_bound",
    "mean_error_bound",
    "svd_error_bound",
    "unit_error",
]

_LINEAR: Final = "Gaussian noise on linear measurements"
_UNBIASED: Final = "unbiased answers, any mechanism"
_SVD: Final = "singular values (Li and Miklau 2013)"
_WEIGHTED: Final = "weighted singular values (Li and Miklau 2013; weak duality)"
_GAMMA: Final = "factorization norm (Linial and Shraibman 2009; weak duality)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadBound:
    """No mechanism of a class answers a workload with less error.

    Parameters
    ----------
    error : float
        Rounded down: the root of the mean squared error over the answers, or of the greatest one.
    reached : float or None
        The same error of Gaussian noise on our best strategy, to float accuracy; None where none was
        computed.
    mu : float
        Of Gaussian DP, under adding or removing one unit that counts in one cell.
    target : str
        ``"mean"`` or ``"maximum"``.
    mechanisms : str
        The class that the bound holds for.
    theorem : str
        What proves it.

    Examples
    --------
    >>> import numpy as np
    >>> bound = mean_error_bound(np.tril(np.ones((32, 32))), mu=0.5)
    >>> 1 <= bound.ratio < 1.0002
    True
    """

    error: float
    reached: float | None
    mu: float
    target: str
    mechanisms: str
    theorem: str

    @property
    def ratio(self) -> float | None:
        """The error that is reached over the bound; infinite where the bound is 0."""
        if self.reached is None:
            return None
        return self.reached / self.error if self.error else math.inf

    def __str__(self) -> str:
        reached = "" if self.reached is None else f", {self.reached:.6g} is reached"
        return (
            f"Root {self.target} squared error of at least {self.error:.6g}{reached}, at mu={self.mu:.6g}, "
            f"for {self.mechanisms}. Proof: {self.theorem}."
        )


def svd_error_bound(workload: ArrayLike, *, mu: float, unbiased: bool = False) -> WorkloadBound:
    r"""Bound the root mean squared error of a workload's answers by its singular values.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        Linear queries on counts of cells; up to 2,048 cells.
    mu : float
        Gaussian DP under adding or removing one unit, which counts in one cell.
    unbiased : bool
        Whether the bound shall hold for all unbiased mechanisms that are mu-GDP or :math:`\mu^2/2`-zCDP, and
        not only for Gaussian noise on linear measurements.

    Returns
    -------
    WorkloadBound

    Raises
    ------
    ParameterError
        If the workload is no matrix of finite numbers, or all 0.

    Notes
    -----
    Guarantee: a lower bound, for the class that it names. For W with columns :math:`w_j`, let the
    answers be unbiased with covariance :math:`\Sigma`, and :math:`w_j^T \Sigma^+ w_j \le c` for all j. Then
    for unit vectors p and q, :math:`\|D_p W D_q\|_* \le \|D_p \Sigma^{1/2}\|_F \|\Sigma^{-1/2} W D_q\|_F \le
    \sqrt{c \sum p_i^2 \Sigma_{ii}}`. Equal p give the mean squared error.

    - Gaussian noise on :math:`C x` with answers :math:`B y`, :math:`B C = W`: :math:`c = \mu^2`.
    - Any unbiased answers: :math:`c = e^{\mu^2} - 1`, the greatest chi-squared divergence of neighbors, by
      the inequality of Hammersley, Chapman and Robbins. It holds at every dataset of whole counts.

    A mechanism with a bias may have less error.

    References
    ----------
    Li, Miklau (2013), "Optimal error of query sets under the differentially-private matrix mechanism";
    Chapman, Robbins (1951), "Minimum variance estimation without regularity assumptions".

    Examples
    --------
    >>> import numpy as np
    >>> prefixes = np.tril(np.ones((64, 64)))
    >>> round(svd_error_bound(prefixes, mu=1.0).error, 4)
    2.0401
    """
    matrix = as_workload(workload)
    total = unit_error(matrix, np.ones(len(matrix)), np.ones(matrix.shape[1]))
    return bound_of(total, None, mu, unbiased, ("mean", _SVD))


def mean_error_bound(workload: ArrayLike, *, mu: float, unbiased: bool = False) -> WorkloadBound:
    """Bound the root mean squared error by weighted singular values, beside the best strategy's error.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        Up to 2,048 cells; 256 take a part of a second.
    mu : float
        As in `svd_error_bound`.
    unbiased : bool
        As in `svd_error_bound`.

    Returns
    -------
    WorkloadBound
        For Gaussian noise on linear measurements, bound and reached error meet to about one in 10,000.

    Raises
    ------
    ParameterError
        If the workload is no matrix of finite numbers, or all 0.

    Notes
    -----
    Guarantee: as in `svd_error_bound`, with equal p and with the best q that was found. No claim rests on
    how q was found.

    References
    ----------
    Li, Miklau (2013), "Optimal error of query sets under the differentially-private matrix mechanism"; Yuan,
    Yang, Zhang, Hao (2016), "Convex optimization for linear query processing under approximate differential
    privacy".

    Examples
    --------
    >>> import numpy as np
    >>> print(mean_error_bound(np.eye(4), mu=1.0).theorem)
    weighted singular values (Li and Miklau 2013; weak duality)
    """
    matrix, unit = to_unit(as_workload(workload))
    found = optimal_strategy(matrix)
    inverse = np.linalg.solve(found.strategy.T @ found.strategy, matrix.T)
    ones = np.ones(len(matrix))
    squares = np.square(inverse).sum(axis=1)
    total = max(unit_error(matrix, ones, weights) for weights in (squares, np.ones(matrix.shape[1])))
    reached = fraction_up(Fraction(math.sqrt(found.error / len(matrix))) * unit)
    least = fraction_down(Fraction(total) * unit)
    return bound_of(least, reached, mu, unbiased, ("mean", _WEIGHTED))


def maximum_error_bound(workload: ArrayLike, *, mu: float, unbiased: bool = False) -> WorkloadBound:
    r"""Bound the root of the greatest expected squared error of an answer by the factorization norm.

    Parameters
    ----------
    workload : array of shape (queries, cells)
        Up to some hundred rows and columns.
    mu : float
        As in `svd_error_bound`.
    unbiased : bool
        As in `svd_error_bound`.

    Returns
    -------
    WorkloadBound

    Raises
    ------
    ParameterError
        If the workload is no matrix of finite numbers, or all 0.

    Notes
    -----
    Guarantee: as in `svd_error_bound`, for the best p and q that were found: :math:`\gamma_2(W)/\sqrt c`.

    References
    ----------
    Linial, Shraibman (2009), "Lower bounds in communication complexity based on factorization norms";
    Edmonds, Nikolov, Ullman (2020), "The power of factorization mechanisms in local and central differential
    privacy".

    Examples
    --------
    >>> import numpy as np
    >>> bound = maximum_error_bound(np.tril(np.ones((16, 16))), mu=1.0)
    >>> 1 <= bound.ratio < 1.001
    True
    """
    norm: FactorizationNorm = factorization_norm(workload)
    return bound_of(norm.bounds.lower, norm.bounds.upper, mu, unbiased, ("maximum", _GAMMA))


def unit_error(matrix: Floats, rows: Floats, columns: Floats) -> float:
    """Return the lower bound at a c of 1 for squares of weights of rows and columns."""
    return nuclear_norm_down(matrix, unit_weights(rows), unit_weights(columns))


def bound_of(
    total: float, reached: float | None, mu: float, unbiased: bool, names: tuple[str, str]
) -> WorkloadBound:
    """Return the bound of a class from that at a c of 1; names are the target and the theorem."""
    mu = _check.positive("mu", mu, "pass the mu of Gaussian DP, or the square root of twice a rho")
    size = sqrt_up(expm1_up(mul_up(mu, mu))) if unbiased else mu
    return WorkloadBound(
        error=max(0.0, div_down(total, size)),
        reached=None if reached is None else reached / mu,
        mu=mu,
        target=names[0],
        mechanisms=_UNBIASED if unbiased else _LINEAR,
        theorem=names[1],
    )
