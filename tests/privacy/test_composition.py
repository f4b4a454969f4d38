"""The named composition theorems, against their own formulas at high precision."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from sfumato.errors import ParameterError
from sfumato.privacy import ApproximateDP, Gaussian, Laplace, PoissonSubsampled
from sfumato.privacy.composition import (
    advanced_composition,
    basic_composition,
    gdp_clt_approximation,
    heterogeneous_composition,
    optimal_composition,
)
from tests.cases import cases

EPSILONS = st.floats(1e-3, 3.0)
DELTAS = st.floats(1e-12, 1e-2)


@given(st.lists(st.tuples(EPSILONS, DELTAS), max_size=9))
def test_basic_composition_adds_and_rounds_up(guarantees: list[tuple[float, float]]) -> None:
    found = basic_composition(iter(guarantees))
    with mp.workdps(60):
        for total, column in zip(found, zip(*guarantees, strict=True), strict=False):
            exact = mp.fsum(map(mp.mpf, column))
            assert exact <= total <= exact * (1 + mp.mpf(2) ** -50)


@given(EPSILONS, st.floats(0.0, 1e-6), st.integers(0, 10**6), st.floats(1e-30, 0.5))
def test_advanced_composition_is_its_formula_rounded_up(
    epsilon: float, delta: float, count: int, slack: float
) -> None:
    found = advanced_composition(epsilon, delta, count, slack=slack)
    with mp.workdps(60):
        e, k = mp.mpf(epsilon), mp.mpf(count)
        exact = mp.sqrt(2 * k * mp.log(1 / mp.mpf(slack))) * e + k * e * mp.expm1(e)
        assert exact <= found.epsilon <= exact * (1 + mp.mpf(10) ** -13)
        total = min(mp.mpf(1), k * mp.mpf(delta) + mp.mpf(slack))
        assert total <= found.delta <= total * (1 + mp.mpf(10) ** -13)


def exact_optimal_delta(epsilon: float, delta: float, count: int, i: int) -> mp.mpf:
    """Kairouz, Oh, Viswanath (2015), Theorem 3.3, as printed."""
    e = mp.mpf(epsilon)
    terms = (
        mp.binomial(count, ell) * (mp.exp((count - ell) * e) - mp.exp((count - 2 * i + ell) * e))
        for ell in range(i)
    )
    inner = mp.fsum(terms) / (1 + mp.exp(e)) ** count
    return 1 - (1 - mp.mpf(delta)) ** count * (1 - inner)


@cases(
    ("epsilon", "delta", "count"),
    [(0.1, 0.0, 100), (0.5, 1e-8, 30), (1e-3, 1e-9, 3000), (2.0, 0.0, 41), (1.0, 1e-10, 1), (7.0, 0.0, 300)],
)
@cases("target", [0.3, 1e-3, 1e-6, 1e-20])
def test_optimal_composition_is_the_theorem(epsilon: float, delta: float, count: int, target: float) -> None:
    found = optimal_composition(epsilon, delta, count, target_delta=target)
    with mp.workdps(80):
        if math.isinf(found.epsilon):
            assert exact_optimal_delta(epsilon, delta, count, 0) > target
            return
        i = round((count - found.epsilon / epsilon) / 2)
        exact = exact_optimal_delta(epsilon, delta, count, i)
        assert found.epsilon >= mp.mpf(epsilon) * (count - 2 * i)
        assert exact <= found.delta <= min(exact * (1 + mp.mpf(10) ** -8), target)
        # The next smaller epsilon does not meet the target.
        assert 2 * i + 2 > count or exact_optimal_delta(epsilon, delta, count, i + 1) > target
    assert (ApproximateDP(epsilon, delta) * count).epsilon(target) <= found.epsilon


def test_optimal_composition_is_below_the_others() -> None:
    optimal = optimal_composition(0.1, 0.0, 1000, target_delta=1e-6).epsilon
    assert optimal < advanced_composition(0.1, 0.0, 1000, slack=1e-6).epsilon
    assert optimal < basic_composition([(0.1, 0.0)] * 1000).epsilon
    assert optimal_composition(0.0, 0.0, 10, target_delta=0.0) == (0.0, 0.0)


@pytest.mark.parametrize("target", [0.05, 1e-3, 1e-6])
def test_heterogeneous_composition_holds_the_optimum(target: float) -> None:
    guarantees = [(0.1, 0.0), (0.35, 1e-7), (0.2, 0.0), (0.8, 2e-7), (0.05, 0.0), (0.5, 0.0), (0.3, 0.0)]
    lower, upper, tight = heterogeneous_composition(iter(guarantees), target_delta=target)
    assert tight
    assert upper <= lower * 1.002

    def delta(epsilon: float) -> mp.mpf:
        """The sum over all subsets of Murtagh and Vadhan (2016), Theorem 1.5."""
        total = mp.mpf(0)
        epsilons = [mp.mpf(e) for e, _ in guarantees]
        for inside in itertools.product((0, 1), repeat=len(epsilons)):
            this = mp.fsum(e for e, chosen in zip(epsilons, inside, strict=True) if chosen)
            other = mp.fsum(epsilons) - this
            total += max(mp.mpf(0), mp.exp(this) - mp.exp(mp.mpf(epsilon)) * mp.exp(other))
        product = mp.fprod(1 + mp.exp(e) for e in epsilons)
        selected = mp.fprod(1 - mp.mpf(d) for _, d in guarantees)
        return 1 - selected * (1 - total / product)

    with mp.workdps(40):
        assert delta(upper) <= target
        assert delta(lower * (1 - 1e-9)) >= target * (1 - mp.mpf(10) ** -9)


def test_the_limit_is_exact_for_gaussians_and_too_low_elsewhere() -> None:
    assert gdp_clt_approximation(Gaussian(20.0) * 100) == pytest.approx(0.5, rel=1e-5)
    many = gdp_clt_approximation(PoissonSubsampled(Gaussian(1.0), 0.01) * 10_000)
    # q sqrt(T (e^(1/sigma^2) - 1)) of Bu, Dong, Long, Su (2020), which is the limit as q falls.
    assert many == pytest.approx(0.01 * 100 * math.sqrt(math.expm1(1.0)), rel=0.03)
    few = gdp_clt_approximation(Laplace(1.0))
    assert few < Laplace(1.0).gdp().mu
    assert "NOT a bound" in (gdp_clt_approximation.__doc__ or "")


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="epsilon must be non-negative"):
        basic_composition([(-1.0, 0.0)])
    with pytest.raises(ParameterError, match=r"delta must be in \[0, 1\)"):
        advanced_composition(1.0, 1.0, 2, slack=1e-6)
    with pytest.raises(ParameterError, match="slack must be strictly"):
        advanced_composition(1.0, 0.0, 2, slack=0.0)
    with pytest.raises(ParameterError, match="count must be an integer"):
        optimal_composition(1.0, 0.0, 0, target_delta=1e-6)
    with pytest.raises(ParameterError, match="count must be at most"):
        optimal_composition(1.0, 0.0, 10**9, target_delta=1e-6)
    with pytest.raises(ParameterError, match="loss must have no mass of infinite loss"):
        gdp_clt_approximation(ApproximateDP(1.0, 1e-6))
    with pytest.raises(ParameterError, match="loss must be a PrivacyLoss"):
        gdp_clt_approximation(1.0)  # type: ignore[arg-type]
