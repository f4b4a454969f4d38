"""The pair of one shuffled report by the theorem of the clones (Feldman, McMillan, Talwar 2021)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from sfumato.privacy.pairs.pair import Pair, no_loss, two_points
from sfumato.privacy.pairs.shuffling.report_counts import Cells, ReportCountsPair, binomial, steps

__all__ = ["MAX_CLIENTS", "MAX_EPSILON", "clones"]

MAX_CLIENTS: Final = 10**12
"""More are counted as so many: further clients only hide more."""
MAX_EPSILON: Final = 30.0
"""Above, shuffling is taken to hide nothing."""
_RATIO: Final = 2e-4
"""Numbers of clones that differ by this proportion count as the smallest of them: a quarter of it is lost."""


@lru_cache(maxsize=256)
def clones(epsilon: float, clients: int) -> Pair:
    r"""Return the pair that dominates a shuffled epsilon-DP report among those of ``clients`` clients.

    Parameters
    ----------
    epsilon : float
        Of the local randomizer, for any two inputs.
    clients : int
        At least 1.

    Notes
    -----
    :math:`(A + \Delta, C - A + 1 - \Delta)` against :math:`(A + 1 - \Delta, C - A + \Delta)`, with :math:`C`
    binomial of :math:`n - 1` and :math:`e^{-\epsilon_0}`, :math:`A` binomial of C and 1/2, and :math:`\Delta`
    true with probability :math:`e^{\epsilon_0}/(e^{\epsilon_0} + 1)`. Four steps up are taken:

    - a clone more is post-processing (add a fair coin to the counts), so a number of clones may be taken for
      any smaller one, and more clients for fewer;
    - numbers far above the mean are so taken; numbers far below it, of probability at most :math:`e^{-98}`
      (Chernoff), as if there were no clone;
    - tails of u are at most :math:`e^{-98}` (Hoeffding), and their losses at most :math:`\epsilon_0`;
    - probabilities are divided by their sum over a finite window, which is at most 1.
    """
    clients = min(clients, MAX_CLIENTS)
    if epsilon == 0:
        return no_loss()
    if clients == 1 or epsilon > MAX_EPSILON:
        return two_points(epsilon, tight=False)
    number = binomial(clients - 1, math.exp(-epsilon), 1 / math.expm1(epsilon))
    starts = steps(int(number.number[0]), int(number.number[-1]), _RATIO)
    mass = np.add.reduceat(number.mass, starts - int(number.number[0]))
    cells = Cells(starts.astype(float) + 1, np.full(len(starts), epsilon), mass, number.log_error)
    return ReportCountsPair(cells, epsilon, number.fewer)
