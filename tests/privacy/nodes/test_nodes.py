"""Mixtures, choices, parallel parts, post-processing, samples of fixed size: exact references and laws."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import (
    ZCDP,
    AdaptiveChoice,
    AmongDecoys,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Mixture,
    Neighboring,
    NoisyIteration,
    Parallel,
    PoissonRecords,
    PoissonSubsampled,
    PostProcessed,
    PrivacyLoss,
    PureDP,
    RandomizedResponse,
    Shuffled,
    loss_from_json,
)
from tests.cases import cases

mpmath.mp.dps = 40
REPLACE = Neighboring.REPLACE_ONE
SAMPLED = PoissonSubsampled(Gaussian(0.8), 0.02)
CATALOGUE: dict[str, PrivacyLoss] = {
    "sampled": SAMPLED,
    "shuffled": Shuffled(PureDP(1.0, neighboring=REPLACE), 500),
    "responses": Shuffled(RandomizedResponse(1.0, 5), 500),
    "decoys": AmongDecoys(RandomizedResponse(1.0, 5), 400, 0.75),
    "records": PoissonRecords(Gaussian(2.0), 0.05, 4),
    "any records": PoissonRecords(Laplace(2.0), 0.05, 4),
    "iteration": NoisyIteration(2.0, 10),
    "mixture": Mixture((Gaussian(2.0), Laplace(3.0), SAMPLED), (0.5, 0.25, 0.25), index_public=True),
    "hidden": Mixture((Gaussian(2.0), PureDP(0.4)), (0.9, 0.1), index_public=False),
    "atoms": Mixture((PureDP(1.0), ApproximateDP(0.5, 1e-14)), (0.5, 0.5), index_public=True),
    "choice": AdaptiveChoice((Gaussian(2.0), Laplace(1.5), SAMPLED)),
    "parallel": Parallel((PureDP(0.5), Laplace(2.5), Composed(()))),
    "processed": PostProcessed(Gaussian(1.5)),
    "fixed": FixedSizeSampled(Gaussian(1.0, neighboring=REPLACE), 30, 1000),
    "nested": PoissonSubsampled(AdaptiveChoice((Gaussian(1.0), Laplace(1.0))), 0.1),
    "mixed": PoissonSubsampled(Mixture((Gaussian(1.0), Laplace(1.0)), (0.5, 0.5), index_public=True), 0.1),
}
losses = pytest.mark.parametrize("loss", CATALOGUE.values(), ids=CATALOGUE)
DELTAS = (1e-10, 1e-5)


@losses
def test_nodes_keep_the_laws(loss: PrivacyLoss) -> None:
    again = loss_from_json(loss.to_json())
    assert again == loss
    assert again.to_json() == loss.to_json()
    assert repr(again) == repr(loss)
    assert loss * 3 == loss + loss + loss
    assert loss * 0 == Composed(())
    uppers = []
    for delta in DELTAS:
        intervals = [(loss * count).epsilon_interval(delta) for count in (1, 4)]
        for one in intervals:
            assert 0 <= one.lower <= one.upper < math.inf
        for fewer, more in itertools.pairwise(intervals):
            assert fewer.lower <= more.upper
        assert (loss * 4).delta(intervals[1].upper) <= delta * (1 + 5e-3)
        uppers.append(intervals[1].upper)
    assert all(after <= before for before, after in itertools.pairwise(uppers))


@losses
def test_views_are_above_the_answer(loss: PrivacyLoss) -> None:
    answer = loss.epsilon_interval(1e-6)
    try:
        epsilon, mass = loss.pure()
        assert mass > 1e-6 or answer.lower <= epsilon
    except UnsupportedView:
        pass
    try:
        for order in (1.5, 4.0, 30.0):
            # Bun and Steinke 2016: the conversion by Markov's inequality.
            assert answer.lower <= loss.rdp(order) + math.log(1e6) / (order - 1)
    except UnsupportedView:
        pass


def profile(loss: PrivacyLoss, epsilon: float) -> tuple[float, float]:
    found = loss.delta_interval(epsilon)
    return found.lower, found.upper


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 3.0])
def test_mixtures_are_the_weighted_means(epsilon: float) -> None:
    parts, weights = (Gaussian(1.0), Laplace(0.7), SAMPLED), (0.2, 0.5, 0.3)
    bounds = [profile(part, epsilon) for part in parts]
    lower, upper = (sum(w * b[i] for w, b in zip(weights, bounds, strict=True)) for i in (0, 1))
    low, high = profile(Mixture(parts, weights, index_public=True), epsilon)
    assert low <= upper * (1 + 1e-12)
    assert high >= lower * (1 - 1e-12)
    assert high - low <= 1e-3 * high
    hidden = profile(Mixture(parts, weights, index_public=False), epsilon)
    assert hidden[0] == 0
    assert lower * (1 - 1e-12) <= hidden[1] <= upper * 1.002


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.3, 0.7), (0.1, 0.9 + 1e-13)])
def test_a_mass_in_a_mixture_is_not_overstated_from_below(weights: tuple[float, float]) -> None:
    loss = Mixture((ApproximateDP(1.0, 0.1), ApproximateDP(0.5, 0.1)), weights, index_public=True)
    lower, upper, tight = loss.delta_interval(2.0)
    assert tight
    assert lower <= 0.1 <= upper <= 0.1 * (1 + 1e-13)


def test_repeated_mixtures_are_binomial_sums() -> None:
    loss = Mixture((PureDP(0.0), PureDP(1.0)), (0.75, 0.25), index_public=True) * 4
    e = mpmath.e
    atoms = {1: mpmath.mpf("0.25") * e / (1 + e), 0: mpmath.mpf("0.75"), -1: mpmath.mpf("0.25") / (1 + e)}
    for epsilon in (0.5, 1.5, 3.5):
        exact = mpmath.mpf(0)
        for four in itertools.product(atoms.items(), repeat=4):
            total = sum(value for value, _ in four)
            exact += mpmath.fprod(mass for _, mass in four) * max(0, 1 - mpmath.exp(epsilon - total))
        low, high = profile(loss, epsilon)
        assert low <= exact <= high <= exact * 1.002


def test_moments_of_mixtures_are_weighted_means() -> None:
    parts = (Gaussian(1.0), Laplace(0.7))
    for order in (1.25, 3.0, 20.0):
        means = math.log(sum(0.5 * math.exp((order - 1) * part.rdp(order)) for part in parts)) / (order - 1)
        mixed = Mixture(parts, (0.5, 0.5), index_public=True).rdp(order)
        assert mixed == pytest.approx(means, rel=1e-9)
        assert mixed >= means * (1 - 1e-14)


@cases("kind", [AdaptiveChoice, Parallel])
@cases("epsilon", [0.0, 0.3, 1.0, 2.0])
def test_a_choice_is_the_worst_of_its_parts(kind: Callable[..., PrivacyLoss], epsilon: float) -> None:
    parts = (Gaussian(2.0), Laplace(0.7), PoissonSubsampled(Gaussian(0.2), 0.01))
    worst = max(part.delta_interval(epsilon).lower for part in parts)
    bound = kind(parts).delta(epsilon)
    assert worst <= bound <= max(part.delta(epsilon) for part in parts) * 1.002
    assert kind(parts[:1]).delta(epsilon) >= parts[0].delta_interval(epsilon).lower


def test_repeated_choices_hold_every_adaptive_strategy() -> None:
    first, second = PureDP(1.2), Laplace(1.4)
    both = AdaptiveChoice((first, second)) * 2
    for epsilon in (0.1, 0.8, 1.3):
        for chosen in itertools.combinations_with_replacement((first, second), 2):
            assert (chosen[0] + chosen[1]).delta_interval(epsilon).lower <= both.delta(epsilon)
    # A strategy: run first; run the one or the other, as the first answer says.
    p, epsilon = 1 / (1 + math.exp(-1.2)), 0.9
    adaptive = 0.0
    for mass, loss in ((p, 1.2), (1 - p, -1.2)):
        # The rest has to be worse than epsilon - loss; below zero it is read from the other order.
        rest = epsilon - loss
        adaptive += mass * max(hockey(part, rest) for part in (first, second))
    assert adaptive <= both.delta(epsilon)


def hockey(loss: PrivacyLoss, epsilon: float) -> float:
    """Return the exact divergence of a symmetric pair at any real epsilon."""
    if epsilon >= 0:
        return math.exp(loss.log_profile(epsilon)) * (1 - 1e-12)
    return 1 - math.exp(epsilon) + math.exp(epsilon) * math.exp(loss.log_profile(-epsilon)) * (1 - 1e-12)


def test_choices_of_what_has_no_pair_have_views() -> None:
    choice = AdaptiveChoice((ZCDP(0.1), Gaussian(3.0) * 2))
    assert choice.zcdp().rho == pytest.approx(1 / 9)
    assert (choice * 3).epsilon(1e-6) < math.inf
    with pytest.raises(UnsupportedView):
        choice.dominating_pair()


def test_post_processing_keeps_the_numbers() -> None:
    for base in (Gaussian(1.5), Laplace(2.0), ApproximateDP(0.3, 1e-8), SAMPLED):
        shown = PostProcessed(base).epsilon_interval(1e-6)
        assert shown.upper == base.epsilon_interval(1e-6).upper
        assert shown.lower == 0
        assert not shown.tight
    with pytest.raises(ParameterError, match="neither repeated nor composed"):
        PostProcessed(Gaussian(1.0) * 2)


@cases("epsilon", [0.0, 0.02, 0.3, 1.5])
@cases(("size", "population"), [(1, 3), (30, 1000), (999, 1000), (10, 10**7)])
def test_fixed_samples_meet_the_theorem(epsilon: float, size: int, population: int) -> None:
    loss = FixedSizeSampled(Gaussian(0.8, neighboring=REPLACE), size, population)
    q = mpmath.mpf(size) / population
    mu, inner = 1 / mpmath.mpf(0.8), mpmath.log(1 + (mpmath.exp(epsilon) - 1) / q)
    exact = mpmath.ncdf(mu / 2 - inner / mu) - mpmath.exp(inner) * mpmath.ncdf(-mu / 2 - inner / mu)
    assert q * exact <= loss.delta(epsilon) <= q * exact * mpmath.mpf(1.002) + 1e-25


def response(epsilon: float, bit: int) -> list[float]:
    truth = 1 / (1 + math.exp(-epsilon))
    return [truth, 1 - truth] if bit == 0 else [1 - truth, truth]


def sampled_counts(bits: list[int], size: int, epsilon: float) -> dict[tuple[int, ...], float]:
    """Return the law of the randomized responses of a uniform sample, in order of the units."""
    distribution: dict[tuple[int, ...], float] = defaultdict(float)
    sets = list(itertools.combinations(bits, size))
    for chosen in sets:
        for answer in itertools.product((0, 1), repeat=size):
            distribution[answer] += math.prod(
                response(epsilon, bit)[a] for bit, a in zip(chosen, answer, strict=True)
            ) / len(sets)
    return distribution


def test_enumerated_samples_lie_below_the_bound() -> None:
    epsilon_0, size = 1.5, 2
    loss = FixedSizeSampled(PureDP(epsilon_0, neighboring=REPLACE), size, 5)
    worst = 0.0
    for bits in ([0, 0, 0, 0, 0], [0, 1, 0, 1, 1], [0, 1, 1, 1, 1]):
        first, second = (sampled_counts([bit, *bits[1:]], size, epsilon_0) for bit in (0, 1))
        for one, other in ((first, second), (second, first)):
            for epsilon in (0.0, 0.2, 0.5):
                true = sum(max(0.0, one[key] - math.exp(epsilon) * other[key]) for key in one)
                assert true <= loss.delta(epsilon) + 1e-14
                worst = max(worst, true / loss.delta(epsilon))
            # Two runs: the product of the laws.
            keys = list(itertools.product(one, one))
            true = sum(max(0.0, one[a] * one[b] - math.exp(0.3) * other[a] * other[b]) for a, b in keys)
            assert true <= (loss * 2).delta(0.3) + 1e-14
    assert worst > 0.3


def test_everybody_is_the_base_itself() -> None:
    base = Laplace(1.0, neighboring=REPLACE)
    assert FixedSizeSampled(base, 50, 50).epsilon(1e-6) == pytest.approx(base.epsilon(1e-6), rel=1e-4)
    assert FixedSizeSampled(base, 1, 50).pure().epsilon == pytest.approx(math.log(1 + (math.e - 1) / 50))


def test_bad_parts_are_refused() -> None:
    one, other = PureDP(1.0), PureDP(1.0, neighboring=REPLACE)
    for build in (
        lambda: AdaptiveChoice((one, other)),
        lambda: Mixture((one, other), (0.5, 0.5), index_public=True),
        lambda: Parallel((other, other)),
        lambda: FixedSizeSampled(one, 1, 2),
    ):
        with pytest.raises(NeighboringMismatch):
            build()
    cases: list[tuple[Callable[[], PrivacyLoss], str]] = [
        (lambda: AdaptiveChoice(()), "losses must hold one or more"),
        (lambda: AdaptiveChoice((Composed(()),)), "losses must hold a loss"),
        (lambda: Parallel((1.0,)), "losses must hold one or more"),  # type: ignore[arg-type]
        (lambda: Mixture((one, one), (0.5, 0.4), index_public=True), "weights must add up to 1"),
        (lambda: Mixture((one, one), (1.0,), index_public=True), "weights must be as many"),
        (lambda: Mixture((one, one), (1.0, 0.0), index_public=True), "weights must be positive"),
        (lambda: Mixture((one,), (1.0,), index_public=1), "index_public must be"),  # type: ignore[arg-type]
        (lambda: FixedSizeSampled(other, 3, 2), "sample_size must be at most"),
        (lambda: FixedSizeSampled(other, 0, 2), "sample_size must be an integer"),
    ]
    for make, message in cases:
        with pytest.raises(ParameterError, match=message):
            make()


def test_orders_are_as_they_were_given() -> None:
    curve = AdaptiveChoice((Gaussian(1.0), Laplace(1.0))).rdp_curve(np.array([30.0, 2.0]))
    assert curve[0] == Gaussian(1.0).rdp(30.0)
    assert curve[1] == max(Gaussian(1.0).rdp(2.0), Laplace(1.0).rdp(2.0))
