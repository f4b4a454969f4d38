"""The variance that each frequency protocol plans with, against the drawn law, for very uneven shares."""

from __future__ import annotations

import inspect
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import local
from sfumato.local import Domain
from sfumato.local.frequency.oracle import Oracle, SupportOracle
from tests.golden.local.making import CATEGORICAL

DRAWN: Final = {
    local.baselines.BinaryLocalHashing,
    local.baselines.SummationHistogram,
    local.baselines.ThresholdHistogram,
    local.CountMeanSketch,
    local.HadamardCountMeanSketch,
    local.LongitudinalLocalHashing,
    local.OptimalLocalHashing,
}
"""Of these the reports are too many to go through: many are drawn for each value, by a fixed seed."""
KINDS: Final[tuple[Any, ...]] = (*CATEGORICAL, local.CountMeanSketch, local.HadamardCountMeanSketch)
UNEVEN: Final = np.array([0.0, 0.62, 0.0, 0.25, 0.0, 0.08, 0.05, 0.0])


def oracle_of(kind: Any, epsilon: float) -> Any:
    """An oracle, and for Hadamard response one whose matrices have several categories each."""
    size = 56 if kind is local.HadamardResponse else len(UNEVEN)
    given = {"asked": 3} if kind in {local.BitFlip, local.MemoizedBitFlip} else {}
    return kind(epsilon=epsilon, domain=Domain(range(size)), **given)


def exact_parts(oracle: Any, code: int) -> NDArray[np.float64]:
    """The variance of one report's part in each estimate, if a category is true, from all reports."""
    distribution = oracle.device.probabilities(code)
    chances = np.array([float(chance) for chance in distribution.values()])
    assert abs(chances.sum() - 1) < 1e-12
    records = np.frombuffer(b"".join(distribution), np.uint8).reshape(len(chances), -1)
    parts = np.array([oracle.shares(oracle.tally(record[None]), 1) for record in records])
    means = chances @ parts
    assert np.allclose(means, np.arange(parts.shape[1]) == code, atol=1e-9)  # unbiased
    return np.asarray(chances @ (parts - means) ** 2)


def drawn_parts(oracle: Any, code: int) -> NDArray[np.float64]:
    """The same from many drawn reports; whether one supports a value is a coin, whatever else is drawn."""
    count = 60_000 if oracle.epsilon <= 1 else 240_000
    records = oracle.randomize_batch(np.full(count, code), 10 + code).records
    if not isinstance(oracle, SupportOracle):
        return np.asarray((oracle.device.numbers(records) / oracle.device.steps).var(axis=0))
    chances = oracle.tally(records) / count
    return np.asarray(chances * (1 - chances) / float(oracle.support.gap) ** 2)


def variances(oracle: Any, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance of one report's part in each estimate, by the law, for people with these shares."""
    found = drawn_parts if type(oracle) in DRAWN else exact_parts
    held = np.flatnonzero(shares)
    return np.asarray(sum(shares[code] * found(oracle, int(code)) for code in held))


def test_all_frequency_protocols_are_held() -> None:
    rooms = (local, local.baselines)
    names = [(room, name) for room in rooms for name in room.__all__]
    faces = [getattr(room, name) for room, name in names]
    known = {one for one in faces if inspect.isclass(one) and issubclass(one, Oracle)}
    assert {kind for kind in known if not inspect.isabstract(kind)} == set(KINDS)


@pytest.mark.sharpest("1.0")
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_planned_variances_are_those_of_the_law_for_uneven_shares(epsilon: float) -> None:
    for kind in KINDS:
        oracle = oracle_of(kind, epsilon)
        shares = np.resize(UNEVEN, len(oracle.domain)) * len(UNEVEN) / len(oracle.domain)
        known = variances(oracle, shares)
        planned = np.array([oracle.variance(1, share) for share in shares])
        # A support that is as rare as 1 in 57 deviates by 1.5 % in 240,000 reports.
        close = (0.03 if epsilon <= 1 else 0.08) if kind in DRAWN else 1e-9
        name = f"{kind.__name__} at epsilon {epsilon}"
        assert np.allclose(oracle.error_model.variance(shares), known, rtol=close, atol=1e-12), name
        if kind is not local.HadamardResponse:
            assert np.allclose(planned, known, rtol=close, atol=1e-12), name
        assert (planned >= known * (1 - close)).all(), name


def test_hadamard_response_plans_for_the_worst_place_of_frequent_values() -> None:
    oracle = oracle_of(local.HadamardResponse, 4.0)
    rows, blocks = oracle.error_model.rows, oracle.error_model.blocks
    assert (rows, blocks) == (3, 27)
    # Everybody has one value, and another is beside it: the plan is reached.
    shares = np.eye(len(oracle.domain))[0]
    known = variances(oracle, shares)
    assert known[1] == pytest.approx(oracle.variance(1, 0.0), rel=1e-9)
    assert known[0] == pytest.approx(oracle.variance(1, 1.0), rel=1e-9)
    # As if they were spread over all matrices, it was planned with less than a third of that.
    model = oracle.error_model
    even = (model.other + (model.own - model.other) / blocks) / model.gap**2
    assert known[1] > 3 * even
    alone = local.HadamardResponse(epsilon=1.0, domain=Domain(range(2)))
    assert alone.variance(1) == pytest.approx(variances(alone, np.array([0.0, 1.0]))[0], rel=1e-9)
