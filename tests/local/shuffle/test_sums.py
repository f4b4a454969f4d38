"""Sums by split and mix: the stated law, intervals, whatever comes, and the auditor on what is seen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.shuffle.split_and_mix import Split
from sfumato.local.shuffle import SharedNoise, ShuffledMean, ShuffledSum
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy import ApproximateDP, DiscreteLaplace, Neighboring, loss_from_json
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most
from tests.local.laws import SEVEN_SIGMA, audited, covers, have_moments, within
from tests.local.shuffle.test_collection import ANALYST, batch, made

MEAN = ShuffledMean(epsilon=1.0, delta=1e-6, clients=300, bounds=(-1.0, 3.0))
SUM = ShuffledSum(epsilon=1.0, delta=1e-6, clients=300, bounds=(-1.0, 3.0))
VALUES = np.random.default_rng(5).beta(2, 5, 300) * 4 - 1
CERTAIN = 1 - 1e-10


@pytest.mark.parametrize(
    ("epsilon", "delta", "clients"), [(0.1, 1e-9, 50), (1.0, 1e-6, 20_000), (4.0, 1e-5, 7), (1.0, 1e-6, 1)]
)
def test_the_target_is_met_by_a_curators_noise(epsilon: float, delta: float, clients: int) -> None:
    protocol = ShuffledSum(epsilon=epsilon, delta=delta, clients=clients, bounds=(0.0, 1.0))
    loss, made = protocol.privacy_loss, protocol.device
    assert loss.pure().epsilon == epsilon
    assert loss.pure().delta <= delta
    assert loss.delta(epsilon) <= delta
    assert loss.epsilon(delta) <= epsilon
    assert loss.neighboring is Neighboring.REPLACE_ONE
    curator = DiscreteLaplaceDistribution(made.scale).stddev / made.steps
    assert (
        curator
        <= math.sqrt(protocol.variance(clients))
        <= 1.01 * curator + 0.5 * math.sqrt(clients) / made.steps
    )
    assert math.sqrt(protocol.variance(clients)) <= 1.02 * math.sqrt(2) / epsilon + 0.01
    assert protocol.messages == made.split.shares
    assert protocol.bytes_each == protocol.messages * made.width
    # All possible sums of a batch, and any noise that is ever seen, lie within the modulus.
    law = DiscreteLaplaceDistribution(made.scale)
    beyond = (2**made.split.bits - 2 * clients * made.steps) // 2
    assert law.upper_tail(beyond).upper < 2.0**-40


def test_the_loss_composes_and_is_written_down() -> None:
    loss = MEAN.privacy_loss
    scale, steps = MEAN.device.scale, MEAN.device.steps
    noise = DiscreteLaplace(scale, steps, neighboring=Neighboring.REPLACE_ONE)
    assert loss == noise + ApproximateDP(0.0, loss.pure().delta, neighboring=Neighboring.REPLACE_ONE)
    assert (loss * 10).epsilon(1e-4) < 10
    assert loss_from_json(loss.to_json()) == loss
    assert ShuffledMean(epsilon=1.0, delta=1e-6, clients=1, bounds=(0, 1)).privacy_loss.epsilon(0.0) == 1.0


def test_estimates_have_the_moments_and_the_coverage_that_are_stated() -> None:
    generator, repeats = np.random.default_rng(1), 20_000
    told = [MEAN.simulate(VALUES, generator) for _ in range(repeats)]
    drawn, truth = np.array([each.mean for each in told]), VALUES.mean()
    stated = MEAN.variance(300)
    have_moments(drawn - truth, stated, tells=0.15, kurtosis=6)
    for level in (0.5, 0.95, 0.999):
        half = np.diff(told[0].interval(level)[:2])[0] / 2
        low, high, _ = told[1].interval(level)
        assert (low, high) == pytest.approx((drawn[1] - half, drawn[1] + half))
        held, off = int((abs(drawn - truth) <= half).sum()), (1 - level) / 10
        covers(held, repeats, level, claimed=1 - off, most=min(level + 0.003, 0.9995), under=level - 0.1)
    assert told[0].variance == pytest.approx(stated)
    assert told[0].stddev == pytest.approx(math.sqrt(stated))


def test_the_sum_is_the_mean_times_the_clients() -> None:
    mean, total = MEAN.simulate(VALUES, 3), SUM.simulate(VALUES, 3)
    assert total.total == pytest.approx(300 * mean.mean)
    assert SUM.variance(300) == pytest.approx(300**2 * MEAN.variance(300))
    low, high, _ = total.interval(0.9)
    assert low == pytest.approx(300 * mean.interval(0.9).lower)
    assert high == pytest.approx(300 * mean.interval(0.9).upper)
    assert SUM.device == MEAN.device


@cases("parts", [0.5, 1.0, 1.7, 40.0])
@cases("scale", [0.3, 7.0, 3000.0])
def test_the_law_of_shared_noise(scale: float, parts: float) -> None:
    noise = SharedNoise(scale=scale, parts=parts, rounding=0.0)
    generator, n = np.random.default_rng(2), 200_000
    chance = -math.expm1(-1 / scale)
    up, down = generator.negative_binomial(parts, chance, (2, n))
    drawn = abs(up - down)
    fourth = (drawn.astype(float) ** 4).mean()
    square = within((drawn.astype(float) ** 2).mean(), math.sqrt(fourth / n))
    accepts_only(square, noise.variance, a_third_less=2 / 3 * noise.variance, more=1.5 * noise.variance)
    for level in (0.5, 0.95, 0.9999):
        half = noise.half_width(level)
        inside = int((drawn <= half).sum()), int((drawn < half - 0.004 * math.sqrt(noise.variance)).sum())

        def check(level: float, inside: tuple[int, int] = inside) -> None:
            at_least(inside[0], n)(level - 1e-4)
            at_most(inside[1], n)(level + 1e-4)

        accepts_only(check, level, less=level - 0.4 if inside[1] > 0.2 * n else -1e-4)
    if parts == 1.0 and scale < 100:
        exact = DiscreteLaplaceDistribution(scale)
        for level in (0.9, 0.999):
            half = exact.half_width(level)[0]
            assert half < noise.half_width(level) < half + 1e-5


def test_rounding_widens_intervals() -> None:
    lone, both = (SharedNoise(scale=1.0, parts=1.0, rounding=r) for r in (0.0, 1e6))
    assert both.half_width(0.95) == pytest.approx(1960, abs=2)
    assert lone.half_width(0.95) < 5
    assert both.variance == pytest.approx(lone.variance + 1e6)


def test_messages_one_by_one_have_the_law_of_the_simulator() -> None:
    repeats = 200
    found = []
    for seed in range(repeats):
        aggregator = SUM.aggregator()
        assert aggregator.add_batch(SUM.randomize_batch(VALUES, seed).shuffled(seed)) == 300 * SUM.messages
        found.append(aggregator.estimate())
    drawn = np.array([each.total for each in found]) - VALUES.sum()
    variance = SUM.variance(300)

    def check(stated: float) -> None:
        assert abs(drawn.mean()) <= SEVEN_SIGMA * math.sqrt(stated / repeats)
        # 200 squares of Laplace noise: within half of their mean by 3 sigma, with these seeds.
        assert (drawn**2).mean() / stated == pytest.approx(1.0, abs=0.5)

    accepts_only(check, variance, half=variance / 2, three_times=3 * variance)
    assert all(each.simulated and each.reports == 300 for each in found)


def test_counts_merge_in_any_order_beyond_all_wrapping() -> None:
    batch = MEAN.randomize_batch(VALUES, 1)
    whole, parts = MEAN.aggregator(), MEAN.aggregator()
    whole.add_batch(batch)
    for part in np.array_split(batch.shuffled(3).records, 7):
        one = MEAN.aggregator()
        one.add_batch(part)
        parts.merge(MEAN.aggregator(one.to_bytes()))
    assert parts.totals.tolist() == whole.totals.tolist()
    assert parts.estimate().mean == whole.estimate().mean
    bits = MEAN.device.split.bits
    for shift in (-3 << bits, 1 << bits, 1 << 62):
        moved = MEAN.estimate(whole.totals + shift, whole.accepted)
        assert moved.mean == whole.estimate().mean


def test_without_all_messages_nothing_is_told() -> None:
    batch = MEAN.randomize_batch(VALUES, 1).records
    for records in (batch[:-1], batch[:0]):
        aggregator = MEAN.aggregator()
        aggregator.add_batch(records)
        found = aggregator.estimate()
        assert math.isnan(found.mean)
        assert math.isinf(found.variance)
        assert found.interval(0.9)[:2] == (-1.0, 3.0)
    twice = MEAN.aggregator()
    twice.add_batch(np.vstack([batch, batch]))
    assert twice.estimate().reports == 600
    twice.add_batch(MEAN.randomize_batch(VALUES[:1], 3).records)
    assert math.isnan(twice.estimate().mean)  # more clients than the modulus holds
    assert SUM.aggregator().estimate().interval()[:2] == (-math.inf, math.inf)
    assert (
        ShuffledMean(
            epsilon=1.0, delta=1e-6, clients=300, bounds=(-1.0, 3.0), max_clients=5000
        ).device.split.bits
        > MEAN.device.split.bits
    )


def test_hostile_messages_are_counted_and_refused() -> None:
    aggregator = MEAN.aggregator()
    sent, width = MEAN.randomize(0.5, 1), MEAN.device.width
    assert len(sent) == MEAN.messages * width
    assert all(aggregator.add(sent[at : at + width]) for at in range(0, len(sent), width))
    assert not aggregator.add(sent)
    assert not aggregator.add(sent[: width - 1] + bytes([sent[width - 1] ^ 0x80]))
    stranger = ShuffledMean(epsilon=1.0, delta=1e-6, clients=301, bounds=(-1.0, 3.0))
    assert aggregator.add_batch(stranger.randomize_batch([1.0, 2.0], 1)) == 0
    assert aggregator.refused == {"width": 1, "specification": 1 + 2 * stranger.messages, "encoding": 0}
    assert aggregator.estimate().reports == 1
    assert math.isfinite(aggregator.estimate().mean)


def test_within_a_client_the_order_tells_nothing() -> None:
    records = MEAN.randomize_batch([2.0] * 50, 4).records
    payloads = MEAN.device.layout.unpack(records).reshape(50, -1).astype(np.int64)
    assert (np.diff(payloads, axis=1) >= 0).all()
    assert not MEAN.randomize_batch([1.0]).simulated
    assert MEAN.randomize_batch([1.0], 7).records.tobytes() == MEAN.randomize(1.0, 7)
    assert len(MEAN.randomize_batch(np.array([]))) == 0


def test_a_device_is_made_again_from_its_specification() -> None:
    told = json.loads(json.dumps(MEAN.device.specification()))
    made = Randomizer.from_specification(told)
    assert made == MEAN.device
    assert made.digest == MEAN.device.digest
    assert made.randomize(0.3, 5) == MEAN.randomize(0.3, 5)
    wrongs: list[dict[str, Any]] = [
        {"split": [300, 3]},
        {"split": [300, 8, 99]},
        {"split": [300, 8, 20.0]},
        {"split": None},
        {"steps": 2**14, "epsilon": 0.1},
        {"more": 1},
    ]
    for wrong in wrongs:
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **wrong})


@cases(
    ("wrong", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 2.0**-16}, "epsilon must be at least 2"),
        ({"delta": 1.0}, "delta"),
        ({"clients": 0}, "clients"),
        ({"clients": 2.5}, "clients"),
        ({"max_clients": 99}, "max_clients"),
        ({"bounds": (1.0, 1.0)}, "bounds"),
        ({"bounds": 3.0}, "bounds"),
        ({"steps": 0}, "steps"),
        ({"steps": 2**14 + 1}, "steps"),
        ({"steps": 2**14, "epsilon": 0.25}, "epsilon must be at least"),
        ({"max_clients": 2**51}, "bits must be from 1 to 52"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "clients": 100, "bounds": (0.0, 1.0), **wrong}
    with pytest.raises(ParameterError, match=message):
        ShuffledMean(**given)


def test_values_beyond_the_bounds_are_refused_unseen() -> None:
    with pytest.raises(ParameterError, match=r"values must be numbers from -1\.0 to 3\.0") as caught:
        MEAN.randomize(17.25)
    assert "17.25" not in str(caught.value)
    with pytest.raises(ParameterError, match="n must be"):
        MEAN.variance(0)


def test_sums_go_by_way_of_the_shuffler() -> None:
    protocol = ShuffledMean(epsilon=8.0, delta=1e-3, clients=18, bounds=(0.0, 10.0))
    collection = made(protocol)
    assert collection.privacy_loss == protocol.privacy_loss
    opening = collection.opening(ANALYST)
    values = np.linspace(0, 10, 20).tolist()
    assert opening.add(batch(collection, values)) == 20 * protocol.messages
    found = opening.estimate()
    assert (found.reports, found.simulated) == (20, False)
    assert abs(found.mean - 5.0) <= found.noise.half_width(1 - 1e-9) * found.unit
    again = type(collection).from_specification(json.loads(json.dumps(collection.specification())))
    assert again.protocol == protocol
    with pytest.raises(ParameterError, match="clients must be at least 18"):
        made(protocol, colluders=3)


def seen(client: device.ShuffledSumRandomizer, others: int, seed: int) -> Callable[[float, int], Any]:
    """What is seen of some clients whose messages are mixed: sorted, and what they add up to."""
    generator = np.random.default_rng(seed)

    def records(value: float, size: int) -> Any:
        values = np.tile(np.array([value, *[0.0] * others]), size)
        mixed = client.randomize_batch(values, generator).records
        said = client.layout.unpack(mixed).reshape(size, -1)
        # No learner adds up modulo a number: the messages are read as their sum, and as the least of them.
        total = said.sum(axis=1) % np.uint64(1 << client.split.bits)
        return np.column_stack([total, np.sort(said, axis=1)[:, 0]]).astype(np.uint8)

    return records


@pytest.mark.sharpest("4.0")
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_mixed_bytes_keep_epsilon_and_use_it(epsilon: float) -> None:
    client = device.ShuffledSumRandomizer(epsilon=epsilon, bounds=(0, 1), steps=2, split=Split(3, 6, 6))
    trials = {1.0: 250_000, 4.0: 100_000}[epsilon]
    found = audit(
        seen(client, 2, 7), epsilon=epsilon, pairs=[(0.0, 1.0)], trials=trials, batch=True, confidence=CERTAIN
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


def test_an_audit_sees_too_few_honest_clients() -> None:
    # Planned for eight honest clients, but only two are: a quarter of the noise.
    client = device.ShuffledSumRandomizer(epsilon=1.0, bounds=(0, 1), steps=2, split=Split(8, 6, 6))
    found = audit(
        seen(client, 1, 7), epsilon=1.0, pairs=[(0.0, 1.0)], trials=30_000, batch=True, confidence=CERTAIN
    )
    assert found.violated


def test_sums_beyond_64_bits_merge_and_come_back() -> None:
    """Long shares wrap around at 2^64 among many messages: a state with any total is an honest one."""
    protocol = ShuffledSum(
        epsilon=1.0, delta=1e-6, clients=1000, max_clients=2**37, bounds=(0.0, 1.0), steps=2**13
    )
    bits, made = protocol.device.split.bits, protocol.aggregator()
    assert bits >= 51
    made.add_batch(protocol.device.layout.pack(np.full(8192, 2**bits - 1, np.uint64)))
    state = made.to_bytes()
    twice = protocol.aggregator(state).merge(state)
    assert int(twice.totals[0]) % 2**bits == -16384 % 2**bits
    assert twice.accepted == 16384


def test_clients_with_the_same_number_are_drawn_together() -> None:
    made = ShuffledMean(
        epsilon=1.0, delta=1e-6, clients=900_000_000, max_clients=10**9, bounds=(0.0, 1.0), steps=10
    )
    values, counts = [0.0, 0.25, 1.0], [500_000_000, 300_000_000, 200_000_000]
    found = made.simulate(values, 1, counts=counts)
    assert (found.simulated, found.reports) == (True, 10**9)
    accepts_only(within(found.mean, found.stddev), 0.275, without_counts=1.25 / 3, rounded=0.2)
    # One step and hardly any noise: what is left is the rounding of each client, of variance 3/16.
    coarse = ShuffledSum(epsilon=20.0, delta=1e-6, clients=300, bounds=(0.0, 1.0), steps=1)
    generator, repeats = np.random.default_rng(2), 4000
    drawn = np.array([coarse.simulate([0.25], generator, counts=[300]).total for _ in range(repeats)])
    stated = 300 * 3 / 16
    have_moments(drawn - 75, stated, tells=0.2)


def test_nobody_is_simulated_too_and_no_more_than_the_most() -> None:
    assert SUM.simulate([]).reports == 0
    assert math.isnan(MEAN.simulate([1.0], counts=[0]).mean)
    with pytest.raises(ParameterError, match=f"counts must add up to at most {SUM.batch}, the maximum"):
        SUM.simulate([1.0], counts=[SUM.batch + 1])
    with pytest.raises(ParameterError, match="counts must be 1 whole numbers of at least 0"):
        SUM.simulate([1.0], counts=[1.5])
