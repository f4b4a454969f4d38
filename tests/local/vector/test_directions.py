"""Mean vectors: heights, no bias, variances near the best that there are, and whatever bytes come."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import PrivUnit, PrivUnitG, ProjUnit, SphereSampling
from sfumato.local.vector.directions import halves, normal_heights, sphere_heights
from sfumato.privacy import Neighboring
from sfumato.privacy.nodes.shuffled import Shuffled
from tests.chance import accepts_only
from tests.local.laws import audited, covers, within

KINDS: list[Any] = [PrivUnit, PrivUnitG, SphereSampling, ProjUnit]
CERTAIN = 1 - 1e-11
TRUTH = np.array([1.0, -0.5, 0.0, 0.25])


def small(kind: Any, epsilon: float, **more: Any) -> Any:
    if kind is not SphereSampling:
        more.setdefault("candidates", 16)
    return kind(epsilon=epsilon, dimension=4, radius=2.0, **more)


def test_heights_are_those_of_sorted_random_vectors() -> None:
    generator, n = np.random.default_rng(1), 100_000
    normal = np.sort(generator.standard_normal((n, 16)), axis=1)[:, -5:]
    vectors = generator.standard_normal((n, 16, 3))
    even = np.sort(vectors[:, :, 0] / np.linalg.norm(vectors, axis=2), axis=1)[:, -5:] * math.sqrt(3)
    for drawn, stated in ((normal, normal_heights(16, 5)), (even, sphere_heights(16, 5, 3))):
        for found, exact in zip((drawn, drawn**2), stated, strict=True):
            means = found.mean(axis=1)
            mean = within(means.mean(), means.std() / math.sqrt(n))
            accepts_only(mean, exact, a_fiftieth_more=1.02 * exact, a_fiftieth_less=0.98 * exact)
    # A half of the sphere in closed form: 1/2 in three dimensions, 2/pi in two.
    assert halves(3)[0] == pytest.approx(math.sqrt(3) / 2)
    assert halves(2)[0] == pytest.approx(math.sqrt(2) * 2 / math.pi)
    # Many dimensions are as good as normal ones.
    assert sphere_heights(64, 9, 10_000) == pytest.approx(normal_heights(64, 9), rel=1e-3)
    assert sphere_heights(7, 7, 5) == pytest.approx((0.0, 1.0), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_no_bias_and_the_variance_that_is_stated(kind: Any, epsilon: float) -> None:
    protocol, n = small(kind, epsilon), 60_000
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(np.tile(TRUTH, (n, 1)), 3))
    found = aggregator.estimate()
    accepts_only(within(found.mean, found.stddev), TRUTH, shrunk=0.5 * TRUTH, mirrored=-TRUTH)
    assert found.variances.sum() == pytest.approx(
        protocol.variance(n, float(np.linalg.norm(TRUTH))), rel=0.03
    )
    assert found.simulated
    assert np.linalg.norm(found.projected()) <= 2.0


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
def test_candidates_are_nearly_as_good_as_the_continuous_law(epsilon: float) -> None:
    # Asi, Feldman, Talwar 2022: a cap of some share of the normal law, the best of all shares.
    law, odds = NormalDist(), math.exp(epsilon)
    gains = [
        law.pdf(law.inv_cdf(1 - s)) * (odds - 1) / (s * odds + 1 - s) for s in np.logspace(-6, -0.302, 2000)
    ]
    best = 1000 / max(gains) ** 2
    for kind in (PrivUnit, PrivUnitG):
        assert 1 <= kind(epsilon=epsilon, dimension=1000).variance(1) / best * (1 + 1e-3) <= 1.06


def test_sampling_a_sphere_has_the_published_norm() -> None:
    # Duchi, Jordan, Wainwright 2018, section 4.2.3: every report has the norm B.
    for epsilon, d in ((1.0, 3), (0.5, 50)):
        odds = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
        surface = math.sqrt(math.pi) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))
        wanted = (odds * surface) ** 2
        assert SphereSampling(epsilon=epsilon, dimension=d).variance(1) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover(kind: Any) -> None:
    protocol, n, repeats = small(kind, 1.0), 200, 600
    respondents = np.random.default_rng(2).uniform(-0.9, 0.9, (n, 4))
    truth, hits, bands = respondents.mean(axis=0), 0, 0
    records = protocol.randomize_batch(np.tile(respondents, (repeats, 1)), 5).records
    for part in np.split(records, repeats):
        found = protocol.estimate(protocol.tally(part), n)
        low, high, _ = found.interval(0.95)
        hits += int(((low <= truth) & (truth <= high)).sum())
        low, high, _ = found.bands(0.95)
        bands += bool(((low <= truth) & (truth <= high)).all())
    covers(hits, 4 * repeats, most=0.965, under=0.9)
    covers(bands, repeats, claimed=0.995)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_close_to_epsilon_and_never_above(kind: Any) -> None:
    for epsilon in (0.3, 1.0, 4.0):
        loss = kind(epsilon=epsilon, dimension=10).privacy_loss
        assert loss.neighboring is Neighboring.REPLACE_ONE
        assert 0.999 * epsilon <= loss.epsilon(0.0) <= epsilon
        assert Shuffled(loss, clients=100_000).epsilon(1e-6) < epsilon / 3


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_merge_and_whatever_bytes_come_are_counted(kind: Any) -> None:
    protocol = small(kind, 1.0)
    batch = protocol.randomize_batch(np.tile(TRUTH, (500, 1)), 1)
    whole, single = protocol.aggregator(), protocol.aggregator()
    whole.add_batch(batch)
    assert all(single.add(record) for record in batch)
    assert single.to_bytes()[50:] == whole.to_bytes()[50:]
    merged = protocol.aggregator(whole.to_bytes()).merge(single.to_bytes())
    assert merged.totals.tolist() == (2 * whole.totals).tolist()
    noise = np.random.default_rng(5).integers(0, 256, (5_000, protocol.device.width), dtype=np.uint8)
    merged.add_batch(noise)
    merged.add(b"x")
    merged.add_batch(small(kind, 1.1).randomize_batch(np.tile(TRUTH, (10, 1)), 1))
    assert merged.accepted + sum(merged.refused.values()) == 1000 + 5011
    assert merged.refused["specification"] > 4000
    assert np.isfinite(merged.estimate().mean).all()


@pytest.mark.parametrize("kind", KINDS)
def test_without_reports_every_mean_is_possible(kind: Any) -> None:
    protocol = small(kind, 1.0)
    found = protocol.aggregator().estimate()
    assert np.isnan(found.mean).all()
    assert found.interval().lower.tolist() == [-2.0] * 4
    with pytest.raises(ParameterError, match="reports must be at least 1"):
        found.projected()
    with pytest.raises(ParameterError, match="norm must be at most"):
        protocol.variance(5, 3.0)
    with pytest.raises(ParameterError, match="level must"):
        found.interval(0.0)


def sent(protocol: Any) -> Any:
    """What many devices send, their seeds read as what they say of the two vectors in question."""
    generator = np.random.default_rng(7)

    def reports(sign: float, size: int) -> Any:
        truth = np.tile([2.0 * sign, 0.0], (size, 1))
        records = protocol.randomize_batch(truth, generator).records
        seeds, numbers = protocol.device.opened(records)
        along = protocol.device.along(seeds, truth * sign)
        rank = np.argmax(np.argsort(-along, axis=1, kind="stable") == numbers[:, None], axis=1)
        return rank.astype(np.uint8)[:, None]

    return reports


@pytest.mark.sharpest("4.0-SphereSampling")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [4.0, 1.0])
def test_reports_keep_epsilon_and_use_it(kind: Any, epsilon: float) -> None:
    more = {} if kind is SphereSampling else {"candidates": 4}
    protocol = kind(epsilon=epsilon, dimension=2, radius=2.0, **more)
    trials = {1.0: 400_000, 4.0: 100_000}[epsilon]
    found = audit(
        sent(protocol), epsilon=epsilon, pairs=[(1.0, -1.0)], trials=trials, batch=True, confidence=CERTAIN
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


@pytest.mark.parametrize("kind", KINDS)
def test_the_covariance_matrix_is_that_of_repeated_means(kind: Any) -> None:
    # All have the same vector, so that reports differ from each other by randomization alone.
    protocol, n, repeats = small(kind, 4.0, pairs=True), 100, 2000
    plain = small(kind, 4.0)
    records = protocol.randomize_batch(
        np.tile(2 * TRUTH / np.linalg.norm(TRUTH), (n * repeats, 1)), 5
    ).records
    aggregator = protocol.aggregator()
    aggregator.add_batch(records)
    matrix = aggregator.estimate().covariance() * repeats  # of the mean of n
    totals = [protocol.tally(part) for part in np.split(records, repeats)]
    assert (aggregator.totals == np.sum(totals, axis=0)).all()
    found = np.array([protocol.estimate(own, n).mean for own in totals])
    spread = np.cov(found.T)
    scale = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    repeated = within(spread, scale * math.sqrt(2 / repeats))
    accepts_only(repeated, matrix, of_a_quarter_more=0.8 * matrix, of_a_fifth_less=1.25 * matrix)
    # Theory: no rotation about the truth changes the law of a report.
    first, second = protocol._heights()
    near, count = protocol.device.near, protocol.device.count
    inside = float(protocol.device.inside.chance)
    height = inside * second + (1 - inside) * (count - near * second) / (count - near)
    across, truth = (protocol.power - height) / 3, TRUTH / np.linalg.norm(TRUTH)
    law = across * np.eye(4) + (height - across - protocol.gain**2) * np.outer(truth, truth)
    law *= (2.0 / protocol.gain) ** 2 / n
    assert first > 0
    known_law = within(matrix, scale * math.sqrt(8 / (n * repeats)))
    accepts_only(known_law, law, a_tenth_less=law / 1.1, a_tenth_more=1.1 * law)
    known = plain.estimate(plain.tally(records), len(records))
    assert known.variances == pytest.approx(np.diag(aggregator.estimate().covariance()), rel=1e-12)
    value, deviation = aggregator.estimate().along([1, -1, 0, 2])
    assert value == pytest.approx(float(known.mean @ [1, -1, 0, 2]))
    own = found @ [1, -1, 0, 2]
    told = deviation * math.sqrt(repeats)
    accepts_only(within(told, own.std() / math.sqrt(2 * repeats)), own.std(), a_fifth_more=1.2 * own.std())


def test_products_of_pairs_are_exact_whole_numbers_in_any_pieces() -> None:
    protocol = PrivUnit(epsilon=2.0, dimension=33, candidates=4, pairs=True)
    records = protocol.randomize_batch(np.zeros((20_000, 33)), 1).records
    seeds, numbers = protocol.device.opened(records)
    told = protocol.device.vectors(seeds, numbers[:, None])[:, 0].astype(np.int64)
    exact = (told.T @ told)[np.triu_indices(33)]  # in whole numbers
    assert (protocol.tally(records)[33:] == exact).all()
    merged = protocol.aggregator()
    for part in np.array_split(records, 7):
        other = protocol.aggregator()
        other.add_batch(part)
        merged.merge(other.to_bytes())
    assert (merged.totals[33:] == exact).all()
    simulated = protocol.simulate(np.zeros((2000, 33)), rng=3)
    assert simulated.covariance().shape == (33, 33)
    assert np.diag(simulated.covariance()) == pytest.approx(simulated.variances)


def test_pairs_are_refused_where_they_are_not_kept_or_too_many() -> None:
    for wrong, dimension in ((1, 3), ("yes", 3), (True, 1025)):
        with pytest.raises(ParameterError, match="pairs must be"):
            PrivUnit(epsilon=1.0, dimension=dimension, pairs=wrong)  # type: ignore[arg-type]
    plain, paired = small(PrivUnit, 1.0), small(PrivUnit, 1.0, pairs=True)
    with pytest.raises(ParameterError, match="state must be the bytes of an aggregator of this oracle"):
        paired.aggregator(plain.aggregator().to_bytes())
    assert np.isnan(paired.aggregator().estimate().covariance()).all()
    reports = plain.randomize_batch(np.tile(TRUTH, (5, 1)), 1)
    told = {}
    for name, protocol in (("plain", plain), ("paired", paired)):
        aggregator = protocol.aggregator()
        aggregator.add_batch(reports)
        told[name] = aggregator.estimate()
    with pytest.raises(ParameterError, match="pairs must be True for a covariance matrix"):
        told["plain"].covariance()
    with pytest.raises(ParameterError, match="pairs must be True for a covariance matrix"):
        told["plain"].along([1, 1, 1, 1])
    for odd in ([1, 1], 3, ["a"] * 4, [1, 1, 1, math.nan]):
        with pytest.raises(ParameterError, match="weights must be 4 finite numbers"):
            told["paired"].along(odd)
    assert paired.aggregator().estimate().along([1, 1, 1, 1])[1] == math.inf
    with pytest.raises(ParameterError, match="pairs must be True for a covariance matrix"):
        plain.aggregator().estimate().covariance()
