"""Attacks, shares, curves, groups and other relations, against closed forms."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    Gaussian,
    GroupPrivacy,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PrivacyLoss,
    PureDP,
    loss_from_json,
)
from tests.cases import cases

STEP = PoissonSubsampled(Gaussian(1.0), sampling_probability=0.01)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_gaussian_trade_offs_hold_their_closed_form(mu: float) -> None:
    rates = np.array([0.0, 1e-6, 0.01, 0.5, 0.999, 1.0])
    lower, upper, tight = Gaussian(1 / mu).trade_off(rates)
    assert tight
    exact_mu = 1 / mpmath.mpf(1 / mu)
    for rate, low, high in zip(rates, lower, upper, strict=True):
        middle = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(rate)) if 0 < rate < 1 else None
        truth = mpmath.mpf(1 - rate) if middle is None else mpmath.ncdf(middle - exact_mu)
        assert low <= truth <= high
        assert high - low <= 1e-2 * max(high, 1e-12)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_pure_trade_offs_are_two_lines(rate: float) -> None:
    lower, upper, _ = PureDP(1.0).trade_off(rate)
    truth = max(1 - math.e * rate, (1 - rate) / math.e)
    assert lower <= truth <= upper
    assert lower >= truth * 0.998


def test_losses_known_by_a_bound_have_no_upper_trade_off() -> None:
    lower, upper, tight = ZCDP(0.5).trade_off(0.1)
    assert 0 < lower < 1 - 0.1 <= upper
    assert not tight


@pytest.mark.parametrize("loss", [ZCDP(0.5), Gaussian(1e9)], ids=["by a bound", "hardly any"])
@pytest.mark.parametrize("rate", [1e-20, 1e-17, 0.1, 0.3])
def test_an_upper_trade_off_is_that_of_no_information_at_most(loss: PrivacyLoss, rate: float) -> None:
    upper = loss.trade_off(rate).upper
    # As floats round it, 1 - rate may be below the truth.
    assert 1 - Fraction(rate) <= upper + Fraction(1, 10**8)
    assert upper <= min(1, (1 - rate) * (1 + 1e-15))
    if not loss.trade_off(rate).tight:
        assert upper >= 1 - Fraction(rate)


def test_risk_is_that_of_two_normal_laws() -> None:
    risk = Gaussian(1.0).risk(false_positive_rates=[0.05], prior=0.2, baseline=0.001)
    assert risk.advantage.lower <= 2 * mpmath.ncdf(0.5) - 1 <= risk.advantage.upper
    (attack,) = risk.attacks
    found = 1 - mpmath.ncdf(mpmath.sqrt(2) * mpmath.erfinv(0.9) - 1)
    assert attack.true_positive_rate.lower <= found <= attack.true_positive_rate.upper
    posterior = 0.2 * found / (0.2 * found + 0.8 * 0.05)
    assert attack.posterior.lower - 1e-12 <= posterior <= attack.posterior.upper + 1e-12
    # Accuse where the posterior is over one half: the density ratio is above 4.
    cut = math.log(4) + 0.5
    right = 0.2 * mpmath.ncdf(1 - cut) + 0.8 * mpmath.ncdf(cut)
    assert risk.accuracy.lower <= right <= risk.accuracy.upper
    blown = 1 - mpmath.ncdf(mpmath.sqrt(2) * mpmath.erfinv(1 - 0.002) - 1)
    assert risk.reconstruction.lower == 0.001
    assert blown <= risk.reconstruction.upper <= blown * 1.01
    assert "46" not in str(Gaussian(1e6).risk())
    assert len(str(risk).splitlines()) == 4


def test_shares_add_up_and_order_the_parts() -> None:
    explained = (STEP * 1000 + Laplace(2.0) + Gaussian(10.0)).explain(1e-6)
    assert math.isclose(sum(row.share for row in explained.rows), 1)
    assert [row.share for row in explained.rows] == sorted(
        (row.share for row in explained.rows), reverse=True
    )
    assert "%" in str(explained)
    halves = (PureDP(1.0) + PureDP(3.0)).explain(0.0)
    assert [row.share for row in halves.rows] == [0.75, 0.25]


@cases("delta", [1e-9, 0.01])
def test_shares_of_parts_without_a_pair_are_those_of_their_divergences(delta: float) -> None:
    """At the order that is best for their zCDP, in closed form."""
    explained = (ZCDP(0.3) + Laplace(1.0) * 3).explain(delta)
    order = 1 + math.sqrt(math.log(1 / delta) / (0.3 + 3 * Laplace(1.0).zcdp().rho))
    up, down = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    laplace = 3 * math.log(up * math.exp(order - 1) + down * math.exp(-order)) / (order - 1)
    shares = {row.part: row.share for row in explained.rows}
    total = laplace + 0.3 * order
    assert shares[repr(Laplace(1.0))] == pytest.approx(laplace / total, rel=1e-9)
    assert shares[repr(ZCDP(0.3))] == pytest.approx(0.3 * order / total, rel=1e-9)


def test_curves_fall_and_rise_as_they_should() -> None:
    loss = STEP * 500
    profile, trade, steps = (
        loss.curve("profile", points=5),
        loss.curve("trade-off", points=5),
        loss.curve("steps", delta=1e-6, points=5),
    )
    assert (np.diff(profile.upper) < 0).all()
    assert (np.diff(trade.upper) < 0).all()
    assert (np.diff(steps.upper) > 0).all()
    assert steps.upper[-1] == loss.epsilon(1e-6)
    with pytest.raises(ParameterError, match="kind must be one of"):
        loss.curve("pie")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="delta must be given"):
        loss.curve("steps")


def test_plots_return_their_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    assert (STEP * 500).plot("profile", points=5, ax=axes) is axes
    assert axes.get_xlabel() == "epsilon"


@pytest.mark.parametrize(
    ("loss", "grouped"),
    [
        (Gaussian(6.0) * 3, Gaussian(2.0) * 3),
        (Laplace(6.0), Laplace(2.0)),
        (PureDP(0.5), PureDP(1.5)),
        (ZCDP(0.5), ZCDP(4.5)),
    ],
)
def test_groups_have_closed_forms(loss: PrivacyLoss, grouped: PrivacyLoss) -> None:
    assert loss.group(3) == grouped
    assert loss.group(1) is loss


@pytest.mark.parametrize("steps", [2, 3])
def test_the_chain_is_exact_where_a_closed_form_is_known(steps: int) -> None:
    for leaf, delta in ((Gaussian(2.0), 1e-6), (Laplace(3.0), 1e-4)):
        chain = GroupPrivacy(leaf, steps, neighboring=Neighboring.ADD_REMOVE)
        exact = leaf.group(steps).epsilon_interval(delta)
        found = (chain * 1).epsilon_interval(delta)
        assert not found.tight
        assert exact.lower * (1 - 1e-12) <= found.upper <= exact.upper * (1 + 3e-3)


@pytest.mark.parametrize("steps", [2, 3])
def test_divergences_of_a_chain_bound_those_of_its_closed_form(steps: int) -> None:
    for leaf in (Gaussian(2.0), Laplace(3.0), PureDP(0.5)):
        chain = GroupPrivacy(leaf, steps, neighboring=Neighboring.ADD_REMOVE)
        for order in (1.1, 2.0, 40.0):
            assert leaf.group(steps).rdp(order) <= chain.rdp(order)
    assert GroupPrivacy(PureDP(0.5), steps, neighboring=Neighboring.ADD_REMOVE).rdp(1e6) == 0.5 * steps
    # With a part that has nothing else, it composes through them.
    mixed = GroupPrivacy(Laplace(3.0), steps, neighboring=Neighboring.ADD_REMOVE) + ZCDP(0.1)
    assert ZCDP(0.1).epsilon(1e-6) < mixed.epsilon(1e-6) < math.inf
    with pytest.raises(UnsupportedView, match="rdp view"):
        GroupPrivacy(STEP, steps, neighboring=Neighboring.ADD_REMOVE).rdp(2.0)


def test_the_chain_of_randomized_response_is_better_than_the_sum_and_not_better_than_its_corner() -> None:
    chain = GroupPrivacy(PureDP(0.3), 2, neighboring=Neighboring.ADD_REMOVE)
    # One step leads from the level p e^-0.3 to the corner's, p, and the next from there to 1 - p.
    p = 1 / (1 + mpmath.exp(mpmath.mpf(0.3)))
    level, power = p * mpmath.exp(-mpmath.mpf(0.3)), 1 - p
    for epsilon in (0.1, 0.5):
        truth = max(power - mpmath.exp(epsilon) * level, 0)
        assert truth <= chain.delta(epsilon) < PureDP(0.6).delta(epsilon)


def chained_delta(q: float, mu: float, epsilon: float) -> float:
    """Delta of an order of two subsampled steps in a row, by the curve of powers on a fine grid of levels."""
    cuts = np.linspace(-9, 12, 40_001)
    without = np.array([float(mpmath.ncdf(-c)) for c in cuts[::200]])
    power = (1 - q) * without + q * np.array([float(mpmath.ncdf(mu - c)) for c in cuts[::200]])
    twice = np.interp(power, without[::-1], power[::-1])
    return float((twice - math.exp(epsilon) * without).max())


def test_the_chain_of_a_sampled_step_is_its_power_of_its_power() -> None:
    loss = PoissonSubsampled(Gaussian(1.0), 0.2).group(2)
    for epsilon in (0.2, 0.6):
        # Interpolation of a concave curve lies below it.
        reference = chained_delta(0.2, 1.0, epsilon)
        assert reference <= loss.delta(epsilon) <= reference * 1.02


def test_groups_of_samples_grow_but_less_than_pure_sums() -> None:
    one, two = (STEP * 1000).epsilon(1e-6), (STEP * 1000).group(2).epsilon(1e-6)
    assert one < two < 4 * one
    assert ApproximateDP(0.5, 1e-6).group(2).epsilon(1e-4) <= 1.0


def test_replacing_is_taking_out_and_putting_in() -> None:
    replaced = STEP.under(Neighboring.REPLACE_ONE)
    assert replaced.neighboring is Neighboring.REPLACE_ONE
    assert loss_from_json(replaced.to_json()) == replaced
    one, both, group = ((loss * 1000).epsilon(1e-6) for loss in (STEP, replaced, STEP.group(2)))
    assert one < both < group
    assert Gaussian(2.0).under(Neighboring.REPLACE_ONE) == Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE)
    assert Gaussian(2.0).under(Neighboring.ADD_REMOVE) == Gaussian(2.0)
    for relation in (Neighboring.ZERO_OUT, Neighboring.ADD_REMOVE):
        with pytest.raises(NeighboringMismatch, match="no theorem leads"):
            PureDP(1.0, neighboring=Neighboring.REPLACE_ONE).under(relation)
    with pytest.raises(NeighboringMismatch, match="even number of steps"):
        GroupPrivacy(STEP, 3, neighboring=Neighboring.REPLACE_ONE)
