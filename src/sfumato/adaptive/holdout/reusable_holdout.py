"""A holdout set that may be asked again and again: it answers by the training set until that overfits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple, Protocol, final

from sfumato import _check
from sfumato.adaptive.holdout.query_mean import Query, query_mean, row_count
from sfumato.adaptive.holdout.thresholdout import RESOLUTION, Thresholdout
from sfumato.errors import RunExhausted
from sfumato.numerics.randomness.one_process import OneProcess
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["HoldoutAnswer", "ReusableHoldout"]


class _Ledger(Protocol):
    def charge(self, loss: PrivacyLoss, *, delta: float, description: str, simulated: bool) -> Receipt: ...


class HoldoutAnswer(NamedTuple):
    """What a holdout says of a query.

    Attributes
    ----------
    value : float
        An estimate of the query's mean on the population.
    overfit : bool
        Whether the training set was too far off, so that the value comes from the holdout and was paid for.

    Examples
    --------
    >>> HoldoutAnswer(0.5, overfit=True).overfit
    True
    """

    value: float
    overfit: bool


@final
class ReusableHoldout(OneProcess):
    r"""Thresholdout: means on the training set, checked against a holdout that is looked at privately.

    A query is answered by its mean on the training set where that agrees with the holdout up to the threshold
    and noise, and by the holdout's noisy mean where it does not. Only the latter use up the budget.

    Parameters
    ----------
    train, holdout : array, frame, or tuple of arrays
        Rows that queries are asked of; drawn independently from one population. Numbers of rows are public.
    plan : Thresholdout, optional
        The parameters: `Thresholdout.calibrated` for the holdout's number of rows, unless given.
    ledger : Ledger, optional
        Charged for all of it at once, before the first query. A charge is about the holdout's rows, so it
        must be the ledger of that dataset.
    description : str
        For the ledger.
    rng : None, int, numpy Generator or RandomSource
        None draws from the operating system's entropy; anything seeded only simulates.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.
    BudgetExceeded
        If the ledger cannot pay.

    Notes
    -----
    Guarantee: `Thresholdout`, for the holdout's rows. The training set is not protected: its means are
    answers. That the population's values are near is a theorem with numbers, ``plan.population_bound()``.
    Queries must be functions of one row.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> train, holdout = rng.normal(size=(2, 10_000))
    >>> plan = Thresholdout.calibrated(rows=10_000, queries=100, overfits=5)
    >>> reusable = ReusableHoldout(train, holdout, plan, rng=1)
    >>> answer = reusable.ask(lambda rows: rows > 0)
    >>> answer.overfit, bool(abs(answer.value - 0.5) < 0.02)
    (False, True)
    >>> reusable.asked, reusable.overfits_left
    (1, 5)
    """

    _name, _remedy = "holdout", "ask it where it was made; in scikit-learn's search, pass n_jobs=1"

    def __init__(
        self,
        train: Any,
        holdout: Any,
        plan: Thresholdout | None = None,
        *,
        ledger: _Ledger | None = None,
        description: str = "reusable holdout",
        rng: Rng = None,
    ) -> None:
        self._train, self._holdout = train, holdout
        self._train_rows, self._rows = row_count("train", train), row_count("holdout", holdout)
        if plan is None:
            plan = Thresholdout.calibrated(rows=self._rows)
        _check.instance("plan", plan, Thresholdout, "pass Thresholdout.calibrated(rows=...)")
        if plan.rows != self._rows:
            _check.refuse("plan", f"be for the {self._rows} rows of the holdout", plan.rows, "plan for those")
        _check.ledger(ledger)
        self.plan: Final = plan
        self._answers: Final = plan.answers
        self._source = random_source(rng)
        self.receipt = (
            None
            if ledger is None
            else ledger.charge(
                plan.privacy_loss, delta=0.0, description=description, simulated=self._source.simulated
            )
        )
        self.asked, self.overfits_left = 0, plan.overfits
        self._lock = threading.Lock()
        self._difference = Fraction(0)
        self._above = plan.comparisons.answers(self._differences(), rng=self._source)

    def __repr__(self) -> str:
        left = f"{self.plan.queries - self.asked} queries and {self.overfits_left} overfits left"
        return f"ReusableHoldout({left})"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Of all answers together, for the rows of the holdout."""
        return self.plan.privacy_loss

    def _differences(self) -> Iterator[Fraction]:
        while True:
            yield self._difference

    def ask(self, query: Query) -> HoldoutAnswer:
        """Answer a query, which may be chosen from all answers so far.

        Parameters
        ----------
        query : callable
            From rows to one value in [0, 1] for each, of that row alone; others are clamped, NaN is 0.

        Returns
        -------
        HoldoutAnswer

        Raises
        ------
        ParameterError
            If the query does not return one number for each row; nothing is used up.
        RunExhausted
            If all overfits, or all queries, are used up.
        """
        self._check_process()
        with self._lock:
            self._check_left()
            train = query_mean(query, self._train, self._train_rows)
            held = query_mean(query, self._holdout, self._rows)
            return self._answered(train, held)

    def _check_left(self) -> None:
        if self.overfits_left and self.asked < self.plan.queries:
            return
        spent = "queries" if self.overfits_left else "overfits"
        left = f"{spent} must be left for another answer, but all {getattr(self.plan, spent)} are used up"
        raise RunExhausted(f"{left}; draw a fresh holdout set")

    def _answered(self, train: Fraction, held: Fraction) -> HoldoutAnswer:
        self._difference = abs(train - held)
        self.asked += 1
        if not next(self._above):
            return HoldoutAnswer(float(train), overfit=False)
        self.overfits_left -= 1
        noisy = Fraction(self._answers.release(held, rng=self._source).value)
        steps = min(max(round(noisy / RESOLUTION), 0), int(1 / RESOLUTION))
        return HoldoutAnswer(float(steps * RESOLUTION), overfit=True)
