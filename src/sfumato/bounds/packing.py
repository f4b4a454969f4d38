"""The packing bound of pure differential privacy, computed by enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.bounds.nuclear_norm import Floats
from sfumato.numerics.rounding import add_up, div_down, exp_down, mul_up

__all__ = ["PackingBound", "packing_bound"]

_MOST: Final = 4096
_FARTHEST: Final = 1 << 53


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PackingBound:
    """Every purely private mechanism misses the true answer with some probability, on some dataset.

    Parameters
    ----------
    failure : float
        On one of the packed datasets the answer is off by the error or more with at least this probability;
        rounded down.
    packing : tuple of int
        Which datasets have answers that are pairwise at least twice the error apart.
    epsilon, error : float
        What was asked.
    mechanisms : str
        The class that the bound holds for.
    theorem : str
        What proves it.

    Examples
    --------
    >>> bound = packing_bound([[0.0], [1.0]], [[0, 1], [1, 0]], epsilon=1.0, error=0.5)
    >>> round(bound.failure, 4), bound.packing
    (0.2689, (0, 1))
    """

    failure: float
    packing: tuple[int, ...]
    epsilon: float
    error: float
    mechanisms: str = "all mechanisms of pure epsilon-DP"
    theorem: str = "packing (Hardt and Talwar 2010)"


def packing_bound(
    answers: ArrayLike, distances: ArrayLike, *, epsilon: float, error: float, norm: float = np.inf
) -> PackingBound:
    r"""Bound the probability of an error from below, by a packing among given datasets.

    Parameters
    ----------
    answers : array of shape (datasets,) or (datasets, dimension)
        The true answer on each dataset; finite.
    distances : array of int, shape (datasets, datasets)
        In how many units two datasets differ; symmetric, 0 on the diagonal.
    epsilon : float
        Of pure differential privacy, under the relation that the distances count.
    error : float
        An answer counts as right where it is nearer to the truth than this.
    norm : float
        The order of the norm of errors, at least 1; the maximum unless given.

    Returns
    -------
    PackingBound

    Raises
    ------
    ParameterError
        If the shapes do not fit, or the distances are not those of datasets.

    Notes
    -----
    Guarantee: for all mechanisms of pure epsilon-DP. In a packing the right answers of two datasets never
    overlap. If every dataset fails with at most :math:`\beta`, dataset i gives a right answer of j with at
    least :math:`e^{-\epsilon d_{ij}} (1 - \beta)`; these are failures, so :math:`\beta \ge S_i/(1 + S_i)`
    with :math:`S_i = \sum_{j \ne i} e^{-\epsilon d_{ij}}`. The packing is built greedily from each of some
    first datasets and the greatest bound is taken; every packing gives a valid bound. At equal distances it
    is attained by randomized response.

    References
    ----------
    Hardt, Talwar (2010), "On the geometry of differential privacy"; Beimel, Brenner, Kasiviswanathan, Nissim
    (2014), "Bounds on the sample complexity for private learning and private data release".

    Examples
    --------
    >>> import numpy as np
    >>> apart = 3 * (1 - np.eye(50, dtype=int))
    >>> round(packing_bound(np.arange(50), apart, epsilon=1.0, error=0.5).failure, 3)
    0.709
    """
    points, apart = _datasets(answers, distances)
    epsilon = _check.positive("epsilon", epsilon)
    error = _check.positive("error", error, "pass how near a right answer is to the truth")
    if not _check.at_least_zero("norm", norm) >= 1:
        _check.refuse("norm", "be at least 1", norm, "pass 1, 2 or infinity")
    steps, index = np.unique(apart, return_inverse=True)
    weights = np.array([exp_down(-mul_up(epsilon, float(d))) for d in steps])[index].reshape(apart.shape)
    np.fill_diagonal(weights, 0.0)
    best, chosen = 0.0, tuple[int, ...]((0,))
    gaps = np.array([_apart(points, point, 2 * error, norm) for point in points])
    for first in range(min(len(points), 16)):
        packing = sorted(_greedy(gaps, first))
        # A sum of so many positive floats errs by less than a unit for each.
        total = float(weights[np.ix_(packing, packing)].sum(axis=1).max()) * (1 - len(packing) * 2.0**-52)
        failure = div_down(total, add_up(1.0, total))
        if failure > best:
            best, chosen = failure, tuple(packing)
    return PackingBound(failure=best, packing=chosen, epsilon=epsilon, error=error)


def _apart(points: Floats, point: Floats, wide: float, norm: float) -> NDArray[np.bool_]:
    """Return which points are certainly so far from one; equality is decided exactly in the maximum norm."""
    # Differences beyond floats are infinite, and so is what two-sum misses of them.
    with np.errstate(over="ignore", invalid="ignore"):
        moves = points - point
        sizes = np.abs(moves)
        if norm < np.inf:
            # Over the greatest, so that no power overflows.
            most = sizes.max(axis=1)
            shares = sizes / np.where((most > 0) & (most < np.inf), most, 1.0)[:, np.newaxis]
            lengths = most * np.linalg.norm(shares, ord=norm, axis=1)
            return np.asarray(lengths >= wide * (1 + 2.0**-40))
        # Knuth's two-sum: what a rounded difference misses.
        virtual = moves - points
        missed = np.sign(moves) * ((points - (moves - virtual)) - (point + virtual))
    return np.asarray(((sizes > wide) | ((sizes == wide) & (missed >= 0))).any(axis=1))


def _greedy(gaps: NDArray[np.bool_], first: int) -> list[int]:
    """Return datasets, from one on, whose answers are all apart."""
    packing, free = [first], gaps[first].copy()
    while free.any():
        packing.append(int(free.argmax()))
        free &= gaps[packing[-1]]
    return packing


def _datasets(answers: ArrayLike, distances: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return answers and distances as arrays, or refuse what is none."""
    points, apart = np.asarray(answers, dtype=np.float64), np.asarray(distances)
    points = points[:, np.newaxis] if points.ndim == 1 else points
    if points.ndim != 2 or not len(points) or not np.isfinite(points).all():
        _check.refuse_type(
            "answers", "be a finite answer for each dataset", points, "pass an array, a row for each"
        )
    if len(points) > _MOST:
        _check.refuse_state("answers", f"be of at most {_MOST} datasets", "they are of more", "pass fewer")
    remedy = "pass in how many units each two datasets differ, as whole numbers"
    if apart.shape != (len(points), len(points)) or apart.dtype.kind not in "iu" or apart.min() < 0:
        _check.refuse_type("distances", "be a square of whole numbers, a row for each answer", apart, remedy)
    if (apart != apart.T).any() or apart.diagonal().any():
        _check.refuse_type("distances", "be symmetric, and 0 on the diagonal", apart, remedy)
    if apart.max() > _FARTHEST:
        _check.refuse_state("distances", "be at most 2**53", "some are greater", "pass counts of units")
    return points, apart.astype(np.int64)
