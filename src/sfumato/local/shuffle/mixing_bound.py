r"""How much mixed shares reveal beside their sum: the bound behind split and mix.

Each of n clients splits a number :math:`y_i` modulo q into m shares, all but one of them even, and a
shuffler mixes all nm shares. Let V(y) be the distribution of the mixed shares s, and U the even distribution
on all s with the same sum.

**Theorem.** :math:`\chi^2(V(y) \| U) \le E q^{C-1} - 1` for every y, with equality if all :math:`y_i` are
equal. Here C is the number of connected parts of a random graph with n vertices on the left and n on the
right, whose nm edges match m ends at each left vertex with m ends at each right one, every matching as
likely.

*Proof.* A random order gives the positions to the clients by a random partition P into labelled blocks of m.
Given P, s is even on the :math:`q^{n(m-1)}` vectors whose block sums are y. So V(y) has the density
:math:`r(s) = q^{n-1} \Pr_P(\text{the blocks of } s \text{ have sums } y)` with respect to U, and :math:`E_U
r^2 = q^{2n-2} \Pr(P \text{ and } P' \text{ both fit})` for two partitions and an s of U. Two partitions
make a graph: a block of P on the left, one of P' on the right, each position an edge between its two blocks.
Its edges are to be numbered with s so that the numbers at left vertex i, and at right vertex i, add up to
:math:`y_i`. In a part that is connected, with a vertices and e edges, there are :math:`q^{e-a+1}` such
numberings if its left and right sums agree (a spanning tree is determined by the other edges), and none
else. Over all parts these are at most :math:`q^{nm-2n+C}` of the :math:`q^{nm-1}` vectors: :math:`E_U r^2
\le E q^{C-1}`. If all :math:`y_i` are equal then all parts can be numbered, as each has as many vertices on
the left as on the right. ∎

**The mean.** Let :math:`h_n = E q^{C-1}` and :math:`R(n,k) = \binom nk^2 / \binom{nm}{km}`. The part of the
first left vertex has k vertices on each side with probability :math:`\binom{n-1}{k-1}\binom nk /
\binom{nm}{km}` times that of a graph of k being connected, and the rest is such a graph of n - k. So

.. math:: h_n \le 1 + q \sum_{k=1}^{n-1} \frac kn R(n,k)\, h_{n-k}, \qquad h_1 = 1.

**Many clients.** For :math:`k < n/2` the ratio :math:`R(n,k+1)/R(n,k)` is :math:`(\frac{n-k}{k+1})^2
\prod_{i=1}^m \frac{km+i}{(n-k-1)m+i} \le (\frac{k+1}{n-k})^{m-2} \le 1`, and :math:`R(n+1,k)/R(n,k) =
(\frac{n+1}{n+1-k})^2 \prod_i \frac{(n-k)m+i}{nm+i} \le (1 - \frac k{n+1})^{m-2} \le 1`. Let :math:`h_j \le
2` for :math:`J < j < n`, and :math:`n \ge 2J+2`. Taking apart the terms with :math:`n-k \le J`, with
:math:`k \le J`, and the others,

.. math:: h_n \le 1 + b(n), \quad b(n) = q \sum_{j=1}^{J} R(n,j) \bigl(h_j + \tfrac{2j}n\bigr) + q\,n\,R(n,J).

For :math:`m \ge 3` b falls with n. So if :math:`h_j \le 2` up to :math:`N = 2J+2` and :math:`b(N) \le 1`,
then by induction :math:`h_n \le 1 + b(n)` for all :math:`n \ge N`.

**Noise.** Let the sum of the y have noise with a pure loss of epsilon. The total variation distance of V(y)
and U is at most :math:`\tau = \frac12\sqrt{\chi^2}` (Cauchy and Schwarz), for all y at once, and given the
sum U depends on nothing else. So for neighbors, with H the hockey-stick divergence and :math:`H_0` that of
the noise, :math:`H(e') \le H_0(e') + (1+e^{e'})\tau` for every :math:`e' \ge 0`; beyond epsilon :math:`H_0
= 0` and :math:`H(e') \le H(\epsilon)`. As :math:`H_0(e') \le \frac{e^\epsilon-1}{e^\epsilon+1}`, this is at
most :math:`\mu + (1-\mu) H_0(e')` with :math:`\mu = \frac12 (1+e^\epsilon)^2 \tau`: the mixed shares are
dominated by the noise composed with what reveals everything with probability :math:`\mu`. (For negative e'
the two distributions are exchanged.)

References
----------
Ishai, Kushilevitz, Ostrovsky, Sahai (2006), "Cryptography from anonymity", split and mix; Balle, Bell,
Gascón, Nissim (2020), "Private summation in the multi-message shuffle model", which counts parts of this
graph for random numbers; Ghazi, Manurangsi, Pagh, Velingker (2020), "Private aggregation from fewer
anonymous messages". The bound for all numbers and its evaluation are derived above.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Final

import numpy as np

from sfumato import _check
from sfumato.local.device.shuffle.split_and_mix import MOST_SHARES
from sfumato.local.frequency.variance import Array

__all__ = ["fewest_shares", "log_excess", "revealing_mass"]

_NEAR: Final = 512
"""The J of the module's notes."""
_SLACK: Final = 1e-3
r"""Added to each log: more than it can be off by rounding.

Cumulated sums of the logs of fewer than :math:`2^{19}` whole numbers, below :math:`2^{22}`, err by at most
:math:`2^{19} 2^{-53} 2^{22} = 2^{-12}`; a term holds three of these, and six far smaller ones."""
_MIN_SHARES: Final = 3


