"""The sparse vector technique with Gaussian noise, for streams of a known maximum length."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.grid import LIMIT, Grid
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.sparse_vector.above_threshold import AboveThreshold, SparseVectorRun
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.rounding import fraction_down
from sfumato.numerics.sampling.integer_noise import discrete_gaussian
from sfumato.numerics.sampling.normal_tail import flip_normal
from sfumato.numerics.sampling.rounded_noise import Deviate, normal
from sfumato.privacy.leaves import gaussian_sparse_vector as leaf
from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["GaussianSparseVector"]

_FINE: Final = Fraction(1, 1 << 60)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSparseVector(AboveThreshold):
    r"""Answers of each of at most so many queries whether it is above a threshold, until so many have been.

    Where many are above, the noise is less than that of `SparseVector` at the same (epsilon, delta).

    Parameters
    ----------
    sensitivity : int, float or Fraction
        The most that one unit moves any of the queries.
    threshold_stddev, query_stddev : int, float or Fraction
        Standard deviations of the noise on the threshold and on each query, in the unit of the queries.
    answer_stddev : int, float or Fraction, optional
        If given, a query above is answered by its value with fresh discrete Gaussian noise of this standard
        deviation.
    length : int
        The run ends after this many queries, at most 2**50: the loss grows with its logarithm.
    positives, threshold, monotone, grid, neighboring, integral
        As in `SparseVector`.

    Notes
    -----
    Guarantee: that of `sfumato.privacy.GaussianSparseVector`, with the sensitivity in steps, rounding
    counted, and of `DiscreteGaussian` for each number; queries may be chosen from earlier answers.

    *What is drawn* is the leaf's continuous distribution, not one on the grid: a real noisy threshold, of
    which as many bits are drawn as the comparisons need, and for each query, which is a whole number of
    steps, a coin that shows "above" with the normal tail's probability beyond the threshold. Neither is
    rounded (`sfumato.numerics.sampling.rounded_noise`, `sfumato.numerics.sampling.normal_tail`).

    Examples
    --------
    >>> mechanism = GaussianSparseVector.calibrated(
    ...     sensitivity=1, epsilon=1.0, delta=1e-6, length=1000, threshold=200, monotone=True
    ... )
    >>> list(mechanism.answers([3, 5, 900, 200], rng=5))
    [False, False, True]
    """

    threshold_stddev: Number
    query_stddev: Number
    answer_stddev: Number | None = None
    length: int

    _NOISES: ClassVar[tuple[str, str, str]] = ("threshold_stddev", "query_stddev", "answer_stddev")

    def __post_init__(self) -> None:
        self._settle()
        _ = self.privacy_loss  # the leaves check length, positives, monotone and the relation

    @classmethod
    def calibrated(
        cls,
        *,
        sensitivity: Number,
        epsilon: float,
        delta: float,
        length: int,
        positives: int = 1,
        threshold: Number = 0,
        numbers: bool = False,
        monotone: bool = False,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> GaussianSparseVector:
        """Return the mechanism with the smallest noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon : float
        delta : float
            Positive.
        numbers : bool
            Whether a query above is answered by a number, with as much noise as was compared.
        sensitivity, length, positives, threshold, monotone, grid, integral, neighboring
            As in the class.

        Returns
        -------
        GaussianSparseVector
            The variances of threshold and queries are as ``1 : 4 sqrt(c)``, or ``1 : 2 sqrt(c)`` if monotone,
            for c positives: a rule of thumb.
        """
        request = PrivacyTarget(epsilon=epsilon, delta=delta)
        if not request.delta:
            _check.refuse("delta", "be positive", delta, "pass a small one, or use SparseVector")
        count = _check.integer("positives", positives, minimum=1, remedy="pass at least 1; the run ends then")
        ratio = Fraction(round(1024 * math.sqrt((2 if monotone else 4) * math.sqrt(count))), 1024)

        def of(stddev: Fraction, within: Grid | None) -> GaussianSparseVector:
            return cls(
                sensitivity=sensitivity,
                threshold_stddev=plain(stddev),
                query_stddev=plain(ratio * stddev),
                answer_stddev=plain(ratio * stddev) if numbers else None,
                length=length,
                positives=count,
                threshold=threshold,
                monotone=monotone,
                grid=within,  # type: ignore[arg-type]
                integral=integral,  # type: ignore[arg-type]
                neighboring=neighboring,
            )

        start = Fraction(as_bound("sensitivity", sensitivity)) * (
            1 + Fraction(2 * math.sqrt(-math.log(request.delta))) / request.exact_epsilon
        )
        template = of(start, grid)
        fixed = None if template.integral else template.grid
        stddev = minimum_noise(lambda noise: of(noise, fixed).privacy_loss, request, start)
        return replace(of(stddev, fixed), integral=template.integral)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one run, however long."""
        shift, step = self._shift(), self.grid.step
        comparisons = leaf.GaussianSparseVector(
            fraction_down(Fraction(self.threshold_stddev) / step / shift),
            fraction_down(Fraction(self.query_stddev) / step / shift),
            self.length,
            positives=self.positives,
            monotone=self.monotone,
            neighboring=self.neighboring,
        )
        if self.answer_stddev is None:
            return comparisons
        number = DiscreteGaussian(Fraction(self.answer_stddev) / step, shift, neighboring=self.neighboring)
        return comparisons + number * min(self.positives, self.length)

    @property
    def _cap(self) -> int:
        return self.length

    def _run(self, source: RandomSource) -> _Run:
        step = self.grid.step
        # Beyond twice the range of queries and noise, any threshold is as good.
        threshold = max(Fraction(-LIMIT), min(Fraction(LIMIT), Fraction(self.threshold) / step))
        sign = 1 if int(source.words(1)[0]) & 1 else -1
        stddevs = Fraction(self.threshold_stddev) / step, Fraction(self.query_stddev) / step
        return _Run(threshold, sign * stddevs[0], stddevs[1], normal(source), source)

    def _number(self, steps: int, noisy: int, run: SparseVectorRun, source: RandomSource) -> int:
        stddev = Fraction(self.answer_stddev or 0) / self.grid.step
        return steps + int(discrete_gaussian(stddev, None, source))


