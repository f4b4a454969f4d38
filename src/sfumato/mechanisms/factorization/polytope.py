"""Symmetric polytopes given by facets or by points, in exact integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.numerics.rounding import fraction_up

__all__ = ["facets_around", "reach_of", "whole_facets"]

_BITS: Final = 20
_MAXIMUM: Final = 8


def whole_facets(facets: ArrayLike) -> tuple[NDArray[Any], int, Fraction]:
    """Return facets as whole numbers over one power of two, rounded to 20 bits of the largest.

    Parameters
    ----------
    facets : array of shape (m, dimension)
        Each row ``a`` says that ``|a . z| <= 1`` in the body.

    Returns
    -------
    tuple
        Object array of ints, what they are divided by, and by how much any of them is off at most.
    """
    rows = np.array(facets, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all() or not 0 < rows.shape[1] <= _MAXIMUM:
        rule = f"be a finite matrix with one column for each of at most {_MAXIMUM} entries"
        _check.refuse_type("facets", rule, rows, "pass an array of finite numbers")
    largest = float(np.abs(rows).max(initial=0.0))
    exponent = max(0, _BITS - int(np.frexp(largest)[1]))
    whole = np.array(np.rint(np.ldexp(rows, exponent)).astype(np.int64).tolist(), dtype=object)
    if np.linalg.matrix_rank(whole.astype(np.float64)) < rows.shape[1]:
        _check.refuse_state(
            "facets", "bound the body in every direction", "some direction is open", "add facets"
        )
    divisor = 1 << exponent
    pairs = zip(rows.reshape(-1).tolist(), whole.reshape(-1).tolist(), strict=True)
    off = max(abs(Fraction(entry) - Fraction(int(rounded), divisor)) for entry, rounded in pairs)
    return whole, divisor, off


def reach_of(facets: NDArray[Any], divisor: int) -> Fraction:
    r"""Return a bound on the largest entry of any point of the body, exact where it is known to be.

    Notes
    -----
    Where :math:`A^T y = e_i`, :math:`z_i = y^T A z \le \|y\|_1 \max |A z|`. The best y is found in floats and
    its support solved for exactly, so the bound holds whatever the floats did.
    """
    dimension = facets.shape[1]
    floats = facets.astype(np.float64)
    reach = Fraction(0)
    for axis in range(dimension):
        unit = np.eye(dimension)[axis]
        both = np.concatenate([floats, -floats]).T
        found: Any = scipy.optimize.linprog(np.ones(both.shape[1]), A_eq=both, b_eq=unit, method="highs-ds")
        sizes = np.abs(found.x[: len(facets)] - found.x[len(facets) :])
        # The support first, then whatever completes a basis.
        y = _solve(facets, np.argsort(-sizes, kind="stable").tolist(), axis)
        reach = max(reach, sum((abs(part) for part in y), Fraction(0)))
    return reach * divisor


def facets_around(points: ArrayLike) -> NDArray[np.float64]:
    """Return the facets of the smallest symmetric body around points: the sensitivity polytope of a workload.

    Parameters
    ----------
    points : array of shape (points, dimension)
        Such as the columns of a workload, one for each row here.

    Returns
    -------
    ndarray, shape (m, dimension)
        Of a body that holds all the points, exactly, and little more: one that moves by such a point moves
        by at most 1 in its norm.

    Examples
    --------
    >>> import numpy as np
    >>> facets_around(np.eye(2))  # the columns of two counts of different cells
    array([[ 1., -1.],
           [ 1.,  1.]])
    """
    given = np.array(points, dtype=np.float64)
    if given.ndim != 2 or not np.isfinite(given).all() or not 0 < given.shape[1] <= _MAXIMUM:
        rule = f"be a finite matrix with one column for each of at most {_MAXIMUM} entries"
        _check.refuse_type("points", rule, given, "pass an array of finite numbers, a row for each point")
    if given.shape[1] == 1:
        reach = float(np.abs(given).max(initial=0.0))
        return (
            np.array([[(1 - 2.0**-50) / reach]])
            if reach
            else _check.refuse_state(
                "points",
                "be points of which one is not 0",
                "all are",
                "pass what one unit can do to the vector",
            )
        )
    try:
        hull = scipy.spatial.ConvexHull(np.concatenate([given, -given]))
    except scipy.spatial.QhullError:
        _check.refuse_state(
            "points", "span all entries", "some entries follow from others", "leave out redundant entries"
        )
    rows = -hull.equations[:, :-1] / hull.equations[:, -1:]
    # One of each pair of opposite facets.
    signs = np.sign(rows[np.arange(len(rows)), np.argmax(np.abs(rows) > 1e-12, axis=1)])
    facets = np.unique(np.round(rows * signs[:, np.newaxis], 12), axis=0)
    # Floats made the facets; whether the points are inside is decided exactly.
    while (largest := _largest(facets, given)) > 1:
        facets = facets * (1 - 2.0**-50) / fraction_up(largest)
    return np.asarray(facets)


def _largest(facets: NDArray[np.float64], points: NDArray[np.float64]) -> Fraction:
    """Return the greatest norm of the points, exactly for the floats that are given."""
    rows = np.array([[Fraction(entry) for entry in facet] for facet in facets.tolist()], dtype=object)
    exact = np.array([[Fraction(entry) for entry in point] for point in points.tolist()], dtype=object)
    return Fraction(np.abs(rows @ exact.T).max())


def _solve(facets: NDArray[Any], order: list[int], axis: int) -> list[Fraction]:
    """Return the exact y on the first independent facets in that order, with ``A^T y`` the axis' unit."""
    dimension = facets.shape[1]
    # Columns are the chosen facets; elimination over the rationals, one column after the other.
    rows = [
        [Fraction(int(facets[k, i])) for k in order] + [Fraction(int(i == axis))] for i in range(dimension)
    ]
    basis: list[int] = []
    for column in range(len(order)):
        at = len(basis)
        pivot = next((i for i in range(at, dimension) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][column] for value in rows[at]]
        for i in range(dimension):
            if i != at and rows[i][column]:
                rows[i] = [a - rows[i][column] * b for a, b in zip(rows[i], rows[at], strict=True)]
        basis.append(column)
        if len(basis) == dimension:
            break
    return [row[-1] for row in rows]
