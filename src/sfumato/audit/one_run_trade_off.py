"""Auditing a whole trade-off curve in one run: several (epsilon, delta) together refute more than one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.audit.one_run_bounds import checked_counts

__all__ = ["one_run_trade_off_p_value"]

# What floats may lose over all steps down, many times over.
_ALLOWANCE = 1e-6
_HALVINGS = 60


def one_run_trade_off_p_value(
    correct: int, guesses: int, *, canaries: int, points: Sequence[tuple[float, float]]
) -> float:
    r"""Return the greatest chance that so many coins are guessed if all points of a claim hold.

    Parameters
    ----------
    correct, guesses, canaries : int
        As in `one_run_p_value`.
    points : sequence of (epsilon, delta)
        All of which are claimed, for one canary put in or left out: ``[(e, loss.delta(e)) for e in ...]``.

    Returns
    -------
    float
        An upper bound on the probability of at least ``correct`` right guesses, at most 1.

    Notes
    -----
    Guarantee: let g be the smallest of all :math:`\delta_j + e^{\epsilon_j} x` and :math:`1 - e^{-\epsilon_j}
    (1 - \delta_j - x)`: then :math:`P(E) \le g(Q(E))` for every event and both orders of the distributions P
    and Q with one canary in and out. Of V, the number of right guesses of r, let :math:`p_k` be the chance of
    k. For each v

    .. math:: \frac1m \sum_{k \ge v} k p_k \le g\Big(\frac1m \sum_{k \ge v - 1} (r - k) p_k\Big).

    *Proof.* For coin i let B be the event that it is guessed and that v - 1 others at least are guessed
    rightly: of what was given out and of the other coins, which are independent of coin i, so that P and Q
    may be taken to be the distributions of both. Let A be the guess "in". The chance of B with a right guess
    is :math:`(P(AB) + Q(A^cB))/2 \le (g(Q(AB)) + g(P(A^cB)))/2 \le g(w)` for the chance w of B with a wrong
    one, as g is concave. Right, V is v at least; wrong, v - 1. Average over the coins: g is concave.

    Of the counts from v up let :math:`T_v` and :math:`U_v` be the sums of :math:`k p_k` and :math:`(r - k)
    p_k`, and suppose that V is at least ``correct`` = c with probability :math:`\tau`. The smallest total of
    all :math:`p_k` is then reached by putting :math:`\tau` on c, and going down, at each v - 1 as little as
    the inequality asks. *Proof.* Mark that solution by a circle, and let :math:`\lambda_v = v / (r - v)`.
    For every other, at c and then at each v down: :math:`T \ge T^\circ`, the total is as large at least,
    and :math:`T - T^\circ \ge \lambda (U - U^\circ)`. At c that is so as no mass lies lower. Let x be added
    at v - 1; it does not change :math:`T - \lambda_{v-1} U`, and :math:`\lambda_{v-1} \le \lambda_v`, which
    keeps the third. If :math:`x \ge x^\circ` the others are retained as well. If not, then :math:`x^\circ >
    0`, and the new U is at least what g asks of the old T, which is at least what it asks of the old
    :math:`T^\circ`, the new :math:`U^\circ`: so by the third the new T is at least :math:`T^\circ`, and the
    total too.

    Where that least total is above 1, the chance is below :math:`\tau`.

    References
    ----------
    Mahloujifar, Melis, Chaudhuri (2024), "Auditing f-differential privacy in one run", who bound counts by
    such steps; the proof here is our own.

    Examples
    --------
    >>> from sfumato.audit import one_run_p_value
    >>> from sfumato.privacy import Gaussian
    >>> points = [(e / 4, Gaussian(2.0).delta(e / 4)) for e in range(30)]
    >>> one_run_trade_off_p_value(785, 1000, canaries=1000, points=points) < 0.05
    True
    >>> min(one_run_p_value(785, 1000, canaries=1000, epsilon=e, delta=d) for e, d in points) > 0.05
    True
    """
    correct, guesses, canaries = checked_counts(correct, guesses, canaries)
    held = _points(points)
    if correct == 0:
        return 1.0
    low, high = -700.0, 0.0
    if _total(1.0, correct, guesses, canaries, held) <= 1:
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuted = _total(float(np.exp(middle)), correct, guesses, canaries, held) > 1
        low, high = (low, middle) if refuted else (middle, high)
    return min(1.0, float(np.exp(high)) * (1 + _ALLOWANCE))


def _points(points: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    checked = [
        (_check.non_negative("points", epsilon), _check.probability("points", delta))
        for epsilon, delta in points
    ]
    if not checked:
        _check.refuse(
            "points", "be one or more of (epsilon, delta)", points, "pass points=[(1.0, 1e-5), ...]"
        )
    return np.array(checked).T


def _total(chance: float, correct: int, guesses: int, canaries: int, held: NDArray[np.float64]) -> float:
    """Return the smallest mass of all counts where ``correct`` or more have that chance."""
    deltas, down = held[1], np.exp(-held[0])
    up = np.exp(np.minimum(held[0], 600.0))
    right, wrong = chance * correct / canaries, chance * (guesses - correct) / canaries
    total = chance
    for count in range(correct - 1, -1, -1):
        # The inverse of g, a bit lower.
        asked = max(0.0, float(((right - deltas) * down).max()))
        near_one = 1 - deltas - max(0.0, 1 - right) * up - 4 * 2.0**-52 * (1 + up)
        asked = max(asked, float(near_one.max()))
        more = max(0.0, (asked * (1 - 1e-12) - wrong) * canaries / (guesses - count))
        total += more
        if total > 1 + _ALLOWANCE:
            return total
        right, wrong = right + more * count / canaries, wrong + more * (guesses - count) / canaries
    return total / (1 + _ALLOWANCE)
