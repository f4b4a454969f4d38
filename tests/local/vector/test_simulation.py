"""Vectors and several questions, simulated: the law of everybody's reports, and errors as they are stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import (
    Domain,
    OptimalLocalHashing,
    PrivUnit,
    PrivUnitG,
    ProjUnit,
    RandomizedResponse,
    SampledAttribute,
    SphereSampling,
    SplitBudget,
)
from sfumato.local.baselines import FakeData
from tests.chance import accepts_only
from tests.local.laws import alike, covers, have_moments, within

KINDS: list[Any] = [SplitBudget, SampledAttribute, FakeData]
DIRECTIONS: list[Any] = [PrivUnit, PrivUnitG, SphereSampling, ProjUnit]
VECTORS = np.array([[0.5, -1.0, 1.5], [0.0, 0.6, 0.0], [0.0, 0.0, 0.0]])
DOMAINS = [Domain(range(3)), Domain(range(5)), Domain(["no", "yes"])]
ROWS: list[Any] = [(0, 4, "yes"), (1, 4, "no"), (2, 0, "no")]
COUNTS = [5, 3, 2]
SHARES = [np.array([0.5, 0.3, 0.2]), np.array([0.2, 0, 0, 0, 0.8]), np.array([0.5, 0.5])]


@pytest.mark.parametrize("kind", KINDS)
def test_the_totals_have_the_law_of_everybodys_reports(kind: Any) -> None:
    # Randomized response's own simulator has the whole law, covariances too.
    protocol, repeats = kind(epsilon=2.0, domains=DOMAINS, oracle=RandomizedResponse), 2500
    people = [row for row, count in zip(ROWS, COUNTS, strict=True) for _ in range(count)]
    records = protocol.randomize_batch(people * repeats, 5).records
    one_by_one = np.array([protocol.tally(part) for part in np.split(records, repeats)], float)
    generator = np.random.default_rng(6)
    at_once = np.array([protocol.simulate_counts(ROWS, COUNTS, generator) for _ in range(repeats)], float)
    assert one_by_one.shape == at_once.shape == (repeats, protocol.totals)
    pairs = [np.einsum("ra,rb->rab", part, part).reshape(repeats, -1) for part in (one_by_one, at_once)]
    accepts_only(alike(one_by_one), at_once, one_person_more=1.1 * at_once)
    accepts_only(alike(pairs[0]), pairs[1], a_tenth_more_counted=1.21 * pairs[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("oracle", [RandomizedResponse, OptimalLocalHashing])
def test_errors_are_those_that_are_stated_and_intervals_cover(kind: Any, oracle: Any) -> None:
    protocol, repeats = kind(epsilon=1.0, domains=DOMAINS, oracle=oracle), 600
    generator = np.random.default_rng(7)
    many = [protocol.simulate(ROWS, np.array(COUNTS) * 10**5, generator) for _ in range(repeats)]
    held = []
    for at, truth in enumerate(SHARES):
        raw = np.array([estimates[at].raw for estimates in many])
        own = many[0][at]
        stated = own.error_model.variance(truth) / own.reports
        have_moments(raw - truth, stated, tells=0.45)
        ends = [estimates[at].interval(0.95) for estimates in many]
        held.append(np.sum([(end.lower <= truth) & (truth <= end.upper) for end in ends], axis=0))
    covers(np.concatenate(held), repeats, most=0.96)


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_million_people_are_simulated_at_once(kind: Any) -> None:
    protocol = kind(epsilon=1.0, domains=DOMAINS)
    for estimate, truth in zip(protocol.simulate(ROWS, np.array(COUNTS) * 10**8, 1), SHARES, strict=True):
        assert np.allclose(estimate.raw, truth, atol=1e-3)
        assert estimate.simulated
    assert all(np.isnan(estimate.raw).all() for estimate in protocol.simulate([], rng=1))
    for odd in ([1, 2], [[1, 2, 3]], [-1, 0, 0], [0.5, 1.0, 2.0]):
        with pytest.raises(ParameterError, match="counts must be 3 whole numbers"):
            protocol.simulate(ROWS, odd)
    with pytest.raises(ParameterError, match="values must be rows of 3 categories"):
        protocol.simulate([(0, 4)])


@pytest.mark.parametrize("kind", DIRECTIONS)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_vectors_from_their_law_are_those_of_candidates(kind: Any, epsilon: float) -> None:
    more = {} if kind is SphereSampling else {"candidates": 16}
    protocol = kind(epsilon=epsilon, dimension=3, radius=2.0, **more)
    n, generator, device = 30_000, np.random.default_rng(7), protocol.device
    for vector in (VECTORS[0] / np.linalg.norm(VECTORS[0]), np.array([0.0, 0.0, 1.0])):
        rows = np.tile(vector, (n, 1))
        seeds, numbers = device.opened(protocol.randomize_batch(2 * rows, 5).records)
        one_by_one = device.vectors(seeds, numbers[:, None])[:, 0] / 4096
        at_once = protocol._reports()(device, rows, generator)
        pairs = [np.einsum("ra,rb->rab", part, part).reshape(n, -1) for part in (one_by_one, at_once)]
        # Directions have steps of 1/4096: means may be off by that much.
        steps = {"off": 1e-4}
        accepts_only(alike(one_by_one, **steps), at_once, mirrored=-at_once)
        accepts_only(alike(pairs[0], **steps), pairs[1], a_tenth_longer=1.21 * pairs[1])

        def check(other: Any, one: Any = one_by_one @ vector) -> None:
            # How far the told ones point along the truth, in all its quantiles: Kolmogorov's distance.
            both = np.sort(np.concatenate([one, other]))
            ranks = [np.searchsorted(np.sort(part), both, "right") for part in (one, other)]
            assert abs(ranks[0] - ranks[1]).max() / n <= np.sqrt(np.log(2 / 1e-9) / n)

        accepts_only(check, at_once @ vector, mirrored=-at_once @ vector)
    # Sums and sums of squares of short vectors too, which go to either side by chance.
    counts = np.array([9000, 12_000, 9000])
    batch = protocol.randomize_batch(np.repeat(VECTORS, counts, axis=0), 6)
    one, other = (
        protocol.tally(batch.records) / 4096,
        protocol.simulate_counts(VECTORS, counts, generator) / 4096,
    )
    spread = np.concatenate([np.full(3, np.sqrt(2 * 3 * n)), np.full(3, 4096 * np.sqrt(2 * 9 * n))])
    accepts_only(within(one, spread), other, a_third_longer=1.3 * other)


@pytest.mark.parametrize("kind", DIRECTIONS)
def test_simulated_means_of_vectors_stray_as_stated(kind: Any) -> None:
    protocol, repeats = kind(epsilon=2.0, dimension=3, radius=2.0), 600
    generator, counts = np.random.default_rng(8), np.array([300, 100, 100])
    truth = counts @ VECTORS / 500
    found = [protocol.simulate(VECTORS, counts, generator) for _ in range(repeats)]
    stated = [protocol.variance(1, float(np.linalg.norm(vector))) for vector in VECTORS]
    square = np.array([((each.mean - truth) ** 2).sum() for each in found])
    exact = float(counts @ stated) / 500**2
    mean = within(square.mean(), square.std() / np.sqrt(repeats))
    accepts_only(mean, exact, a_third_less=exact / 1.5, half_more=1.5 * exact)
    held = np.sum([(e.interval().lower <= truth) & (truth <= e.interval().upper) for e in found])
    # Wider by how far the three vectors differ.
    covers(held, 3 * repeats, claimed=0.995, most=0.975, under=0.9)
    assert protocol.simulate([[0.0, 0.0, 1.0]] * 7).reports == 7
    assert protocol.simulate([]).reports == 0
    for odd in ([1, 2], [-1, 1, 1]):
        with pytest.raises(ParameterError, match="counts must be 3 whole numbers"):
            protocol.simulate(VECTORS, odd)
    with pytest.raises(ParameterError, match="values must be vectors"):
        protocol.simulate([[9.0, 0, 0]])
