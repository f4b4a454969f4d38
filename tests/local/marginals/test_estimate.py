"""Marginals: no bias, the spread that is stated, intervals that cover, and whatever bytes come."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import Domain, HadamardResponse, OneBitHadamard, OptimizedUnaryEncoding
from sfumato.local.baselines import BinaryLocalHashing
from sfumato.local.marginals.fourier import FourierMarginals
from sfumato.local.marginals.sampled import SampledMarginals
from sfumato.privacy import Mixture, Neighboring, Shuffled, SupportResponse
from tests.cases import cases
from tests.chance import accepts_only
from tests.drawings import bars, new_axes, written
from tests.local.laws import SEVEN_SIGMA, alike, audited, within
from tests.local.marginals.population import DOMAINS, KINDS, PARTS, counts, protocols, truth

NAMES = ["coefficients", "pairs", "tables"]
CERTAIN = 1 - 1e-11
"""Six audits give a false alarm with probability below 1e-9."""
ASKED = [(0,), (3,), (0, 1), (1, 3)]


@cases("which", range(3), ids=NAMES)
@cases("epsilon", [1.0, 4.0])
def test_no_bias_on_the_wire(which: int, epsilon: float) -> None:
    protocol = protocols(epsilon)[which]
    aggregator = protocol.aggregator()
    people = np.repeat(KINDS, counts(60_000), axis=0)
    assert aggregator.add_batch(protocol.randomize_batch(people, 3)) == 60_000
    estimate = aggregator.estimate()
    assert estimate.simulated
    for attributes in ASKED:
        found = estimate.marginal(*attributes)
        assert found.reports == 60_000
        exact = truth(*attributes).ravel()
        accepts_only(within(found.raw, found.stddev), exact, in_another_order=np.roll(exact, 1))
        assert found.raw.sum() == pytest.approx(1.0)


def errors_of(protocol: Any, repeats: int, n: int, covered: list[Any] | None = None) -> dict[Any, Any]:
    """Mean squared errors of tables, in units of what is stated; collects what intervals hold."""
    generator, people = np.random.default_rng(5), counts(n)
    true = {attributes: truth(*attributes).ravel() for attributes in ASKED}
    first = protocol.simulate(KINDS, people, generator)
    free = {
        attributes: np.linalg.pinv(
            first.marginal(*attributes).error_model.covariance(shares, np.arange(len(shares))) / n,
            rcond=1e-9,
            hermitian=True,
        )
        for attributes, shares in true.items()
    }
    found: dict[Any, Any] = dict.fromkeys(ASKED, 0.0)
    for _ in range(repeats):
        estimate = protocol.simulate(KINDS, people, generator)
        for attributes, shares in true.items():
            away = estimate.table(*attributes).ravel() - shares
            found[attributes] += away @ free[attributes] @ away / (len(shares) - 1) / repeats
            if covered is not None:
                low, high, _ = estimate.marginal(*attributes).interval(0.95)
                covered.append(np.mean((low <= shares) & (shares <= high)))
    return found


@pytest.mark.parametrize(("which", "epsilon"), [(0, 4.0), (1, 4.0), (2, 1.0)])
def test_spreads(which: int, epsilon: float) -> None:
    repeats = 400
    for attributes, square in errors_of(protocols(epsilon)[which], repeats, 20_000).items():
        # Each repeat has groups of another size than the one whose spread is taken, by about 1 % of them.
        free = truth(*attributes).size - 1
        ratio = within(square, 0.03 / SEVEN_SIGMA + np.sqrt(2 / repeats / free))
        accepts_only(ratio, 1.0, three_times_is_stated=1 / 3, half_is_stated=2.0)


@pytest.mark.parametrize(("which", "epsilon"), [(0, 1.0), (1, 1.0), (2, 4.0)])
def test_spreads_and_intervals(which: int, epsilon: float) -> None:
    held: list[Any] = []
    squares = errors_of(protocols(epsilon)[which], 500, 300_000, held)
    ratio = within(np.mean(list(squares.values())), 0.08 / SEVEN_SIGMA)
    accepts_only(ratio, 1.0, a_fifth_too_much=5 / 6, a_sixth_is_missing=6 / 5)
    level = within(np.mean(held), 0.0075 / SEVEN_SIGMA)
    accepts_only(level, 0.9525, as_of_94=0.94, as_of_97=0.97)


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_what_is_simulated_has_the_law_of_reports(which: int) -> None:
    protocol, repeats, n = protocols(2.0)[which], 200, 400
    people = np.repeat(KINDS, counts(n), axis=0)
    records = protocol.randomize_batch(np.tile(people, (repeats, 1)), 7).records
    wire = np.array([protocol.tally(part) for part in np.split(records, repeats)], float)
    generator = np.random.default_rng(8)
    drawn = np.array([protocol.simulate_counts(KINDS, counts(n), generator) for _ in range(repeats)], float)
    for power in (1, 2):
        one, other = wire**power, drawn**power
        # Counts have tails somewhat heavier than normal ones.
        accepts_only(alike(one), other, a_deviation_off=other + other.std(axis=0))


def test_a_coefficient_of_two_tables_has_less_error_than_of_each() -> None:
    alone = SampledMarginals(epsilon=1.0, domains=DOMAINS, views=[(0, 1), (2, 3)])
    both = SampledMarginals(epsilon=1.0, domains=DOMAINS, views=[(0, 1), (0, 2)])
    one, two = (
        protocol.simulate(KINDS, counts(100_000)).marginal(0).variances[0] for protocol in (alone, both)
    )
    assert two < 0.6 * one


def test_tables_count_by_how_much_they_know() -> None:
    protocol = SampledMarginals(epsilon=1.0, domains=DOMAINS, views=[(0, 1), (0, 3)])
    records = protocol.randomize_batch(np.repeat(KINDS, counts(20_000), axis=0), 1).records
    few = np.flatnonzero(protocol.device.named(records) == 0)[300:]
    totals = protocol.tally(np.delete(records, few, axis=0))
    evidence = protocol.estimate(totals, len(records) - len(few)).evidence
    alone = [
        oracle.shares(own, count).reshape(2, -1).sum(axis=1) @ [1, -1]
        for oracle, own, count in zip(
            protocol.oracles, protocol.pieces(totals), protocol.reports_of_parts(totals), strict=True
        )
    ]
    variances = [
        noise.even / count
        for noise, count in zip(protocol.noises, protocol.reports_of_parts(totals), strict=True)
    ]
    assert evidence.coefficients[1] == pytest.approx(np.average(alone, weights=1 / np.array(variances)))


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_precisions_are_one_over_variances(which: int) -> None:
    protocol = protocols(1.0)[which]
    kinds = np.array(list(product(*(range(len(domain)) for domain in DOMAINS))))
    evidence = protocol.simulate(kinds, np.full(len(kinds), 5000), 1).evidence
    for among, precision in evidence.precisions(2).items():
        cells = np.prod(evidence.lattice.shape(among))
        scatter = np.diag(evidence.scatter(among, np.full(cells, 1 / cells)))
        own = scatter[evidence.lattice.supports(among) == 3]
        # Signs of categories whose number is no power of two have a mean.
        assert own.mean() * precision == pytest.approx(1.0, rel=0.05 if which == 0 else 1e-9)


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_losses_are_those_of_epsilon(which: int) -> None:
    for epsilon in (0.3, 1.0, 4.0):
        loss = protocols(epsilon)[which].privacy_loss
        assert loss.neighboring is Neighboring.REPLACE_ONE
        assert 0.999 * epsilon <= loss.epsilon(0.0) <= epsilon * (1 + 1e-12)
        assert loss.epsilon(1e-2) < epsilon


def test_the_loss_is_one_of_supports_where_it_can_be() -> None:
    for domains in ([DOMAINS[0]] * 4, DOMAINS):
        protocol = FourierMarginals(epsilon=1.0, domains=domains, order=2)
        fourier, device = protocol.privacy_loss, protocol.device
        assert isinstance(fourier, SupportResponse)
        # Brute force: how likely two rows agree in the sign of a drawn coefficient.
        numbers = np.arange(device.coefficients)
        chances = np.repeat([float(chance) for chance in device.chances], np.diff(device.starts))
        zero = np.zeros((4, len(numbers)), np.int64)
        agree = [
            chances
            @ (device.negative(numbers, zero) == device.negative(numbers, zero + np.array(row)[:, None]))
            for row in product(*(range(len(domain)) for domain in domains))
            if any(row)
        ]
        assert float(fourier.overlap) == pytest.approx(min(agree) / 2, abs=1e-12)
    pairs = SampledMarginals.every(2, epsilon=1.0, domains=[DOMAINS[0]] * 4).privacy_loss
    assert isinstance(pairs, SupportResponse)
    assert pairs.chance == 1 / 4
    mixed = SampledMarginals(epsilon=1.0, domains=DOMAINS, views=[(0, 1), (1, 3), (0, 2)])
    assert isinstance(mixed.privacy_loss, Mixture)
    assert Shuffled(fourier, clients=10_000).epsilon(1e-6) < 0.1


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_pieces_merge_and_whatever_bytes_come_are_counted(which: int) -> None:
    protocol = protocols(1.0)[which]
    batch = protocol.randomize_batch(np.repeat(KINDS, 20, axis=0), 1)
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
    merged.add_batch(protocols(1.1)[which].randomize_batch(KINDS, 1))
    assert merged.accepted + sum(merged.refused.values()) == 200 + 20_001 + 5
    assert merged.refused["encoding"] > 0
    assert merged.refused["specification"] > 10_000


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_nobody_tells_nothing(which: int) -> None:
    protocol = protocols(1.0)[which]
    estimate = protocol.aggregator().estimate()
    found = estimate.marginal(0, 1)
    assert np.isnan(found.raw).all()
    assert np.isinf(found.variances).all()
    low, high, _ = found.interval()
    assert (low == 0).all()
    assert (high == 1).all()
    with pytest.raises(ParameterError, match="reports must be enough"):
        estimate.consistent()
    # One report: most is still unknown, and is said to be.
    aggregator = protocol.aggregator()
    aggregator.add(protocol.randomize(KINDS[0]))
    few = aggregator.estimate().marginal(0, 1)
    low, high, _ = few.interval()
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()


def test_other_tables_are_refused() -> None:
    estimate = protocols(1.0)[0].simulate(KINDS, counts(1000))
    wrong: list[Any] = [(), (0, 0), (1, 0), (0, 9), ("a",), (True,), (0, 1, 2)]
    for attributes in wrong:
        with pytest.raises(ParameterError, match="attributes must"):
            estimate.marginal(*attributes)
    with pytest.raises(ParameterError, match="two categories are correlated alike"):
        SampledMarginals.every(2, epsilon=1.0, domains=DOMAINS, oracle=HadamardResponse)
    oracles: list[Any] = [int, [OneBitHadamard], "OneBitHadamard"]
    for oracle in oracles:
        with pytest.raises(ParameterError, match="oracle must be"):
            SampledMarginals.every(2, epsilon=1.0, domains=DOMAINS, oracle=oracle)
    with pytest.raises(ParameterError, match="order must be at most 4"):
        SampledMarginals.every(5, epsilon=1.0, domains=DOMAINS)
    protocol = protocols(1.0)[0]
    rows: list[tuple[str, Any, Any]] = [
        ("rows", KINDS[:, :2], counts(10)),
        ("rows", KINDS + 4, counts(10)),
        ("rows", KINDS * 1.0, counts(10)),
        ("counts", KINDS, counts(10)[:2]),
        ("counts", KINDS, -counts(10)),
        ("counts", KINDS, PARTS),
    ]
    for name, kinds, people in rows:
        with pytest.raises(ParameterError, match=f"{name} must be"):
            protocol.simulate(kinds, people)


@pytest.mark.parametrize("oracle", [OptimizedUnaryEncoding, OneBitHadamard, BinaryLocalHashing])
def test_other_oracles_for_the_tables(oracle: Any) -> None:
    protocol = SampledMarginals.every(2, epsilon=1.0, domains=DOMAINS[:3], oracle=oracle)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(np.repeat(KINDS[:, :3], counts(40_000), axis=0), 3))
    found = aggregator.estimate().marginal(0, 1)
    exact = truth(0, 1).ravel()
    accepts_only(within(found.raw, found.stddev), exact, in_another_order=np.roll(exact, 1))
    assert found.of((0, 0)) == found.raw[0]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("epsilon", [4.0, 1.0])
def test_the_bytes_keep_epsilon_and_use_it(which: int, epsilon: float) -> None:
    domains = [Domain(range(2))] * 2
    protocol: Any = (
        FourierMarginals(epsilon=epsilon, domains=domains, order=1),
        SampledMarginals.every(1, epsilon=epsilon, domains=domains),
    )[which]
    generator = np.random.default_rng(7)
    trials = {1.0: 500_000, 4.0: 150_000}[epsilon]
    found = audit(
        lambda value, size: protocol.randomize_batch(np.full((size, 2), value), generator).records,
        epsilon=epsilon,
        pairs=[(0, 1)],
        trials=trials,
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


def test_a_marginal_is_drawn_in_its_own_order() -> None:
    domains = [Domain(["no", "yes"]), Domain(["small", "large"])]
    protocol = SampledMarginals.every(2, epsilon=4.0, domains=domains)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch([("no", "small"), ("yes", "large")] * 500, rng=1))
    estimate = aggregator.estimate()
    ax = estimate.plot(0, 1, ax=new_axes(), level=0.9)
    assert written(ax) == ["no, small", "no, large", "yes, small", "yes, large"]
    found = estimate.marginal(0, 1)
    heights, ends = bars(ax)
    assert heights == found.frequencies.tolist()
    lower, upper, _ = found.interval(0.9)
    np.testing.assert_allclose(ends, np.stack([lower, upper], 1), atol=1e-12)
    assert written(estimate.plot(1, ax=new_axes())) == ["small", "large"]
