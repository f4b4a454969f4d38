"""One-shot top-k selection with Gumbel noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.selection.selection import Selection, Steps, steps_of_log_odds
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.choice import choose
from sfumato.numerics.sampling.exponential_race import choose_distinct
from sfumato.privacy.leaves import exponential as leaf
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["TopK"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(Selection):
    r"""So many candidates, the best first: those whose scores are largest after Gumbel noise.

    Parameters
    ----------
    sensitivity, scale, candidates, monotone, grid, neighboring, integral
        As in `Selection`; ``scale`` is that of the noise.
    count : int
        How many candidates are released.

    Raises
    ------
    ParameterError
        If there are fewer candidates.

    Notes
    -----
    Guarantee: that of ``count`` exponential mechanisms, each of which chooses from what the others left:
    ``Exponential(2 s / scale) * count``, or half that range if monotone, with the sensitivity s in steps,
    rounding counted, under ``neighboring``. Each choice is of bounded range whatever was chosen before.

    *Proof that one round of noise is enough.* Scores with independent Gumbel noise of scale b are the logs of
    the inverse times, times b, of an exponential race with rates :math:`e^{score/b}`. Which of the
    remaining comes next is independent of the past and has the exponential mechanism's distribution among
    them.

    *Utility.* Before the j-th choice one of the j best is left, so that the j-th choice falls short of the
    j-th best score by more than the bound with probability at most ``beta / count`` (see `Exponential`).

    References
    ----------
    Durfee, Rogers, "Practical differentially private top-k selection with pay-what-you-get composition"
    (NeurIPS 2019), one-shot Gumbel noise.

    Examples
    --------
    >>> mechanism = TopK.calibrated(sensitivity=1, epsilon=1.0, count=2, candidates=("red", "green", "blue"))
    >>> mechanism.release([40, 90, 10], rng=1).value
    ('green', 'red')
    """

    count: int

    def _check_own(self) -> None:
        _check.integer("count", self.count, minimum=1)

    def _check_number(self, candidates: int) -> None:
        if candidates < _check.integer("count", self.count, minimum=1):
            rule = f"be at most {candidates}, the number of candidates"
            _check.refuse("count", rule, self.count, "ask for fewer, or name more candidates")

    def _total(self) -> int:
        return self.range * self.count

    def _price(self, scale: Fraction) -> PrivacyLoss:
        one = leaf.Exponential(self.range / scale, neighboring=self.neighboring)  # type: ignore[arg-type]
        return one * self.count

    def _draw(self, steps: Steps, size: int, source: RandomSource) -> Steps:
        released = np.zeros((size, self.count), np.int64)
        # Runs that began alike, what is left for them, and how many they have released.
        alike = [(np.arange(size), np.arange(steps.size), 0)]
        while alike:
            runs, left, rank = alike.pop()
            if len(runs) == 1:
                rest = choose_distinct(-steps[left], self._rate, self.count - rank, rng=source)
                released[runs[0], rank:] = left[rest]
                continue
            chosen = choose(-steps[left], self._rate, size=len(runs), rng=source)
            released[runs, rank] = left[chosen]
            if rank + 1 < self.count:
                alike.extend(
                    (runs[chosen == index], np.delete(left, index), rank + 1)
                    for index in np.unique(chosen).tolist()
                )
        return released

    def _shortfall(self, beta: float, candidates: int, scale: Fraction) -> int:
        share = beta / self.count
        return steps_of_log_odds(scale, (candidates - 1) * (1 - share) / share)
