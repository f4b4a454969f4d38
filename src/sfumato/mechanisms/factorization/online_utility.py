"""The error bound of online multiplicative weights, and the threshold that ensures it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, final

from sfumato.mechanisms.selection.selection import steps_of_log_odds
from sfumato.numerics.rounding import fraction_up

__all__ = ["OnlineUtility"]

_SLACK = 1e-9


@final
class OnlineUtility(NamedTuple):
    """Bounds on all noise of a run that hold together, in records, and what follows for its answers.

    Attributes
    ----------
    total, comparison, number : Fraction
        On the error of the total, of threshold and query in any comparison together, and of a measurement.
    rounding : Fraction
        Of query and synthetic answer.
    """

    total: Fraction
    comparison: Fraction
    number: Fraction
    rounding: Fraction

    @classmethod
    def of(
        cls,
        beta: float,
        *,
        scales: tuple[Fraction, Fraction, Fraction, Fraction],
        step: Fraction,
        updates: int,
        queries: int,
        records: int,
    ) -> OnlineUtility:
        """Return bounds that all noise keeps but with probability ``beta``.

        Parameters
        ----------
        beta : float
        scales : four Fractions
            Of the noise on the total, the threshold, each query and each measurement, in records.
        step : Fraction
            Of the grid that answers are rounded to.
        updates, queries, records : int
        """
        total, threshold, query, number = scales
        # A quarter for each kind of noise, and of its draws the same part for each.
        odds = 8 / beta
        fine = [
            steps_of_log_odds(scale / step, odds * draws) * step
            for scale, draws in ((threshold, 1), (query, queries), (number, updates))
        ]
        return cls(
            total=Fraction(max(1, steps_of_log_odds(total, odds))),
            comparison=fine[0] + fine[1],
            number=fine[2],
            rounding=(2 + records) * step,
        )

    def threshold(self, *, cells: int, updates: int, records: int) -> Fraction:
        """Return about the smallest threshold at which so many updates suffice."""
        low, high = float(self.total), float(2 * self.total + self.number) + 2.0 * records + 1
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            enough = self._enough(middle, cells=cells, updates=updates, records=records)
            low, high = (low, middle) if enough else (middle, high)
        return Fraction(math.ceil(Fraction(high) + self.total + self.comparison + self.rounding))

    def bound(self, threshold: Fraction, *, cells: int, updates: int, records: int) -> float:
        """Return how far any answer is off at most; infinite where the updates may not suffice."""
        minimum = float(threshold - self.comparison - self.rounding - self.total)
        if not self._enough(minimum, cells=cells, updates=updates, records=records):
            return math.inf
        return fraction_up(max(threshold + self.comparison, self.number) + self.rounding)

    def _enough(self, gap: float, *, cells: int, updates: int, records: int) -> bool:
        """Return whether more than so many updates, each off by more than ``gap``, are impossible."""
        total = float(self.total)
        if gap <= total:
            return False
        wrong = (total + float(self.number)) * gap / (gap - total)
        room = gap**2 - wrong**2
        return room > 0 and records**2 * math.log(cells) * (1 + _SLACK) < 2 * (updates + 1) * room
