"""Ranked ballots, and the distortion of a lottery over winners: what it may lose of voters' welfare."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_array, as_numbers

__all__ = ["distortion", "ranked_ballots"]

_Floats: TypeAlias = NDArray[np.float64]
_Ballots: TypeAlias = NDArray[np.int64]


def ranked_ballots(ballots: Any, candidates: int, *, name: str = "ballots") -> _Ballots:
    """Return ballots as an array of positions, the best candidate first, or refuse them.

    Parameters
    ----------
    ballots : array of shape (voters, candidates)
    candidates : int
    name : str
        For the message.

    Returns
    -------
    int64 array

    Raises
    ------
    ParameterError
        If a ballot is no order of all candidates; the message does not show it.

    Examples
    --------
    >>> ranked_ballots([[1, 0], [0, 1]], 2).shape
    (2, 2)
    """
    remedy = f"list the candidates 0 to {candidates - 1}, the best first; an absent voter has a public ballot"
    ranked = as_array(name, ballots, remedy)
    if ranked.ndim != 2 or ranked.shape[1] != candidates or not len(ranked) or ranked.dtype.kind not in "iu":
        _check.refuse_type(name, "be whole numbers, a row of all candidates for each voter", ranked, remedy)
    if not (np.sort(ranked, axis=1) == np.arange(candidates)).all():
        _check.refuse_state(name, "be orders of all candidates", "one of them is none", remedy)
    return ranked.astype(np.int64)


def distortion(ballots: Any, probabilities: Any) -> float:
    r"""Return the worst ratio of the best candidate's welfare to a lottery's, over what the ballots allow.

    Parameters
    ----------
    ballots : array of shape (voters, candidates)
        Each voter's candidates, the best first.
    probabilities : array of shape (candidates,)
        Of each winner.

    Returns
    -------
    float
        At least 1, infinite where the lottery's welfare may be 0; to 1e-9 of itself. It depends on the
        ballots: private.

    Raises
    ------
    ParameterError
        If the probabilities do not add up to 1, or a ballot is no order of all candidates.

    Notes
    -----
    Utilities are non-negative and add up to 1 for each voter, in an order that agrees with the ballot. For
    :math:`\lambda` the largest ratio, :math:`\sum_v \max_u [u(y) - \lambda \sum_x p_x u(x)] = 0` for the best
    y; the inner maximum is at a vertex: 1/k for each of the first k candidates. So the maximum is exact, and
    Dinkelbach's iteration finds :math:`\lambda`.

    References
    ----------
    Procaccia, Rosenschein (2006), "The distortion of cardinal preferences in voting"; Boutilier, Caragiannis,
    Haber, Lu, Procaccia, Sheffet (2015), "Optimal social choice functions: a utilitarian view".

    Examples
    --------
    >>> ballots = [[0, 1, 2]] * 3 + [[1, 2, 0]] * 2
    >>> distortion(ballots, [1.0, 0.0, 0.0])
    3.0
    """
    p = as_numbers("probabilities", probabilities, "pass one for each candidate")
    if p.ndim != 1 or len(p) < 2 or not (p >= 0).all() or not math.isclose(p.sum(), 1.0, abs_tol=1e-9):
        _check.refuse_type("probabilities", "be non-negative and add up to 1", p, "one for each candidate")
    ranked, counts = np.unique(ranked_ballots(ballots, len(p)), axis=0, return_counts=True)
    worst = 1.0
    for candidate in range(len(p)):
        if math.isinf(worst):
            break
        worst = _worst_ratio(ranked, counts.astype(np.float64), p, candidate, worst)
    return worst


def _worst_ratio(ranked: _Ballots, counts: _Floats, p: _Floats, candidate: int, start: float) -> float:
    """Return the larger of a ratio and of one candidate's largest one, by Dinkelbach's iteration."""
    sizes = np.arange(1, ranked.shape[1] + 1)
    own = np.cumsum(ranked == candidate, axis=1) / sizes
    lottery = np.cumsum(p[ranked], axis=1) / sizes
    rows, ratio = np.arange(len(ranked)), start
    for _ in range(200):
        best = (own - ratio * lottery).argmax(axis=1)
        above, below = counts @ own[rows, best], counts @ lottery[rows, best]
        if below <= 0:
            return math.inf if above > 0 else ratio
        if above / below <= ratio * (1 + 1e-12):
            break
        ratio = float(above / below)
    return ratio
