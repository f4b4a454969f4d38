"""The neighboring inputs on which each of our own mechanisms comes closest to its claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.audit.input_pairs import REMEDY, InputPair, as_pair, as_pairs, score_pairs, vector_pairs
from sfumato.mechanisms import (
    ALP,
    AdaptiveHistogram,
    BoundedLaplace,
    CoinPress,
    ContinualSum,
    DistinctCountSketch,
    GaussianNoisyMax,
    HeavyTailedMean,
    Histogram,
    InverseSensitivity,
    KNorm,
    KroneckerMechanism,
    MatrixMechanism,
    MultiplicativeWeights,
    OnlineMultiplicativeWeights,
    ParallelComposition,
    PrivateBounds,
    PrivateCandidates,
    ProposeTestRelease,
    PureContinualSum,
    QuantileTree,
    SampleAndAggregate,
    SecondMoments,
    SmallDatabase,
    StabilityHistogram,
    TheilSen,
    TrimmedMean,
    TukeyMedian,
    UnknownDomainTopK,
)
from sfumato.mechanisms.base.additive import AdditiveMechanism
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.query import Query, TransformedQuery
from sfumato.mechanisms.local_sensitivity.smooth_noise import SmoothStatistic
from sfumato.mechanisms.noise.randomized_response import RandomizedResponse
from sfumato.mechanisms.query import neighboring_datasets
from sfumato.mechanisms.selection.selection import Selection
from sfumato.mechanisms.sparse_vector.above_threshold import AboveThreshold
from sfumato.mechanisms.statistics.coinpress_vectors.stepwise_moments import StepwiseMoments
from sfumato.mechanisms.statistics.quantile.rank_mechanism import RankMechanism
from sfumato.privacy.neighboring import Neighboring

__all__ = ["column_pairs", "default_pairs", "key_pairs", "line_pairs", "neighbors"]

_SEARCHED = 400


@singledispatch
def default_pairs(mechanism: Any) -> list[InputPair]:
    """Return pairs that try a mechanism of ours hardest, as far as its public parameters tell.

    Of anything else, what its attribute ``pairs`` holds.

    Raises
    ------
    ParameterError
        If none are known for its type.
    """
    given: Iterable[Any] | None = getattr(mechanism, "pairs", None)
    if given is None:
        what = f"a {type(mechanism).__name__}" if isinstance(mechanism, Mechanism) else "a callable"
        _check.refuse_state("pairs", f"be given for {what}", "none were", REMEDY)
    return as_pairs(given)


@default_pairs.register
def _(mechanism: PrivateCandidates) -> list[InputPair]:
    remedy = "pass pairs=[(first, second), ...] of neighboring data as its run takes them"
    _check.refuse_state("pairs", "be given for PrivateCandidates", "none were", remedy)


@default_pairs.register
def _(mechanism: AdditiveMechanism) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    if mechanism.sensitivity is not None:
        sensitivity = number(mechanism.sensitivity)
        if mechanism.l0 == 1:
            return [InputPair(first=number(0), second=sensitivity)]
        return vector_pairs(mechanism.l0, sensitivity)
    l1, l2 = (getattr(mechanism, name, None) for name in ("l1", "l2"))
    entries = max(2, min(mechanism.l0, 8))
    overall = float(l1 or l2 or 0)
    share = number(overall / (entries if l1 is not None else entries**0.5))
    shared = vector_pairs(entries, share) if share else []
    return [*vector_pairs(entries, number(overall), moved=1), *shared]


@default_pairs.register
def _(mechanism: Measurement) -> list[InputPair]:
    if isinstance(mechanism.query, SecondMoments):
        return _far_vectors(mechanism.query, mechanism.neighboring)
    values, bounds = _records(mechanism.query)
    domain = neighboring_datasets.domain_of(bounds, values)
    shared = neighboring_datasets.shared_size_range((1, 5), mechanism.neighboring)
    pairs = neighboring_datasets.boundary_pairs(domain, mechanism.neighboring, shared, 0)
    # The noise does not depend on the data, so the pair whose answers differ most is the worst.
    worst = max(islice(pairs, _SEARCHED), key=lambda pair: _moved(mechanism.query, pair))
    return [as_pair(worst)]


@default_pairs.register
def _(mechanism: Selection) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    candidates = 4 if mechanism.candidates is None else len(mechanism.candidates)
    moved, step = getattr(mechanism, "l0", None) or candidates, number(mechanism.sensitivity)
    if moved < candidates:  # the first few rise, among equals and far behind
        zeros = np.zeros(candidates, dtype=type(step))
        risen = zeros + step * (np.arange(candidates) < moved)
        ahead = zeros + 4 * step * (np.arange(candidates) > 0)
        return [InputPair(first=base, second=base + risen) for base in (zeros, ahead)]
    # What trails by about the noise is chosen often enough to be counted, and seldom enough to tell.
    gaps = [number(max(mechanism.sensitivity, multiple * mechanism.scale)) for multiple in (1, 2, 3)]
    return score_pairs(max(2, candidates), step, monotone=mechanism.monotone, gaps=gaps)


@default_pairs.register
def _(mechanism: AboveThreshold) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    at, step = number(mechanism.threshold), number(mechanism.sensitivity)
    length = min(6, getattr(mechanism, "length", 6))
    first, second = np.full(length, at), np.full(length, at + step)
    if not mechanism.monotone:
        first[-2:], second[-2:] = at + step, at
    return [InputPair(first=first, second=second)]


@default_pairs.register
def _(mechanism: RandomizedResponse) -> list[InputPair]:
    first, second = mechanism.categories[:2]
    return [InputPair(first=first, second=second)]


@default_pairs.register
def _(mechanism: BoundedLaplace) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    lower, sensitivity = number(mechanism.bounds[0]), number(mechanism.sensitivity)
    return [InputPair(first=lower, second=lower + sensitivity)]


@default_pairs.register
def _(mechanism: GaussianNoisyMax) -> list[InputPair]:
    noise = mechanism.mechanism
    number: Callable[[Any], int | float] = int if noise.integral else float
    candidates = 3 if mechanism.candidates is None else len(mechanism.candidates)
    if noise.sensitivity is not None and noise.l0 >= candidates:
        return score_pairs(max(2, candidates), number(noise.sensitivity))
    # One score rises, by all that the noise is for.
    risen = number(noise.sensitivity if noise.sensitivity is not None else noise.l2)
    zeros = np.zeros(max(2, candidates), dtype=type(risen))
    return [InputPair(first=zeros, second=zeros + risen * (np.arange(len(zeros)) == 0))]


@default_pairs.register
def _(mechanism: ALP) -> list[InputPair]:
    moved = min(mechanism.l1, mechanism.maximum)
    return [InputPair(first={0: mechanism.maximum}, second={0: mechanism.maximum - moved})]


@default_pairs.register(StabilityHistogram)
@default_pairs.register(UnknownDomainTopK)
def _(mechanism: Any) -> list[InputPair]:
    moved = mechanism.l0 if isinstance(mechanism, UnknownDomainTopK) else mechanism.noise.l0
    return key_pairs(min(3, moved or 1))


@default_pairs.register(CoinPress)
@default_pairs.register(HeavyTailedMean)
@default_pairs.register(InverseSensitivity)
@default_pairs.register(RankMechanism)
@default_pairs.register(QuantileTree)
@default_pairs.register(SampleAndAggregate)
@default_pairs.register(SmoothStatistic)
@default_pairs.register(TrimmedMean)
def _(mechanism: Any) -> list[InputPair]:
    return column_pairs(mechanism.bounds, mechanism.neighboring)


@default_pairs.register
def _(mechanism: ProposeTestRelease) -> list[InputPair]:
    bounds: tuple[Any, Any] | None = getattr(mechanism.statistic, "bounds", None)
    if bounds is None:
        _check.refuse_state("pairs", "be given for a statistic without bounds", "none were", REMEDY)
    return column_pairs(bounds, mechanism.neighboring)


@default_pairs.register
def _(mechanism: PrivateBounds) -> list[InputPair]:
    minimum, maximum = (2.0 ** min(exponent, 1000) for exponent in mechanism.exponents)
    return column_pairs((minimum, maximum), mechanism.neighboring)


@default_pairs.register
def _(mechanism: DistinctCountSketch) -> list[InputPair]:
    # Made-up items hide a few; the registers themselves are released too, of which these are the estimate.
    return [InputPair(first=list(range(mechanism.items_per_unit)), second=[])]


@default_pairs.register
def _(mechanism: StepwiseMoments) -> list[InputPair]:
    far = np.array(getattr(mechanism, "center", None) or np.zeros(mechanism.columns)) + 1e50
    return [neighbors(np.array([far]), far, -far, mechanism.neighboring)]


@default_pairs.register(AdaptiveHistogram)
@default_pairs.register(TukeyMedian)
def _(mechanism: Any) -> list[InputPair]:
    corner, other = np.array(mechanism.bounds).T
    return [neighbors(np.array([corner]), other, corner, mechanism.neighboring)]


@default_pairs.register
def _(mechanism: TheilSen) -> list[InputPair]:
    if mechanism.features > 1:
        # All but the last record are the origin and units of all features but the last, with a response of 0.
        up, down = np.zeros((2, mechanism.features + 1))
        up[-2:], down[-2:] = (1.0, 1e300), (1.0, -1e300)
        return [neighbors(np.eye(mechanism.features, len(up), k=-1), up, down, mechanism.neighboring)]
    lower, upper = cast("tuple[float, float]", mechanism.slope_bounds)
    return line_pairs((float(lower), float(upper)), mechanism.neighboring)


@default_pairs.register(ContinualSum)
@default_pairs.register(PureContinualSum)
def _(mechanism: Any) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    sensitivity = number(mechanism.sensitivity)
    zeros = np.zeros(min(mechanism.strategy.steps, 64), dtype=type(sensitivity))
    other = zeros.copy()
    other[:: mechanism.participation.separation][: mechanism.participation.max_participations] = sensitivity
    return [InputPair(first=zeros, second=other)]


@default_pairs.register
def _(mechanism: KNorm) -> list[InputPair]:
    number: Callable[[Any], int | float] = int if mechanism.integral else float
    sensitivity, zeros = number(mechanism.sensitivity), np.zeros(mechanism.dimension, dtype=np.int64)
    one = zeros + (np.arange(mechanism.dimension) == 0)
    if mechanism.facets is None and not mechanism.euclidean:
        return [InputPair(first=zeros * sensitivity, second=(zeros + 1) * sensitivity)]
    # As far as the norm lets one entry go.
    far = number(Fraction(mechanism.sensitivity) / mechanism.norm(one))
    return [InputPair(first=zeros * far, second=one * far)]


@default_pairs.register
def _(mechanism: KroneckerMechanism) -> list[InputPair]:
    zeros = np.zeros([np.shape(factor)[1] for factor in mechanism.factors], dtype=np.int64)
    one = zeros.copy()
    one.flat[0] = 1
    if mechanism.neighboring is not Neighboring.REPLACE_ONE:
        return [InputPair(first=one, second=zeros)]
    other = zeros.copy()
    other.flat[-1] = 1
    return [InputPair(first=one, second=other)]


@default_pairs.register
def _(mechanism: MatrixMechanism) -> list[InputPair]:
    return default_pairs(mechanism.measurement)


@default_pairs.register(MultiplicativeWeights)
@default_pairs.register(SmallDatabase)
def _(mechanism: Any) -> list[InputPair]:
    return _cells(mechanism.workload.histogram, mechanism.neighboring)


@default_pairs.register
def _(mechanism: OnlineMultiplicativeWeights) -> list[InputPair]:
    queries = np.eye(mechanism.histogram.entries)[:4]
    return [
        InputPair(first=(pair.first, queries), second=(pair.second, queries))
        for pair in _cells(mechanism.histogram, mechanism.neighboring)
    ]


@default_pairs.register
def _(mechanism: ParallelComposition) -> list[InputPair]:
    # One unit is in one part only.
    known = [default_pairs(part)[0] for part in mechanism.parts.values()]
    return [
        InputPair(
            first=[other.first for other in known],
            second=[other.second if other is pair else other.first for other in known],
        )
        for pair in known
    ]


def _far_vectors(query: SecondMoments, neighboring: Neighboring) -> list[InputPair]:
    """Return vectors as far from the center as they may be, in two directions."""
    center = np.zeros(query.columns) if query.center is None else np.asarray(query.center, np.float64)
    first, last = np.eye(query.columns)[0], np.eye(query.columns)[-1]
    shared = np.array([center])
    return [neighbors(shared, center + query.radius * first, center - query.radius * last, neighboring)]


def _cells(histogram: Histogram, neighboring: Neighboring) -> list[InputPair]:
    """Return few records in two of the cells, one of which is about to change."""
    values, _ = _records(histogram)
    shared = np.array((values or (0, 1))[:2])
    return [neighbors(shared, shared[-1], shared[0], neighboring)]


def _records(query: Query) -> tuple[Sequence[Any] | None, tuple[float, float] | None]:
    """Return the values, or the bounds, of the records that a query tells apart."""
    while isinstance(query, TransformedQuery) and query.transformation is None:
        query = query.query
    cells = getattr(query, "histogram", query)
    categories, edges = (getattr(cells, name, None) for name in ("categories", "edges"))
    if categories is not None:
        # A record may also be in no cell.
        alike = [value for value in ("none of these", -1) if isinstance(categories[0], type(value))]
        return [*categories, *(value for value in alike if value not in categories)], None
    if edges is not None:
        inner = np.clip(np.asarray(edges), -1e15, 1e15)
        return list((inner[:-1] + inner[1:]) / 2), None
    bounds = getattr(query, "bounds", None)
    if bounds is None and isinstance(query, TransformedQuery):
        _check.refuse_state("pairs", "be given for a transformed query", "none were", REMEDY)
    return None, bounds or (0, 1)


def _moved(query: Query, pair: neighboring_datasets.DatasetPair) -> float:
    first, second = (np.asarray(query.steps(data), dtype=np.float64) for data in pair.datasets())
    return float(np.abs(first - second).sum())


def column_pairs(bounds: tuple[Any, Any], neighboring: Neighboring) -> list[InputPair]:
    """Make neighboring columns of records at the ends of their bounds.

    Parameters
    ----------
    bounds : tuple of two numbers
        Records are whole where both are ints.
    neighboring : Neighboring

    Returns
    -------
    list of InputPair
        One of few records, which any one moves far; one of equal halves, of which one record decides what is
        in the middle; one of records between the bounds, on whose sides answers differ in rank.
    """
    kind = np.int64 if all(isinstance(bound, int) for bound in bounds) else np.float64
    lower, upper = np.array(bounds).astype(kind)
    middle = np.array(lower / 2 + upper / 2).astype(kind)
    few, halves = np.array([lower, upper]), np.repeat(np.array([lower, upper]), [8, 7])
    between = np.repeat(np.array([lower, middle]), [3, 5])
    return [neighbors(shared, upper, lower, neighboring) for shared in (few, halves, between)]


def key_pairs(keys: int) -> list[InputPair]:
    """Make counts of keys: a lone unit brings that many new ones, or leaves that many known ones."""
    known = dict.fromkeys(range(keys), 4)
    more = known | dict.fromkeys(range(keys, 2 * keys), 1)
    return [
        InputPair(first=known, second=more),
        InputPair(first=known, second=dict.fromkeys(range(keys), 3)),
    ]


def line_pairs(slopes: tuple[float, float], neighboring: Neighboring) -> list[InputPair]:
    """Make points on a line, of which one leaves it."""
    steep, flat = (np.array([1.0, float(slope)]) for slope in slopes)
    return [neighbors(np.zeros((1, 2)), flat, steep, neighboring)]


def neighbors(shared: NDArray[Any], extra: Any, other: Any, neighboring: Neighboring) -> InputPair:
    """Return some records with one more; beside them without it, or with another or a zero in its place."""
    without = np.zeros_like(np.asarray(extra)) if neighboring is Neighboring.ZERO_OUT else other
    second = shared if neighboring is Neighboring.ADD_REMOVE else _with(shared, without)
    return InputPair(first=_with(shared, extra), second=second)


def _with(shared: NDArray[Any], record: Any) -> NDArray[Any]:
    return np.concatenate([shared, np.asarray(record, dtype=shared.dtype)[None]])
