"""Online private multiplicative weights: queries arrive one by one; only surprising answers cost privacy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, cheapest_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, floor_log2, plain, power_of_two
from sfumato.mechanisms.factorization.multiplicative_weights import MultiplicativeWeightsRelease
from sfumato.mechanisms.factorization.online_utility import OnlineUtility
from sfumato.mechanisms.factorization.query_stream import LinearQueryStream, query_steps
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.counts import Histogram
from sfumato.mechanisms.selection.selection import failure_probability
from sfumato.mechanisms.sparse_vector.laplace_sparse_vector import SparseVector
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["OnlineMultiplicativeWeights"]

_TOTAL, _NUMBERS = Fraction(1, 10), Fraction(1, 5)  # shares of epsilon; comparisons have the rest
_GRID: Final = Grid(exponent=-20)
_FINEST: Final = -24
_TRIED: Final = 29  # numbers of updates, from 1 to 2**14


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineMultiplicativeWeights(Mechanism):
    r"""Answers to a stream of linear queries; those that a synthetic histogram answers well are free.

    Parameters
    ----------
    histogram : Histogram
        The cells. A query has one weight from 0 to 1 for each, and asks for the sum of all records' weights.
    updates : int
        So many surprises are paid for. After the last the synthetic histogram answers, unchecked.
    threshold : int, float or Fraction
        A surprise is a synthetic answer that is off by about this many records, or by more.
    total_scale, threshold_scale, query_scale, answer_scale : int, float or Fraction
        Scales of the Laplace noise, in records: on the number of records, on the threshold, on each
        comparison with it, and on each answer that is measured.
    grid : Grid
        What weights are rounded to, from ``Grid(exponent=-24)`` to ``Grid(exponent=0)``.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: the sum of the losses of one Laplace release of the number of records in the cells, of the
    sparse vector technique with ``updates`` positives (`sfumato.privacy.SparseVector`), and of ``updates``
    Laplace releases, whatever the number of queries. Queries may be chosen from all earlier answers.

    *Proof.* Number and grid apart, weights lie in [0, 1], so under each relation one unit moves an answer by
    at most 1. A synthetic answer is a function of the query and of what was released before, rounded to a
    whole step; so the distance of the exact answer from it, of which the comparison is made, moves by at most
    1 too. Fix all that is released. Its probability is that of the total, times that of the comparisons'
    outcomes given all earlier answers, times the noise's at each measured answer: the noise of measurements
    is fresh, so it is a factor beside the integral over the threshold's noise, in which the proof of the
    sparse vector technique stands as it is. So the loss is the sum of the three, each of the last
    conditionally on what was released before. From the last update on the data is not read.

    *Utility.* Let n records be in k cells, :math:`h` the true shares and :math:`p` the synthetic ones, and
    :math:`\gamma = \langle q, h - p\rangle` what a measured query is off. The update multiplies p by
    :math:`e^{4\hat\gamma q}`, with :math:`\hat\gamma` the noisy :math:`\gamma`, clipped to [-1, 1]. As
    weights have a range of 1, Hoeffding's lemma gives :math:`D(h\|p) - D(h\|p') \ge 4\hat\gamma\gamma -
    2\hat\gamma^2 = 2\gamma^2 - 2(\gamma - \hat\gamma)^2`. The divergence starts at no more than
    :math:`\ln k` and is never negative. Let the error of the total be at most a, that of a comparison at
    most c, that of a measurement at most d, and T the threshold. A surprise is off by T - c or more, so
    :math:`n|\gamma| \ge B = T - c - a`, which takes :math:`n \ge B`; and :math:`|\gamma - \hat\gamma| \le
    (a + d)/(n - a) \le ED/n` with :math:`D = a + d, E = B/(B - a)`. So there are at most :math:`n^2 \ln k/(2
    (B^2 - (ED)^2))` surprises. If that is less than ``updates + 1``, every answer is within max(T + c, d):
    one that was not checked after the last update would be a surprise too.

    Hardt and Rothblum take one rate for all updates; this one follows from what was measured, and is the
    best. Only where queries and cells are very many is this better than noise on each of either.

    References
    ----------
    Hardt, Rothblum, "A multiplicative weights mechanism for privacy-preserving data analysis" (FOCS 2010);
    Dwork, Roth (2014), section 4.2; Lyu, Su, Li (2017), the split of the budget.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = OnlineMultiplicativeWeights.calibrated(
    ...     histogram=Histogram(categories=range(8)), records=10_000, queries=1000, epsilon=1.0)
    >>> stream = mechanism.stream(np.repeat([1, 2, 6], [5000, 4000, 1000]), rng=7)
    >>> first = stream.send([0, 1, 1, 0, 0, 0, 0, 0])
    >>> abs(first.value - 9000) < mechanism.utility_bound(0.05, queries=1000, records=10_000)
    True
    >>> stream.send([0, 1, 1, 0, 0, 0, 0, 0]).measured  # it has been learnt
    False
    """

    histogram: Histogram
    updates: int
    threshold: Number
    total_scale: Number
    threshold_scale: Number
    query_scale: Number
    answer_scale: Number
    grid: Grid = _GRID
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    _runs: SparseVector = field(init=False, repr=False, compare=False)

    _NOISES: ClassVar[tuple[str, ...]] = ("total_scale", "threshold_scale", "query_scale", "answer_scale")

    def __post_init__(self) -> None:
        _check.instance("histogram", self.histogram, Histogram, "pass Histogram(categories=...)")
        _check.instance(
            "neighboring", self.neighboring, Neighboring, "pass Neighboring.ADD_REMOVE or another"
        )
        _check.instance("grid", self.grid, Grid, "pass Grid(exponent=-20)")
        if not _FINEST <= self.grid.exponent <= 0:
            remedy = "pass Grid(exponent=-24) up to Grid(exponent=0)"
            _check.refuse("grid", "have a step from 2**-24 to 1", self.grid, remedy)
        remedy = "pass epsilon= to OnlineMultiplicativeWeights.calibrated to have it chosen"
        for name in (*self._NOISES, "threshold"):
            object.__setattr__(self, name, as_number(name, getattr(self, name), remedy))
        _check.integer("updates", self.updates, minimum=1, remedy="pass at least 1; each measures one query")
        object.__setattr__(self, "_runs", self._comparisons())
        _ = self.privacy_loss  # the steps check their scales and the relation

    @classmethod
    def calibrated(
        cls,
        *,
        histogram: Histogram,
        records: int,
        queries: int,
        epsilon: float,
        delta: float = 0.0,
        beta: float = 0.05,
        updates: int | None = None,
        grid: Grid = _GRID,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> OnlineMultiplicativeWeights:
        """Return the mechanism that meets (epsilon, delta) with about the smallest bound on its errors.

        Parameters
        ----------
        records : int
            About how many there are: a public guess, which no condition of the privacy rests on. Their very
            number would reveal something of a record that is added.
        queries : int
            About how many will be asked; more may be.
        epsilon : float
        delta : float
            With one, the measurements' composition takes less noise.
        beta : float
            The chance for which `utility_bound` is the smallest.
        updates : int, optional
            The best of some numbers unless given.
        histogram, grid, neighboring
            As in the class.

        Returns
        -------
        OnlineMultiplicativeWeights
        """
        request = PrivacyTarget(epsilon=epsilon, delta=delta)
        records = _check.integer("records", records, minimum=1)
        queries = _check.integer("queries", queries, minimum=1)
        beta = failure_probability(beta)

        def of(count: int, scale: Fraction) -> OnlineMultiplicativeWeights:
            """Return the mechanism whose pure epsilon is the inverse of ``scale``."""
            scales = _split(count, scale)
            probe = cls(
                histogram=histogram, updates=count, threshold=1, grid=grid, neighboring=neighboring,
                **dict(zip(cls._NOISES, map(plain, scales), strict=True)),
            )  # fmt: skip
            error = probe._errors(beta, queries, records)
            best = error.threshold(cells=histogram.entries, updates=count, records=records)
            return replace(probe, threshold=plain(best))

        start = 1 / request.exact_epsilon
        if updates is None:
            _check.instance("histogram", histogram, Histogram, "pass Histogram(categories=...)")
            tried = sorted({round(2 ** (k / 2)) for k in range(_TRIED)})
            planned = {"queries": queries, "records": records}
            updates = min(tried, key=lambda count: of(count, start).utility_bound(beta, **planned))
        count = _check.integer(
            "updates", updates, minimum=1, remedy="pass at least 1; each measures one query"
        )
        return of(count, cheapest_noise(lambda scale: of(count, scale).privacy_loss, request, start))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one stream, however many queries it answers."""
        numbers = self._answer().privacy_loss * self.updates
        return self._total().privacy_loss + self._runs.privacy_loss + numbers

    def utility_bound(self, beta: float, *, queries: int, records: int) -> float:
        """Return how far answers may be off.

        Parameters
        ----------
        beta : float
            From 1e-200 to below 1.
        queries : int
            How many are asked, at most.
        records : int
            How many are in the cells, at most: a public bound.

        Returns
        -------
        float
            In records: with probability at least ``1 - beta`` all answers are within it, whatever the data
            and the queries. Infinite where the updates may not suffice for that.
        """
        beta = failure_probability(beta)
        queries = _check.integer("queries", queries, minimum=1)
        records = _check.integer("records", records, minimum=1)
        return self._errors(beta, queries, records).bound(
            Fraction(self.threshold), cells=self.histogram.entries, updates=self.updates, records=records
        )

    def stream(self, data: Any, rng: Rng = None) -> LinearQueryStream:
        """Begin to answer queries on data.

        Parameters
        ----------
        data : array
            One record per entry, as the histogram takes it.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        LinearQueryStream
            Charge its loss once, before.
        """
        source = random_source(rng)
        counts = self.histogram.steps(data)
        total = float(self._total().release(int(counts.sum()), source).value)
        return LinearQueryStream(
            counts,
            grid=self.grid,
            total=max(1.0, total),
            run=self._runs._run(source),  # noqa: SLF001
            measurement=self._answer(),
            updates=self.updates,
            loss=self.privacy_loss,
            source=source,
        )

    def release(self, value: Any, rng: Rng = None) -> MultiplicativeWeightsRelease:
        """Answer queries that are all known beforehand, one after another.

        Parameters
        ----------
        value : tuple of data and array of shape (queries, cells)
            The records, private, as `stream` takes them; and the weights, public.
        rng : None, int, numpy Generator or RandomSource
            As in `stream`.

        Returns
        -------
        MultiplicativeWeightsRelease
            Its answers, the synthetic histogram that was learnt, and which queries were measured.
        """
        if not isinstance(value, tuple) or len(value) != 2:
            _check.refuse_type(
                "value", "be a pair of data and queries", value, "pass (data, queries), or take stream(data)"
            )
        data, queries = value
        table = np.asarray(queries)
        if table.ndim != 2:
            _check.refuse_type("queries", "have two axes", table, "pass an array of shape (queries, cells)")
        weights = [query_steps(row, self.histogram.entries, self.grid) for row in table]
        stream = self.stream(data, rng)
        released = [stream.answer(row) for row in weights]
        return MultiplicativeWeightsRelease(
            value=np.array([answer.value for answer in released], dtype=np.float64),
            cells=stream.cells,
            measured=tuple((index, answer.value) for index, answer in enumerate(released) if answer.measured),
            loss=stream.loss,
            neighboring=self.neighboring,
            simulated=stream.simulated,
        )

    def _errors(self, beta: float, queries: int, records: int) -> OnlineUtility:
        total, threshold, query, number = (Fraction(getattr(self, name)) for name in self._NOISES)
        return OnlineUtility.of(
            beta,
            scales=(total, threshold, query, number),
            step=self.grid.step,
            updates=self.updates,
            queries=queries,
            records=records,
        )

    def _total(self) -> Laplace:
        return Laplace(sensitivity=1, scale=self.total_scale, neighboring=self.neighboring)

    def _comparisons(self) -> SparseVector:
        # In steps, of which a record is so many.
        step = self.grid.step
        return SparseVector(
            sensitivity=int(1 / step),
            threshold_scale=plain(Fraction(self.threshold_scale) / step),
            query_scale=plain(Fraction(self.query_scale) / step),
            positives=self.updates,
            threshold=plain(Fraction(self.threshold) / step),
            neighboring=self.neighboring,
        )

    def _answer(self) -> Laplace:
        step = self.grid.step
        scale = plain(Fraction(self.answer_scale) / step)
        return Laplace(sensitivity=int(1 / step), scale=scale, neighboring=self.neighboring)


def _split(count: int, scale: Fraction) -> tuple[Fraction, ...]:
    """Return scales at which all steps together cost 1 / scale, up to a millionth less."""
    comparisons = 1 - _TOTAL - _NUMBERS
    ratio = Fraction(round((2 * count) ** (2 / 3) * 1024), 1024)
    threshold = (1 + ratio) / comparisons
    parts = (1 / _TOTAL, threshold, 2 * count * threshold / ratio, count / _NUMBERS)
    return tuple(_short_up(scale * part) for part in parts)


def _short_up(value: Fraction) -> Fraction:
    """Return a number of at most 21 bits, so that losses are computed from it without another rounding."""
    step = power_of_two(floor_log2(value) - 20)
    return -(-value // step) * step
