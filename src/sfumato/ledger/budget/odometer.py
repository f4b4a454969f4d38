r"""The odometer: what has been spent so far, at every moment, by an adversary who may stop or go on at will.

A filter enforces a total that was fixed before the first charge. An odometer enforces nothing: it states a
total that may be read at any time, also to decide from it what to ask next.

What a reading means. Fix two neighbors, with distributions P and Q of the transcript, and any rule by which
charges are chosen and the interaction stops, from the answers and the readings so far. Let S be a set of
transcripts at whose end the reading is at most :math:`(\epsilon, \delta + \Delta)`, where :math:`\delta`
was fixed beforehand and :math:`\Delta` is the sum of the charges' masses. Then :math:`P(S) \le e^\epsilon
Q(S) + \delta + \Delta`. So an interaction that always stops in time is (:math:`\epsilon`, :math:`\delta +
\Delta`)-DP, and without masses the loss passes a reading at any time with probability at most
:math:`\delta`.

Proof. Given the answers so far, a charge has a part :math:`p_g \le p` of mass at least :math:`1 -
\delta_i` with :math:`\int p_g^\alpha q^{1-\alpha} \le e^{(\alpha-1)D_i(\alpha)}` for every order
(`approximate_rdp`); let :math:`P_g` be the product of these parts along a transcript, :math:`L =
\log(P_g/Q)` and :math:`R(\alpha)` the sum of the :math:`D_i(\alpha)`, each after so many charges. With
fixed weights :math:`w_j` that add up to 1 and fixed orders,

.. math:: M = \sum_j w_j \, e^{(\alpha_j - 1)(L - R(\alpha_j))}

starts at 1 and in each round its integral under :math:`P_g`, given the past, does not grow, because what
is charged is a function of the past. By Ville's inequality (stop when M first reaches :math:`1/\delta`),
:math:`P_g(M \ge 1/\delta \text{ at some time}) \le \delta`. M rises with L, and the reading is at least
the L at which M would be :math:`1/\delta`: so outside of a set of :math:`P_g`-mass :math:`\delta`, L is
always at most the reading. On S, then, :math:`P_g(S) \le e^\epsilon Q(S) + \delta`. And :math:`(P -
P_g)(S) \le E \sum_i \delta_i 1\{\delta_1 + \dots + \delta_i \le \Delta\} \le \Delta`. Where all charges
are pure, L is at most the sum of their epsilons, with certainty, so the smaller of the two may be read:
split S by which one it is. Exchange P and Q for the other order.

References
----------
Rogers, Roth, Ullman, Vadhan (2016), Privacy Odometers and Filters: Pay-as-you-Go Composition.
Whitehouse, Ramdas, Rogers, Wu (2023), Fully-Adaptive Composition in Differential Privacy: odometers from
time-uniform bounds for martingales, of which this is one by the method of mixtures.
"""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import UnsupportedView
from sfumato.ledger.budget.budget_check import check_loss
from sfumato.numerics.rounding import add_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.accountant.moments import approximate_rdp
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Odometer"]

_ORDERS: Final = tuple(1.0 + 2.0 ** (k / 2) for k in range(-9, 18))
"""Two for every doubling of ``order - 1``, from 0.04 to 362."""
_STEPS: Final = 40


class _Price(NamedTuple):
    curve: NDArray[np.float64]
    mass: float
    pure: float


