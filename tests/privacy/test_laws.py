"""The laws of the house, over every loss in a catalogue."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import (
    CDP,
    ZCDP,
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteGaussianVector,
    DiscreteLaplace,
    DiscretePair,
    Exponential,
    Gaussian,
    GaussianDP,
    GaussianSparseVector,
    GroupPrivacy,
    Laplace,
    MaxNoise,
    Neighboring,
    PrivacyLoss,
    Profile,
    PureDP,
    RandomizedResponse,
    RDPCurve,
    Repeated,
    ReportNoisyMax,
    Skellam,
    SmoothGaussian,
    SmoothLaplace,
    SmoothSensitivity,
    SparseVector,
    Staircase,
    SupportResponse,
    ThresholdedSampling,
    TradeOff,
    compose,
    gdp_delta,
    gdp_epsilon,
    loss_from_json,
    zcdp_delta,
    zcdp_epsilon,
)
from sfumato.privacy.accountant.precision import STANDARD
from sfumato.privacy.catalog import LOSS_CLASSES
from tests.cases import cases

NOTHING = Composed(())
DELTAS = [0.0, 1e-300, 1e-100, 1e-30, 1e-10, 1e-6, 1e-2, 0.5]
EPSILONS = [0.0, 1e-3, 0.5, 3.0, 50.0, 1000.0]
# Readings search for the best order or root: equal in theory, they may differ by this much.
CLOSE = 1e-8

noise = st.floats(0.05, 1e5)
scales = st.one_of(
    noise.map(Fraction), st.integers(1, 10**6), st.fractions(Fraction(1, 10), 1000, max_denominator=50)
)
wide = st.sampled_from([0.5, 10.0, 1e4])  # few values, of which pairs are made once
stops = st.sampled_from([(0.5, 10.0, 9), (10.0, 1e4, 10**6)])  # of which each pair takes a second
sensitivities = st.integers(1, 40)
magnitudes = st.one_of(st.just(0.0), st.floats(1e-6, 30.0))

NOISE = {
    "Gaussian": st.builds(Gaussian, noise),
    "Laplace": st.builds(Laplace, noise),
    "DiscreteGaussian": st.builds(DiscreteGaussian, scales, sensitivities),
    "DiscreteLaplace": st.builds(DiscreteLaplace, scales, sensitivities),
}
RATES = st.lists(st.integers(1, 20), min_size=1, max_size=5)


def simplex(weights: list[int]) -> list[Fraction]:
    return [Fraction(weight, sum(weights)) for weight in weights]


DECLARED = {
    "GaussianDP": st.builds(GaussianDP, st.one_of(st.just(0.0), st.floats(1e-5, 20.0))),
    "RDPCurve": RATES.map(
        lambda w: RDPCurve([1.0 + sum(w[: i + 1]) for i in range(len(w))], [x / 7 for x in w])
    ),
    "DiscretePair": RATES.map(lambda w: DiscretePair(simplex(w), simplex(w[::-1]))),
    "Profile": st.builds(
        lambda e, d: Profile([e, 2 * e], [d, d / 100]), st.floats(0.01, 5.0), st.floats(1e-9, 0.5)
    ),
    "TradeOff": st.builds(
        lambda b: TradeOff([0, b, 1], [1, 0.5 - b, 0]), st.sampled_from([0.01, 0.1, 0.25, 0.4])
    ),
    "RandomizedResponse": st.builds(
        RandomizedResponse, magnitudes, st.integers(2, 100), neighboring=st.just(Neighboring.ADD_REMOVE)
    ),
    "SupportResponse": st.builds(
        SupportResponse,
        magnitudes,
        st.sampled_from([0.5, 0.25, Fraction(1, 1000)]),
        st.sampled_from([0, Fraction(1, 10**6), Fraction(1, 2000)]),
        neighboring=st.just(Neighboring.ADD_REMOVE),
    ),
    "DiscreteGaussianSum": st.builds(
        DiscreteGaussianSum, scales, st.integers(1, 1000), st.integers(1, 10**4), st.integers(1, 10**4)
    ),
    "Skellam": st.builds(Skellam, scales, st.integers(1, 200), st.integers(1, 10**4)),
    "DiscreteGaussianVector": st.builds(DiscreteGaussianVector, scales, st.integers(1, 10**4)),
    "Staircase": st.builds(Staircase, st.floats(1e-3, 20.0), st.floats(0, 1)),
    "PureDP": st.builds(PureDP, magnitudes),
    "ApproximateDP": st.builds(ApproximateDP, magnitudes, st.sampled_from([0.0, 1e-200, 1e-9, 1e-3])),
    "CDP": st.builds(CDP, magnitudes, magnitudes),
    "ZCDP": st.builds(ZCDP, magnitudes),
}
CHOICES = {
    "Exponential": st.builds(Exponential, magnitudes),
    "ReportNoisyMax": st.builds(ReportNoisyMax, noise, noise=st.sampled_from(MaxNoise)),
    "SparseVector": st.builds(SparseVector, noise, noise, positives=st.integers(1, 20)),
    "GaussianSparseVector": stops.map(lambda noises: GaussianSparseVector(*noises)),
    "SmoothSensitivity": st.builds(
        SmoothSensitivity, noise, smoothness=st.floats(0.0, 3.0), degrees=st.floats(0.5, 9.0)
    ),
    "SmoothLaplace": st.builds(SmoothLaplace, noise, smoothness=st.floats(0.0, 3.0)),
    "SmoothGaussian": st.builds(SmoothGaussian, noise, smoothness=st.floats(0.0, 3.0)),
}
steps = st.sampled_from([2, 4])
GROUPS = {
    "GroupPrivacy": st.builds(
        GroupPrivacy, DECLARED["PureDP"], steps, neighboring=st.just(Neighboring.ADD_REMOVE)
    ),
    "GroupPrivacy noise": st.builds(
        GroupPrivacy, st.builds(Laplace, wide), steps, neighboring=st.just(Neighboring.ADD_REMOVE)
    ),
}
SAMPLES = {
    "ThresholdedSampling": st.builds(
        ThresholdedSampling, st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.integers(1, 30)
    ),
}
every_relation = st.one_of(*NOISE.values(), *DECLARED.values(), *CHOICES.values(), *GROUPS.values())
leaves = st.one_of(every_relation, *SAMPLES.values())
terms = st.lists(st.tuples(leaves, st.integers(1, 4)), min_size=0, max_size=4)
losses = terms.map(lambda parts: compose([leaf * count for leaf, count in parts]))
deltas = st.one_of(st.sampled_from(DELTAS), st.floats(1e-12, 0.9))
epsilons = st.one_of(st.sampled_from(EPSILONS), st.floats(0, 20))
distributions = settings(max_examples=60, deadline=None)
priced = settings(max_examples=20, deadline=None)
"""Of laws that price whole compositions."""


def test_every_leaf_is_among_these() -> None:
    leaves_of = "sfumato.privacy.leaves."
    found = {kind.__name__ for kind in LOSS_CLASSES if kind.__module__.startswith(leaves_of)}
    # The losses here are composed under add/remove, which a noisy iteration refuses.
    assert found - {*NOISE, *DECLARED, *CHOICES, *GROUPS, *SAMPLES} == {"NoisyIteration"}


def at_most(left: float, right: float, slack: float = CLOSE) -> bool:
    """Compare two readings up to the accuracy of the search."""
    return left <= right * (1 + slack) + 1e-300 or left <= right + 1e-13


@distributions
@given(losses, st.integers(0, 5))
def test_repetition_is_repeated_addition(loss: PrivacyLoss, count: int) -> None:
    added = functools.reduce(operator.add, [loss] * count, NOTHING)
    assert loss * count == added
    assert count * loss == added
    assert hash(loss * count) == hash(added)
    assert (loss * count).to_json() == added.to_json()


@priced
@given(losses, st.integers(0, 4), st.integers(0, 4))
def test_repetition_multiplies(loss: PrivacyLoss, m: int, n: int) -> None:
    assert (loss * m) * n == loss * (m * n)
    assert loss * m + loss * n == loss * (m + n)


@priced
@given(losses, losses, losses, st.integers(0, 3))
def test_order_and_grouping_are_irrelevant(a: PrivacyLoss, b: PrivacyLoss, c: PrivacyLoss, n: int) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == compose([c, a, b])
    assert (a + b) * n == a * n + b * n


@distributions
@given(losses)
def test_one_is_the_identity_and_none_is_nothing(loss: PrivacyLoss) -> None:
    assert loss * 1 == loss
    assert loss * 0 == NOTHING
    assert loss + NOTHING == loss
    assert all(NOTHING.epsilon(delta) == 0 for delta in DELTAS)
    assert all(NOTHING.delta(epsilon) == 0 for epsilon in EPSILONS)


def costs_no_more(less: PrivacyLoss, more: PrivacyLoss, delta: float, more_delta: float) -> bool:
    """Compare what is proven: the intervals exactly, upper ends up to the precision that was reached."""
    left, right = less.epsilon_interval(delta), more.epsilon_interval(more_delta)
    close = left.upper <= right.upper or left.upper - right.upper <= STANDARD.width(right.upper)
    reached = not left.tight or STANDARD.met(left.lower, left.upper)
    return left.lower <= right.upper and (close or not reached)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
@priced
@given(losses, deltas, st.integers(1, 4))
def test_more_runs_cost_more(loss: PrivacyLoss, delta: float, count: int) -> None:
    assert costs_no_more(loss * count, loss * (count + 1), delta, delta)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
@priced
@given(losses, leaves, deltas)
def test_more_parts_cost_more(loss: PrivacyLoss, part: PrivacyLoss, delta: float) -> None:
    assert costs_no_more(loss, loss + part, delta, delta)
    assert costs_no_more(part, loss + part, delta, delta)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
@priced
@given(losses, deltas, deltas)
def test_epsilon_falls_with_delta(loss: PrivacyLoss, a: float, b: float) -> None:
    assert costs_no_more(loss, loss, max(a, b), min(a, b))


@priced
@given(losses, epsilons, epsilons)
def test_delta_falls_with_epsilon(loss: PrivacyLoss, a: float, b: float) -> None:
    assert at_most(loss.delta(max(a, b)), loss.delta(min(a, b)), 1e-6)


@priced
@given(losses, deltas)
@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
def test_epsilon_and_delta_invert_each_other(loss: PrivacyLoss, delta: float) -> None:
    epsilon = loss.epsilon(delta)
    assume(math.isfinite(epsilon))
    # Where a steep profile keeps the bounds on delta apart, the lower one must still agree.
    lower, upper, _ = loss.delta_interval(epsilon * (1 + 1e-9) + 1e-300)
    assert lower <= delta * (1 + 1e-5) + 1e-300
    assert upper <= delta * (1 + 1.1e-3) + 1e-300 or upper - lower > 1e-3 * upper


@priced
@given(losses, deltas)
def test_every_view_is_at_least_the_answer(loss: PrivacyLoss, delta: float) -> None:
    answer = loss.epsilon(delta)
    rho, mass = loss.zcdp() if _has(loss, "zcdp") else (math.inf, 0.0)
    if math.isfinite(rho) and delta > mass:
        assert at_most(answer, zcdp_epsilon(rho, delta - mass))
    if _has(loss, "gdp"):
        mu, mass = loss.gdp()
        if delta > mass:
            assert at_most(answer, gdp_epsilon(mu, delta - mass))
    if _has(loss, "pure"):
        epsilon, mass = loss.pure()
        assert delta < mass or at_most(answer, epsilon)


@distributions
@given(st.one_of(*(NOISE[name] for name in NOISE if name != "Gaussian"), DECLARED["PureDP"]), epsilons)
def test_every_view_of_a_leaf_is_at_least_its_exact_profile(leaf: PrivacyLoss, epsilon: float) -> None:
    # Tails of wide laws carry up to 1e-13 of their own size, divided by the shift in standard deviations.
    exact = math.exp(leaf.log_profile(epsilon)) * (1 - 1e-7)
    mu, mass = leaf.gdp()
    assert exact <= gdp_delta(mu, epsilon) + mass
    assert math.isinf(leaf.zcdp().rho) or exact <= zcdp_delta(leaf.zcdp().rho, epsilon)
    for order in (1.01, 2.0, 10.0, 300.0):
        # Bun and Steinke 2016, the conversion by Markov's inequality.
        assert exact <= math.exp(min(0.0, (order - 1) * (leaf.rdp(order) - epsilon)))


@priced
@given(losses)
def test_views_add(loss: PrivacyLoss) -> None:
    for view in ("zcdp", "gdp", "pure"):
        if _has(loss, view):
            one, three = getattr(loss, view)(), getattr(loss * 3, view)()
            power = 2 if view == "gdp" else 1
            assert three[0] ** power == pytest.approx(3 * one[0] ** power, rel=1e-12)
            assert three[1] == pytest.approx(min(1.0, 3 * one[1]), rel=1e-12)
    if _has(loss, "rdp_curve"):
        assert (loss * 3).rdp(7.5) == pytest.approx(3 * loss.rdp(7.5), rel=1e-12)


@priced
@given(losses, deltas)
def test_text_keeps_the_loss_and_its_number(loss: PrivacyLoss, delta: float) -> None:
    again = loss_from_json(loss.to_json())
    assert again == loss
    assert again.to_json() == loss.to_json()
    assert again.epsilon(delta) == loss.epsilon(delta)
    assert repr(again) == repr(loss)


@pytest.mark.parametrize("kind", [Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace])
def test_noise_rules_the_loss(kind: Callable[..., PrivacyLoss]) -> None:
    levels = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 3), 1, 3, 100, 10**4, 10**9, 10**14]
    for catalogue in ([kind(level) for level in levels], [kind(level) * 3 for level in levels]):
        costs = [loss.epsilon(1e-9) for loss in catalogue]
        assert all(at_most(after, before) for before, after in itertools.pairwise(costs))
        assert costs[0] > 100
        assert costs[-1] < 1e-4
    for loss in (kind(0), kind(0) * 2):
        assert loss.epsilon(0.5) == math.inf
        assert loss.epsilon(0.0) == math.inf
        assert loss.delta(1e300) == 1.0
        assert loss.zcdp().rho == loss.gdp().mu == loss.rdp(2.0) == math.inf


@pytest.mark.parametrize("kind", [DiscreteGaussian, DiscreteLaplace])
@priced
@given(scale=scales, sensitivity=st.integers(1, 20), delta=deltas)
def test_a_larger_shift_costs_more(kind: type, scale: Fraction, sensitivity: int, delta: float) -> None:
    assert at_most(kind(scale, sensitivity).epsilon(delta), kind(scale, sensitivity + 1).epsilon(delta))


@priced
@given(leaves, every_relation)
def test_relations_do_not_mix(a: PrivacyLoss, b: PrivacyLoss) -> None:
    moved: PrivacyLoss = cast("Any", type(b))(**{**b.parameters(), "neighboring": Neighboring.REPLACE_ONE})
    with pytest.raises(NeighboringMismatch, match="one neighboring relation"):
        _ = a + moved
    assert a + moved * 0 == a
    assert (moved * 2).neighboring is Neighboring.REPLACE_ONE
    assert NOTHING.neighboring is None
    assert moved.epsilon(1e-6) == b.epsilon(1e-6)


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=6), st.sampled_from(DELTAS[1:]))
@distributions
def test_continuous_gaussians_merge_exactly(multipliers: list[float], delta: float) -> None:
    parts = compose([Gaussian(z) for z in multipliers])
    merged = Gaussian(1 / math.sqrt(math.fsum(z**-2.0 for z in multipliers)))
    assert parts.epsilon(delta) == pytest.approx(merged.epsilon(delta), rel=1e-10, abs=1e-15)


def test_discrete_gaussians_do_not_merge() -> None:
    for count, epsilon in ((1, 4.0), (4, 8.5)):
        lower, _, _ = (DiscreteGaussian(1) * count).delta_interval(epsilon)
        assert lower > (Gaussian(1.0) * count).delta(epsilon)


@cases("count", [-1, 1.5, True, "2", None])
def test_only_natural_numbers_repeat(count: object) -> None:
    with pytest.raises(ParameterError, match="count must be an integer"):
        _ = Gaussian(1.0) * count  # type: ignore[operator]


def test_nodes_keep_the_normal_form() -> None:
    a, b = PureDP(0.5), Gaussian(1.0)
    assert Composed((a, b, a)) == a + b + a
    for build in (
        lambda: Composed((a,)),
        lambda: Composed((a, a)),
        lambda: Repeated(a, 1),
        lambda: Repeated(a + b, 2),
        lambda: Repeated(a * 2, 2),
    ):
        with pytest.raises(ParameterError, match="write a \\+ b"):
            build()
    with pytest.raises(TypeError):
        _ = a + 1  # type: ignore[operator]


def test_counts_beyond_floats_still_bound() -> None:
    assert (PureDP(1e-3) * 10**400).epsilon(0.5) == math.inf
    assert (PureDP(0.0) * 10**400).epsilon(0.0) == 0.0
    assert (PureDP(0.0) * 10**400).rdp(2.0) < 1e-300
    assert (Gaussian(1e6) * 10**30).epsilon(0.5) > 1e17


def test_mass_is_split_off_before_the_rest() -> None:
    loss = ApproximateDP(0.5, 1e-6) * 3 + PureDP(0.25)
    assert loss.epsilon(0.0) == loss.epsilon(2e-6) == math.inf
    # The three masses together are a little below their sum.
    assert loss.epsilon(3e-6) == pytest.approx(1.75, rel=1e-4)
    assert loss.delta(1.75) == pytest.approx(3e-6, rel=1e-5)
    assert 1 - (1 - Fraction(1e-6)) ** 3 <= Fraction(loss.delta(1.75)) <= Fraction(3e-6)
    assert tuple(loss.pure()) == pytest.approx((1.75, 3e-6))


def test_many_small_masses_are_not_lost_beside_a_large_one() -> None:
    # Each of the small ones is below half a unit in the last place of the log that keeps the large one.
    masses = [0.5, *(5e-17 + k * 1e-21 for k in range(500))]
    loss = compose([ApproximateDP(0.0, mass) for mass in masses])
    exact = 1 - math.prod(1 - Fraction(mass) for mass in masses)
    assert exact <= Fraction(loss.delta(0.0)) <= exact * (1 + Fraction(1, 2**47))
    assert exact <= Fraction(loss.split()[0])


def test_pure_sums_are_exact() -> None:
    assert (PureDP(0.5) * 10).epsilon(0.0) == 5.0
    assert (DiscreteLaplace(2) * 4 + PureDP(0.25)).epsilon(0.0) == 2.25
    assert (PureDP(0.5) + Gaussian(1.0)).epsilon(0.0) == math.inf
    # Rounded after the repetition: a sixth, three times, is a half.
    assert (DiscreteLaplace(12, 2) * 3).epsilon(0.0) == (DiscreteLaplace(12, 2) * 3).pure().epsilon == 0.5
    assert (Laplace(3.0) * 3 + PureDP(1.0)).pure() == (2.0, 0.0)
    assert (PureDP(1e308) + Laplace(1e-308)).pure().epsilon == math.inf


@distributions
@given(st.lists(st.tuples(st.one_of(NOISE["Laplace"], NOISE["DiscreteLaplace"]), st.integers(1, 50))))
def test_pure_sums_are_never_below_the_exact_ones(parts: list[tuple[Any, int]]) -> None:
    exact = Fraction(0)
    for leaf, count in parts:
        shift, scale = getattr(leaf, "sensitivity", 1), getattr(leaf, "scale", None) or leaf.noise_multiplier
        exact += count * Fraction(shift) / Fraction(scale)
    total = Fraction(compose([leaf * count for leaf, count in parts]).epsilon(0.0))
    assert exact <= total <= exact * (1 + Fraction(len(parts) + 1, 2**52))


def test_pure_parts_may_be_added_afterwards() -> None:
    assert (PureDP(0.01) + Gaussian(1.0)).epsilon(1e-6) <= 0.01 + Gaussian(1.0).epsilon(1e-6) + 1e-12


def test_a_missing_view_names_the_leaf() -> None:
    loss = Gaussian(1.0) + ZCDP(0.125) * 2
    for view in ("gdp", "pure"):
        with pytest.raises(UnsupportedView, match=rf"(ZCDP\(rho=0.125\)|Gaussian\(.*\)) has no {view} view"):
            getattr(loss, view)()
    assert loss.epsilon(1e-6) < math.inf


@cases("delta", [-1e-9, 1.0, math.nan, "x", True])
def test_delta_is_a_probability(delta: object) -> None:
    with pytest.raises(ParameterError, match="delta must"):
        PureDP(1.0).epsilon(delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [-0.1, -math.inf, math.nan])
def test_epsilon_is_at_least_zero(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon must"):
        PureDP(1.0).delta(epsilon)
    with pytest.raises(ParameterError, match="order must"):
        PureDP(1.0).rdp(1.0)


@cases(
    ("build", "name"),
    [
        (lambda: Gaussian(-1.0), "noise_multiplier"),
        (lambda: Laplace(math.nan), "noise_multiplier"),
        (lambda: Laplace(math.inf), "noise_multiplier"),
        (lambda: DiscreteGaussian(-1), "stddev"),
        (lambda: DiscreteGaussian(10**400), "stddev"),
        (lambda: DiscreteGaussian(Fraction(1, 10**2000)), "stddev"),
        (lambda: DiscreteGaussian(1, 0), "sensitivity"),
        (lambda: DiscreteGaussian(1, 1.0), "sensitivity"),  # type: ignore[arg-type]
        (lambda: DiscreteLaplace("1"), "scale"),  # type: ignore[arg-type]
        (lambda: DiscreteLaplace(True), "scale"),
        (lambda: PureDP(-0.5), "epsilon"),
        (lambda: PureDP(math.inf), "epsilon"),
        (lambda: ApproximateDP(1.0, 1.0), "delta"),
        (lambda: ApproximateDP(1.0, -0.1), "delta"),
        (lambda: ZCDP(-1), "rho"),
        (lambda: ZCDP(1, neighboring="add-remove"), "neighboring"),  # type: ignore[arg-type]
    ],
)
def test_parameters_are_checked(build: object, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must"):
        build()  # type: ignore[operator]


def test_rationals_are_rounded_to_the_private_side() -> None:
    third = Fraction(1, 3)
    assert Fraction(Gaussian(cast("float", third)).noise_multiplier) < third
    assert Fraction(PureDP(cast("float", third)).epsilon(0.0)) > third
    assert Fraction(DiscreteLaplace(3).epsilon(0.0)) > third
    assert Fraction(Laplace(3).epsilon(0.0)) > third
    assert DiscreteGaussian(2) == DiscreteGaussian(2.0) == DiscreteGaussian(Fraction(4, 2))
    assert Gaussian(-0.0) == Gaussian(0.0)
    assert Gaussian(-0.0).to_json() == Gaussian(0.0).to_json()


def _has(loss: PrivacyLoss, view: str) -> bool:
    try:
        getattr(loss, view)(*([np.array([2.0])] if view == "rdp_curve" else []))
    except UnsupportedView:
        return False
    return True
