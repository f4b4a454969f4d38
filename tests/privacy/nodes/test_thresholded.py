"""Thresholds for unknown groups, and propose-test-release, against exact laws of what is told."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from itertools import combinations_with_replacement

import mpmath
import pytest

from sfumato.errors import ParameterError, UnsupportedView
from sfumato.privacy import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    DistanceTest,
    Gaussian,
    Laplace,
    Neighboring,
    PrivacyLoss,
    ThresholdedSelection,
    loss_from_json,
    propose_test_release,
)
from sfumato.privacy.pairs.derived import fine_cuts
from tests.cases import cases

mpmath.mp.dps = 40
SPAN = 400


@functools.cache
def noise(loss: PrivacyLoss) -> dict[int, mpmath.mpf]:
    """The law of integer noise, summed up directly."""
    if isinstance(loss, DiscreteLaplace):
        weights = {k: mpmath.exp(-abs(k) / mpmath.mpf(float(loss.scale))) for k in range(-SPAN, SPAN + 1)}
    else:
        assert isinstance(loss, DiscreteGaussian)
        variance = mpmath.mpf(float(loss.stddev)) ** 2
        weights = {k: mpmath.exp(-(k**2) / (2 * variance)) for k in range(-SPAN, SPAN + 1)}
    total = mpmath.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def told(
    units: int, distribution: dict[int, mpmath.mpf], threshold: int, heads: float = 1.0
) -> dict[int | None, mpmath.mpf]:
    """What is told of a group: its noisy number, or None."""
    if units == 0:
        return {None: mpmath.mpf(1)}
    shown: dict[int | None, mpmath.mpf] = {
        units + k: p * (heads if units + k == threshold else 1)
        for k, p in distribution.items()
        if units + k >= threshold
    }
    shown[None] = 1 - mpmath.fsum(shown.values())
    return shown


def divergence(p: dict[int | None, mpmath.mpf], q: dict[int | None, mpmath.mpf], x: float) -> mpmath.mpf:
    factor = mpmath.exp(x)
    return mpmath.fsum(max(0, mass - factor * q.get(key, 0)) for key, mass in p.items())


@pytest.mark.parametrize(
    ("base", "threshold", "heads"),
    [
        (DiscreteLaplace(2), 1, 1),
        (DiscreteLaplace(2), 3, 0.375),
        (DiscreteLaplace(2), 12, 1),
        (DiscreteGaussian(2), 3, 1),
        (DiscreteGaussian(2), 11, 0.75),
        (DiscreteLaplace(Fraction(1, 2)), 1, 1),
        (DiscreteLaplace(Fraction(1, 2)), 3, 0.375),
    ],
)
def test_every_group_is_dominated_in_both_orders(base: PrivacyLoss, threshold: int, heads: float) -> None:
    leaf, distribution = ThresholdedSelection(base, threshold, heads), noise(base)
    lone = told(1, distribution, threshold, heads)
    assert leaf.mass == pytest.approx(float(1 - lone[None]), rel=1e-9)
    for x in (0.0, 0.2, 0.5, 1.0, 3.0):
        delta = leaf.delta(x)
        for units in (0, 1, 2, threshold, threshold + 5, 40):
            p, q = (told(n, distribution, threshold, heads) for n in (units + 1, units))
            assert max(divergence(p, q, x), divergence(q, p, x)) <= delta * (1 + 1e-9)
        # Neither the noise nor the threshold alone would do.
        worst = max(
            divergence(lone, told(0, distribution, threshold), x),
            divergence(told(41, distribution, 1), told(40, distribution, 1), x),
        )
        assert delta <= 2.001 * float(worst)


@cases(
    ("base", "threshold"),
    [
        (DiscreteGaussian(3), 15),
        (DiscreteLaplace(2), 5),
        (Gaussian(2.0), 6),
        (Gaussian(5.0), 40),
        (Laplace(2.0), Fraction(5, 2)),
    ],
)
def test_one_group_is_priced_as_the_worse_of_both_cases(base: PrivacyLoss, threshold: int | Fraction) -> None:
    leaf = ThresholdedSelection(base, threshold)
    pair, mass = leaf.dominating_pair(), leaf.mass
    cuts = fine_cuts(pair, 12.0)
    for x in (-2.0, -0.3, 0.0, 0.1, 0.4, 0.9, 2.0, 8.0):
        noise = base.delta(x) if x >= 0 else 1 - math.exp(x) * (1 - base.delta(-x))
        for swapped in (False, True):
            # One that is never shown, against one that seldom is, and the reverse.
            lone = max(0.0, 1 - math.exp(x) * (1 - mass)) if swapped else max(mass, 1 - math.exp(x))
            found = math.exp(pair.bins(cuts, swapped=swapped).split().log_profile(x))
            assert found * (1 + 1e-9) >= max(noise * (1 - 2e-3), lone)
            assert found <= max(noise, lone) * (1 + 2e-3) + 1e-12
        assert x < 0 or leaf.delta(x) <= max(noise, mass, 1 - math.exp(x) * (1 - mass)) * (1 + 2e-3)
    relation = Neighboring.REPLACE_ONE
    other = type(base)(**{**base.parameters(), "neighboring": relation})
    assert ThresholdedSelection(other, threshold).dominating_pair().symmetric


def test_two_groups_compose_as_their_exact_product() -> None:
    base, threshold, heads, x = DiscreteLaplace(1), 4, 0.25, 0.9
    leaf, distribution = ThresholdedSelection(base, threshold, heads), noise(base)
    laws = {n: told(n, distribution, threshold, heads) for n in (0, 1, 3, 4, 6, 7)}
    shrunk = [({key: mass for key, mass in laws[n + 1].items() if mass > 1e-17}, laws[n]) for n in (0, 3, 6)]
    factor, delta = mpmath.exp(x), (leaf * 2).delta(x)
    for (p1, q1), (p2, q2) in combinations_with_replacement(shrunk, 2):
        joint = mpmath.fsum(
            max(0, a * b - factor * q1.get(i, 0) * q2.get(j, 0))
            for i, a in p1.items()
            for j, b in p2.items()
            if a * b > 1e-17
        )
        assert joint <= delta


@pytest.mark.parametrize("base", [Gaussian(3.0), Laplace(3.0)])
def test_continuous_tails(base: PrivacyLoss) -> None:
    for threshold in (0.5, 1, 2.5, 20, 100):
        z = (mpmath.mpf(threshold) - 1) / 3
        if isinstance(base, Gaussian):
            truth = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        else:
            truth = mpmath.exp(-z) / 2 if z > 0 else mpmath.mpf(1)
        found = ThresholdedSelection(base, Fraction(threshold)).mass
        assert truth <= found <= float(truth) * (1 + 1e-9) + 1e-299


def test_masses_are_split_off_and_add() -> None:
    leaf = ThresholdedSelection(Gaussian(2.0), 12)
    assert leaf.split() == (leaf.mass, ((Gaussian(2.0), 1),))
    # Far above the mass, the noise alone rules; below it, nothing is promised.
    assert (leaf * 3).epsilon(1e-3) == pytest.approx((Gaussian(2.0) * 3).epsilon(1e-3), rel=1e-3)
    assert (leaf * 3).epsilon(leaf.mass) == math.inf
    assert (leaf * 3).epsilon(1e-6) <= ((Gaussian(2.0) + ApproximateDP(0.0, leaf.mass)) * 3).epsilon(
        1e-6
    ) * 1.001
    assert not leaf.epsilon_interval(1e-3).tight
    assert leaf.gdp() == (Gaussian(2.0).gdp().mu, leaf.mass)
    assert loss_from_json(leaf.to_json()) == leaf
    coin = ThresholdedSelection(Gaussian(2.0), 12, 0.25)
    assert coin.mass == pytest.approx(0.25 * leaf.mass + 0.75 * ThresholdedSelection(Gaussian(2.0), 13).mass)
    assert loss_from_json(coin.to_json()) == coin != leaf
    with pytest.raises(UnsupportedView):
        leaf.pure()


def test_propose_test_release_holds_on_stable_and_unstable_neighbors() -> None:
    test, release, threshold = DiscreteLaplace(2), DiscreteLaplace(3), 7
    loss = propose_test_release(test, threshold, release)
    distribution, answer = ({k: float(mass) for k, mass in noise(law).items()} for law in (test, release))

    def outputs(distance: int, value: int) -> dict[tuple[int, int | None], float]:
        shown: dict[tuple[int, int | None], float] = {}
        for k in range(-30, 60):
            noisy, p = distance + k, distribution[k]
            if noisy >= threshold:
                shown |= {(noisy, value + j): p * answer[j] for j in range(-60, 61)}
            else:
                shown[noisy, None] = p
        return shown

    deltas = {x: loss.delta(x) for x in (0.0, 0.4, 0.9, 2.0)}
    for first, second in [((0, 0), (0, 30)), ((5, 0), (6, 1)), ((9, 0), (8, 1)), ((0, 0), (1, 1))]:
        p, q = outputs(*first), outputs(*second)
        for x, delta in deltas.items():
            factor = math.exp(x)
            found = math.fsum(max(0.0, mass - factor * q.get(key, 0.0)) for key, mass in p.items())
            assert found <= delta + 1e-6


def test_a_selection_shows_lone_groups_as_rarely_as_claimed() -> None:
    """Enumerated: a count of 1 with each noise."""
    for base in (DiscreteLaplace(2), DiscreteGaussian(2)):
        for threshold in (3, 6, 9):
            shown = float(mpmath.fsum(chance for k, chance in noise(base).items() if 1 + k >= threshold))
            assert ThresholdedSelection(base, threshold).mass == pytest.approx(shown, rel=1e-9)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="loss must be of noise whose tail is known"):
        ThresholdedSelection(ApproximateDP(1.0, 1e-6), 3)
    with pytest.raises(ParameterError, match="neither repeated nor composed"):
        DistanceTest(Laplace(1.0) * 2, 3)
    with pytest.raises(ParameterError, match="threshold must"):
        ThresholdedSelection(Laplace(1.0), -1)
    for probability in (0, -0.5, 1.5):
        with pytest.raises(ParameterError, match="probability must"):
            ThresholdedSelection(Laplace(1.0), 9, probability)
    relation = Neighboring.REPLACE_ONE
    assert ThresholdedSelection(Laplace(1.0, neighboring=relation), 9).neighboring is relation
    assert ThresholdedSelection(Gaussian(0.0), 1).epsilon(0.5) == math.inf
