"""Tracing in aggregates: power as theory says, the exact trade-off against a private one, and its traps."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato import attacks
from sfumato.attacks.tracing import attribute_rows
from sfumato.attacks.tracing.predicted_power import Statistic
from sfumato.attacks.tracing.score_weights import known_others_weights
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from sfumato.numerics.interval import Interval
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, rate

STATISTICS: tuple[Statistic, ...] = ("homer", "likelihood-ratio", "inner-product")


def population(seed: int, people: int, attributes: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    frequencies = generator.uniform(0.1, 0.5, attributes)
    return generator.random((people, attributes)) < frequencies, frequencies


@cases("statistic", STATISTICS)
def test_the_convolution_is_the_enumeration(statistic: Statistic) -> None:
    """Three members and two attributes: all 2^8 outcomes, target, members and stranger."""
    p = np.array([0.3, 0.45])
    found = attacks.tracing_power(statistic, p, members=3, false_positive_rate=0.25)
    rates = {True: 0.0, False: 0.0}
    for flat in itertools.product((0, 1), repeat=8):
        people = np.array(flat).reshape(4, 2)
        chance = np.where(people, p, 1 - p).prod()
        attack = attacks.Tracing(targets=people, members=3, frequencies=p, statistic=statistic)
        scores = attack.scores(people[:3].sum(axis=0))
        rates[True] += chance * (scores[0] > found.threshold)
        rates[False] += chance * (scores[3] > found.threshold)
    assert found.exact
    assert found.false_positive_rate.lower > 0
    assert found.false_positive_rate.lower - 1e-12 <= rates[False] <= found.false_positive_rate.upper <= 0.25
    assert found.power.lower - 1e-12 <= rates[True] <= found.power.upper + 1e-12
    assert found.power.upper - found.power.lower < 1e-6


@cases("statistic", STATISTICS)
def test_the_exact_power_is_seen_with_noise_and_without(statistic: Statistic) -> None:
    p, members, runs = np.linspace(0.2, 0.5, 12), 20, 400
    generator = np.random.default_rng(3)
    mechanism = Laplace(sensitivity=1, l0=12, scale=1)
    for noise in (None, mechanism.distribution):
        found = attacks.tracing_power(statistic, p, members=members, false_positive_rate=0.2, noise=noise)
        assert found.exact
        seen = np.zeros(2)
        for _ in range(runs):
            people = generator.random((members + 1, 12)) < p
            counts = people[:members].sum(axis=0)
            if noise is not None:
                counts = mechanism.release(counts, rng=generator).value
            attack = attacks.Tracing(
                targets=people[[0, members]], members=members, frequencies=p, statistic=statistic, noise=noise
            )
            seen += attack.scores(counts) > found.threshold
        for hits, interval in zip(seen.astype(int), (found.power, found.false_positive_rate), strict=True):
            assert interval.upper - interval.lower < 0.01
            chance = (interval.lower + interval.upper) / 2
            accepts_only(rate(int(hits), runs), chance, a_quarter=chance / 4)


@cases("statistic", STATISTICS)
def test_the_normal_approximation_is_near_the_exact_power(statistic: Statistic) -> None:
    for frequency in (0.4, 0.2):
        p = np.full(200, frequency)
        exact = attacks.tracing_power(statistic, p, members=100, false_positive_rate=0.05)
        # One more member passes the limit of the exact computation.
        normal = attacks.tracing_power(statistic, p, members=101, false_positive_rate=0.05)
        assert (exact.exact, normal.exact) == (True, False)
        assert abs(exact.power.lower - normal.power.lower) < 0.02


DECLARED = {1: 16.0, 10: 1.6, 100: 0.16}
"""Scales of the noise on each of 16 counts, by the epsilon in total."""
CUTS = {1: 9, 10: 10, 100: 15}
RUNS, SEEDS = 2000, range(100, 120)


def traced(epsilon: int, scale: float, seed: int) -> float:
    """Return how often the worst member is accused, in releases with so much noise."""
    others = np.arange(16) + 30
    noise = Laplace(sensitivity=1, l0=16, scale=DECLARED[epsilon]).distribution
    released = Laplace(sensitivity=1, l0=16, scale=scale).outputs(others + 1, RUNS, seed)
    weights = known_others_weights(released.ravel(), np.tile(others, RUNS), noise)
    scores = weights.having.reshape(RUNS, 16).sum(axis=1)
    # With b positive terms of 16 the score is (2 b - 16) / scale.
    return float((scores > (2 * CUTS[epsilon] - 15) / DECLARED[epsilon]).mean())


def test_the_worst_member_is_traced_as_the_exact_trade_off_says_and_no_less() -> None:
    """Within three standard errors, for 20 seeds; most releases with half of the noise are beyond.

    A term of the score is positive with the chance 1/(1 + e^-1/scale) for a member, else one minus that: the
    exact power is a binomial tail, and the accountant's trade-off function has it.
    """
    for epsilon, scale in DECLARED.items():
        inside = 1 / (1 + math.exp(-1 / scale))
        power, rate = (float(binom.sf(CUTS[epsilon], 16, q)) for q in (inside, 1 - inside))
        loss = Laplace(sensitivity=1, l0=16, scale=scale).privacy_loss
        missed = loss.trade_off(rate)
        assert missed.lower - 1e-9 <= 1 - power <= missed.upper + 1e-9
        error = math.sqrt(power * (1 - power) / RUNS)
        right = [abs(traced(epsilon, scale, seed) - power) / error for seed in SEEDS]
        planted = [abs(traced(epsilon, scale / 2, seed) - power) / error for seed in SEEDS]
        assert max(right) < 3
        assert sum(one > 3 for one in planted) > 15


def test_a_rate_below_what_the_convolution_leaves_out_accuses_nobody_by_it() -> None:
    p = np.full(20, 0.3)
    found = attacks.tracing_power("likelihood-ratio", p, members=5, false_positive_rate=1e-9)
    assert not found.exact
    assert found.false_positive_rate.upper <= 1e-9
    fine = attacks.tracing_power("likelihood-ratio", p, members=5, false_positive_rate=1e-8)
    assert fine.exact
    assert fine.false_positive_rate.upper <= 1e-8


def test_findings_on_the_worst_member_stand_beside_the_bound() -> None:
    others = np.arange(16) + 30
    mechanism = Laplace(sensitivity=1, l0=16, scale=1.6)
    attack = attacks.Tracing(targets=np.ones((1, 16), int), members=50, others=others)
    release = mechanism.release(others + 1, rng=1)
    found = attack.run(release, truth=[True])
    assert found.loss == mechanism.privacy_loss
    assert found.loss.neighboring is Neighboring.ADD_REMOVE
    weights = known_others_weights(release.value, others, mechanism.distribution)
    assert attack.scores(release).tolist() == pytest.approx([weights.having.sum()])
    assert "the counts of all members but one" in str(found.knowledge)
    assert found.bounds == ()  # there are no controls


def test_members_of_a_raw_aggregate_are_traced_and_those_of_a_private_one_are_not() -> None:
    for seed in range(20):
        people, frequencies = population(seed, 130, 1000)
        attack = attacks.Tracing(
            targets=people[:50], members=50, frequencies=frequencies, false_positive_rate=0.05
        )
        counts = people[:50].sum(axis=0)
        truth: dict[str, Any] = {"truth": np.ones(50, bool), "controls": people[50:]}
        assert attack.run(counts, **truth).targets.claims >= 45
        if seed < 5:
            release = Laplace(sensitivity=1, l0=1000, scale=1000).release(counts, rng=seed)  # epsilon 1
            found = attacks.compare(attack, raw=counts, private=release, exchangeable=True, **truth)
            assert found.private.targets.claims <= 12
            assert not any(bound.exceeded for bound in found.private.bounds)
            assert len(found.private.bounds) == 3
            assert found.raw.numbers["predicted power (normal approximation)"] > 0.95


def test_blocks_packed_bits_and_memory_maps_have_the_same_scores(tmp_path: Any) -> None:
    people, frequencies = population(1, 900, 5000)
    counts = people[:300].sum(axis=0)
    options: dict[str, Any] = {"members": 300, "frequencies": frequencies}
    weights = np.log(counts / 300 / frequencies), np.log((1 - counts / 300) / (1 - frequencies))
    direct = np.where(people, *weights).sum(axis=1)
    stored = np.memmap(tmp_path / "people", dtype=np.uint8, mode="w+", shape=people.shape)
    stored[:] = people
    for rows in (people, stored, attacks.PackedBits(np.packbits(people, axis=1), 5000)):
        scores = attacks.Tracing(targets=rows, **options).scores(counts)
        np.testing.assert_allclose(scores, direct, atol=1e-9)


def test_rows_longer_than_a_block_are_scored_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    people, frequencies = population(5, 6, 300)
    attack = attacks.Tracing(targets=people, members=6, frequencies=frequencies)
    counts = people.sum(axis=0)
    direct = attack.scores(counts)
    monkeypatch.setattr(attribute_rows, "_BLOCK", 100)
    np.testing.assert_allclose(attack.scores(counts), direct, atol=1e-9)
    assert attribute_rows.row_sums("rows", people).tolist() == counts.tolist()


def test_no_power_is_predicted_for_noise_on_frequencies_nor_from_a_reference() -> None:
    people, frequencies = population(6, 40, 50)
    noise = Laplace(sensitivity=1, scale=2).distribution
    options: dict[str, Any] = {"targets": people[:20], "members": 20}
    assert attacks.Tracing(frequencies=frequencies, noise=noise, **options).predicted() is not None
    assert attacks.Tracing(frequencies=frequencies, noise=noise, counts=False, **options).predicted() is None
    assert attacks.Tracing(reference=people[20:], **options).predicted() is None


def test_no_bound_is_shown_unless_targets_and_controls_were_drawn_alike() -> None:
    people, frequencies = population(7, 60, 50)
    attack = attacks.Tracing(targets=people[:20], members=20, frequencies=frequencies)
    release = Laplace(sensitivity=1, l0=50, scale=50).release(people[:20].sum(axis=0), rng=1)
    options: dict[str, Any] = {"truth": np.ones(20, bool), "controls": people[20:]}
    assert attack.run(release, **options).bounds == ()
    assert len(attack.run(release, exchangeable=True, **options).bounds) == 3


def test_a_target_that_the_release_excludes_scores_below_everyone() -> None:
    """Nobody of the members has the attribute."""
    attack = attacks.Tracing(targets=np.array([[1, 1], [0, 1], [0, 0]]), members=4, frequencies=[0.5, 0.5])
    scores = attack.scores(np.array([0, 2]))
    assert scores[0] < -1e5
    assert scores[1:].tolist() == pytest.approx([math.log(2), math.log(2)])


def test_frequencies_that_come_from_the_members_hide_them() -> None:
    """Why the same numbers are refused; of a sample that contains the members nothing shows."""
    people, frequencies = population(2, 300, 3000)
    counts = people[:100].sum(axis=0)
    with pytest.raises(ParameterError, match="frequencies must be the population's"):
        attacks.Tracing(targets=people, members=100, frequencies=counts / 100).run(counts)
    mixed = (people[:120].sum(axis=0) + 1) / 122
    gaps = []
    for used in (frequencies, mixed):
        scores = attacks.Tracing(targets=people, members=100, frequencies=used).scores(counts)
        gaps.append((scores[:100].mean() - scores[200:].mean()) / scores[200:].std())
    assert gaps[0] > 5
    assert gaps[1] < 3


def test_controls_from_the_reference_are_refused_for_they_look_too_innocent() -> None:
    people, _ = population(3, 400, 2000)
    counts = people[:100].sum(axis=0)
    attack = attacks.Tracing(targets=people[:100], members=100, reference=people[300:], statistic="homer")
    truth = np.ones(100, bool)
    with pytest.raises(ParameterError, match="reference must have no target or control in it"):
        attack.run(counts, truth=truth, controls=people[250:350])
    found = attack.run(counts, truth=truth, controls=people[100:300], exchangeable=True)
    assert found.targets.claims > 50
    fresh, used = attack.scores(counts, people[100:300]), attack.scores(counts, people[300:])
    assert fresh.mean() - used.mean() > fresh.std()


def test_without_controls_the_exact_threshold_is_used() -> None:
    people, frequencies = population(4, 10, 80)
    attack = attacks.Tracing(targets=people, members=10, frequencies=frequencies, false_positive_rate=0.1)
    found = attack.run(people.sum(axis=0), truth=np.ones(10, bool))
    predicted = attack.predicted()
    assert predicted is not None
    assert found.numbers["threshold"] == predicted.threshold
    assert found.targets.claims >= 8
    assert predicted.power == Interval(*predicted.power)


@cases(
    "change",
    [
        {"targets": np.zeros(5)},
        {"targets": np.zeros((0, 4))},
        {"members": 1},
        {"statistic": "t-test"},
        {"frequencies": None},
        {"frequencies": [0.5, 0.5, 0.5, 1.0]},
        {"frequencies": [0.5, 0.5]},
        {"reference": np.zeros((2, 4))},
        {"frequencies": None, "reference": np.zeros((2, 3))},
        {"frequencies": None, "others": [0.5] * 4},
        {"frequencies": None, "others": [1] * 4, "statistic": "homer"},
        {"false_positive_rate": 0.0},
        {"prior": 1.0},
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"targets": np.eye(4, dtype=int), "members": 4, "frequencies": [0.5] * 4}
    with pytest.raises(ParameterError):
        attacks.Tracing(**(given | change))


def test_bad_releases_are_refused() -> None:
    attack = attacks.Tracing(targets=np.eye(4, dtype=int), members=4, frequencies=[0.4] * 4)
    for release in ([1, 2], ["a"] * 4, np.zeros((2, 4))):
        with pytest.raises(ParameterError, match="release must be a number"):
            attack.run(release)
    with pytest.raises(ParameterError, match="truth must be one bool"):
        attack.run([1, 1, 1, 1], truth=[True])
    with pytest.raises(ParameterError, match="targets must be 0 or 1"):
        attacks.Tracing(targets=np.full((2, 4), 2), members=4, frequencies=[0.4] * 4).run([1, 1, 1, 1])
    known = attacks.Tracing(targets=np.eye(4, dtype=int), members=4, others=[1, 1, 1, 0])
    with pytest.raises(ParameterError, match="noise must be that of whole counts"):
        known.run([1, 1, 1, 1])
    with pytest.raises(ParameterError, match="statistic must be one of"):
        attacks.tracing_power("t-test", [0.5], members=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="bits must be uint8"):
        attacks.PackedBits(np.zeros((2, 2), np.uint8), 20)
