"""The sparse vector technique with Laplace or exponential noise: only answers "above" cost privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Final, Literal, cast, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_pure_noise
from sfumato.mechanisms.base.grid import Grid, clamp
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.sparse_vector.above_threshold import AboveThreshold, SparseVectorRun
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.rounding import fraction_down, fraction_up
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
    gaps : bool
        Whether a query above is answered by its gap: by how much the noisy query exceeds the noisy threshold,
        at no cost. Threshold plus gap estimates the query; `query_interval` bounds it. Not with
        ``answer_scale``.
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
    value that a comparison used is released but, if so wanted, the gaps of the queries above.

    *Gaps are free* (Ding et al. 2023; for Laplace and exponential noise, not shown for Gaussian noise). Let
    the noise be z on the threshold and :math:`\eta` on a query q above, and let the query be q' on the
    neighboring dataset, at most s away. The same answers, with the same gaps, come on it from the noise z + s
    and :math:`\eta + (q - q') + s`, a move of 0 to 2 s, to which either distribution gives at least
    :math:`e^{-2s/b}` times the probability. For monotone queries that fall it is z and
    :math:`\eta + (q - q')`, for those that rise z + s as before: a move of 0 to s. That map of the noise is
    one-to-one, and so sums over the noise of a run compare term by term.

    A comparison counts as "above" where query and noise are at least threshold and noise.

    References
    ----------
    Dwork, Roth (2014), section 3.6; Lyu, Su, Li (2017), "Understanding the sparse vector technique for
    differential privacy", Algorithm 7 and the split of the budget; Ding, Wang, Xiao, Zhang, Kifer (2023),
    "Free gap estimates from the exponential mechanism, sparse vector, noisy max and related algorithms".

    Examples
    --------
    >>> mechanism = SparseVector.calibrated(sensitivity=1, epsilon=1.0, threshold=100, monotone=True)
    >>> mechanism.threshold_scale, mechanism.query_scale
    (2, 2)
    >>> list(mechanism.answers([3, 5, 300, 200], rng=5))
    [False, False, True]

    >>> with_gaps = SparseVector.calibrated(
    ...     sensitivity=1, epsilon=1.0, threshold=100, monotone=True, gaps=True
    ... )
    >>> *below, gap = with_gaps.answers([3, 5, 300, 200], rng=5)
    >>> 100 + gap, with_gaps.query_interval(gap, queries=4)[:2], with_gaps.privacy_loss.epsilon(0.0)
    (299, (282.0, 316.0), 1.0)
    """

    threshold_scale: Number
    query_scale: Number
    answer_scale: Number | None = None
    noise: Literal["laplace", "exponential"] = "laplace"
    gaps: bool = False

    _NOISES: ClassVar[tuple[str, str, str]] = ("threshold_scale", "query_scale", "answer_scale")

    def __post_init__(self) -> None:
        noise: object = self.noise
        if not isinstance(noise, str) or noise not in _SAMPLERS:
            remedy = "pass 'exponential' for less noise at the same epsilon"
            _check.refuse("noise", "be 'laplace' or 'exponential'", noise, remedy)
        if not isinstance(self.gaps, bool):
            _check.refuse("gaps", "be True or False", self.gaps, "pass True to have gaps released")
        if self.gaps and self.answer_scale is not None:
            remedy = "leave one of them out; a gap costs nothing"
            _check.refuse("gaps", "be False where answer_scale is given", self.gaps, remedy)
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
        gaps: bool = False,
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
        sensitivity, positives, threshold, gaps, noise, monotone, grid, integral, neighboring
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
                gaps=gaps,
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
        run = self._run(source, (size, 1))
        above, noisy = run.compare(np.broadcast_to(steps, (size, len(steps))))
        # A run ends with its last positive.
        lived = above.cumsum(axis=1) - above < self.positives
        released = above & lived
        lengths = lived.sum(axis=1).tolist()
        if not self._numeric:
            return [row[:length] for row, length in zip(released, lengths, strict=True)]
        numbers = np.full(released.shape, np.nan)
        if self.gaps:
            minimum = np.broadcast_to(run.minimum, released.shape)[released].astype(object)
            found = noisy[released].astype(object) - minimum
        else:
            exact = np.broadcast_to(steps, released.shape)[released]
            scale = Fraction(self.answer_scale or 0) / self.grid.step
            found = exact + discrete_laplace(scale, exact.size, source)
        numbers[released] = [float(self._released(int(number))) for number in found]
        return [row[:length] for row, length in zip(numbers, lengths, strict=True)]

    def query_interval(self, gap: Any, *, queries: int, level: float = 0.95) -> Interval[Any]:
        """Return an interval for a query above, or for each of an array of them, from its gap.

        Parameters
        ----------
        gap : float or array
            As released, where ``gaps`` is True; NaN, a query below, gives NaN.
        queries : int
            At least as many as were asked; public.
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        Interval
            Rounded outward, of queries rounded to the grid. With probability at least the level over the
            whole run, all of the run's gaps have the query within their interval.

        Notes
        -----
        Which queries are above follows the noise, so no interval of a single one would hold among those
        released. Half of the error is that of the threshold's noise, the other half is shared by the noise of
        all queries that were asked (Bonferroni).

        Examples
        --------
        >>> mechanism = SparseVector(sensitivity=1, threshold_scale=2, query_scale=4, gaps=True)
        >>> mechanism.query_interval(30, queries=10)[:2]
        (-1.0, 61.0)
        """
        if not self.gaps:
            _check.refuse("gaps", "be True for an interval of a query", self.gaps, "release gaps")
        asked = _check.integer("queries", queries, minimum=1, remedy="pass how many queries were asked")
        error = (1 - Fraction(_check.unit_interval("level", level))) / 2
        below, above = self._reach(self.threshold_scale, error)
        low, high = self._reach(self.query_scale, error / asked)
        middle = np.asarray(gap, dtype=np.float64)
        step, threshold = self.grid.step, self._threshold()
        ends = (threshold - high - below) * step, (threshold + low + above) * step
        lower = np.nextafter(middle + fraction_down(ends[0]), -math.inf)
        upper = np.nextafter(middle + fraction_up(ends[1]), math.inf)
        if self.integral:  # sums of whole numbers, which floats hold exactly up to 2**53
            lower, upper = np.ceil(lower), np.floor(upper)
        return Interval(lower, upper) if middle.ndim else Interval(float(lower), float(upper))

    def _reach(self, scale: Number, error: Fraction) -> tuple[int, int]:
        """Return how far noise of that scale is below and above 0 at most, in steps, but for an error."""
        in_steps = Fraction(scale) / self.grid.step
        if self.noise == "exponential":
            # P(X >= k) = exp(-k / scale)
            found = math.ceil(in_steps * Fraction(-math.log(error) * (1 + 1e-12)))
            return 0, found
        beyond = DiscreteLaplaceDistribution(in_steps).quantile_above(fraction_down(error / 2))
        return beyond - 1, beyond - 1

    def _threshold(self) -> int:
        return clamp(math.ceil(Fraction(self.threshold) / self.grid.step))

    @property
    def _numeric(self) -> bool:
        return self.gaps or self.answer_scale is not None

    def _run(self, source: RandomSource, shape: tuple[int, int] | None = None) -> _Run:
        step = self.grid.step
        draw = _SAMPLERS[self.noise]
        minimum = self._threshold() + draw(Fraction(self.threshold_scale) / step, shape, source)
        return _Run(minimum, partial(draw, Fraction(self.query_scale) / step, rng=source))

    def _number(self, steps: int, noisy: int, run: SparseVectorRun, source: RandomSource) -> int:
        if self.gaps:
            return noisy - int(cast("_Run", run).minimum)
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
        return self.compare(steps)[0]

    def compare(self, steps: Any) -> tuple[Any, Any]:
        """Return the same, and the noisy queries."""
        noisy = steps + self.draw(size=None if isinstance(steps, int) else steps.shape)
        return noisy >= self.minimum, noisy
