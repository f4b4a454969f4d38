"""The report on an attack: its intervals cover, choosing stays apart from counting, its bound holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.attacks import membership_report
from sfumato.attacks.base.attack_curve import roc
from sfumato.attacks.membership.thresholds import BestEvent, best_event, threshold_at_rate
from sfumato.errors import ParameterError
from sfumato.privacy import ApproximateDP, GaussianDP, PureDP
from tests.cases import cases
from tests.chance import accepts_only, at_least, unrefuted

SURE = 1 - 1e-9


def gaussian(mu: float, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(mu, 1.0, count), generator.normal(0.0, 1.0, count)


def test_intervals_enclose_the_rates_of_the_thresholds() -> None:
    found = membership_report(*gaussian(1.5, 20_000, 1), confidence=SURE)

    def check(distribution: tuple[float, float]) -> None:
        """Members score by a normal distribution of that mean, others of this one."""
        members, others = distribution
        for point in found.points.values():
            false, true = norm.sf(point.threshold - others), norm.sf(point.threshold - members)
            assert point.false_positive_rate.lower < false < point.false_positive_rate.upper
            assert point.true_positive_rate.lower < true < point.true_positive_rate.upper
        assert found.advantage.lower < 2 * norm.cdf((members - others) / 2) - 1 < found.advantage.upper

    accepts_only(
        check, (1.5, 0.0), members_lower=(1.3, 0.0), members_higher=(1.7, 0.0), others_higher=(1.5, 0.2)
    )
    for aimed, point in found.points.items():
        assert point.false_positive_rate.lower < aimed < point.false_positive_rate.upper
    assert found.advantage.upper - found.advantage.lower < 0.2


def test_all_intervals_hold_together_as_often_as_they_say() -> None:
    """At confidence 0.8, in 300 reports."""
    points = []
    for seed in range(300):
        found = membership_report(
            *gaussian(1.0, 60, seed), confidence=0.8, rng=seed, design="runs", false_positive_rates=[0.1]
        )
        points.append(found.points[0.1])

    def check(distribution: tuple[float, float]) -> None:
        members, others = distribution
        held = 0
        for point in points:
            false, true = norm.sf(point.threshold - others), norm.sf(point.threshold - members)
            both = point.false_positive_rate.lower <= false <= point.false_positive_rate.upper
            held += both and point.true_positive_rate.lower <= true <= point.true_positive_rate.upper
        at_least(held, len(points))(0.8)

    accepts_only(
        check, (1.0, 0.0), members_lower=(0.5, 0.0), members_higher=(1.5, 0.0), others_higher=(1.0, 0.8)
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_runs_prove_what_noise_says(swapped: bool) -> None:
    """Scores may be signed the other way."""
    members, others = gaussian(1.0, 60_000, 3)
    if swapped:
        members, others = -others, -members
    for claim, violated in ((GaussianDP(1.0), False), (GaussianDP(0.5), True)):
        found = membership_report(
            members, others, claim=claim, delta=0.01, design="runs", confidence=SURE, rng=4
        )
        assert found.epsilon_lower is not None
        assert found.violated is violated
        truth = GaussianDP(1.0).epsilon(0.01)
        accepts_only(unrefuted(found.epsilon_lower), truth, part=0.4 * truth)


def test_randomized_response_is_pinned_in_both_directions() -> None:
    generator = np.random.default_rng(5)
    truth = math.e / (1 + math.e)
    members, others = generator.random(40_000) < truth, generator.random(40_000) < 1 - truth
    found = membership_report(members, others, claim=PureDP(1.0), design="runs", confidence=SURE)
    assert found.epsilon_lower is not None
    accepts_only(unrefuted(found.epsilon_lower), 1.0, part=0.8)
    # Others never score 1, members do in half of the cases; then the same of scores that are low.
    half, none = 1.0 * (generator.random(4000) < 0.5), np.zeros(4000)
    telling = membership_report(half, none, design="runs")
    assert telling.epsilon_lower is not None
    assert telling.epsilon_lower > 4
    mirrored = membership_report(1.0 - none, 1.0 - half, design="runs")
    assert mirrored.epsilon_lower is not None
    assert mirrored.epsilon_lower > 4


def test_low_scores_are_an_event_too() -> None:
    members, others = np.ones(2000), (np.arange(2000) < 1000).astype(float)
    assert best_event(members, others, 0.0, 0.01, (2000, 2000)) == BestEvent(threshold=0.0, above=False)
    assert BestEvent(threshold=0.0, above=False).proved(members, others, 0.0, 0.01) > 4
    assert BestEvent(threshold=0.0, above=True).proved(members, others, 0.0, 0.01) < 0.8


def test_one_model_proves_nothing_of_epsilon() -> None:
    found = membership_report(*gaussian(9.0, 1000, 6), claim=PureDP(0.1))
    assert found.epsilon_lower is None
    assert not found.violated
    assert "nothing is proved of epsilon" in str(found)
    # But every rate that is seen stands beside what the claim allows.
    point = found.points[0.01]
    assert point.allowed is not None
    assert point.allowed < 0.1
    assert point.true_positive_rate.lower > 0.95


def test_coins_of_one_model_prove_what_the_theorem_gives() -> None:
    generator = np.random.default_rng(7)
    coins = generator.random(2000) < 0.5
    released = np.where(generator.random(2000) < math.exp(2) / (1 + math.exp(2)), coins, ~coins)
    for claim, violated in ((PureDP(2.0), False), (PureDP(1.0), True)):
        found = membership_report(
            released[coins], released[~coins], claim=claim, design="coins", confidence=0.999
        )
        assert found.violated is violated
        assert found.epsilon_lower is not None
        accepts_only(unrefuted(found.epsilon_lower), 2.0, part=1.5)
    assert "VIOLATED" in str(found)


def test_ties_tell_nothing() -> None:
    """All scores are one number: were ties broken by the coins, every guess would be right."""
    found = membership_report(np.zeros(500), np.zeros(500), design="coins", confidence=SURE)
    assert found.epsilon_lower == 0.0
    assert found.area == 0.5
    found = membership_report(np.zeros(500), np.zeros(500), design="runs", confidence=SURE)
    assert found.epsilon_lower == 0.0


def test_the_curve_and_its_area_count_pairs() -> None:
    generator = np.random.default_rng(8)
    members, others = generator.integers(0, 9, 70).astype(float), generator.integers(0, 7, 50).astype(float)
    false, true, area = roc(members, others)
    won = (members[:, None] > others).mean() + (members[:, None] == others).mean() / 2
    assert area == pytest.approx(won)
    assert (false[-1], true[-1]) == (1.0, 1.0)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()


def test_the_threshold_lets_no_more_pass_than_asked() -> None:
    others = np.arange(1000.0)
    for rate in (0.0005, 0.001, 0.0123, 0.5):
        passed = (others > threshold_at_rate(others, rate)).sum()
        assert passed == math.floor(1000 * rate)


def test_the_allowed_rate_is_that_of_the_claim() -> None:
    found = membership_report(*gaussian(1.0, 4000, 9), claim=ApproximateDP(1.0, 0.01), delta=0.01)
    for point in found.points.values():
        rate = point.false_positive_rate.upper
        best = min(math.e * rate + 0.01, 1 - (1 - 0.01 - rate) / math.e)
        assert point.allowed is not None
        assert best <= point.allowed <= 1.01 * best
    assert found.claimed == 1.0


def test_the_same_seed_tells_the_same() -> None:
    scores = gaussian(1.0, 500, 10)
    assert str(membership_report(*scores, rng=3)) == str(membership_report(*scores, rng=3))
    assert str(membership_report(*scores, rng=3)) != str(membership_report(*scores, rng=4))


@cases(
    ("changed", "says"),
    [
        ({"members": [1.0, 2.0, 3.0]}, "members must be at least four scores"),
        ({"others": [np.nan] * 4}, "others must be finite"),
        ({"members": [[1.0] * 4]}, "members must have 1 dimensions"),
        ({"design": "sample"}, "design must be 'one_model'"),
        ({"delta": 1.0}, "delta must be in"),
        ({"confidence": 1.0}, "confidence must be strictly"),
        ({"false_positive_rates": [0.0]}, "false_positive_rates must be strictly"),
    ],
)
def test_bad_input_is_released(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        membership_report(**({"members": np.arange(9.0), "others": np.arange(9.0)} | changed))
