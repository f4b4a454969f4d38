"""Matrix mechanisms: the sensitivity of correlated noise when a unit takes part in several steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import div_down, mul_down, mul_up, sqrt_down, sqrt_up
from sfumato.privacy._outward import UNIT
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.neighboring import Neighboring, refuse_further

__all__ = ["matrix_mechanism", "participation_sensitivity"]

_Array = NDArray[np.float64]

_TINY = 1e-290


def participation_sensitivity(
    strategy: ArrayLike,
    *,
    separation: int,
    max_participations: int | None = None,
    fixed_order: bool = False,
) -> Interval:
    r"""Return how far one unit moves ``strategy @ inputs`` in the Frobenius norm.

    Parameters
    ----------
    strategy : array, shape (rows, steps)
        :math:`C`; column ``i`` is what the input of step ``i`` adds.
    separation : int
        A unit's participations are at least this many steps apart; with ``fixed_order``, exactly this many.
    max_participations : int, optional
        How often a unit may take part at most; as often as the separation allows if None.
    fixed_order : bool
        Whether every unit takes part in the steps ``i, i + separation, ...`` for some ``i`` below the
        separation, as in epochs of one order.

    Returns
    -------
    Interval
        The sensitivity if one participation moves a step's input by at most 1 in the L2 norm.

    Notes
    -----
    *Sensitivity.* Let :math:`X = C^T C`. A unit that moves the inputs of the steps :math:`\pi` by
    :math:`u_i`, :math:`|u_i| \le 1`, moves the answer by a squared norm of :math:`\sum_{i,j\in\pi} X_{ij}
    \langle u_i, u_j\rangle`: at most :math:`\sum |X_{ij}|`, and exactly :math:`\sum X_{ij}` where all
    :math:`u_i` are equal.

    *Upper bound.* With a fixed order all patterns are visited; it is exact where no entry is negative.
    Otherwise, for :math:`i \in \pi`, :math:`\sum_{j\in\pi}|X_{ij}| \le v_i`, the maximum over patterns with
    :math:`i`, and the whole is at most the largest :math:`\sum_{i\in\pi} v_i`. Both maxima are found by
    dynamic programming over the steps. It is exact if :math:`C` has fewer bands than the separation: then
    :math:`v_i = X_{ii}`.

    *Lower bound.* The sum over some patterns, with all :math:`u_i` equal.

    References
    ----------
    Denisov, McMahan, Rush, Smith, Thakurta (2022); Choquette-Choo, McMahan, Rush, Thakurta (2023),
    "Multi-epoch matrix factorization mechanisms for private machine learning"; Choquette-Choo et al. (2023),
    "(Amplified) banded matrix factorization", the dynamic program.

    Examples
    --------
    >>> participation_sensitivity(np.eye(6), separation=2)[:2] == (3**0.5, 3**0.5)
    False
    >>> lower, upper, _ = participation_sensitivity(np.eye(6), separation=2)
    >>> lower < 3**0.5 < upper < lower * (1 + 1e-12)
    True
    """
    matrix = _matrix(strategy)
    if matrix.ndim != 2 or not np.isfinite(matrix).all() or not matrix.any():
        remedy = "pass rows by steps; what adds nothing has no loss"
        _check.refuse("strategy", "be a matrix of finite numbers, not all 0", matrix.shape, remedy)
    steps = matrix.shape[1]
    gap = _check.integer("separation", separation, minimum=1, remedy="participations in steps apart")
    limit = -(-steps // gap)
    if max_participations is not None:
        remedy = "a unit that never takes part needs no loss"
        limit = min(limit, _check.integer("max_participations", max_participations, minimum=1, remedy=remedy))
        if fixed_order:
            _check.refuse(
                "max_participations", "be None with fixed_order", max_participations, "leave it out"
            )
    # A power of two, so that no square overflows and none that matters vanishes.
    scale = 2.0 ** min(1023, math.frexp(float(np.abs(matrix).max()))[1])
    matrix = matrix / scale
    products = matrix.T @ matrix
    # The rounding of an inner product, and that of this bound itself.
    error = 2 * UNIT * (len(matrix) + 8) * (np.abs(matrix).T @ np.abs(matrix)) + _TINY
    largest = np.abs(products) + error
    patterns = [np.arange(start, steps, gap)[:limit] for start in range(min(gap, steps))]
    if fixed_order:
        upper = max(float(largest[np.ix_(p, p)].sum()) for p in patterns)
    else:
        upper, pattern = _largest(_companions(largest, gap, limit), gap, limit)
        patterns.append(pattern)
    lower = max(float((products - error)[np.ix_(p, p)].sum()) for p in patterns)
    slack = 4 * UNIT * (steps + limit * limit + 16)
    lower -= slack * limit * float(largest.sum(axis=0).max())
    return Interval(mul_down(scale, sqrt_down(max(0.0, lower))), mul_up(scale, sqrt_up(upper * (1 + slack))))


def matrix_mechanism(
    strategy: ArrayLike,
    noise_multiplier: float,
    *,
    separation: int,
    max_participations: int | None = None,
    fixed_order: bool = False,
    adaptive: bool = True,
    neighboring: Neighboring = Neighboring.ADD_REMOVE,
) -> Gaussian:
    r"""Return the loss of ``strategy @ inputs + noise``: that of one Gaussian mechanism.

    Parameters
    ----------
    strategy : array, shape (rows, steps)
        :math:`C`; column ``i`` is what the input of step ``i`` adds.
    noise_multiplier : float
        Standard deviation of each entry of the noise, over the bound on how far one participation moves a
        step's input in the L2 norm.
    separation, max_participations, fixed_order
        Who takes part when; see `participation_sensitivity`.
    adaptive : bool
        Whether inputs may depend on earlier answers, as gradients do.
    neighboring : Neighboring
        The relation that this bound is about. Which steps a unit takes part in is fixed, or drawn without
        regard to the data, and the other units' steps are the same in both datasets.

    Returns
    -------
    Gaussian
        With the noise multiplier divided by the sensitivity, rounded down.

    Raises
    ------
    ParameterError
        If ``adaptive`` and the strategy is not lower triangular: then an answer would need later inputs.

    Notes
    -----
    Guarantee: Gaussian DP with the sensitivity over the noise multiplier; what is computed from the answers,
    such as all prefix sums, costs nothing more. Conditions: the noise is independent normal in all entries;
    all steps together are one mechanism, not one per step.

    *Proof for adaptive inputs.* Row :math:`t` of a lower triangular strategy needs the inputs up to
    :math:`t`. Given the answers before it, the two datasets shift its normal distribution by :math:`d_t`, and
    on every path :math:`\sum |d_t|^2` is at most the squared sensitivity, as the pattern is fixed and each
    :math:`u_i` is bounded. Adding independent answers that bring this sum up to the bound makes the loss that
    of one normal shift of exactly this length (Denisov et al. 2022, by another argument: Theorem 2.1).

    References
    ----------
    Denisov, McMahan, Rush, Smith, Thakurta (2022), "Improved differential privacy for SGD via optimal private
    linear operators on adaptive streams".

    Examples
    --------
    >>> matrix_mechanism(np.eye(4), 2.0, separation=1).gdp().mu < 1 + 1e-9
    True
    """
    matrix = _matrix(strategy)
    if adaptive and (matrix.ndim != 2 or np.triu(matrix, 1).any()):
        remedy = "pass a causal factorization, or adaptive=False where all inputs are fixed beforehand"
        _check.refuse("strategy", "be lower triangular for adaptive inputs", matrix.shape, remedy)
    noise = _check.non_negative("noise_multiplier", noise_multiplier, "pass the noise over the sensitivity")
    moved = participation_sensitivity(
        matrix, separation=separation, max_participations=max_participations, fixed_order=fixed_order
    ).upper
    refuse_further("a matrix mechanism", neighboring)
    return Gaussian(div_down(noise, moved), neighboring=neighboring)


def _matrix(strategy: ArrayLike) -> _Array:
    try:
        return np.array(strategy, dtype=np.float64)
    except (TypeError, ValueError):
        remedy = "pass rows of numbers, all of one length"
        _check.refuse_type("strategy", "be a matrix of numbers", strategy, remedy)


def _companions(products: _Array, gap: int, limit: int) -> _Array:
    """Return for each step the largest sum of its row over patterns that hold the step."""
    steps = len(products)
    index = np.arange(steps)
    apart = np.abs(index[:, None] - index[None, :]) >= gap
    others = np.where(apart, products, 0.0)
    # best[c] after position p, for all rows at once; patterns that end at p go on from position p - gap.
    history = [np.zeros((limit, steps))]
    for p in range(steps):
        best = history[-1].copy()
        before = history[max(0, len(history) - gap)]
        if limit > 1:
            np.maximum(best[1:], before[:-1] + others[:, p], out=best[1:])
        history.append(best)
        if len(history) > gap + 1:
            history.pop(0)
    return np.asarray(np.diagonal(products) + history[-1][limit - 1])


def _largest(weights: _Array, gap: int, limit: int) -> tuple[float, NDArray[np.intp]]:
    """Return the largest sum of non-negative weights over a pattern, and such a pattern."""
    steps = len(weights)
    best = np.zeros((steps + 1, limit + 1))
    for p in range(steps):
        taken = best[max(0, p + 1 - gap), :-1] + weights[p]
        best[p + 1] = best[p]
        best[p + 1, 1:] = np.maximum(best[p, 1:], taken)
    pattern, left, position = [], limit, steps
    while position > 0 and left > 0:
        if best[position, left] == best[position - 1, left]:
            position -= 1
            continue
        pattern.append(position - 1)
        position, left = max(0, position - gap), left - 1
    return float(best[steps, limit]), np.array(pattern[::-1], dtype=np.intp)
