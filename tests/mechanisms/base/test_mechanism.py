"""How mechanisms are made: one default relation, and a hint where the noise is to be calibrated."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import sfumato.mechanisms
from sfumato.errors import SfumatoError
from sfumato.mechanisms import (
    AdaptiveHistogram,
    BinaryTree,
    Histogram,
    InverseSensitivity,
    Laplace,
    LinearWorkload,
    Mechanism,
    NoisyMax,
    Quantile,
    RandomizedResponse,
    SmallDatabase,
    SmoothTrimmedMean,
    StableQuantile,
    TheilSen,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases

WORKLOAD = LinearWorkload(matrix=np.tril(np.ones((4, 4))))
NOISE = {
    *("scale", "stddev", "noise", "noise_multiplier", "smoothness", "truth", "measurement", "mechanism"),
    *("threshold_scale", "query_scale", "threshold_stddev", "query_stddev"),
    *("test_scale", "total_scale", "answer_scale"),
}
GOOD: dict[str, Any] = {
    "sensitivity": 1,
    "bounds": (0.0, 4.0),
    "workload": WORKLOAD,
    "strategy": BinaryTree(steps=4),
    "trim": 0.1,
    "quantiles": (0.5,),
    "categories": ("a", "b"),
    "statistic": StableQuantile(bounds=(0.0, 4.0)),
    "bound": 1.0,
    "histogram": Histogram(categories=(0, 1)),
    "factors": (np.eye(2),),
}


def public() -> list[Any]:
    faces = (getattr(sfumato.mechanisms, name) for name in sfumato.mechanisms.__all__)
    return [kind for kind in faces if inspect.isclass(kind) and issubclass(kind, Mechanism)]


def calibrated() -> list[Any]:
    return [kind for kind in public() if hasattr(kind, "calibrated") and not inspect.isabstract(kind)]


def required(kind: Any) -> list[str]:
    found = inspect.signature(kind).parameters.items()
    return [name for name, parameter in found if parameter.default is parameter.empty]


def test_the_default_relation_is_one_for_all_but_the_local_protocol() -> None:
    makers: list[Any] = [*public(), *(kind.calibrated for kind in calibrated()), Laplace.for_query]
    found = {
        maker.__qualname__: parameters["neighboring"].default
        for maker in makers
        if "neighboring" in (parameters := inspect.signature(maker).parameters)
    }
    assert len(found) > 40
    others = {name for name, default in found.items() if default is not Neighboring.ADD_REMOVE}
    assert others == {"RandomizedResponse", "RandomizedResponse.calibrated"}
    for maker in (RandomizedResponse, RandomizedResponse.calibrated, RandomizedResponse.two_coins):
        assert inspect.signature(maker).parameters["neighboring"].default is Neighboring.REPLACE_ONE


@cases(
    "make",
    [
        lambda: InverseSensitivity(bounds=(0, 4), epsilon=1.0),
        lambda: SmoothTrimmedMean.calibrated(bounds=(0, 4), trim=0.1, epsilon=1.0),
        lambda: SmallDatabase(workload=WORKLOAD, records=3, size=2, epsilon=1.0),
        lambda: TheilSen(slope_bounds=(0, 1), intercept_bounds=(0, 1), epsilon=1.0),
    ],
)
def test_a_public_number_of_records_asks_for_another_relation(make: Any) -> None:
    with pytest.raises(SfumatoError, match=r"neighboring must be .* pass Neighboring\.REPLACE_ONE"):
        make()


@cases("kind", calibrated)
def test_what_misses_its_noise_names_the_way_to_calibrate(kind: Any) -> None:
    noise = [name for name in required(kind) if name in NOISE]
    given = {name: GOOD.get(name, 1) for name in required(kind)}
    if kind is AdaptiveHistogram:  # of columns
        given["bounds"] = ((0.0, 4.0),)
    if "sensitivity" in inspect.signature(kind).parameters:
        given["sensitivity"] = 1
    others = {name: value for name, value in given.items() if name not in noise}
    missing = ", ".join(sorted(noise))
    hint = rf"{missing}, which is missing; or pass epsilon= to {kind.__name__}\.calibrated to have the noise"
    with pytest.raises(TypeError, match=hint):
        kind(**others, epsilon=1.0)
    if others:
        with pytest.raises(TypeError, match=hint):
            kind(**others)
    if kind.__name__ in ("GaussianNoisyMax", "StabilityHistogram", "QuantileTree"):
        return  # their noise is a mechanism, which names itself
    for name in noise:
        if kind.__name__.startswith("CoinPress") and name == "stddev":
            continue  # a bound on the records', which has no noise in it
        for value in (None, -1):
            with pytest.raises(SfumatoError, match=rf"^{name} must .*{kind.__name__}\.calibrated"):
                kind(**given | {name: value})


def test_other_mistakes_are_left_as_they_are() -> None:
    for make in (
        lambda: Laplace(sensitivty=1, scale=1),  # type: ignore[call-arg]
        lambda: NoisyMax(sensitivty=1, scale=1),  # type: ignore[call-arg]
        lambda: Quantile(bounds=(0, 1)),  # type: ignore[call-arg]
        lambda: Laplace(1, 2),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError) as caught:
            make()
        assert "calibrated" not in str(caught.value)


def test_a_mechanism_is_copied_and_stored_like_any_frozen_value() -> None:
    mechanisms: tuple[Any, ...] = (Laplace(sensitivity=1, scale=2), Quantile(bounds=(0, 4), epsilon=1.0))
    for mechanism in mechanisms:
        assert copy.copy(mechanism) == copy.deepcopy(mechanism) == mechanism
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert list(inspect.signature(Laplace).parameters)[:2] == ["sensitivity", "scale"]
