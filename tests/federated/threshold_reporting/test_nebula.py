"""Nebula: the exact view of the server against the price, and reports that only the sizes tell apart."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import pytest

from sfumato.errors import ParameterError
from sfumato.federated import Nebula, Star
from sfumato.mechanisms import TruncatedLaplace
from sfumato.privacy import ApproximateDP, Neighboring, PoissonSubsampled

STAR = Star(threshold=3, epoch=b"one", value_bytes=6)
NOISE = TruncatedLaplace(sensitivity=1, scale=1, limit=3, l0=2)
PLAN = Nebula(star=STAR, sampling_probability=0.25, dummies=NOISE)


def dummy_masses(noise: TruncatedLaplace) -> dict[int, float]:
    """Probabilities of the number of dummy groups of one size."""
    limit = int(noise.limit)
    weights = {limit + z: math.exp(-abs(z) / float(noise.scale)) for z in range(-limit, limit + 1)}
    total = sum(weights.values())
    return {groups: weight / total for groups, weight in weights.items()}


def view(holders: tuple[int, ...], plan: Nebula) -> dict[tuple[object, ...], float]:
    """The exact distribution of all that the server learns, by enumeration of the samples."""
    threshold, q = plan.star.threshold, plan.sampling_probability
    found: defaultdict[tuple[object, ...], float] = defaultdict(float)
    masses = dummy_masses(plan.dummies)
    for counts in itertools.product(*(range(n + 1) for n in holders)):
        chance = math.prod(
            math.comb(n, c) * q**c * (1 - q) ** (n - c) for n, c in zip(holders, counts, strict=True)
        )
        shown = tuple(c if c >= threshold else 0 for c in counts)
        hidden = [sum(c == size for c in counts) for size in range(1, threshold)]
        for drawn in itertools.product(masses, repeat=threshold - 1):
            seen = tuple(h + d for h, d in zip(hidden, drawn, strict=True))
            found[shown, seen] += chance * math.prod(masses[d] for d in drawn)
    return found


def divergence(
    first: dict[tuple[object, ...], float], second: dict[tuple[object, ...], float], epsilon: float
) -> float:
    return sum(max(0.0, p - math.exp(epsilon) * second.get(at, 0.0)) for at, p in first.items())


def test_the_exact_view_is_within_the_price() -> None:
    loss = PLAN.privacy_loss
    worst = 0.0
    for others in ((), (2,), (4, 1)):
        for n in (1, 2, 3, 4, 6):
            one, other = view((n, *others), PLAN), view((n - 1, *others), PLAN)
            assert sum(one.values()) == pytest.approx(1.0)
            for epsilon in (0.0, 0.3, 1.0, 2.0, 2.5):
                priced = loss.delta(epsilon)
                for truth in (divergence(one, other, epsilon), divergence(other, one, epsilon)):
                    assert truth <= priced + 1e-12
                    worst = max(worst, truth / priced)
    assert worst > 0.5  # the price is no idle one


def test_a_client_that_changes_its_value_is_within_the_price_of_two_steps() -> None:
    loss = PLAN.privacy_loss.under(Neighboring.REPLACE_ONE)
    worst = 0.0
    for first in (1, 2, 3):
        for second in (0, 1, 2):
            one, other = view((first, second), PLAN), view((first - 1, second + 1), PLAN)
            for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0):
                priced = loss.delta(epsilon)
                for truth in (divergence(one, other, epsilon), divergence(other, one, epsilon)):
                    assert truth <= priced + 1e-12
                    worst = max(worst, truth / priced)
    assert worst > 0.3


def test_fewer_dummies_would_be_above_the_price() -> None:
    noise = TruncatedLaplace(sensitivity=1, scale=Fraction(1, 4), limit=1, l0=2)
    thin = Nebula(star=STAR, sampling_probability=0.25, dummies=noise)
    one, other = view((1,), thin), view((0,), thin)
    truth = divergence(one, other, 1.0)
    assert PLAN.privacy_loss.delta(1.0) < truth <= thin.privacy_loss.delta(1.0)


def test_the_loss_is_that_of_its_parts() -> None:
    both = ApproximateDP(*NOISE.privacy_loss.pure())
    assert PLAN.privacy_loss == PLAN._sampling.privacy_loss + PoissonSubsampled(both, 0.25)
    assert PLAN._sampling.threshold == 3
    small = Nebula(star=STAR, sampling_probability=1e-5, dummies=NOISE)
    assert small.sampling_probability * 2**64 == int(small.sampling_probability * 2**64)


def test_dummies_are_groups_that_nobody_opens() -> None:
    star = Star(threshold=4, epoch=b"two", value_bytes=6)
    plan = Nebula(star=star, sampling_probability=0.5, dummies=NOISE)
    for seed in range(6):
        groups = plan.dummy_groups(rng=seed)
        assert len(groups) == 3
        assert all(0 <= each <= 6 for each in groups)
        reports = plan.dummy_reports(rng=seed)
        assert len(reports) == sum(size * each for size, each in enumerate(groups, 1))
        assert {len(report) for report in reports} <= {star.report_bytes}
        found = star.aggregate(reports)
        assert (found.revealed, found.refused) == ({}, {})
        assert Counter(found.hidden) == Counter({size: each for size, each in enumerate(groups, 1) if each})
    assert plan.expected_dummies == 3 * (1 + 2 + 3)
    drawn = [each for seed in range(1000) for each in plan.dummy_groups(rng=seed)]
    for number, mass in dummy_masses(NOISE).items():
        # Seven standard deviations of fixed seeds.
        assert abs(drawn.count(number) - 3000 * mass) < 7 * math.sqrt(3000 * mass)


def test_there_are_never_fewer_than_no_dummies() -> None:
    noise = TruncatedLaplace(sensitivity=1, scale=30, limit=Fraction(7, 2), l0=2)
    plan = Nebula(star=STAR, sampling_probability=0.25, dummies=noise)
    drawn = [groups for seed in range(60) for groups in plan.dummy_groups(rng=seed)]
    assert (min(drawn), max(drawn)) == (0, 8)


def test_opened_values_are_debiased() -> None:
    reports = [STAR.report(b"a", randomness=STAR.local_randomness(b"a")) for _ in range(12)]
    found = PLAN.estimates(STAR.aggregate([*reports, *PLAN.dummy_reports(rng=1)]))
    assert list(found) == [b"a"]
    assert found[b"a"].estimate == 48
    assert found[b"a"].standard_error == pytest.approx(math.sqrt(12 * 0.75) / 0.25)


def test_calibration_takes_the_fewest_dummies() -> None:
    star = Star(threshold=20, epoch=b"three", value_bytes=6)
    plan = Nebula.calibrated(star, epsilon=2.0, delta=1e-6, sampling_probability=0.25)
    assert plan.privacy_loss.epsilon(1e-6) <= 2.0
    assert plan.privacy_loss.epsilon(1e-6) > 1.9
    tighter = Nebula.calibrated(star, epsilon=1.5, delta=1e-6, sampling_probability=0.25)
    assert tighter.expected_dummies > plan.expected_dummies
    rare = Nebula.calibrated(star, epsilon=2.0, delta=1e-3, sampling_probability=1e-4)
    assert rare.privacy_loss.delta(2.0) <= 1e-3
    with pytest.raises(ParameterError, match="room for dummies"):
        Nebula.calibrated(STAR, epsilon=0.5, delta=1e-6, sampling_probability=0.25)


def test_bad_parameters_are_refused() -> None:
    changes = (
        (3, "TruncatedLaplace"),
        (TruncatedLaplace(sensitivity=1, scale=1, limit=3), "two entries"),
        (TruncatedLaplace(sensitivity=2, scale=1, limit=3, l0=2), "sensitivity 1"),
        (TruncatedLaplace(sensitivity=1.0, scale=1, limit=3, l0=2, integral=False), "whole numbers"),
        (
            TruncatedLaplace(sensitivity=1, scale=1, limit=3, l0=2, neighboring=Neighboring.REPLACE_ONE),
            "add/remove",
        ),
    )
    for noise, message in changes:
        with pytest.raises(ParameterError, match=message):
            Nebula(star=STAR, sampling_probability=0.25, dummies=noise)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="star"):
        Nebula(star=None, sampling_probability=0.25, dummies=NOISE)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="sampling_probability"):
        Nebula(star=STAR, sampling_probability=1.0, dummies=NOISE)
    with pytest.raises(ParameterError, match="result"):
        PLAN.estimates({})  # type: ignore[arg-type]
