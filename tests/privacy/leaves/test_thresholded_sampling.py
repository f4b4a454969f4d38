"""Sample-and-threshold: the leaf against exact enumeration of thresholded binomial counts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.privacy import Neighboring, PoissonSubsampled, ThresholdedSampling

RATIOS = [Fraction(1), Fraction(21, 20), Fraction(5, 4), Fraction(3, 2), Fraction(4), Fraction(30)]


def outputs(holders: int, q: Fraction, threshold: int, *, counts: bool) -> dict[int, Fraction]:
    """The exact distribution of what is shown of one value: its count, or that it was reached, or -1."""
    found: dict[int, Fraction] = {}
    for count in range(holders + 1):
        mass = math.comb(holders, count) * q**count * (1 - q) ** (holders - count)
        shown = -1 if count < threshold else count if counts else threshold
        found[shown] = found.get(shown, Fraction(0)) + mass
    return found


def hockey_stick(p: dict[int, Fraction], q: dict[int, Fraction], ratio: Fraction) -> Fraction:
    none = Fraction(0)
    return sum((max(none, mass - ratio * q.get(key, none)) for key, mass in p.items()), none)


def worst(q: Fraction, threshold: int, ratio: Fraction, *, counts: bool, most: int = 45) -> Fraction:
    """The greatest divergence over all numbers of holders, in both orders."""
    shown = [outputs(holders, q, threshold, counts=counts) for holders in range(most)]
    pairs = [(shown[n], shown[n - 1]) for n in range(1, most)]
    return max(max(hockey_stick(a, b, ratio), hockey_stick(b, a, ratio)) for a, b in pairs)


@pytest.mark.parametrize(("q", "threshold"), [(0.25, 3), (0.5, 1), (0.75, 6)])
def test_the_profile_is_the_greatest_divergence_of_the_enumerated_counts(q: float, threshold: int) -> None:
    loss = ThresholdedSampling(q, threshold)
    for ratio in RATIOS:
        exact = worst(Fraction(q), threshold, ratio, counts=True)
        assert worst(Fraction(q), threshold, ratio, counts=False) == exact
        # The epsilon is rounded down, so that the claim is at the ratio or below it.
        claimed = loss.delta(math.nextafter(math.log(ratio), -1.0) if ratio > 1 else 0.0)
        assert float(exact) <= claimed <= float(exact) * (1 + 1e-9)


def test_two_levels_cost_what_the_enumerated_product_costs() -> None:
    loss = ThresholdedSampling(0.25, 2) * 2
    shown = [outputs(holders, Fraction(1, 4), 2, counts=True) for holders in range(14)]
    for epsilon in (0.05, 0.2, 0.5):
        ratio, found = Fraction(math.exp(epsilon)), Fraction(0)
        for first in range(1, 14):
            for second in range(1, 14):
                for step in (0, 1):
                    p = product(shown[first - step], shown[second - step])
                    q = product(shown[first - 1 + step], shown[second - 1 + step])
                    found = max(found, Fraction(hockey_stick(p, q, ratio)))
        lower, upper, _ = loss.delta_interval(epsilon)
        assert float(found) <= upper
        # Both levels may have different numbers of holders, and the pair is worse than any single choice.
        assert upper <= 1.35 * float(found)
        assert lower <= upper


def product(p: dict[int, Fraction], q: dict[int, Fraction]) -> dict[int, Fraction]:
    return {100 * a + b: x * y for a, x in p.items() for b, y in q.items()}


def test_rare_sampling_in_bins_agrees_with_the_closed_form() -> None:
    q, threshold = 2.0**-7, 12
    loss = ThresholdedSampling(q, threshold)
    for epsilon in (0.004, 0.02, 0.5):
        # Where the threshold binds: n (1 - (1 - q) e^-eps) first reaches threshold - 1.
        rate = -math.expm1(math.log1p(-q) - epsilon)
        holders = max(threshold, math.ceil((threshold - 1) / rate))
        exact = reached(holders, q, threshold) - math.exp(epsilon) * reached(holders - 1, q, threshold)
        assert loss.delta(epsilon) == pytest.approx(exact, rel=1e-9)


def reached(holders: int, q: float, threshold: int) -> float:
    rational = Fraction(q)
    below = sum(
        math.comb(holders, count) * rational**count * (1 - rational) ** (holders - count)
        for count in range(threshold)
    )
    return float(1 - below)


def test_pure_views_are_the_ends_of_the_loss() -> None:
    view = ThresholdedSampling(0.25, 4).pure()
    assert view.epsilon == pytest.approx(math.log(3), rel=1e-14)
    assert view.delta == 0.25**4
    assert ThresholdedSampling(0.5, 1).pure().epsilon == pytest.approx(math.log(2), rel=1e-14)
    rho, mass = ThresholdedSampling(0.25, 4).zcdp()
    inner = math.log(3 / (1 - 0.25**4))
    assert mass == 0.25**4
    # Pure epsilon gives rho = epsilon tanh(epsilon / 2) / ... at most epsilon^2 / 2.
    assert 0 < rho <= inner * inner / 2 * (1 + 1e-12)


def test_everyone_or_nobody_is_sampled() -> None:
    assert ThresholdedSampling(1.0, 5).epsilon(0.9) == math.inf
    assert ThresholdedSampling(1.0, 5).delta(3.0) == 1.0
    assert ThresholdedSampling(1.0, 5).split() == (1.0, ())
    assert ThresholdedSampling(0.0, 5).epsilon(0.0) == 0.0


def test_a_smaller_probability_is_a_sample_of_a_sample() -> None:
    q, threshold = 0.02, 4
    twice = PoissonSubsampled(ThresholdedSampling(4 * q, threshold), 0.25)
    once = ThresholdedSampling(q, threshold)
    for epsilon in (0.0, 0.01, 0.1):
        assert once.delta(epsilon) <= twice.delta(epsilon)


REFUSED = [
    ({"sampling_probability": 1e-4, "threshold": 5}, ParameterError, "be 0, or at least"),
    ({"sampling_probability": 1.5, "threshold": 5}, ParameterError, "from 0 to 1"),
    ({"sampling_probability": 0.5, "threshold": 0}, ParameterError, "at least 1"),
    ({"sampling_probability": 0.5, "threshold": 1025}, ParameterError, "at most 1024"),
    (
        {"sampling_probability": 0.5, "threshold": 5, "neighboring": Neighboring.REPLACE_ONE},
        NeighboringMismatch,
        "moves two values",
    ),
]


def test_bad_parameters_are_refused() -> None:
    for parameters, error, words in REFUSED:
        with pytest.raises(error, match=words):
            ThresholdedSampling(**parameters)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        ThresholdedSampling(0.5, 5, Neighboring.ADD_REMOVE)  # type: ignore[call-arg]