@final
@dataclass(frozen=True, slots=True)
class _Run:
    """A threshold with noise: its signed standard deviation times a magnitude that is known ever better."""

    threshold: Fraction
    threshold_stddev: Fraction
    query_stddev: Fraction
    magnitude: Deviate
    source: RandomSource

    def above(self, steps: Any) -> Any:
        """Return whether queries with fresh noise are at least the threshold."""
        queries = np.atleast_1d(np.asarray(steps, np.int64))
        while (minimum := self._bounds())[1] - minimum[0] > _FINE * self.query_stddev:
            self.magnitude.extend()
        # From the nearest whole number: a small distance is then as precise as a large one.
        whole = round(minimum[0])
        # Threshold and queries are at most 2^62 in size, and noise 2^44: half of their difference fits.
        halves = (whole >> 1) - (queries >> 1)
        distances = 2.0 * halves + ((whole & 1) - (queries & 1)) + float(minimum[0] - whole)

        def exact(at: int) -> tuple[Fraction, Fraction]:
            low, high = self._bounds()
            query = int(queries[at])
            return (low - query) / self.query_stddev, (high - query) / self.query_stddev

        heads = flip_normal(distances / float(self.query_stddev), exact, self.magnitude.extend, self.source)
        return bool(heads[0]) if isinstance(steps, int) else heads

    def compare(self, steps: Any) -> tuple[Any, Any]:
        """Return whether queries are above, and the queries: no noisy value is ever known."""
        return self.above(steps), steps

    def _bounds(self) -> tuple[Fraction, Fraction]:
        ends = (self.threshold + self.threshold_stddev * (end or 0) for end in self.magnitude.bounds())
        low, high = sorted(ends)
        return low, high
