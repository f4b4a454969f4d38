"""Sample-and-aggregate: the exact distribution over all partitions against the loss, the sampler."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Measurement, SampleAndAggregate
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

TOP = 4


def middle(results: list[int], epsilon: float) -> np.ndarray:
    """Probabilities of 0, ..., TOP as the private median of results, at replace-one."""
    n = len(results)
    gaps = [
        max(0, sum(y < x for y in results) - n / 2, sum(y > x for y in results) - n / 2)
        for x in range(TOP + 1)
    ]
    weights = np.exp(-epsilon / 2 * np.array(gaps))
    return np.asarray(weights / weights.sum())


def distribution(mechanism: SampleAndAggregate, data: tuple[int, ...]) -> np.ndarray:
    """The mixture over all partitions."""
    partitions = list(itertools.product(range(mechanism.blocks), repeat=len(data)))
    total = np.zeros(TOP + 1)
    for chosen in partitions:
        blocks = [[x for x, at in zip(data, chosen, strict=True) if at == b] for b in range(mechanism.blocks)]
        total += middle([max(block, default=0) for block in blocks], float(mechanism.epsilon))
    return total / len(partitions)


def largest(**given: Any) -> SampleAndAggregate:
    return SampleAndAggregate(estimator=np.max, bounds=(0, TOP), **given)


@pytest.mark.parametrize("relation", list(Neighboring))
@pytest.mark.parametrize("blocks", [2, 3])
def test_the_loss_covers_the_exact_distribution(relation: Neighboring, blocks: int) -> None:
    mechanism = largest(blocks=blocks, epsilon=1.0, neighboring=relation)
    loss = mechanism.privacy_loss
    assert loss.epsilon(0.0) == 1.0
    assert loss.neighboring is relation
    worst = 0.0
    for size in range(4):
        for one in itertools.combinations_with_replacement(range(TOP + 1), size):
            for new in range(TOP + 1):
                moved = (*one[1:], 0 if relation is Neighboring.ZERO_OUT else new) if one else one
                other = (*one, new) if relation is Neighboring.ADD_REMOVE else moved
                here, there = distribution(mechanism, one), distribution(mechanism, other)
                worst = max(worst, float(np.abs(np.log(here / there)).max()))
                for epsilon in (0.1, 0.4):
                    gap = np.maximum(0, here - math.exp(epsilon) * there).sum()
                    assert gap <= loss.delta(epsilon) * (1 + 1e-9)
    assert 0.3 < worst <= 1


def test_releases_follow_the_distribution() -> None:
    mechanism, data, count = largest(blocks=3, epsilon=4.0), (1, 2, 4, 4), 1800
    rng = np.random.default_rng(6)
    seen = Counter(mechanism.release(np.array(data), rng).value for _ in range(count))
    accepts_only(
        frequencies(seen),
        dict(enumerate(distribution(mechanism, data))),
        less_noise=dict(enumerate(distribution(largest(blocks=3, epsilon=8.0), data))),
        more_noise=dict(enumerate(distribution(largest(blocks=3, epsilon=2.0), data))),
    )


@pytest.mark.parametrize("aggregate", ["median", "mean"])
def test_estimates_of_many_records_are_close(aggregate: Any) -> None:
    mechanism = SampleAndAggregate(
        estimator=np.std, blocks=100, bounds=(0.0, 10.0), epsilon=1.0, aggregate=aggregate
    )
    data = np.random.default_rng(0).normal(0, 2, 50_000)
    released = [mechanism.release(data, rng=seed).value for seed in range(20)]
    assert np.abs(np.median(released) - 2) < 0.1
    assert mechanism.privacy_loss.epsilon(0.0) == pytest.approx(1.0, rel=1e-6)
    assert mechanism.privacy_loss.epsilon(0.0) <= 1.0


def test_the_mean_costs_what_its_noise_costs() -> None:
    mechanism = SampleAndAggregate(estimator=np.max, blocks=5, bounds=(0, TOP), epsilon=1.0, aggregate="mean")
    # Replacing one of five results moves their mean by a fifth of the distance of the bounds.
    mean = mechanism._aggregate
    assert isinstance(mean, Measurement)
    assert mean.query.shift(Neighboring.REPLACE_ONE).linf * mean.query.step == Fraction(TOP, 5)
    assert mechanism.privacy_loss.epsilon(0.0) == mean.privacy_loss.epsilon(0.0)
    assert 0 <= mechanism.release(np.arange(3)).value <= TOP


def test_blocks_partition_the_records() -> None:
    seen: list[np.ndarray] = []
    data = np.arange(200).reshape(100, 2)

    def size(block: np.ndarray) -> int:
        seen.append(block.copy())
        return len(block)

    mechanism = SampleAndAggregate(estimator=size, blocks=7, bounds=(0, 200), epsilon=1.0)
    mechanism.release(data, rng=1)
    assert 2 <= len(seen) <= 7
    assert sorted(np.concatenate(seen).ravel().tolist()) == list(range(200))
    assert (data == np.arange(200).reshape(100, 2)).all()


def test_odd_estimators_and_data_are_answered_at_the_usual_cost() -> None:
    def fails(block: np.ndarray) -> float:
        raise ValueError(f"{block[0]} is private")

    odd = np.array([math.nan, math.inf, -math.inf, 1e308, 0.5])
    for estimator in (fails, lambda block: "text", lambda block: None, lambda block: block, np.max, np.sum):
        for aggregate in ("median", "mean"):
            mechanism = SampleAndAggregate(
                estimator=estimator,
                blocks=10,
                bounds=(-1.0, 1.0),
                epsilon=1.0,
                aggregate=aggregate,
            )
            for data in (np.zeros(0), odd, np.full(99, math.nan), np.zeros((5, 2))):
                with np.errstate(all="ignore"):
                    release = mechanism.release(data)
                assert -1 <= release.value <= 1
                assert release.loss == mechanism.privacy_loss


@cases(
    ("parameters", "error", "message"),
    [
        ({"estimator": 3}, ParameterError, "estimator must"),
        ({"blocks": 1}, ParameterError, "blocks must"),
        ({"blocks": 2**25}, ParameterError, "blocks must"),
        ({"blocks": 2.5}, ParameterError, "blocks must"),
        ({"bounds": (1, 0)}, ParameterError, "bounds must"),
        ({"bounds": (1, 1)}, ParameterError, "bounds must"),
        ({"bounds": (0, math.inf)}, UnboundedSensitivity, "bounds must"),
        ({"epsilon": 0}, ParameterError, "epsilon must"),
        ({"aggregate": "mode"}, ParameterError, "aggregate must"),
        ({"aggregate": "mean", "grid": 3}, ParameterError, "grid must"),
        ({"grid": 3}, ParameterError, "grid must"),
        ({"neighboring": "add"}, ParameterError, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {"estimator": np.max, "blocks": 5, "bounds": (0, 9), "epsilon": 1.0}
    for aggregate in ("median", "mean"):
        if "grid" in parameters and "aggregate" not in parameters and aggregate == "mean":
            continue
        with pytest.raises(error, match=message):
            SampleAndAggregate(**(good | {"aggregate": aggregate} | parameters))


def test_data_of_another_shape_is_refused() -> None:
    for data in ({1, 2}, 5, np.float64(3)):
        with pytest.raises(ParameterError, match="data must"):
            largest(blocks=2, epsilon=1).release(data)
