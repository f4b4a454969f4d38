"""RAPPOR's server half: its two losses, unbiased counts of bits, the simulator, merges and hostile bytes."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from sfumato.local import Rappor
from sfumato.privacy import Neighboring
from tests.chance import accepts_only
from tests.local.laws import SEVEN_SIGMA, have_moments, within

COUNTS = {"red": 6000, "green": 3000, "blue": 1000}
SMALL = Rappor(bits=16, cohorts=3, permanent=0.4, instantaneous=(0.2, 0.8))


def test_the_defaults_have_the_losses_of_the_paper() -> None:
    oracle = Rappor()
    assert oracle.longitudinal_loss.epsilon(0.0) == pytest.approx(4 * log(3), rel=1e-12)
    assert oracle.longitudinal_loss.epsilon(0.0) >= 4 * log(3)
    p, q = 0.5 + 0.25 * 0.25, 0.75 - 0.25 * 0.25
    assert oracle.one_report_loss.epsilon(0.0) == pytest.approx(
        2 * log(q * (1 - p) / (p * (1 - q))), rel=1e-12
    )
    assert oracle.privacy_loss.neighboring is Neighboring.REPLACE_ONE
    assert oracle.one_report_loss.epsilon(0.0) <= oracle.epsilon * (1 + 1e-12)
    for f, h in ((0.25, 1), (0.75, 3)):
        found = Rappor(permanent=f, hashes=h).longitudinal_loss.epsilon(0.0)
        assert found == pytest.approx(2 * h * log((1 - f / 2) / (f / 2)), rel=1e-12)


def test_the_loss_is_that_of_two_strings_without_a_common_bit() -> None:
    oracle = Rappor(bits=8, cohorts=1, permanent=0.4, instantaneous=(0.5, 0.75))
    held = {str(i): set(oracle.device.indices([str(i)], [0])[0].tolist()) for i in range(40)}
    full = [name for name in held if len(held[name]) == 2]
    one, other = next((a, b) for a in full for b in full if not held[a] & held[b])
    laws = [oracle.device.probabilities(name) for name in (one, other)]
    for epsilon in (0.0, 0.3, 0.9, oracle.epsilon):
        delta = sum(max(0.0, float(p) - np.exp(epsilon) * float(laws[1][row])) for row, p in laws[0].items())
        assert oracle.privacy_loss.delta(epsilon) == pytest.approx(delta, abs=1e-6)
        assert oracle.privacy_loss.delta(epsilon) >= delta - 1e-12


@pytest.mark.parametrize("one_time", [False, True])
def test_reports_and_simulated_counts_have_the_same_unbiased_shares(one_time: bool) -> None:
    both = None if one_time else (0.2, 0.8)
    oracle = Rappor(bits=16, cohorts=3, permanent=0.4, instantaneous=both)
    aggregator = oracle.aggregator()
    values = [name for name, count in COUNTS.items() for _ in range(3 * count)]
    assert aggregator.add_batch(oracle.randomize_batch(values, 1)) == 30_000
    drawn = oracle.simulate({name: 3 * count for name, count in COUNTS.items()}, 2)
    for estimate in (aggregator.estimate(), drawn):
        assert estimate.reports == 30_000
        assert estimate.simulated
        assert int(estimate.clients.sum()) == 30_000
        for cohort in range(3):
            truth = np.zeros(16)
            for name, count in COUNTS.items():
                truth[list(set(oracle.device.indices([name], [cohort])[0].tolist()))] += count / 10_000
            told = within(estimate.shares[cohort], 1.05 * np.sqrt(estimate.variances[cohort]))
            accepts_only(told, truth, nobody=0 * truth, one_place_on=np.roll(truth, 1))


def test_the_simulator_has_the_moments_that_are_stated() -> None:
    generator, repeats = np.random.default_rng(1), 4000
    drawn = [SMALL.simulate(COUNTS, generator) for _ in range(repeats)]
    shares = np.array([estimate.shares for estimate in drawn])
    truth = np.zeros((3, 16))
    for cohort in range(3):
        for name, count in COUNTS.items():
            truth[cohort, list(set(SMALL.device.indices([name], [cohort])[0].tolist()))] += count / 10_000
    p, q = map(float, SMALL.device.chances)
    rate = p + truth * (q - p)
    stated = rate * (1 - rate) / (10_000 / 3) / (q - p) ** 2
    have_moments(shares - truth, stated, tells=0.2)
    ratio = float((((shares - truth) ** 2).mean(axis=0) / stated).mean())
    # Of 48 bits together: known to 3 %.
    accepts_only(within(ratio, 0.03 / SEVEN_SIGMA), 1.0, a_twentieth_less=0.95, a_twentieth_more=1.05)
    told = np.mean([estimate.variances for estimate in drawn[:200]], axis=0)
    assert told == pytest.approx(stated, rel=0.03)


def test_merges_are_exact_and_hostile_bytes_are_counted() -> None:
    batches = [SMALL.randomize_batch(["a", "b"] * 200, seed) for seed in range(3)]
    whole, left, right = (SMALL.aggregator() for _ in range(3))
    for batch in batches:
        whole.add_batch(batch)
    left.add_batch(batches[0])
    for record in batches[1]:
        assert right.add(record)
    right.add_batch(batches[2])
    assert left.merge(right.to_bytes()).totals.tolist() == whole.totals.tolist()
    assert SMALL.aggregator(whole.to_bytes()).totals.tolist() == whole.totals.tolist()
    noise = np.random.default_rng(1).integers(0, 256, (4000, SMALL.device.width), dtype=np.uint8)
    hostile = SMALL.aggregator()
    hostile.add_batch(noise)
    SMALL.device.layout.stamp(noise)
    hostile.add_batch(noise)
    assert hostile.accepted + sum(hostile.refused.values()) == 8000
    assert hostile.refused["encoding"] > 900  # cohort 3 of 3, in two bits
    assert hostile.refused["specification"] > 3000
    assert hostile.add_batch(Rappor(bits=16, cohorts=3).randomize_batch(["a"], 1)) == 0
    assert not hostile.add(b"")


def test_without_reports_nothing_is_known() -> None:
    estimate = SMALL.aggregator().estimate()
    assert np.isnan(estimate.shares).all()
    assert np.isinf(estimate.variances).all()
    found = estimate.decode(["a", "b"])
    assert found.detected == []
    assert found.interval().lower.tolist() == [0.0, 0.0]
    assert found.interval().upper.tolist() == [1.0, 1.0]
