"""The sparse vector technique with Laplace or exponential noise: only answers "above" cost privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Literal, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_pure_noise
from sfumato.mechanisms.base.grid import Grid, clamp
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.sparse_vector.above_threshold import AboveThreshold
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.rounding import fraction_down
from sfumato.numerics.sampling.integer_noise import discrete_laplace, geometric
from sfumato.privacy.leaves import sparse_vector as leaf
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SparseVector"]

_SAMPLERS: Final[dict[str, Callable[..., Any]]] = {"laplace": discrete_laplace, "exponential": geometric}
_NUMBERS_SHARE: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(AboveThreshold):
    r"""Answers of each query whether it is above a threshold, until so many have been.

    Parameters
    ----------
    sensitivity : int, float or Fraction
        The most that one unit moves any of the queries.
    threshold_scale, query_scale : int, float or Fraction
        Scales of the noise on the threshold and on each query, in the unit of the queries.
    answer_scale : int, float or Fraction, optional
        If given, a query above is answered by its value with fresh Laplace noise of this scale.
    positives : int
        The run ends with this "above"; the number of "below" is not limited and costs nothing.
    threshold : int, float or Fraction
        Public. Thresholds that differ from query to query are subtracted from the queries by the caller.
    noise : {"laplace", "exponential"}
        Distribution of the noise on threshold and queries. Exponential noise has half the variance at the
        same cost.
    monotone : bool
        Whether between any two neighbors all queries move in the same direction, as counts do under
        add/remove. They cost half then.
    grid : Grid, optional
        What values are rounded to; chosen from sensitivity and scales unless given.
    neighboring : Neighboring
        The relation under which the sensitivity is stated.
    integral : bool, optional
        Whether values are whole numbers. Unless given: whether the sensitivity is an int and no grid is
        given.

    Notes
    -----
    Guarantee: pure DP, ``s / threshold_scale + 2 positives s / query_scale`` (``positives s / query_scale``
    if monotone) and ``positives s / answer_scale``, with the sensitivity s in steps, rounding counted;
    queries may be chosen from earlier answers. Proof: in `sfumato.privacy.SparseVector`, with sums over the
    integers for the integrals. One noisy threshold serves the whole run, each query has fresh noise, and no
    value that a comparison used is released.

    A comparison counts as "above" where query and noise are at least threshold and noise.

    References
    ----------
    Dwork, Roth (2014), section 3.6; Lyu, Su, Li (2017), "Understanding the sparse vector technique for
    differential privacy", Algorithm 7 and the split of the budget.

    Examples
    --------
    >>> mechanism = SparseVector.calibrated(sensitivity=1, epsilon=1.0, threshold=100, monotone=True)
    >>> mechanism.threshold_scale, mechanism.query_scale
    (2, 2)
    >>> list(mechanism.answers([3, 5, 300, 200], rng=5))
    [False, False, True]
    """

    threshold_scale: Number
    query_scale: Number
    answer_scale: Number | None = None
    noise: Literal["laplace", "exponential"] = "laplace"

    _NOISES: ClassVar[tuple[str, str, str]] = ("threshold_scale", "query_scale", "answer_scale")

    def __post_init__(self) -> None:
        noise: object = self.noise
        if not isinstance(noise, str) or noise not in _SAMPLERS:
            remedy = "pass 'exponential' for less noise at the same epsilon"
            _check.refuse("noise", "be 'laplace' or 'exponential'", noise, remedy)
        self._settle()
        _ = self.privacy_loss  # the leaves check positives, monotone and the relation

    @classmethod
    def calibrated(
        cls,
        *,
        sensitivity: Number,
        epsilon: float,
        positives: int = 1,
        threshold: Number = 0,
        numbers: bool = False,
        noise: Literal["laplace", "exponential"] = "laplace",
        monotone: bool = False,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> SparseVector:
        """Return the mechanism with the smallest noise in its comparisons that is epsilon-DP.

        Parameters
        ----------
        epsilon : float
        numbers : bool
            Whether a query above is answered by a number, for which half of epsilon is set apart.
        sensitivity, positives, threshold, noise, monotone, grid, integral, neighboring
            As in the class.

        Returns
        -------
        SparseVector
            Threshold and queries share epsilon as ``1 : (2 c)**(2/3)``, or ``1 : c**(2/3)`` if monotone, for
            c positives: the split at which the variance of a comparison is least (Lyu, Su, Li 2017).
        """
        request = PrivacyTarget(epsilon=epsilon, delta=0.0)
        count = _check.integer("positives", positives, minimum=1, remedy="pass at least 1; the run ends then")
        shifts = count if monotone else 2 * count
        ratio = Fraction(round(shifts ** (2 / 3) * 1024), 1024)
        share = _NUMBERS_SHARE if numbers else Fraction(0)
        # Multiples of one common scale, at which the whole costs 1 / scale in sensitivities.
        per_threshold = (1 + ratio) / (1 - share)
        per_query = shifts * per_threshold / ratio
        per_answer = count / share if numbers else None
        exact = Fraction(as_bound("sensitivity", sensitivity)) / request.exact_epsilon

        def of(scale: Fraction, within: Grid | None) -> SparseVector:
            return cls(
                sensitivity=sensitivity,
                threshold_scale=plain(per_threshold * scale),
                query_scale=plain(per_query * scale),
                answer_scale=None if per_answer is None else plain(per_answer * scale),
                positives=count,
                threshold=threshold,
                noise=noise,
                monotone=monotone,
                grid=within,  # type: ignore[arg-type]
                integral=integral,  # type: ignore[arg-type]
                neighboring=neighboring,
            )

        template = of(exact, grid)
        fixed = None if template.integral else template.grid
        rounded = Lattice(template.grid, template.integral).shift(template.sensitivity) * template.grid.step
        start = exact * rounded / Fraction(template.sensitivity)
        scale = minimum_pure_noise(lambda noise: of(noise, fixed).privacy_loss, request, start)
        return replace(of(scale, fixed), integral=template.integral)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one run, however long."""
        shift, step = self._shift(), self.grid.step
        comparisons = leaf.SparseVector(
            fraction_down(Fraction(self.threshold_scale) / step / shift),
            fraction_down(Fraction(self.query_scale) / step / shift),
            positives=self.positives,
            monotone=self.monotone,
            neighboring=self.neighboring,
        )
        if self.answer_scale is None:
            return comparisons
        number = DiscreteLaplace(Fraction(self.answer_scale) / step, shift, neighboring=self.neighboring)
        return comparisons + number * self.positives

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw the answers of many runs at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array of shape (size, queries), or list of arrays
            The answers of each run.
        """
        size, steps, source = (
            _check.integer("size", size, minimum=1),
            self._queries(value),
            random_source(rng),
        )
        above = self._run(source, (size, 1)).above(np.broadcast_to(steps, (size, len(steps))))
        # A run ends with its last positive.
        lived = above.cumsum(axis=1) - above < self.positives
        released = above & lived
        lengths = lived.sum(axis=1).tolist()
        if not self._numeric:
            return [row[:length] for row, length in zip(released, lengths, strict=True)]
        numbers = np.full(released.shape, np.nan)
        exact = np.broadcast_to(steps, released.shape)[released]
        noise = discrete_laplace(Fraction(self.answer_scale or 0) / self.grid.step, exact.size, source)
        numbers[released] = [float(self._released(number)) for number in (exact + noise).tolist()]
        return [row[:length] for row, length in zip(numbers, lengths, strict=True)]

    def _run(self, source: RandomSource, shape: tuple[int, int] | None = None) -> _Run:
        step = self.grid.step
        draw = _SAMPLERS[self.noise]
        threshold = clamp(math.ceil(Fraction(self.threshold) / step))
        minimum = threshold + draw(Fraction(self.threshold_scale) / step, shape, source)
        return _Run(minimum, partial(draw, Fraction(self.query_scale) / step, rng=source))

    def _number(self, steps: int, source: RandomSource) -> int:
        scale = Fraction(self.answer_scale or 0) / self.grid.step
        return steps + int(discrete_laplace(scale, None, source))


@final
@dataclass(frozen=True, slots=True)
class _Run:
    """A noisy threshold in whole steps, or one for each of many runs, and how queries' noise is drawn."""

    minimum: Any
    draw: Callable[..., Any]

    def above(self, steps: Any) -> Any:
        """Return whether queries with fresh noise are at least the threshold."""
        return steps + self.draw(size=None if isinstance(steps, int) else steps.shape) >= self.minimum