@lru_cache(maxsize=256)
def log_excess(clients: int, shares: int, bits: int) -> float:
    """Return a bound on the log of the divergence of the mixed shares from even ones with their sum.

    Parameters
    ----------
    clients : int
        That are honest, n.
    shares : int
        Of each, m; at least 3, and at most 256.
    bits : int
        The modulus q is ``2**bits``.

    Returns
    -------
    float
        Infinite where the module's notes prove nothing.
    """
    if clients == 1:
        return -math.inf
    if shares < _MIN_SHARES:
        return math.inf
    near = min(clients, 2 * _NEAR + 2)
    excess, whole = _recursion(near, shares, bits)
    if clients == near:
        return float(excess[near])
    if whole[_NEAR + 1 :].max() > math.log(2) or _beyond(near, shares, bits, whole) > 0:
        return math.inf
    return _beyond(clients, shares, bits, whole)


def _recursion(near: int, shares: int, bits: int) -> tuple[Array, Array]:
    """Return bounds on the logs of :math:`h_n - 1` and :math:`h_n` for all n up to ``near``."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, near * shares + 1)))])
    choices = 2 * factorials[: near + 1] - factorials[::shares]
    numbers = np.log(np.maximum(np.arange(near + 1), 1))
    excess, whole = np.full(near + 1, -np.inf), np.zeros(near + 1)
    for n in range(2, near + 1):
        rest = slice(n - 1, 0, -1)
        terms = numbers[1:n] - numbers[n] + choices[n] - choices[1:n] - choices[rest] + whole[rest]
        excess[n] = _log_sum(terms) + bits * math.log(2) + _SLACK
        whole[n] = np.logaddexp(0.0, excess[n])
    return excess, whole


def _beyond(clients: int, shares: int, bits: int, whole: Array) -> float:
    """Return a bound on the log of b(n)."""
    k, i = np.arange(_NEAR, dtype=float), np.arange(1, shares + 1, dtype=float)[:, None]
    drawn = np.log((k * shares + i) / ((clients - k - 1) * shares + i)).sum(axis=0)
    ratios = np.cumsum(2 * np.log((clients - k) / (k + 1)) + drawn)
    ends = ratios + np.logaddexp(whole[1 : _NEAR + 1], np.log(2 * (k + 1) / clients))
    return _log_sum(np.append(ends, ratios[-1] + math.log(clients))) + bits * math.log(2) + _SLACK


def _log_sum(terms: Array) -> float:
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


def revealing_mass(clients: int, shares: int, bits: int, epsilon: float) -> float:
    """Return the probability with which mixed shares may reveal everything; see the module's notes.

    Parameters
    ----------
    clients, shares, bits
        As in `log_excess`.
    epsilon : float
        Pure loss of the noise on the sum.
    """
    if clients == 1:
        return 0.0
    log = log_excess(clients, shares, bits) / 2 + 2 * np.logaddexp(0.0, epsilon) - math.log(4)
    return 1.0 if log >= -1e-9 else max(math.exp(log + 1e-9), sys.float_info.min)


def fewest_shares(clients: int, bits: int, epsilon: float, delta: float) -> int:
    """Return the fewest shares, at least 3, with which the mass is at most ``delta``."""

    def holds(shares: int) -> bool:
        return revealing_mass(clients, shares, bits, epsilon) <= delta

    low, high = _MIN_SHARES - 1, _MIN_SHARES
    while not holds(high):
        if high == MOST_SHARES:
            remedy = "wait for more honest clients, or accept a greater delta"
            _check.refuse("clients", f"be enough for at most {MOST_SHARES} shares each", clients, remedy)
        low, high = high, min(2 * high, MOST_SHARES)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
