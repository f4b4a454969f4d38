"""The generic holdout: any hypothesis, of any kind, is confirmed or not, and nothing else is revealed."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import rounded_up
from sfumato.adaptive.holdout.mean_interval import mean_p_value
from sfumato.adaptive.holdout.query_mean import ROUNDING, Query, query_mean, row_count
from sfumato.errors import RunExhausted
from sfumato.numerics.randomness.one_process import OneProcess
from sfumato.numerics.rounding import fraction_down

__all__ = ["GenericHoldout"]

_MOST: Final = 1 << 1080


@final
class GenericHoldout(OneProcess):
    r"""A holdout that says of each hypothesis whether it is confirmed there, and nothing else.

    Explore other rows as you like; ask this holdout only to confirm. Hypotheses are of any kind: each brings
    a test of its own, whose p-value may depend on all rows together. It is not private: it has no
    ``privacy_loss``. Copies are the object itself, and other processes are refused.

    Parameters
    ----------
    holdout : array, frame, or tuple of arrays
        Independent of the rows that are explored; not seen by whoever proposes hypotheses.
    level : float
        The probability that any false hypothesis is ever confirmed, at most.
    hypotheses : int
        How many may be asked, at most.
    discoveries : int
        How many may be confirmed, no more than are asked; after the last of them the holdout is used up.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    *Theorem.* Let each test, fixed before the holdout is drawn, have a p-value of at most t with probability
    at most t where its hypothesis is false. Then for any strategy that sees the explored rows, coins of its
    own and the earlier answers, all confirmed hypotheses are true with probability at least ``1 - level``.
    *Proof.* Given explored rows and coins, which are independent of the holdout, the i-th test is fixed by
    which of the earlier ones were confirmed: fewer than the discoveries l, among the i - 1. So at most
    :math:`\sum_{i \le k} \sum_{f < l} \binom{i-1}{f} = \sum_{j=1}^{l} \binom{k}{j}` tests can be asked on any
    holdout. Each is confirmed falsely with at most `threshold`, the level over that number; add them up.

    With one discovery the threshold is the level over k, as for k hypotheses that were fixed in advance:
    "not confirmed" tells an analyst nothing that could mislead. By Chernoff's bound a gap of a mean shows
    with a number of rows that rises with the log of k.

    References
    ----------
    Nakkiran, Blasiok (2018), The Generic Holdout: Preventing False-Discoveries in Adaptive Data Science
    (arXiv 1809.05596): the scheme. The bound is the one that is proved above.

    Examples
    --------
    >>> rows = np.random.default_rng(1).normal(0.2, 1.0, 2000)
    >>> holdout = GenericHoldout(rows, hypotheses=100)
    >>> holdout.threshold
    0.0005
    >>> from scipy.special import bdtrc
    >>> def median_is_positive(rows):
    ...     return bdtrc(np.count_nonzero(rows > 0) - 1, len(rows), 0.5)  # the sign test, exact
    >>> holdout.confirm_mean(lambda rows: rows > 0, above=0.6), holdout.confirm(median_is_positive)
    (False, True)
    """

    _name, _remedy = "holdout", "confirm where it was made"

    def __init__(
        self, holdout: Any, *, level: float = 0.05, hypotheses: int = 1000, discoveries: int = 1
    ) -> None:
        self._holdout, self._rows = holdout, row_count("holdout", holdout)
        self.level = _check.unit_interval("level", level)
        self.hypotheses = _check.integer("hypotheses", hypotheses, minimum=1)
        self.discoveries = _check.integer("discoveries", discoveries, minimum=1)
        if self.discoveries > self.hypotheses:
            _check.refuse("discoveries", "be at most hypotheses", discoveries, "pass 1, or a few")
        self.threshold = fraction_down(Fraction(self.level) / _ways(self.hypotheses, self.discoveries))
        if not self.threshold:
            remedy = "allow fewer hypotheses, or fewer discoveries"
            _check.refuse("discoveries", "leave a threshold above 0", discoveries, remedy)
        self.asked = self.confirmed = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        done = f"{self.asked} of {self.hypotheses} asked, {self.confirmed} of {self.discoveries} confirmed"
        return f"GenericHoldout({done})"

    @property
    def mean_gap(self) -> float:
        """How far above the claim a mean on the holdout is enough for `confirm_mean` (Hoeffding's bound)."""
        return rounded_up(math.sqrt(-math.log(self.threshold) / (2 * self._rows)) + 4 * ROUNDING)

    def confirm(self, test: Callable[[Any], Any]) -> bool:
        """Say whether a hypothesis is confirmed on the holdout.

        Parameters
        ----------
        test : callable
            From the holdout's rows to a p-value against the hypothesis: at most t with probability at most t
            where the hypothesis is false, were the test fixed beforehand. NaN confirms nothing. It must not
            raise an error or write anything that depends on the rows: that would reveal more.

        Returns
        -------
        bool
            Whether the p-value is at most `threshold`.

        Raises
        ------
        ParameterError
            If the test returns no number.
        RunExhausted
            If all hypotheses or all discoveries are used up.
        """
        self._check_process()
        with self._lock:
            self._ask()
            value = np.asarray(test(self._holdout))
            if value.ndim != 0 or value.dtype.kind not in "iuf":
                _check.refuse_type("test", "return a p-value", value, "return one float from 0 to 1")
            return self._answer(float(value))

    def confirm_mean(self, query: Query, *, above: float) -> bool:
        """Say whether the population's mean of a query is confirmed to be above a number.

        Parameters
        ----------
        query : callable
            From rows to one value in [0, 1] for each, of that row alone; others are clamped, and NaN is 0.
        above : float
            From 0 to 1.

        Returns
        -------
        bool
            By Chernoff's bound for independent rows with values in [0, 1].

        Raises
        ------
        ParameterError
            If a number is outside its range, or the query does not return one number for each row.
        RunExhausted
            If all hypotheses or all discoveries are used up.
        """
        claim = _check.share("above", above) + ROUNDING
        self._check_process()
        with self._lock:
            self._ask()
            mean = float(query_mean(query, self._holdout, self._rows))
            return self._answer(mean_p_value(mean, claim, self._rows))

    def _ask(self) -> None:
        """Count a hypothesis before its test sees a row, or refuse it."""
        used = ""
        if self.confirmed >= self.discoveries:
            used = f"all {self.discoveries} discoveries"
        elif self.asked >= self.hypotheses:
            used = f"all {self.hypotheses} hypotheses"
        if used:
            left = f"hypotheses and discoveries must be left, but {used} are used up"
            raise RunExhausted(f"{left}; draw a fresh holdout")
        self.asked += 1

    def _answer(self, p_value: float) -> bool:
        confirmed = p_value <= self.threshold
        self.confirmed += confirmed
        return confirmed


def _ways(hypotheses: int, discoveries: int) -> int:
    """Return how many tests can be asked, or a number so large that no threshold is left."""
    found, term = 0, 1
    for chosen in range(1, discoveries + 1):
        term = term * (hypotheses - chosen + 1) // chosen
        found += term
        if found > _MOST:
            break
    return found
