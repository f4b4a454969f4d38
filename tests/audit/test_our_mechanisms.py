"""The suite passes every mechanism of ours: at its own price, none is refuted.

A new mechanism is one line in ``CATALOGUE`` or ``AT_ONCE``, or in ``ONE_BY_ONE`` where its releases take
time: a name, the mechanism, and pairs where those that the audit knows for its type are not the ones to try.
Every audit may raise a false alarm with a chance of at most 1e-12, the whole file of at most 1e-9; seeds are
fixed, so that a test passes always or never. Each refutes a part of the claim, that its entry states; where
the releases are too few to refute any, they would still refute a mechanism that tells its input.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property, partial
from types import MethodType
from typing import Any

import numpy as np
import pytest
from scipy.special import betainccinv, betaincinv

import sfumato.mechanisms
from sfumato import Neighboring
from sfumato.audit import InputPair, array_pairs, audit, score_pairs
from sfumato.audit.lower_bounds import certified_epsilon
from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    ALP,
    AdaptiveHistogram,
    BinaryTree,
    BoundedLaplace,
    BoundedSum,
    CanonicalNoise,
    CoinPress,
    CoinPressCovariance,
    CoinPressVectorMean,
    ContinualSum,
    Count,
    DistinctCountSketch,
    Exponential,
    Extreme,
    Gaussian,
    GaussianNoisyMax,
    GaussianSparseVector,
    Grid,
    HeavyTailedMean,
    Histogram,
    InverseSensitivity,
    JointQuantiles,
    KNorm,
    KroneckerMechanism,
    Laplace,
    LinearWorkload,
    MannWhitney,
    MatrixMechanism,
    Mean,
    Measurement,
    Mechanism,
    MultiplicativeWeights,
    NoisyMax,
    OnlineMultiplicativeWeights,
    ParallelComposition,
    PermuteAndFlip,
    PrivateBounds,
    PrivateCandidates,
    ProposeTestRelease,
    PureContinualSum,
    Quantile,
    QuantileInterval,
    Quantiles,
    QuantileTree,
    RandomizedResponse,
    SampleAndAggregate,
    SecondMoments,
    SmallDatabase,
    SmoothQuantile,
    SmoothTrimmedMean,
    SparseVector,
    SquareRoot,
    StabilityHistogram,
    StableQuantile,
    Staircase,
    TheilSen,
    TopK,
    TrimmedMean,
    TruncatedLaplace,
    TukeyMedian,
    UnknownDomainTopK,
)
from sfumato.privacy import RandomStopping
from tests.chance import accepts_only, unrefuted

SURE = 1 - 1e-12
SEED = 20261121
REPLACE = Neighboring.REPLACE_ONE


@dataclass(frozen=True)
class Entry:
    """A mechanism, its pairs unless the audit knows them, at what delta its price is read, how near it is."""

    make: partial[Any]  # made when it is needed, as that takes time
    pairs: list[InputPair] | None = None
    delta: float = 0.0
    trials: int = 200_000
    reaches: float = 0.0  # the part of its epsilon that the audit must refute, so that it is no idle test

    @cached_property
    def mechanism(self) -> Mechanism:
        """What is audited."""
        made: Mechanism = self.make()
        assert type(made) is self.kind
        return made

    @property
    def kind(self) -> type[Mechanism]:
        """What class it is of, without making it: of what makes it, or of what is made for a query."""
        made: Any = self.make.func
        if isinstance(made, MethodType):
            made = Measurement if made.__name__ == "for_query" else made.__self__
        assert issubclass(made, Mechanism)
        kind: type[Mechanism] = made
        return kind


def laplace(**given: Any) -> Entry:
    return Entry(partial(Laplace.calibrated, epsilon=1.0, **given), reaches=0.9)


def gaussian(delta: float = 1e-2, **given: Any) -> Entry:
    return Entry(partial(Gaussian.calibrated, epsilon=1.0, delta=delta, **given), delta=delta, reaches=0.7)


def measured(query: Any, *, neighboring: Neighboring = Neighboring.ADD_REMOVE, reaches: float = 0.8) -> Entry:
    return Entry(partial(Laplace.for_query, query, epsilon=1.0, neighboring=neighboring), reaches=reaches)


ORTHOGONAL = [InputPair(first=np.array([[1.0, 0.0]]), second=np.array([[0.0, 1.0]]))]

CATALOGUE: dict[str, Entry] = {
    "Laplace on integers": laplace(sensitivity=1),
    "Laplace of sensitivity 5": laplace(sensitivity=5),
    "Laplace on reals": laplace(sensitivity=1.0),
    "Laplace on a coarse grid": laplace(sensitivity=1.0, grid=Grid(exponent=-1)),
    "Laplace on a vector": Entry(
        partial(Laplace.calibrated, sensitivity=1.0, l0=3, epsilon=1.0), reaches=0.7
    ),
    "Laplace in L1": Entry(partial(Laplace.calibrated, l1=2.0, l0=3, epsilon=1.0), reaches=0.7),
    "Laplace in L1 on integers": Entry(partial(Laplace.calibrated, l1=4, epsilon=1.0), reaches=0.7),
    "Gaussian on integers": gaussian(sensitivity=1),
    "Gaussian on reals": gaussian(sensitivity=1.0),
    "Gaussian at a small delta": Entry(
        partial(Gaussian.calibrated, sensitivity=1.0, epsilon=1.0, delta=1e-6), delta=1e-6, reaches=0.2
    ),
    "Gaussian on a vector": gaussian(sensitivity=1.0, l0=3),
    "Gaussian in L2": gaussian(l2=1.0, l0=3),
    "narrow Gaussian": Entry(partial(Gaussian, sensitivity=1, stddev=0.5), delta=1e-3, reaches=0.3),
    "truncated Laplace": Entry(
        partial(TruncatedLaplace.calibrated, sensitivity=1, epsilon=1.0, delta=1e-2), delta=1e-2, reaches=0.8
    ),
    "staircase": Entry(partial(Staircase, sensitivity=1.0, epsilon=1.0), reaches=0.9),
    "staircase on integers": Entry(partial(Staircase, sensitivity=3, epsilon=1.0), reaches=0.9),
    "Tulap noise": Entry(partial(CanonicalNoise, sensitivity=1.0, epsilon=1.0), reaches=0.9),
    "truncated Tulap noise": Entry(
        partial(CanonicalNoise, sensitivity=3, epsilon=1.0, delta=1e-2), delta=1e-2, reaches=0.8
    ),
    "canonical noise of Gaussian DP": Entry(
        partial(CanonicalNoise, sensitivity=1, mu=2.0), delta=1e-2, trials=6000, reaches=0.3
    ),
    "randomized response": Entry(
        partial(RandomizedResponse.calibrated, categories=("no", "yes"), epsilon=1.0), reaches=0.9
    ),
    "randomized response of 5": Entry(
        partial(RandomizedResponse.calibrated, categories=tuple("abcde"), epsilon=1.0), reaches=0.9
    ),
    "count": measured(Count()),
    "sum": measured(BoundedSum(bounds=(-3, 10))),
    "sum of reals, one replaced": measured(BoundedSum(bounds=(-3.0, 10.0)), neighboring=REPLACE),
    "mean": measured(Mean(bounds=(0.0, 1.0))),
    "mean of public size": measured(Mean(bounds=(0.0, 1.0), n=4), neighboring=REPLACE),
    "histogram": measured(Histogram(categories=("a", "b", "c"))),
    "histogram, one replaced": measured(Histogram(categories=("a", "b", "c")), neighboring=REPLACE),
    "histogram of intervals": measured(Histogram(edges=(0.0, 1.0, 2.0))),
    "workload": measured(LinearWorkload(matrix=np.tril(np.ones((3, 3)))), reaches=0.6),
    "workload, one replaced": measured(
        LinearWorkload(matrix=np.tril(np.ones((3, 3)))), neighboring=REPLACE, reaches=0.5
    ),
    "count on made-up arrays": Entry(
        partial(Laplace.for_query, Count(), epsilon=1.0), pairs=array_pairs(bounds=(0, 1)), reaches=0.8
    ),
    "histogram with Gaussian noise": Entry(
        partial(
            Gaussian.for_query, Histogram(categories=("a", "b")), epsilon=1.0, delta=1e-2, neighboring=REPLACE
        ),
        delta=1e-2,
        reaches=0.5,
    ),
}


def pair(first: Any, second: Any) -> list[InputPair]:
    return [InputPair(first=first, second=second)]


def one_by_one(mechanism: partial[Any], pairs: list[InputPair] | None = None, **given: Any) -> Entry:
    """An entry whose releases are drawn one at a time, and so fewer."""
    return Entry(mechanism, pairs, **{"trials": 6000, **given})


def many(mechanism: partial[Any], pairs: list[InputPair] | None, reaches: float, **given: Any) -> Entry:
    """An entry whose releases are drawn at once, but take some time to be distinguished."""
    return Entry(mechanism, pairs, reaches=reaches, **{"trials": 100_000, **given})


def selection(kind: Any, *, reaches: float, **given: Any) -> Entry:
    mechanism = partial(kind.calibrated, sensitivity=1, epsilon=1.0, **given)
    return Entry(mechanism, score_pairs(3, 1, monotone=given.get("monotone", False))[:1], reaches=reaches)


def best_of_some(scores: Any, candidate: int, source: Any) -> tuple[int, None]:
    return Laplace(sensitivity=1, scale=3).release(int(scores[candidate]), source).value, None


RECORDS = pair(np.array([1.0, 4.0, 4.0]), np.array([1.0, 4.0]))
LEAP = pair(np.array([0.0] * 8 + [5.0] * 7), np.array([0.0] * 8 + [5.0] * 8))
KEYS = [InputPair(first={"a": 4}, second={"a": 4, "b": 1}), InputPair(first={"a": 4}, second={"a": 3})]
CELLS = pair(np.array([0, 1, 2, 2]), np.array([0, 1, 2]))
PREFIXES = LinearWorkload(matrix=np.tril(np.ones((3, 3))))

AT_ONCE: dict[str, Entry] = {
    "bounded Laplace": Entry(
        partial(BoundedLaplace.calibrated, sensitivity=1, epsilon=1.0, bounds=(0, 4)), pair(0, 1), reaches=0.8
    ),
    "exponential mechanism": selection(Exponential, reaches=0.4),
    "exponential mechanism, monotone": selection(Exponential, monotone=True, reaches=0.4),
    "permute-and-flip": selection(PermuteAndFlip, reaches=0.6),
    "noisy max, Laplace": selection(NoisyMax, reaches=0.4),
    "noisy max, exponential": selection(NoisyMax, noise="exponential", monotone=True, reaches=0.6),
    "noisy max, Gumbel": selection(NoisyMax, noise="gumbel", reaches=0.4),
    "noisy max, Gaussian": Entry(
        partial(GaussianNoisyMax.calibrated, sensitivity=1, l0=3, epsilon=1.0, delta=1e-2),
        score_pairs(3, 1)[:1],
        delta=1e-2,
        reaches=0.3,
    ),
    "median": Entry(partial(Quantile, bounds=(0, 5), epsilon=1.0), RECORDS, reaches=0.2),
    "median by inverse sensitivity": Entry(
        partial(InverseSensitivity, bounds=(0, 5), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE),
        pair(np.array([1.0, 4.0, 4.0]), np.array([1.0, 4.0, 0.0])),
        reaches=0.4,
    ),
    "largest": Entry(partial(Extreme, bounds=(0, 5), epsilon=1.0), RECORDS, reaches=0.2),
    "sums over time, Laplace": Entry(
        partial(PureContinualSum.calibrated, strategy=BinaryTree(steps=4), sensitivity=1, epsilon=1.0),
        pair(np.array([0, 1, 0, 0]), np.array([0, 0, 0, 0])),
        reaches=0.4,
    ),
    "sums over time": Entry(
        partial(
            ContinualSum.calibrated, strategy=SquareRoot(steps=4), sensitivity=1, epsilon=1.0, delta=2e-2
        ),
        pair(np.array([0, 1, 0, 0]), np.array([0, 0, 0, 0])),
        delta=2e-2,
        reaches=0.6,
    ),
    "second moments of vectors, one replaced": Entry(
        partial(
            Gaussian.for_query,
            SecondMoments(columns=2, radius=1.0, centered=False),
            epsilon=1.0,
            delta=1e-2,
            neighboring=REPLACE,
        ),
        ORTHOGONAL,
        delta=1e-2,
        reaches=0.5,
    ),
    "Tukey median": Entry(
        partial(TukeyMedian, bounds=((0.0, 2.0), (0.0, 2.0)), epsilon=1.0, points=3),
        pair(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0]])),
        reaches=0.4,
    ),
    "matrix mechanism": Entry(
        partial(MatrixMechanism.calibrated, workload=PREFIXES, epsilon=1.0, delta=2e-2),
        CELLS,
        delta=2e-2,
        reaches=0.5,
    ),
}

ONE_BY_ONE: dict[str, Entry] = {
    "top 2": one_by_one(
        partial(TopK.calibrated, sensitivity=1, epsilon=1.0, count=2),
        score_pairs(3, 1)[:1],
        trials=20_000,
        reaches=0.1,
    ),
    "top 2, a unit in one of them": many(
        partial(TopK.calibrated, sensitivity=1, epsilon=1.0, count=2, l0=1, noise="laplace"),
        None,
        reaches=0.3,
    ),
    "stability histogram": many(
        partial(StabilityHistogram.calibrated, epsilon=1.0, delta=2e-2), KEYS, reaches=0.6, delta=2e-2
    ),
    "stability histogram, Gaussian": many(
        partial(StabilityHistogram.calibrated, epsilon=1.0, delta=2e-2, distribution="gaussian"),
        KEYS,
        reaches=0.5,
        delta=2e-2,
    ),
    "unknown domain": one_by_one(
        partial(UnknownDomainTopK.calibrated, epsilon=1.0, delta=2e-2, count=1), KEYS, delta=2e-2
    ),
    "ALP": one_by_one(
        partial(ALP, scale=1, maximum=2, keys=1, alpha=1), pair({"a": 2}, {"a": 1}), trials=1200
    ),
    "private candidates": one_by_one(
        partial(
            PrivateCandidates,
            run=best_of_some,
            loss=RandomStopping(Laplace(sensitivity=1, scale=3).privacy_loss, 1.0, 0.5),
            candidates=(0, 1),
        ),
        pair([0, 0], [1, -1]),
        trials=800,
    ),
    "sparse vector": many(partial(SparseVector.calibrated, sensitivity=1, epsilon=1.0), None, 0.45),
    "sparse vector, monotone": many(
        partial(SparseVector.calibrated, sensitivity=1, epsilon=1.0, monotone=True), None, 0.25
    ),
    "sparse vector, exponential": many(
        partial(SparseVector.calibrated, sensitivity=1.0, epsilon=1.0, noise="exponential", positives=2),
        None,
        0.3,
    ),
    "sparse vector with numbers": many(
        partial(SparseVector.calibrated, sensitivity=1, epsilon=1.0, numbers=True), None, 0.35
    ),
    "sparse vector with gaps": many(
        partial(SparseVector.calibrated, sensitivity=1, epsilon=1.0, gaps=True), None, 0.35
    ),
    "sparse vector, Gaussian": one_by_one(
        partial(GaussianSparseVector.calibrated, sensitivity=1, epsilon=1.0, delta=2e-2, length=4),
        pair(np.array([0, 0, 0, 1]), np.array([1, 1, 1, 0])),
        delta=2e-2,
    ),
    "rank sum of two": one_by_one(
        partial(Laplace.for_query, MannWhitney(sizes=(1, 1)), epsilon=1.0, neighboring=REPLACE),
        pair(np.array([0.0, 1.0]), np.array([2.0, 1.0])),
        reaches=0.5,
    ),
    "quartiles": one_by_one(
        partial(Quantiles, bounds=(0, 5), epsilon=1.0, quantiles=(0.25, 0.5, 0.75)), RECORDS, trials=1600
    ),
    "quartiles by a tree": many(
        partial(QuantileTree.calibrated, bounds=(0, 5), epsilon=1.0, quantiles=(0.25, 0.5, 0.75)),
        RECORDS,
        0.7,
    ),
    "quartiles by a tree, five records": many(
        partial(QuantileTree.calibrated, bounds=(0, 5), epsilon=1.0, quantiles=(0.25, 0.5, 0.75), records=5),
        pair(np.array([1.0] * 3 + [4.0] * 5), np.array([1.0] * 3)),
        0.7,
    ),
    "median by a tree of two levels": many(
        partial(QuantileTree.calibrated, bounds=(0, 20), epsilon=1.0, quantiles=(0.5,)),
        pair(np.array([4.0]), np.zeros(0)),
        0.5,
    ),
    "quartiles by a tree, two records replaced": many(
        partial(
            QuantileTree.calibrated,
            bounds=(0, 40),
            epsilon=1.0,
            delta=2e-2,
            quantiles=(0.25, 0.75),
            records=2,
            neighboring=REPLACE,
        ),
        pair(np.array([1.0, 4.0, 30.0, 30.0]), np.array([1.0, 4.0, 4.0, 8.0])),
        0.05,
        delta=2e-2,
    ),
    "private bounds": one_by_one(
        partial(PrivateBounds.calibrated, epsilon=1.0, exponents=(-2, 4)), RECORDS, trials=4000, reaches=0.1
    ),
    "mean by CoinPress": one_by_one(
        partial(CoinPress.calibrated, epsilon=1.0, delta=2e-2, bounds=(-10.0, 10.0), stddev=1.0, steps=2),
        RECORDS,
        delta=2e-2,
        trials=400,
    ),
    "mean of vectors by CoinPress": one_by_one(
        partial(
            CoinPressVectorMean.calibrated,
            epsilon=1.0,
            delta=2e-2,
            columns=2,
            radius=10.0,
            stddev=1.0,
            steps=2,
        ),
        pair(np.array([[9.0, 0.0], [9.0, 1.0]]), np.array([[9.0, 0.0]])),
        delta=2e-2,
        trials=400,
    ),
    "covariance by CoinPress": one_by_one(
        partial(
            CoinPressCovariance.calibrated,
            epsilon=1.0,
            delta=2e-2,
            columns=2,
            stddevs=(0.1, 10.0),
            steps=2,
            neighboring=REPLACE,
        ),
        ORTHOGONAL,
        delta=2e-2,
        trials=400,
    ),
    "distinct items": one_by_one(
        partial(DistinctCountSketch, epsilon=1.0, buckets=16, items_per_unit=10),
        pair(list(range(10)), []),
        trials=600,
    ),
    "mean of heavy tails": one_by_one(
        partial(HeavyTailedMean, bounds=(-10.0, 10.0), moment_bound=1.0, expected_records=4, epsilon=1.0),
        RECORDS,
        trials=400,
    ),
    "K-norm": one_by_one(
        partial(KNorm.calibrated, dimension=3, sensitivity=1, epsilon=1.0),
        pair(np.zeros(3, int), np.ones(3, int)),
        reaches=0.1,
    ),
    "small database": one_by_one(
        partial(
            SmallDatabase,
            workload=PREFIXES,
            records=2,
            size=2,
            epsilon=1.0,
            neighboring=Neighboring.REPLACE_ONE,
        ),
        pair(np.array([0, 0]), np.array([0, 2])),
        reaches=0.1,
    ),
    "multiplicative weights": one_by_one(
        partial(MultiplicativeWeights.calibrated, workload=PREFIXES, epsilon=1.0, rounds=2), CELLS, trials=320
    ),
    "multiplicative weights online": one_by_one(
        partial(
            OnlineMultiplicativeWeights,
            histogram=Histogram(categories=(0, 1, 2)),
            updates=1,
            threshold=2,
            total_scale=10,
            threshold_scale=4,
            query_scale=8,
            answer_scale=2.5,
        ),
        pair((np.array([0, 1, 2, 2]), np.eye(3)), (np.array([0, 1, 2, 2, 2]), np.eye(3))),
        trials=500,
    ),
    "median by smooth sensitivity": one_by_one(
        partial(SmoothQuantile.calibrated, bounds=(0, 5), epsilon=1.0), [*RECORDS, *LEAP], trials=1600
    ),
    "median by smooth sensitivity, Laplace": one_by_one(
        partial(SmoothQuantile.calibrated, bounds=(0.0, 5.0), epsilon=1.0, delta=2e-2, noise="laplace"),
        RECORDS,
        delta=2e-2,
        trials=4000,
        reaches=0.1,
    ),
    "trimmed mean by smooth sensitivity": one_by_one(
        partial(SmoothTrimmedMean.calibrated, trim=0.2, bounds=(0.0, 5.0), epsilon=1.0, neighboring=REPLACE),
        pair(np.array([1.0, 4.0, 4.0]), np.array([1.0, 4.0, 0.0])),
        trials=1200,
    ),
    "median by propose, test, release": one_by_one(
        partial(
            ProposeTestRelease.calibrated,
            statistic=StableQuantile(bounds=(0.0, 5.0)),
            bound=1.0,
            epsilon=1.0,
            delta=2e-2,
        ),
        pair(np.full(12, 1.0), np.append(np.full(12, 1.0), 5.0)),
        delta=2e-2,
        trials=1200,
    ),
    "middle of blocks": one_by_one(
        partial(SampleAndAggregate, estimator=np.mean, blocks=2, bounds=(0, 5), epsilon=1.0),
        RECORDS,
        trials=800,
    ),
    "quartiles at once": one_by_one(
        partial(JointQuantiles, bounds=(0, 5), epsilon=1.0, quantiles=(0.25, 0.5, 0.75)), RECORDS, trials=240
    ),
    "interval of a median": one_by_one(
        partial(QuantileInterval, bounds=(0, 5), epsilon=1.0), RECORDS, trials=240
    ),
    "trimmed mean": one_by_one(
        partial(TrimmedMean, trim=0.2, bounds=(0.0, 5.0), epsilon=1.0), RECORDS, trials=320
    ),
    "line by Theil and Sen": one_by_one(
        partial(
            TheilSen,
            slope_bounds=(-2, 2),
            intercept_bounds=(-4, 4),
            epsilon=1.0,
            neighboring=Neighboring.REPLACE_ONE,
        ),
        pair(np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[0.0, 0.0], [1.0, -2.0]])),
        trials=600,
    ),
    "plane by Theil and Sen": one_by_one(
        partial(
            TheilSen,
            slope_bounds=((-2, 2), (-2, 2)),
            intercept_bounds=(-4, 4),
            epsilon=1.0,
            neighboring=REPLACE,
        ),
        trials=400,
    ),
    "Kronecker mechanism": one_by_one(
        partial(
            KroneckerMechanism.calibrated,
            factors=[np.tril(np.ones((2, 2))), np.eye(2)],
            epsilon=1.0,
            delta=2e-2,
        ),
        pair(np.zeros((2, 2), int), np.array([[1, 0], [0, 0]])),
        delta=2e-2,
        trials=4000,
        reaches=0.1,
    ),
    "adaptive histogram": one_by_one(
        partial(AdaptiveHistogram.calibrated, bounds=((0.0, 1.0),), epsilon=1.0, depth=1, threshold=1),
        pair(np.array([[0.1]]), np.zeros((0, 1))),
        trials=800,
    ),
    "two parts": one_by_one(
        partial(
            ParallelComposition,
            parts={"a": Laplace(sensitivity=1, scale=1), "b": Laplace(sensitivity=1, scale=2)},
        ),
        pair([1, 0], [0, 0]),
        trials=100_000,
        reaches=0.8,
    ),
}


ALL = CATALOGUE | AT_ONCE | ONE_BY_ONE


def check(entry: Entry) -> None:
    claimed = entry.mechanism.privacy_loss.epsilon(entry.delta)
    found = audit(
        entry.mechanism,
        epsilon=claimed,
        delta=entry.delta,
        pairs=entry.pairs,
        trials=entry.trials,
        confidence=SURE,
        rng=SEED,
    )
    assert not found.violated, found
    if entry.reaches:
        accepts_only(unrefuted(found.epsilon_lower), claimed, part=entry.reaches * claimed)
        return

    def allows(hits: tuple[int, int]) -> None:
        """What so many hits of each input prove, with confidence `SURE` for the two together, is claimed."""
        likely, rare = hits
        least = float(betaincinv(likely, found.tested - likely + 1, (1 - SURE) / 2)) if likely else 0.0
        most = (
            float(betainccinv(rare + 1, found.tested - rare, (1 - SURE) / 2)) if rare < found.tested else 1.0
        )
        unrefuted(certified_epsilon(least, most, entry.delta))(claimed)

    accepts_only(allows, found.hits, input_released=(found.tested, 0))


@pytest.mark.parametrize("entry", (CATALOGUE | AT_ONCE).values(), ids=CATALOGUE | AT_ONCE)
def test_no_mechanism_of_ours_is_refuted(entry: Entry) -> None:
    check(entry)


@pytest.mark.parametrize("entry", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_no_mechanism_of_ours_is_refuted_one_release_at_a_time(entry: Entry) -> None:
    check(entry)


@pytest.mark.parametrize("entry", ALL.values(), ids=CATALOGUE | AT_ONCE | ONE_BY_ONE)
def test_every_mechanism_of_ours_brings_pairs(entry: Entry) -> None:
    """But one, whose data only its caller knows; and it says so."""
    if isinstance(entry.mechanism, PrivateCandidates):
        with pytest.raises(ParameterError, match=r"given for PrivateCandidates.*as its run takes"):
            audit(entry.mechanism, epsilon=1.0)
        return
    claimed = entry.mechanism.privacy_loss.epsilon(entry.delta)
    found = audit(entry.mechanism, epsilon=claimed, delta=entry.delta, trials=200, confidence=SURE, rng=SEED)
    assert not found.violated, found


def test_every_mechanism_is_in_the_catalogue() -> None:
    there = {entry.kind for entry in ALL.values()}
    public = [getattr(sfumato.mechanisms, name) for name in sfumato.mechanisms.__all__]
    ours = {
        kind
        for kind in public
        if inspect.isclass(kind) and issubclass(kind, Mechanism) and not inspect.isabstract(kind)
    }
    assert not {kind.__name__ for kind in ours - there}
