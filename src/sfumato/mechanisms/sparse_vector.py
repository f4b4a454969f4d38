"""The sparse vector technique: which of many queries are above a threshold, paid for by those that are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Rational
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.additive import as_bound, as_number
from sfumato.mechanisms.calibrate import Request, least_pure_noise
from sfumato.mechanisms.grid import Grid, clamp
from sfumato.mechanisms.lattice import Lattice
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.rational import Number, plain
from sfumato.mechanisms.release import Release
from sfumato.numerics.rounding import fraction_down
from sfumato.numerics.samplers import discrete_laplace, geometric
from sfumato.numerics.source import RandomSource, Rng, random_source
from sfumato.privacy.leaves import sparse_vector as leaf
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SparseVector"]

_Steps = NDArray[np.int64]
_SAMPLERS: Final[dict[str, Callable[..., Any]]] = {"laplace": discrete_laplace, "exponential": geometric}
_BLOCK: Final = 1 << 16
_NUMBERS_SHARE: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(Mechanism):
    r"""Tells of each query whether it is above a threshold, until so many have been.

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
        Law of the noise on threshold and queries. Exponential noise has half the variance at the same cost.
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
    value that a comparison used is told.

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

    sensitivity: Number
    threshold_scale: Number
    query_scale: Number
    answer_scale: Number | None = None
    positives: int = 1
    threshold: Number = 0
    noise: Literal["laplace", "exponential"] = "laplace"
    monotone: bool = False
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", as_bound("sensitivity", self.sensitivity))
        remedy = "pass epsilon= to SparseVector.calibrated to have it chosen"
        for name in ("threshold_scale", "query_scale", "answer_scale"):
            if name != "answer_scale" or self.answer_scale is not None:
                object.__setattr__(self, name, as_number(name, getattr(self, name), remedy))
        noise: object = self.noise
        if not isinstance(noise, str) or noise not in _SAMPLERS:
            _check.refuse("noise", "be 'laplace' or 'exponential'", noise)
        finite = _check.finite("threshold", self.threshold)
        if not isinstance(self.threshold, Rational):
            object.__setattr__(self, "threshold", finite)
        widest = max(Fraction(self.threshold_scale), Fraction(self.query_scale))
        lattice = Lattice.settle(self.sensitivity, noise=widest, grid=self.grid, integral=self.integral)
        object.__setattr__(self, "grid", lattice.grid)
        object.__setattr__(self, "integral", lattice.integral)
        lattice.check_noise("threshold_scale", Fraction(self.threshold_scale))
        lattice.check_noise("query_scale", Fraction(self.query_scale))
        if self.answer_scale is not None:
            lattice.check_noise("answer_scale", Fraction(self.answer_scale))
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
        """Return the mechanism with the least noise in its comparisons that is epsilon-DP.

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
        request = Request(epsilon=epsilon, delta=0.0)
        count = _check.integer("positives", positives, minimum=1, remedy="the run ends with the last of them")
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
        scale = least_pure_noise(lambda noise: of(noise, fixed).privacy_loss, request, start)
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

    def answers(self, queries: Iterable[Any], *, rng: Rng = None) -> Iterator[Any]:
        """Answer one query after another.

        Parameters
        ----------
        queries : iterable of numbers
            Exact answers, private; each is taken only after the one before it was answered, so a generator
            may choose it from the answers so far.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Yields
        ------
        bool, int or float
            Whether the query is above; where ``answer_scale`` is given a noisy number instead of True. Ends
            with the last positive.
        """
        source = random_source(rng)
        least = self._noisy_threshold(source)
        left = self.positives
        for query in queries:
            steps = self._lattice.steps(query, name="queries")
            if not isinstance(steps, int):
                _check.refuse("queries", "be numbers", type(query), "release takes an array of them")
            if steps + self._draw(self.query_scale, None, source) < least:
                yield False
                continue
            yield True if self.answer_scale is None else self._numbers(steps, source)
            left -= 1
            if not left:
                return

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Answer an array of queries.

        Parameters
        ----------
        value : numpy array
            The exact answers, in one dimension.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of the answers up to the last positive: booleans, or floats where ``answer_scale`` is given, with
            NaN for "below".
        """
        steps = np.atleast_1d(self._lattice.steps(value))
        if steps.ndim != 1:
            _check.refuse("value", "have one dimension", steps.shape, "pass one query after another")
        source = random_source(rng)
        places = self._positives(steps, source)
        end = places[-1] + 1 if len(places) == self.positives else len(steps)
        told: NDArray[Any]
        if self.answer_scale is None:
            told = np.zeros(end, dtype=np.bool_)
            told[places] = True
        else:
            told = np.full(end, np.nan)
            told[places] = [float(self._numbers(int(steps[place]), source)) for place in places]
        return Release(
            value=told,
            loss=self.privacy_loss,
            neighboring=self.neighboring,
            simulated=source.simulated,
        )

    def _positives(self, steps: _Steps, source: RandomSource) -> _Steps:
        """Return the places of the first positives, at most as many as the run has."""
        least = self._noisy_threshold(source)
        found: list[_Steps] = []
        left = self.positives
        for start in range(0, len(steps), _BLOCK):
            block = steps[start : start + _BLOCK]
            above = np.flatnonzero(block + self._draw(self.query_scale, block.shape, source) >= least)[:left]
            found.append(above + start)
            left -= len(above)
            if not left:
                break
        return np.concatenate([np.zeros(0, np.int64), *found])

    @property
    def _lattice(self) -> Lattice:
        return Lattice(self.grid, self.integral)

    def _shift(self) -> int:
        return self._lattice.shift(self.sensitivity)

    def _noisy_threshold(self, source: RandomSource) -> int:
        threshold = clamp(math.ceil(Fraction(self.threshold) / self.grid.step))
        return threshold + int(self._draw(self.threshold_scale, None, source))

    def _draw(self, scale: Number, shape: tuple[int, ...] | None, source: RandomSource) -> Any:
        return _SAMPLERS[self.noise](Fraction(scale) / self.grid.step, shape, source)

    def _numbers(self, steps: int, source: RandomSource) -> int | float:
        scale = Fraction(self.answer_scale or 0) / self.grid.step
        noisy = steps + int(discrete_laplace(scale, None, source))
        return noisy if self.integral else float(noisy * self.grid.step)
