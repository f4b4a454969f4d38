"""What multivariate CoinPress shares: Gaussian noise on clipped moments, step by step, and a count."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Norm
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.query.counts import Count
from sfumato.mechanisms.query.records import as_table
from sfumato.mechanisms.statistics.coinpress_vectors.clipped_moments import ClippedMoments
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["RecordCounts", "StepwiseMoments", "as_center", "least_noise"]

_MOST: Final = 1 << 8
_COUNTED: Final = math.sqrt(7.0)  # a tenth of the cost, where the last step has seven tenths
_RISK: Final = 0.01
"""The chance that any step leaves out the truth: it sets how far away records are clipped."""
_Stepwise = TypeVar("_Stepwise", bound="StepwiseMoments")


class RecordCounts(NamedTuple):
    """The least number of records, an estimate, and the largest number."""

    smallest: float
    estimate: float
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepwiseMoments(Mechanism):
    r"""What both share: Gaussian noise on clipped moments, three quarters of the cost in the last step.

    Parameters
    ----------
    columns : int
        How many numbers a record has, at most 256.
    noise : int, float or Fraction
        Standard deviation of the noise of the last step over the sensitivity of its sums; steps before it
        have :math:`\sqrt{3 (\text{steps} - 1)}` times as much.
    steps : int, optional
        Unless given, chosen from the public bounds.
    neighboring : Neighboring
    """

    columns: int
    noise: Number
    steps: int = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        columns = _check.integer("columns", self.columns, minimum=1)
        if columns > _MOST:
            _check.refuse("columns", f"be at most {_MOST}", columns, "project the records first")
        remedy = f"pass epsilon= and delta= to {type(self).__name__}.calibrated to have it chosen"
        object.__setattr__(self, "noise", plain(_check.fraction("noise", self.noise, remedy)))
        ratio, given = self._ratio(), cast("int | None", self.steps)
        if given is None:
            given = max(2, math.ceil(math.log10(max(1.0, ratio))))
        object.__setattr__(self, "steps", _check.integer("steps", given, minimum=1))
        _ = self.privacy_loss  # the mechanism checks noise and relation

    @abstractmethod
    def _ratio(self) -> float:
        """Check the bounds, and return how far they are from what is known in the end."""

    @abstractmethod
    def _query(self) -> ClippedMoments:
        """Return a query of the kind that is measured in each step."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release: of all steps, and of the count where it is private."""
        loss = self._measurement(self._query(), 1).privacy_loss
        if self.steps > 1:
            loss += self._measurement(self._query(), self._early).privacy_loss * (self.steps - 1)
        if self.neighboring is not Neighboring.REPLACE_ONE:
            loss += self._measurement(Count(), _COUNTED).privacy_loss
        return loss

    def _measurement(self, query: Query, times: float) -> Measurement:
        """Return the measurement of a query with so many times the noise of the last step."""
        noise = Fraction(self.noise) * Fraction(times)
        steps = Fraction(query.sensitivity(self.neighboring, Norm.L2)) / query.step
        mechanism = Gaussian(
            l2=plain(steps), stddev=plain(noise * steps), integral=True, neighboring=self.neighboring
        )
        return Measurement(query=query, mechanism=mechanism)

    @property
    def _early(self) -> float:
        return math.sqrt(3 * (self.steps - 1))

    def _measured(self, query: Query, data: Any, step: int, source: RandomSource) -> LatticeRelease:
        return self._measurement(query, 1 if step == self.steps - 1 else self._early).release(data, source)

    def _counts(self, data: Any, source: RandomSource) -> RecordCounts:
        """Return how many records there are, between which numbers; exact where it is public."""
        if self.neighboring is Neighboring.REPLACE_ONE:
            count = float(max(1, len(as_table(data, self.columns))))
            return RecordCounts(count, count, count)
        found = self._measurement(Count(), _COUNTED).release(data, source)
        reach = found.stddev * math.sqrt(2 * math.log(2 / self._risk))
        return RecordCounts(*(max(1.0, float(found.value) + sign * reach) for sign in (-1, 0, 1)))

    @property
    def _risk(self) -> float:
        """A third of a step's chance: each for clipping, for the number of records, and for the rest."""
        return _RISK / (3 * self.steps)

    def _length(self, risk: float) -> float:
        """Return what a standard normal vector is longer than with at most this chance (Laurent, Massart)."""
        odds = math.log(1 / risk)
        return math.sqrt(self.columns + 2 * math.sqrt(self.columns * odds) + 2 * odds)


def as_center(given: object, columns: int) -> tuple[float, ...]:
    """Return a public centre, the origin unless given, or refuse what is none."""
    if given is None:
        return (0.0,) * columns
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) != columns:
        _check.refuse("center", f"hold {columns} numbers", given, "leave it out for the origin")
    return tuple(_check.finite("center", each) for each in given)


def least_noise(make: Callable[[Number], _Stepwise], epsilon: float, delta: float) -> _Stepwise:
    """Return the mechanism with the smallest noise that meets (epsilon, delta)."""
    request = PrivacyTarget(epsilon=epsilon, delta=_check.unit_interval("delta", delta))
    start = analytic_gaussian_stddev(sensitivity=1.2, epsilon=epsilon, delta=request.delta)
    noise = minimum_noise(lambda noise: make(plain(noise)).privacy_loss, request, Fraction(start))
    return make(plain(noise))