@final
class Odometer:
    """Adds up charges and states, at any time, an (epsilon, delta) bound on all of them.

    Parameters
    ----------
    delta : float
        Strictly between 0 and 1; the probability, over the whole life of the odometer, that a reading is
        passed. The masses of charges are added to it.
    neighboring : Neighboring
        The relation of all charges.
    orders : tuple of float, optional
        Rényi orders above 1 between which the odometer hedges. Fewer of them, near the one that suits, give
        a slightly smaller reading.

    Notes
    -----
    Guarantee: see the module. Mechanisms and their parameters may be chosen from earlier answers and from
    readings, if each charge is added before its answer is looked at. A charge costs one addition for each
    order, however many there were; the views of a repeated loss are cached. Nothing is durable: a `Ledger`
    is.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, Laplace
    >>> odometer = Odometer(delta=1e-6)
    >>> for _ in range(10):
    ...     odometer.add(Laplace(20.0))
    >>> print(odometer.spent())
    (0.5, 1e-06)-DP, add/remove one unit
    >>> odometer.add(Gaussian(5.0))
    >>> round(odometer.spent().epsilon, 2)
    1.45
    """

    def __init__(
        self,
        *,
        delta: float,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
        orders: tuple[float, ...] = _ORDERS,
    ) -> None:
        self._delta = _check.unit_interval("delta", delta)
        self._orders = tuple(_check.finite("orders", order) for order in orders)
        if not self._orders or min(self._orders) <= 1:
            _check.refuse("orders", "be one or more numbers above 1", orders, "leave them out")
        self._neighboring = neighboring
        self._gaps = np.array(self._orders) - 1.0
        self._totals = np.zeros(len(self._orders))
        self._mass = self._pure = 0.0
        self._charges = 0
        self._price = lru_cache(maxsize=4096)(self._priced)
        self._lock = threading.Lock()

    @property
    def charges(self) -> int:
        """How many losses were added."""
        return self._charges

    def add(self, loss: PrivacyLoss) -> None:
        """Add one charge, before its answer is looked at.

        Parameters
        ----------
        loss : PrivacyLoss
            What will be run.

        Raises
        ------
        NeighboringMismatch
            The loss is about another relation.
        UnsupportedView
            The loss has neither a bound on its Rényi divergences nor a dominating pair.
        """
        price = self._price(loss)
        with self._lock:
            self._totals = np.where(
                price.curve > 0, np.nextafter(self._totals + price.curve, np.inf), self._totals
            )
            self._mass, self._pure = add_up(self._mass, price.mass), add_up(self._pure, price.pure)
            self._charges += 1

    def spent(self) -> Guarantee:
        """Return what all charges so far have spent; an infinite epsilon where nothing is proven.

        Returns
        -------
        Guarantee
            With ``epsilon`` and ``delta``.
        """
        with self._lock:
            totals, mass, pure = self._totals, self._mass, self._pure
        delta = min(1.0, add_up(self._delta, mass))
        epsilon = 0.0 if delta >= 1 else min(pure, _reading(totals, self._gaps, self._delta))
        return Guarantee(neighboring=self._neighboring, epsilon=epsilon, delta=delta)

    def _priced(self, loss: PrivacyLoss) -> _Price:
        check_loss(loss, self._neighboring, "odometer")
        curve, mass = approximate_rdp(loss.terms, self._orders)
        try:
            pure = loss.pure()
        except UnsupportedView:
            return _Price(np.array(curve), mass, math.inf)
        return _Price(np.array(curve), mass, math.inf if pure.delta else pure.epsilon)

    def __repr__(self) -> str:
        return f"<Odometer of {self._charges} charges, {self.spent()}>"


def _reading(totals: NDArray[np.float64], gaps: NDArray[np.float64], delta: float) -> float:
    """Return a loss at which the mixture is at least ``1 / delta``, close to the smallest one, rounded up."""
    if not totals.any():
        return 0.0
    finite = np.isfinite(totals)
    if not finite.any():
        return math.inf
    gaps, totals = gaps[finite], totals[finite]
    log_weight = -math.log(len(finite)) if len(finite) > 1 else 0.0
    target = -math.log(delta)
    first = totals + (target - log_weight) / gaps
    start = above(float(first.min()), 16.0, float(np.abs(totals).max()))
    # The rounding of each exponent, and of the sum.
    slack = UNIT * (
        8 * float((gaps * (np.abs(totals) + start))[_counts(gaps, totals, start)].max()) + 128 + 4 * target
    )
    point = start
    for _ in range(_STEPS):
        exponents = gaps * (point - totals)
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        size = float(weights.sum())
        over = top + math.log(size) + log_weight - target - slack
        step = over * size / float(weights @ gaps)
        if step <= 1e-9 * abs(point):
            break
        # Convex in the point: Newton's method from above stays above; a little less absorbs rounding.
        point -= step * (1 - 1e-9)
    if over < 0:
        point = start
    return max(0.0, point)


def _counts(gaps: NDArray[np.float64], totals: NDArray[np.float64], start: float) -> NDArray[np.bool_]:
    """Return which exponents can matter to the sum."""
    exponents = gaps * (start - totals)
    return np.asarray(exponents > exponents.max() - 80.0)
