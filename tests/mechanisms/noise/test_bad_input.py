"""Wrong parameters are refused before data is seen; odd data is answered, at the usual cost."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import sfumato.mechanisms
from sfumato import Neighboring
from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import (
    BinaryTree,
    BoundedLaplace,
    BoundedSum,
    CanonicalNoise,
    CoinPress,
    ContinualSum,
    Count,
    Covariance,
    Exponential,
    Extreme,
    Gaussian,
    GaussianNoisyMax,
    GaussianSparseVector,
    HeavyTailedMean,
    Histogram,
    InverseSensitivity,
    JointQuantiles,
    KNorm,
    KolmogorovSmirnov,
    Laplace,
    LinearWorkload,
    MatrixMechanism,
    Mean,
    Mechanism,
    MultiplicativeWeights,
    NoisyMax,
    PermuteAndFlip,
    PrivateBounds,
    ProposeTestRelease,
    PureContinualSum,
    Quantile,
    Quantiles,
    QuantileTree,
    RandomizedResponse,
    SampleAndAggregate,
    SmoothQuantile,
    SmoothTrimmedMean,
    SparseVector,
    StabilityHistogram,
    StableQuantile,
    Staircase,
    TheilSen,
    TopK,
    TrimmedMean,
    TruncatedLaplace,
    UnknownDomainTopK,
    Variance,
)
from tests.cases import cases, named

Make = Callable[..., Any]

SCALED: dict[str, Make] = {
    "Laplace": lambda s: Laplace(sensitivity=s, scale=1),
    "Laplace in L1": lambda s: Laplace(l1=s, scale=1),
    "Gaussian": lambda s: Gaussian(sensitivity=s, stddev=1),
    "Gaussian in L2": lambda s: Gaussian(l2=s, stddev=1),
    "calibrated Gaussian": lambda s: Gaussian.calibrated(sensitivity=s, epsilon=1.0, delta=1e-6),
    "staircase": lambda s: Staircase(sensitivity=s, epsilon=1.0),
    "Tulap": lambda s: CanonicalNoise(sensitivity=s, epsilon=1.0, delta=0.01),
    "rounded normal": lambda s: CanonicalNoise(sensitivity=s, mu=1.0),
    "truncated Laplace": lambda s: TruncatedLaplace.calibrated(sensitivity=s, epsilon=1.0, delta=1e-6),
    "bounded Laplace": lambda s: BoundedLaplace(sensitivity=s, scale=1, bounds=(0, 4)),
    "exponential": lambda s: Exponential(sensitivity=s, scale=1),
    "permute-and-flip": lambda s: PermuteAndFlip(sensitivity=s, scale=1),
    "noisy max": lambda s: NoisyMax.calibrated(sensitivity=s, epsilon=1.0),
    "top k": lambda s: TopK(sensitivity=s, scale=1, count=2),
    "sparse vector": lambda s: SparseVector(sensitivity=s, threshold_scale=1, query_scale=1),
    "K-norm": lambda s: KNorm(dimension=2, sensitivity=s, scale=1),
    "sums over time": lambda s: ContinualSum(strategy=BinaryTree(steps=3), sensitivity=s, stddev=1),
    "sums over time, Laplace": lambda s: PureContinualSum(
        strategy=BinaryTree(steps=3), sensitivity=s, scale=1
    ),
}


@cases("make", SCALED.values(), ids=SCALED)
@cases("sensitivity", [-1, 0, -0.5, math.nan, math.inf, "1", None])
def test_a_sensitivity_is_positive_and_finite(make: Make, sensitivity: Any) -> None:
    error = UnboundedSensitivity if sensitivity == math.inf else ParameterError
    with pytest.raises(error, match=r"sensitivity|l1|l2"):
        make(sensitivity)


BETWEEN: dict[str, Make] = {
    "sum": lambda b: BoundedSum(bounds=b),
    "mean": lambda b: Mean(bounds=b),
    "variance": lambda b: Variance(bounds=b),
    "bounded Laplace": lambda b: BoundedLaplace(sensitivity=1, scale=1, bounds=b),
    "quantile": lambda b: Quantile(bounds=b, epsilon=1.0),
    "quantiles": lambda b: Quantiles(bounds=b, epsilon=1.0, quantiles=(0.5,)),
    "quantiles at once": lambda b: JointQuantiles(bounds=b, epsilon=1.0, quantiles=(0.5,)),
    "quantiles by a tree": lambda b: QuantileTree.calibrated(bounds=b, epsilon=1.0, quantiles=(0.5,)),
    "extreme": lambda b: Extreme(bounds=b, epsilon=1.0),
    "trimmed mean": lambda b: TrimmedMean(trim=0.1, bounds=b, epsilon=1.0),
    "mean by CoinPress": lambda b: CoinPress.calibrated(epsilon=1.0, delta=1e-6, bounds=b, stddev=1.0),
    "mean of heavy tails": lambda b: HeavyTailedMean(
        bounds=b, moment_bound=1.0, expected_records=9, epsilon=1.0
    ),
    "smooth sensitivity": lambda b: SmoothQuantile.calibrated(bounds=b, epsilon=1.0),
    "inverse sensitivity": lambda b: InverseSensitivity(
        bounds=b, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    ),
    "propose, test, release": lambda b: StableQuantile(bounds=b),
    "blocks": lambda b: SampleAndAggregate(estimator=np.mean, blocks=2, bounds=b, epsilon=1.0),
    "slope": lambda b: TheilSen(
        slope_bounds=b, intercept_bounds=(0, 1), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    ),
}


@cases("make", BETWEEN.values(), ids=BETWEEN)
@cases("bounds", [(5, 0), (0.0, math.inf), (math.nan, 1.0), None, 3, (1, 2, 3)])
def test_bounds_are_two_numbers_in_order(make: Make, bounds: Any) -> None:
    with pytest.raises((ParameterError, UnboundedSensitivity), match="bounds"):
        make(bounds)


@cases(
    ("make", "message"),
    [
        (lambda: Exponential(sensitivity=1, scale=1, candidates=()), "candidates must hold at least one"),
        (lambda: PermuteAndFlip(sensitivity=1, scale=1).release([]), "candidates must hold at least one"),
        (lambda: NoisyMax(sensitivity=1, scale=1, candidates=[]), "candidates must hold at least one"),
        (
            lambda: GaussianNoisyMax.calibrated(sensitivity=1, epsilon=1.0, delta=1e-6, candidates=()),
            "candidates must hold at least one",
        ),
        (lambda: RandomizedResponse(categories=(), truth=0.5), "categories must be at least 2"),
        (lambda: TopK(sensitivity=1, scale=1, count=3, candidates=["a", "b"]), "count must be at most 2"),
        (lambda: TopK(sensitivity=1, scale=1, count=3).release([1, 2]), "count must be at most 2"),
        (lambda: UnknownDomainTopK(scale=1, threshold=5, count=3, domain=2), "domain must be an integer"),
        (
            lambda: Quantiles(bounds=(0, 1), epsilon=1e-4, quantiles=[k / 1001 for k in range(1, 1001)]),
            "epsilon must be at least .* ask for fewer quantiles",
        ),
        (
            lambda: JointQuantiles(bounds=(0, 1), epsilon=1.0, quantiles=[k / 99 for k in range(1, 99)]),
            "quantiles must be at most 32",
        ),
    ],
)
def test_what_nothing_can_be_chosen_from_is_refused(make: Make, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


@cases(
    ("make", "message"),
    [
        (lambda: Laplace(sensitivity=-1, scale=1), "^sensitivity must .*; state the most that one unit"),
        (lambda: Laplace(sensitivity=1, scale=1).release([1, 2]), "^value must .*; convert it with numpy"),
        (
            lambda: Quantile(quantile=-0.1, bounds=(0, 1), epsilon=1.0),
            "^quantile must .*; pass a share below 1",
        ),
        (lambda: Quantile(quantile=1.5, bounds=(0, 1), epsilon=1.0), "^quantile must .* 0.5 for the median"),
        (lambda: TopK(sensitivity=1, scale=1, count=3).release([1, 2]), "^count must .*; ask for fewer"),
        (
            lambda: ProposeTestRelease.calibrated(
                statistic=StableQuantile(bounds=(0.0, 5.0)), bound=-1.0, epsilon=1.0, delta=1e-3
            ),
            "^bound must",
        ),
    ],
)
def test_an_error_names_what_was_passed_and_what_helps(make: Make, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


@functools.cache
def columns() -> dict[str, Mechanism]:
    return {
        "quantile": Quantile(bounds=(0.0, 5.0), epsilon=1.0),
        "quantiles": Quantiles(bounds=(0.0, 5.0), epsilon=1.0, quantiles=(0.25, 0.5)),
        "quantiles at once": JointQuantiles(bounds=(0.0, 5.0), epsilon=1.0, quantiles=(0.25, 0.5)),
        "quantiles by a tree": QuantileTree.calibrated(bounds=(0.0, 5.0), epsilon=1.0, quantiles=(0.25, 0.5)),
        "extreme": Extreme(bounds=(0.0, 5.0), epsilon=1.0),
        "bounds": PrivateBounds.calibrated(epsilon=1.0),
        "mean by CoinPress": CoinPress.calibrated(epsilon=1.0, delta=1e-6, bounds=(-9.0, 9.0), stddev=1.0),
        "mean of heavy tails": HeavyTailedMean(
            bounds=(-9.0, 9.0), moment_bound=1.0, expected_records=9, epsilon=1.0
        ),
        "trimmed mean": TrimmedMean(trim=0.1, bounds=(0.0, 5.0), epsilon=1.0),
        "smooth sensitivity": SmoothQuantile.calibrated(bounds=(0.0, 5.0), epsilon=1.0),
        "smooth trimmed mean": SmoothTrimmedMean.calibrated(
            trim=0.2, bounds=(0.0, 5.0), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
        ),
        "inverse sensitivity": InverseSensitivity(
            bounds=(0.0, 5.0), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
        ),
        "inverse sensitivity of a mean": InverseSensitivity(
            of="mean", bounds=(0.0, 5.0), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
        ),
        "propose, test, release": ProposeTestRelease.calibrated(
            statistic=StableQuantile(bounds=(0.0, 5.0)), bound=1.0, epsilon=1.0, delta=1e-3
        ),
        "blocks": SampleAndAggregate(
            estimator=lambda block: block.mean() if block.size else 0.0,
            blocks=2,
            bounds=(0.0, 5.0),
            epsilon=1.0,
        ),
        "count": Laplace.for_query(Count(), epsilon=1.0),
        "sum": Laplace.for_query(BoundedSum(bounds=(0.0, 5.0)), epsilon=1.0),
        "mean": Laplace.for_query(Mean(bounds=(0.0, 5.0)), epsilon=1.0),
        "variance": Gaussian.for_query(Variance(bounds=(0.0, 5.0)), epsilon=1.0, delta=1e-6),
        "histogram": Laplace.for_query(Histogram(edges=(0.0, 1.0, 2.0)), epsilon=1.0),
        "Kolmogorov-Smirnov": Laplace.for_query(
            KolmogorovSmirnov(cdf=lambda x: np.clip(x / 5, 0, 1), n=3),
            epsilon=1.0,
            neighboring=Neighboring.REPLACE_ONE,
        ),
        "matrix mechanism": MatrixMechanism.calibrated(
            workload=LinearWorkload(matrix=np.eye(2), histogram=Histogram(edges=(0.0, 1.0, 2.0))), epsilon=1.0
        ),
        "multiplicative weights": MultiplicativeWeights(
            workload=LinearWorkload(matrix=np.eye(2), histogram=Histogram(edges=(0.0, 1.0, 2.0))),
            rounds=1,
            scale=1,
        ),
    }


ODD = {
    "empty": np.array([]),
    "NaN": np.full(3, math.nan),
    "infinite": np.array([math.inf, -math.inf, 1.0]),
    "equal": np.full(3, 2.0),
    "huge": np.array([1e308, -1e308, 5e-324]),
}


@cases("data", ODD.values(), ids=ODD)
@cases("mechanism", lambda: named(columns()))
def test_odd_columns_are_answered_at_the_usual_cost(mechanism: Mechanism, data: Any) -> None:
    assert mechanism.release(data, rng=1).loss == mechanism.privacy_loss


@functools.cache
def vectors() -> dict[str, Mechanism]:
    return {
        "exponential": Exponential(sensitivity=1.0, scale=1.0),
        "permute-and-flip": PermuteAndFlip(sensitivity=1.0, scale=1.0),
        "noisy max": NoisyMax(sensitivity=1.0, scale=1.0),
        "noisy max, Gaussian": GaussianNoisyMax(mechanism=Gaussian(sensitivity=1.0, stddev=1.0, l0=3)),
        "top k": TopK(sensitivity=1.0, scale=1.0, count=2),
        "sparse vector": SparseVector(sensitivity=1.0, threshold_scale=1.0, query_scale=1.0),
        "sparse vector, Gaussian": GaussianSparseVector.calibrated(
            sensitivity=1.0, epsilon=1.0, delta=1e-3, length=3
        ),
        "K-norm": KNorm(dimension=3, sensitivity=1.0, scale=1.0),
        "Laplace": Laplace(sensitivity=1.0, scale=1.0, l0=3),
        "Gaussian": Gaussian(sensitivity=1.0, stddev=1.0, l0=3),
        "truncated Laplace": TruncatedLaplace.calibrated(sensitivity=1.0, epsilon=1.0, delta=1e-3),
        "staircase": Staircase(sensitivity=1.0, epsilon=1.0),
        "Tulap": CanonicalNoise(sensitivity=1.0, epsilon=1.0, delta=0.01),
        "rounded normal": CanonicalNoise(sensitivity=1.0, mu=1.0),
        "sums over time": ContinualSum(strategy=BinaryTree(steps=3), sensitivity=1.0, stddev=1.0),
    }


@cases("data", [ODD[name] for name in ODD if name != "empty"])
@cases("mechanism", lambda: named(vectors()))
def test_odd_values_are_answered_at_the_usual_cost(mechanism: Mechanism, data: Any) -> None:
    assert mechanism.release(data, rng=1).loss == mechanism.privacy_loss


@cases(
    ("mechanism", "data"),
    lambda: [
        (StabilityHistogram.calibrated(epsilon=1.0, delta=1e-3), {}),
        (UnknownDomainTopK.calibrated(epsilon=1.0, delta=1e-3, count=2), {}),
        (SparseVector(sensitivity=1, threshold_scale=1, query_scale=1), np.array([], int)),
        (RandomizedResponse.calibrated(categories=("a", "b"), epsilon=1.0), []),
        (RandomizedResponse.calibrated(categories=("a", "b"), epsilon=1.0), [None, math.nan, "a"]),
        (
            TheilSen(
                slope_bounds=(-2, 2),
                intercept_bounds=(-4, 4),
                epsilon=1.0,
                neighboring=Neighboring.REPLACE_ONE,
            ),
            np.zeros((0, 2)),
        ),
        (
            TheilSen(
                slope_bounds=(-2, 2),
                intercept_bounds=(-4, 4),
                epsilon=1.0,
                neighboring=Neighboring.REPLACE_ONE,
            ),
            np.full((4, 2), math.nan),
        ),
        (
            Laplace.for_query(Covariance(bounds=((0.0, 1.0), (0.0, 1.0))), epsilon=1.0),
            np.full((4, 2), math.inf),
        ),
    ],
)
def test_other_odd_data_is_answered_at_the_usual_cost(mechanism: Mechanism, data: Any) -> None:
    assert mechanism.release(data, rng=1).loss == mechanism.privacy_loss


def ours() -> list[type[Mechanism]]:
    public = [getattr(sfumato.mechanisms, name) for name in sfumato.mechanisms.__all__]
    kinds = [kind for kind in public if inspect.isclass(kind) and issubclass(kind, Mechanism)]
    return [kind for kind in kinds if not inspect.isabstract(kind)]


@cases("kind", ours(), ids=lambda kind: kind.__name__)
def test_every_mechanism_has_one_shape(kind: Any) -> None:
    """Frozen keyword-only parameters; made for a stated epsilon by itself, or by its ``calibrated``."""
    assert kind.__dataclass_params__.frozen
    own = {part.name: part for part in fields(kind)}
    assert all(part.kw_only for part in own.values() if part.init)
    made = {"epsilon", "mechanism", "parts", "loss", "query"} & own.keys()
    assert made or {"epsilon"} <= inspect.signature(kind.calibrated).parameters.keys()
    assert isinstance(inspect.getattr_static(kind, "privacy_loss"), property)
    assert list(inspect.signature(kind.release).parameters)[1:] == ["value", "rng"]
