"""Oracles of reports that support values: exact moments over all reports, and large domains."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.local import (
    Domain,
    HadamardResponse,
    OneBitHadamard,
    ProjectiveGeometryResponse,
    SubsetSelection,
)
from sfumato.local.frequency.walsh_hadamard import walsh
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import SEVEN_SIGMA, covers

KINDS: list[Any] = [HadamardResponse, OneBitHadamard, ProjectiveGeometryResponse, SubsetSelection]


@cases("kind", KINDS, ids=lambda kind: str(kind.__name__))
@cases("epsilon", [0.3, 1.0, 2.0, 4.0])
@cases("count", [2, 7, 11])
def test_no_bias_and_the_stated_covariance_over_all_reports(kind: Any, epsilon: float, count: int) -> None:
    oracle = kind(epsilon=epsilon, domain=Domain(range(count)))
    device = oracle.device
    records = device.reports()
    parts = np.array([oracle.shares(oracle.tally(records[i : i + 1]), 1) for i in range(len(records))])
    laws = np.array([[float(p) for p in device.probabilities(code).values()] for code in range(count)])
    means = laws @ parts
    assert np.allclose(means, np.eye(count), atol=1e-9 * abs(parts).max())
    shares = np.random.default_rng(1).dirichlet(np.full(count, 0.5))
    exact = sum(
        share * ((parts * law[:, None]).T @ parts - np.outer(mean, mean))
        for share, law, mean in zip(shares, laws, means, strict=True)
    )
    stated = oracle.error_model.covariance(shares, np.arange(count))
    assert np.allclose(stated, exact, atol=1e-9 * abs(exact).max())
    assert np.allclose(oracle.error_model.variance(shares), np.diag(exact))
    # The loss supposes the least overlap of two supports.
    supports = np.array([device.supporting(code) for code in range(count)])
    both = min(int((one & other).sum()) for at, one in enumerate(supports) for other in supports[:at])
    assert oracle.privacy_loss.overlap == Fraction(both, len(records))
    assert oracle.privacy_loss.chance == device.part


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_transform_is_that_of_the_matrix(size: int) -> None:
    matrix = [[(-1) ** (x & j).bit_count() for j in range(size)] for x in range(size)]
    rows = np.random.default_rng(1).integers(-9, 9, (3, size))
    expected = rows @ np.array(matrix)
    assert walsh(rows) is rows
    assert rows.tolist() == expected.tolist()


@cases("kind", KINDS, ids=lambda kind: str(kind.__name__))
@cases("epsilon", [0.5, 3.0])
def test_large_domains_are_counted_as_they_are_reported(kind: Any, epsilon: float) -> None:
    count, n = 700, 20_000
    oracle = kind(epsilon=epsilon, domain=Domain(range(count)))
    values = np.where(np.arange(n) < n // 3, 699, np.arange(n) % count)
    counts = np.bincount(values, minlength=count)
    aggregator = oracle.aggregator()
    aggregator.add_batch(oracle.randomize_batch(values, 1))
    assert aggregator.accepted == n
    members = oracle.device.subset_size if kind is SubsetSelection else 1
    assert oracle.simulate_counts(counts, 2).sum() == aggregator.totals.sum() == members * n
    for estimate in (aggregator.estimate(), oracle.simulate(counts, 2)):
        away = estimate.frequencies - counts / n
        stated = oracle.error_model.variance(counts / n) / n

        def check(variances: Any, away: Any = away) -> None:
            # 700 estimates: false alarms below 1e-9 all together.
            assert (abs(away) <= (SEVEN_SIGMA + 1) * np.sqrt(variances)).all()
            assert abs((away**2 / variances).mean() - 1) < 0.4

        accepts_only(check, stated, half=stated / 2, twice=2 * stated)
        ends = estimate.interval(0.95)
        held = int(((ends.lower <= counts / n) & (counts / n <= ends.upper)).sum())
        assert held > 0.92 * count
        covers(held, count, claimed=0.995)


def test_the_variance_is_near_the_optimum_for_all_small_epsilons() -> None:
    for epsilon in np.linspace(0.1, 6, 60):
        oracle = ProjectiveGeometryResponse(epsilon=epsilon, domain=Domain(range(65_536)))
        optimum = 4 * np.exp(epsilon) / np.expm1(epsilon) ** 2
        assert 0.99 * optimum < oracle.variance(1) < 1.05 * optimum
        assert oracle.device.width <= (7 if epsilon < 4.5 else 8)


def test_intervals_of_a_crowded_block_are_wider() -> None:
    oracle = HadamardResponse(epsilon=3.0, domain=Domain(range(100)))
    assert oracle.device.blocks > 4
    counts = np.where(np.arange(100) < oracle.device.size - 1, 20_000, 100)
    generator = np.random.default_rng(1)
    found = [oracle.simulate(counts, generator) for _ in range(300)]
    truth = counts / counts.sum()
    held = [(e.interval().lower <= truth) & (truth <= e.interval().upper) for e in found]
    covers(int(np.sum(held)), np.size(held), claimed=0.97, most=0.96, under=0.93)
    assert found[0].variances[0] > 2 * found[0].variances[-1]
    square = np.mean([(e.frequencies - truth) ** 2 for e in found], axis=0)
    assert abs((square / (oracle.error_model.variance(truth) / counts.sum())).mean() - 1) < 0.05
    assert np.isnan(oracle.aggregator().estimate().frequencies).all()


def test_variances_of_large_blocks_are_told_by_the_reports() -> None:
    oracle = HadamardResponse(epsilon=3.0, domain=Domain(range(2000)))
    counts = np.where(np.arange(2000) < oracle.device.size - 1, 400, 50)
    stated = oracle.error_model.variance(counts / counts.sum()) / counts.sum()
    # From estimates, with those below 0 cut off, the shares of blocks would come out several times too large.
    assert np.allclose(oracle.simulate(counts, 1).variances, stated, rtol=0.05)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_pieces_merge_and_hostile_records_are_counted(kind: Any) -> None:
    oracle = kind(epsilon=1.0, domain=Domain(range(50)))
    values = np.arange(3000) % 50
    batch = oracle.randomize_batch(values, 1)
    whole, one, other = (oracle.aggregator() for _ in range(3))
    whole.add_batch(batch)
    one.add_batch(batch.records[:1000])
    other.add_batch(batch.records[1000:])
    assert other.merge(one.to_bytes()).totals.tolist() == whole.totals.tolist()
    noise = np.random.default_rng(1).integers(0, 256, (20_000, oracle.device.width), dtype=np.uint8)
    before = whole.accepted
    whole.add_batch(noise)
    assert whole.refused["specification"] > 17_000
    oracle.device.layout.stamp(noise)
    sound = oracle.device.well_formed(noise)
    whole.add_batch(noise)
    assert whole.refused["encoding"] >= (~sound).sum()
    assert whole.accepted - before + sum(whole.refused.values()) == 40_000
    assert np.isfinite(whole.estimate().frequencies).all()
