"""Ranges and quantiles: no bias, the spread that is stated, intervals that cover, and whatever bytes come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import (
    Bins,
    Domain,
    HaarHistogram,
    HadamardResponse,
    HierarchicalHistogram,
    OneBitHadamard,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    RandomizedResponse,
)
from sfumato.privacy import Neighboring, Shuffled
from tests.cases import cases
from tests.chance import accepts_only
from tests.drawings import band, bars, line, new_axes, written
from tests.local.laws import SEVEN_SIGMA, alike, audited, covers, have_moments, within

CERTAIN = 1 - 1e-11


def tree(epsilon: float = 1.0, domain: Any = 30, **given: Any) -> HierarchicalHistogram:
    made = Domain(range(domain)) if isinstance(domain, int) else domain
    return HierarchicalHistogram(epsilon=epsilon, domain=made, **{"branching": 3, **given})


def haar(epsilon: float = 1.0, domain: Any = 30, **given: Any) -> HaarHistogram:
    made = Domain(range(domain)) if isinstance(domain, int) else domain
    return HaarHistogram(epsilon=epsilon, domain=made, **given)


def flat(epsilon: float = 1.0, domain: int = 30) -> HierarchicalHistogram:
    return tree(epsilon, domain, branching=domain)


def projective(epsilon: float = 1.0, domain: Any = 30, **given: Any) -> HierarchicalHistogram:
    return tree(epsilon, domain, branching=6, oracle=ProjectiveGeometryResponse, **given)


KINDS: list[Any] = [tree, haar, flat, projective]


def people(size: int, n: int) -> Any:
    """So many people, most of them in the middle, and shares of all values."""
    weights = np.exp(-((np.arange(size) - size / 3) ** 2) / size)
    counts = np.floor(weights / weights.sum() * n).astype(np.int64)
    counts[size // 2] += n - counts.sum()
    return counts, counts / n


@cases("kind", KINDS)
@cases("epsilon", [0.5, 4.0])
@cases("weights", [None, "rising"])
def test_no_bias_on_the_wire(kind: Any, epsilon: float, weights: Any) -> None:
    given = (
        {}
        if weights is None or kind is flat
        else {"weights": np.arange(1.0, len(kind().levels) + 1).tolist()}
    )
    protocol = kind(epsilon, **given)
    counts, shares = people(30, 60_000)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(np.repeat(np.arange(30), counts), 3))
    told = aggregator.estimate()
    assert told.simulated
    assert told.reports == 60_000
    first, last = np.triu_indices(30)
    truth = np.concatenate([[0.0], np.cumsum(shares)])
    found = told.ranges(first, last)
    exact = truth[last + 1] - truth[first]
    near = within(found.share, found.stddev)
    accepts_only(near, exact, counted_from_above=exact[::-1])
    assert found.variance[29] == 0  # of everything
    stated = protocol.variance(60_000, first, last, shares)
    keep = stated > 0
    # The estimated variance is near the true one, and the reports of a level near their number.
    assert np.median(found.variance[keep] / stated[keep]) == pytest.approx(1, abs=0.1)
    one = told.range(4, 11)
    assert one.share == pytest.approx(told.raw[4:12].sum())
    assert one.count == pytest.approx(60_000 * one.share)
    assert one.interval().lower < one.share < one.interval().upper


@pytest.mark.parametrize(("kind", "epsilon"), [(tree, 1.0), (tree, 4.0), (haar, 1.0)])
def test_spread_is_the_one_that_is_stated(kind: Any, epsilon: float) -> None:
    size, n, repeats = 12, 40_000, 3000
    protocol, generator = kind(epsilon, size), np.random.default_rng(5)
    counts, shares = people(size, n)
    told = np.array([protocol.simulate(counts, generator).raw for _ in range(repeats)])
    first, last = np.triu_indices(size)
    reach = np.cumsum(np.hstack([np.zeros((repeats, 1)), told - shares]), axis=1)
    errors = reach[:, last + 1] - reach[:, first]
    stated = protocol.variance(n, first, last, shares)
    keep = stated > 1e-15
    square = (errors**2).mean(axis=0)
    have_moments(errors[:, keep], stated[keep], tells=0.25)
    # Single values are nearly independent: their sum is known to less than 1 %.
    single = first == last
    ratio = within(square[single].sum() / stated[single].sum(), 0.03 / SEVEN_SIGMA)
    accepts_only(ratio, 1.0, a_twentieth_less=0.95, a_twentieth_more=1.05)


@pytest.mark.parametrize("kind", [tree, haar])
def test_intervals_cover(kind: Any) -> None:
    size, n, repeats, q = 12, 40_000, 400, 0.4
    protocol, generator = kind(1.0, size), np.random.default_rng(5)
    counts, shares = people(size, n)
    first, last = np.triu_indices(size)
    cumulative = np.concatenate([[0.0], np.cumsum(shares)])
    cumulative[-1] = 1.0
    truth, place = cumulative[last + 1] - cumulative[first], int(np.argmax(cumulative[1:] >= q))
    hits, held = np.zeros(len(first)), np.zeros(4)
    for _ in range(repeats):
        told = protocol.simulate(counts, generator)
        low, high, _ = told.ranges(first, last).interval(0.95)
        hits += (low <= truth) & (truth <= high)
        pairs = ((told.bands(), shares), (told.cdf_bands(), cumulative[1:]))
        whole = [((a <= x) & (x <= b)).all() for (a, b, _), x in pairs]
        ends = [told.quantile_interval(q, simultaneous=together) for together in (False, True)]
        held += [*whole, *(end.lower <= place <= end.upper for end in ends)]
    keep = truth < 1 - 1e-9
    assert 0.945 <= hits[keep].mean() / repeats <= 0.96
    covers(hits[keep], repeats, most=0.96)
    covers(held[held < repeats], repeats, claimed=0.9999)


@pytest.mark.parametrize("kind", KINDS)
def test_counts_have_the_law_of_reports(kind: Any) -> None:
    protocol, repeats = kind(1.0, 6), 300
    counts = np.array([40, 0, 10, 25, 5, 20])
    values = np.tile(np.repeat(np.arange(6), counts), repeats)
    records = protocol.randomize_batch(values, 3).records
    reported = np.array([protocol.tally(part) for part in np.split(records, repeats)])
    generator = np.random.default_rng(4)
    drawn = np.array([protocol.simulate_counts(counts, generator) for _ in range(repeats)])
    assert (drawn.sum(axis=0) >= 0).all()
    moved = drawn + 0.8 * drawn.std(axis=0)
    accepts_only(alike(reported), drawn, four_fifths_of_a_deviation_off=moved)
    ratio = within(drawn.var(axis=0).sum() / reported.var(axis=0).sum(), np.sqrt(4 / repeats / 3))
    accepts_only(ratio, 1.0, half=0.5, half_more=1.5)
    assert drawn[:, -len(protocol.counted) :].sum(axis=1).tolist() == [100] * repeats


def test_as_many_people_as_one_likes() -> None:
    for protocol in (tree(1.0, 1024, branching=4), haar(1.0, 1024)):
        counts, shares = people(1024, 10**9)
        told = protocol.simulate(counts, 7)
        assert told.reports == 10**9
        assert told.range(0, 400).stddev < 0.0005
        found, exact = told.range(0, 400), shares[:401].sum()
        accepts_only(within(found.share, found.stddev), exact, rest=1 - exact, off=exact + 0.01)
        with pytest.raises(ParameterError, match="true_counts must be 1024 whole numbers"):
            protocol.simulate([1, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_close_to_epsilon_and_never_above(kind: Any) -> None:
    for epsilon in (0.3, 1.0, 4.0):
        loss = kind(epsilon).privacy_loss
        assert loss.neighboring is Neighboring.REPLACE_ONE
        assert 0.999 * epsilon <= loss.epsilon(0.0) <= epsilon * (1 + 1e-12)
        assert loss.epsilon(1e-3) < epsilon


def test_levels_of_one_law_have_one_loss_that_a_shuffler_amplifies() -> None:
    loss = tree(1.0, oracle=OptimizedUnaryEncoding).privacy_loss
    assert Shuffled(loss, clients=10_000).epsilon(1e-6) < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_merge_and_whatever_bytes_come_are_counted(kind: Any) -> None:
    protocol = kind(1.0)
    batch = protocol.randomize_batch(np.arange(200) % 30, 1)
    whole, single = protocol.aggregator(), protocol.aggregator()
    whole.add_batch(batch)
    assert all(single.add(record) for record in batch)
    assert single.totals.tolist() == whole.totals.tolist()
    merged = protocol.aggregator(whole.to_bytes()).merge(single.to_bytes())
    assert merged.totals.tolist() == (2 * whole.totals).tolist()
    noise = np.random.default_rng(5).integers(0, 256, (20_000, protocol.device.width), dtype=np.uint8)
    protocol.device.layout.stamp(noise[:5000])
    merged.add_batch(noise)
    merged.add(b"x")
    merged.add_batch(kind(1.1).randomize_batch(np.arange(30), 1))
    assert merged.accepted + sum(merged.refused.values()) == 400 + 20_001 + 30
    assert merged.refused["encoding"] > 0
    assert merged.refused["specification"] > 10_000


@pytest.mark.parametrize("kind", [tree, haar])
@pytest.mark.parametrize("epsilon", [4.0, 1.0])
def test_the_bytes_keep_epsilon_and_use_it(kind: Any, epsilon: float) -> None:
    given = {"branching": 2, "oracle": RandomizedResponse} if kind is tree else {}
    protocol, generator = kind(epsilon, 4, **given), np.random.default_rng(7)
    trials = {1.0: 500_000, 4.0: 150_000}[epsilon]
    found = audit(
        lambda value, size: protocol.randomize_batch(np.full(size, 3 * value), generator).records,
        epsilon=epsilon,
        pairs=[(0, 1)],
        trials=trials,
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_tells_nothing(kind: Any) -> None:
    told = kind(1.0).aggregator().estimate()
    assert np.isnan(told.raw).all()
    assert np.isinf(told.variances).all()
    assert told.range(0, 3).interval() == (0.0, 1.0, True)
    assert told.cdf_bands().lower.tolist() == [0.0] * 29 + [1.0]
    assert told.quantile_interval(0.5) == (0, 29, True)
    with pytest.raises(ParameterError, match="reports must be at least 1"):
        told.quantile(0.5)
    with pytest.raises(ParameterError, match="reports must be at least 1"):
        told.consistent("isotonic")


def test_numbers_in_bins() -> None:
    edges = np.linspace(0, 100, 51)
    numbers = np.random.default_rng(2).beta(2, 5, 100_000) * 100
    for protocol in (tree(2.0, Bins(edges)), haar(2.0, Bins(edges))):
        counted = protocol.aggregator()
        counted.add_batch(protocol.randomize_batch(numbers, 3))
        told = counted.estimate()
        found = told.range(20, 40)
        truth = np.mean((numbers >= 20) & (numbers < 40))
        accepts_only(within(found.share, found.stddev), truth, off=truth + 0.1, less=truth - 0.1)
        assert told.quantile(0.5) == pytest.approx(np.median(numbers), abs=1.5)
        low, high, _ = told.quantile_interval(0.5)
        assert low <= np.median(numbers) <= high
        assert high - low <= 8
        assert told.of(21.3) == told.raw[10]
        assert told.to_dict()["value"][10] == (20.0, 22.0)
        for name, ends in (
            ("lower", (21, 40)),
            ("upper", (20, 41)),
            ("lower", ("a", 40)),
            ("upper", (20, 999)),
        ):
            with pytest.raises(ParameterError, match=f"{name} must be edges"):
                told.range(*ends)
        with pytest.raises(ParameterError, match="upper must not come before"):
            told.range(40, 40)


def test_quantiles_and_ranges_by_name() -> None:
    grades = Domain(["F", "E", "D", "C", "B", "A"])
    protocol = haar(4.0, grades)
    told = protocol.simulate(np.array([10_000, 0, 30_000, 40_000, 15_000, 5_000]), 3)
    assert told.quantile(0.3) == "D"
    assert told.quantile(0.75) == "C"
    assert told.quantile_interval(0.3) == ("D", "D", True)
    assert told.range("D", "C").share == pytest.approx(0.7, abs=0.02)
    assert told.ranges(["F", "C"], ["E", "A"]).share == pytest.approx([0.1, 0.6], abs=0.02)
    assert told.cdf().share[-1] == pytest.approx(1)
    assert told.cdf().variance[-1] == 0
    assert told.to_dict()["value"] == ["F", "E", "D", "C", "B", "A"]
    assert told.counts.sum() == pytest.approx(100_000)
    with pytest.raises(ParameterError, match="values must be categories"):
        told.range("D", "Z")
    with pytest.raises(ParameterError, match="upper must not come before lower"):
        told.range("C", "D")
    with pytest.raises(ParameterError, match="upper must be as many as lower"):
        told.ranges(["F", "C"], ["E"])


def test_consistent_steps() -> None:
    counts, shares = people(60, 20_000)
    told = tree(1.0, 60).simulate(counts, 3)
    assert told.raw.min() < 0
    smooth = told.consistent("isotonic")
    assert smooth.frequencies.min() >= 0
    assert smooth.frequencies.sum() == pytest.approx(1)
    assert smooth.steps == ("isotonic",)
    assert (smooth.raw == told.raw).all()
    assert smooth.variances.tolist() == told.variances.tolist()
    reach, truth = np.cumsum(smooth.frequencies), np.cumsum(shares)
    assert ((reach - truth) ** 2).sum() <= ((np.cumsum(told.raw) - truth) ** 2).sum()
    assert told.quantile(0.5) == smooth.quantile(0.5)
    cut = told.consistent("norm-sub")
    assert cut.frequencies.min() >= 0
    assert cut.range(0, 59).share == pytest.approx(1)
    # At 5 % for all values together, next to nothing is kept of values that nobody has.
    kept = [(tree(1.0, 60).simulate(np.eye(60, dtype=np.int64)[7] * 9999, seed)) for seed in range(40)]
    wrong = sum(int((np.delete(one.consistent("base-cut").frequencies, 7) > 0).any()) for one in kept)
    assert wrong <= 10
    assert told.consistent("norm-mul").quantile(0.999999999) == 59
    with pytest.raises(ParameterError, match="step must be one of isotonic"):
        told.consistent("nonsense")


def test_branching_is_the_best_of_all() -> None:
    planned = HierarchicalHistogram(epsilon=1.0, domain=Domain(range(200)))
    errors = {
        branching: tree(1.0, 200, branching=branching).expected_error(10_000) for branching in range(2, 30)
    }
    assert planned.expected_error(10_000) <= 1.01 * min(errors.values())
    assert planned.branching is not None
    assert errors[planned.branching] == planned.expected_error(10_000)
    # Shorter reports and nearly the same error.
    short = HierarchicalHistogram(epsilon=1.0, domain=Domain(range(200)), oracle=ProjectiveGeometryResponse)
    assert short.branching == planned.branching
    assert short.device.width < planned.device.width
    assert short.expected_error(10_000) == pytest.approx(planned.expected_error(10_000), rel=0.1)
    # Single values are told best by leaves alone, long ranges by a tree.
    leaves = flat(1.0, 200)
    assert leaves.expected_error(10_000, 1) < planned.expected_error(10_000, 1)
    assert leaves.expected_error(10_000, 100) > 1.3 * planned.expected_error(10_000, 100)


@cases(
    ("given", "rule"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"domain": range(5)}, "domain must be a Domain or Bins"),
        ({"branching": 1}, "branching must be an integer of at least 2"),
        ({"branching": 2.0}, "branching must be an integer"),
        ({"oracle": int}, "oracle must be the class of a frequency oracle"),
        ({"oracle": "OptimalLocalHashing"}, "oracle must be the class of a frequency oracle"),
        ({"weights": (1.0,)}, "weights must be 3 positive numbers"),
        ({"weights": (1.0, 2.0, -1.0)}, "weights must be positive"),
    ],
)
def test_wrong_parameters_are_named(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        HierarchicalHistogram(**{"epsilon": 1.0, "domain": Domain(range(20)), "branching": 3, **given})
    for oracle in (ProjectiveGeometryResponse, HadamardResponse):
        with pytest.raises(ParameterError, match="oracle must have estimates of which any two"):
            haar(oracle=oracle)
        with pytest.raises(ParameterError, match="for more than 4096 nodes"):
            tree(domain=5000, oracle=oracle)
    if "branching" not in given and "weights" not in given:
        with pytest.raises(ParameterError, match=rule):
            HaarHistogram(**{"epsilon": 1.0, "domain": Domain(range(20)), **given})


def test_wrong_questions_are_named() -> None:
    protocol, told = tree(oracle=OneBitHadamard), tree().simulate(np.ones(30, np.int64))
    for ends in (([-1], [3]), ([4], [3]), ([0], [30]), ([0, 1], [3])):
        with pytest.raises(ParameterError, match="last must be indices"):
            protocol.variance(10, *ends)
    for wrong in (1.5, "x", [True], [[1], [1, 2]], None):
        with pytest.raises(ParameterError, match=r"first must be whole numbers, got .*; count indices"):
            protocol.variance(10, wrong, 3)
    for shares in (np.ones(3), np.full(30, 1.0), -np.ones(30)):
        with pytest.raises(ParameterError, match="shares must be"):
            protocol.variance(10, [0], [1], shares)
    with pytest.raises(ParameterError, match="length must be at most 30"):
        protocol.expected_error(10, 31)
    with pytest.raises(ParameterError, match="q must be strictly between"):
        told.quantile(1.0)
    with pytest.raises(ParameterError, match="level must be strictly between"):
        told.range(0, 1).interval(1.0)


def test_what_is_drawn_are_the_shares_with_their_intervals() -> None:
    levels = HaarHistogram(epsilon=2.0, domain=Domain(range(5, 13))).simulate([900] * 8, rng=1)
    ax = levels.plot(new_axes(), level=0.9)
    assert line(ax) == (list(range(5, 13)), levels.frequencies.tolist())
    assert band(ax) == [*zip(*(end.tolist() for end in levels.interval(0.9)[:2]), strict=True)]
    ax = levels.plot(new_axes(), cumulative=True)
    assert line(ax)[1] == levels.cdf().share.tolist()
    assert band(ax) == [*zip(*(end.tolist() for end in levels.cdf_bands()[:2]), strict=True)]
    binned = HaarHistogram(epsilon=2.0, domain=Bins([0, 18, 65, 120])).simulate([500, 900, 600], rng=1)
    ax = binned.plot(new_axes())
    assert [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches] == list(binned.domain.values)
    heights, ends = bars(ax)
    lower, upper, _ = binned.interval()
    assert heights == binned.frequencies.tolist()
    np.testing.assert_allclose(ends, np.stack([lower, upper], 1), atol=1e-12)
    assert line(binned.plot(new_axes(), cumulative=True))[0] == [18.0, 65.0, 120.0]
    named = HaarHistogram(epsilon=2.0, domain=Domain(["low", "high"])).simulate([500, 900], rng=1)
    assert written(named.plot(new_axes())) == ["low", "high"]
