"""The exact output distribution of any sparse vector algorithm, by integrating over the threshold noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["sparse_vector_distribution", "sparse_vector_ratio"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_REACH = 80.0  # scales of the threshold's noise beyond the outermost query: all but e**-80
_MAX_PATTERNS = 1 << 12
_STEEP = 8.0  # the integrand changes by at most a factor of e**8 within a piece


def sparse_vector_distribution(
    queries: Sequence[float],
    *,
    threshold: float = 0.0,
    threshold_scale: float,
    query_scale: float,
    positives: int | None = None,
) -> dict[tuple[bool, ...], float]:
    """Compute the probability of every run of answers.

    Parameters
    ----------
    queries : sequence of floats
        The exact answers.
    threshold : float
    threshold_scale, query_scale : float
        Scales of the Laplace noise: one draw on the threshold for the whole run, one on each query; the
        second may be 0.
    positives : int, optional
        The run ends with this "above"; it never does unless given, as in the variants that forgot to.

    Returns
    -------
    dict
        Runs of answers, True for above, to probabilities, good to about 1e-12 of each; for `exact_audit`.

    Raises
    ------
    ParameterError
        If there are more than 4,096 possible runs.

    Examples
    --------
    >>> queries = [0.0, 1.0]
    >>> distribution = sparse_vector_distribution(
    ...     queries, threshold_scale=2.0, query_scale=4.0, positives=1
    ... )
    >>> sorted(distribution), round(sum(distribution.values()), 12)
    ([(False, False), (False, True), (True,)], 1.0)
    """
    gaps = np.asarray(queries, dtype=np.float64) - threshold
    runs = _runs(len(gaps), positives)
    # Some patterns may have probability 0 where queries are compared without noise.
    return {run: math.exp(_log_probability(run, gaps, threshold_scale, query_scale)) for run in runs}


def sparse_vector_ratio(
    answers: Sequence[bool],
    first: Sequence[float],
    second: Sequence[float],
    *,
    threshold: float = 0.0,
    threshold_scale: float,
    query_scale: float,
) -> float:
    """Return the log of the ratio of the probabilities of one run of answers on two inputs.

    Parameters
    ----------
    answers : sequence of bool
        The run, True for above.
    first, second : sequence of floats
        The exact answers on either input, at least as many.
    threshold, threshold_scale, query_scale : float
        As in `sparse_vector_distribution`.

    Returns
    -------
    float
        A lower bound on the epsilon of the algorithm (up to about 1e-12); infinite where only the first input
        can give that run.

    Notes
    -----
    Given the threshold's noise z, answers are independent: the probability is the integral over z of its
    density times tails of the queries' noise. The integrand is smooth between the queries' distances to the
    threshold, where it is cut; each piece takes a Gauss-Legendre rule of 48 nodes, in logs.

    References
    ----------
    Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy", whose examples
    of what is not private these are.

    Examples
    --------
    >>> ratio = sparse_vector_ratio([False, True], [0, 1], [1, 0], threshold_scale=2, query_scale=4)
    >>> round(ratio, 4)
    0.3958
    """
    logs = []
    for queries in (first, second):
        gaps = np.asarray(queries, dtype=np.float64)[: len(answers)] - threshold
        if len(gaps) < len(answers):
            remedy = "pass one answer for each query until the run ends"
            _check.refuse_state("answers", "be no more than the queries", f"there are {len(answers)}", remedy)
        logs.append(_log_probability(answers, gaps, threshold_scale, query_scale))
    if logs[0] == -math.inf:
        return -math.inf if logs[1] > -math.inf else 0.0
    return logs[0] - logs[1]


def _runs(length: int, positives: int | None) -> list[tuple[bool, ...]]:
    if positives is None:
        if 2**length > _MAX_PATTERNS:
            rule = f"allow at most {_MAX_PATTERNS} runs"
            remedy = "pass fewer queries"
            _check.refuse_state("queries", rule, f"{length} queries allow more", remedy)
        return list(product((False, True), repeat=length))
    runs: list[tuple[bool, ...]] = []
    open_runs: list[tuple[bool, ...]] = [()]
    for _ in range(length):
        longer = [(*run, answer) for run in open_runs for answer in (False, True)]
        runs += [run for run in longer if sum(run) == positives]
        open_runs = [run for run in longer if sum(run) < positives]
        if len(runs) + len(open_runs) > _MAX_PATTERNS:
            rule = f"allow at most {_MAX_PATTERNS} runs"
            remedy = "pass fewer queries"
            _check.refuse_state("queries", rule, f"{length} queries allow more", remedy)
    return runs + open_runs


def _log_probability(
    answers: Sequence[bool], gaps: NDArray[np.float64], threshold_scale: float, query_scale: float
) -> float:
    width = _check.positive("threshold_scale", threshold_scale)
    noise = _check.non_negative("query_scale", query_scale)
    middle, half = _pieces(gaps, width, noise)
    z = middle[:, None] + half[:, None] * _NODES
    total = np.log(half[:, None] * _WEIGHTS) - np.abs(z) / width - math.log(2 * width)
    for above, gap in zip(answers, gaps, strict=False):
        total = total + _log_distribution_function(gap - z if above else z - gap, noise)
    peak = float(total.max())
    return peak + math.log(float(np.exp(total - peak).sum())) if peak > -math.inf else -math.inf


def _log_distribution_function(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return the log of the probability that Laplace noise is at most x."""
    if not scale:
        return np.where(x >= 0, 0.0, -np.inf)
    scaled = x / scale
    return np.where(scaled < 0, scaled - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(scaled))))


def _pieces(
    gaps: NDArray[np.float64], width: float, noise: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return middles and half-lengths of the pieces between kinks."""
    kinks = np.unique(np.concatenate([[0.0], gaps]))
    ends = np.concatenate([[kinks[0] - _REACH * width], kinks, [kinks[-1] + _REACH * width]])
    longest = _STEEP / (1 / width + (len(gaps) / noise if noise else 0.0))
    edges = [
        np.linspace(low, high, math.ceil((high - low) / longest) + 1)[:-1] for low, high in pairwise(ends)
    ]
    points = np.concatenate([*edges, ends[-1:]])
    middles, halves = (points[1:] + points[:-1]) / 2, np.diff(points) / 2
    return middles[halves > 0], halves[halves > 0]  # half of the least number is none
