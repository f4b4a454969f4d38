"""What is declared, post-processed or read off a pair is never less than it should be, part by part."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

import mpmath
import numpy as np
import pytest

from sfumato.errors import UnsupportedView
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    DiscretePair,
    Gaussian,
    GaussianDP,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PostProcessed,
    PrivacyLoss,
    Profile,
    PureDP,
    RDPCurve,
    TradeOff,
    pure_to_gdp,
    pure_to_zcdp,
)
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.pairs.bins import Bins, Points
from sfumato.privacy.pairs.pair import UncutPair
from tests.cases import cases

mpmath.mp.dps = 40
ORDERS = np.array([1.5, 2.0, 8.0, 100.0])
THIRD = cast("float", Fraction(1, 3))


@pytest.mark.parametrize("noise", [0.5, 3.0])
def test_divergences_of_normal_pairs_are_exact(noise: float) -> None:
    bounds, exact = renyi(Gaussian(noise).dominating_pair(), ORDERS), ORDERS / (2 * noise**2)
    assert (bounds >= exact * (1 - 1e-15)).all()
    assert (bounds <= exact * (1 + 1e-12)).all()


def test_divergences_are_those_of_the_worse_order() -> None:
    p, q = [0.5, 0.5], [0.99, 0.01]
    both = [math.log(sum(a**2 / b for a, b in zip(x, y, strict=True))) for x, y in ((p, q), (q, p))]
    for one, other in ((p, q), (q, p)):
        assert max(both) <= DiscretePair(one, other).rdp(2.0) <= max(both) * (1 + 1e-9)


class Faint(UncutPair):
    """A great loss of so little mass that no float holds it."""

    __slots__ = ()

    @property
    def supremum(self) -> float:
        """That of the loss."""
        return 1000.0

    def bins(self, cuts: np.ndarray[Any, Any], *, swapped: bool) -> Bins:
        """Return two bins, and an empty one between them."""
        del cuts, swapped
        nowhere = np.zeros(3)
        points = Points(np.array([0.0, -1e4, -800.0]), np.array([0.0, 500.0, 1000.0]), nowhere, nowhere)
        return Bins(points, np.array([-1e-3, 1e-3, 999.0, 1000.1]), np.zeros(4))


def test_masses_below_all_floats_count_at_great_orders() -> None:
    # The loss of 1000 has the mass exp(-800): the moment of order 2 is exp(200), and the first bin's.
    assert 200.0 <= renyi(Faint(), np.array([2.0]))[0] <= 200.2


@cases(
    "base",
    [PureDP(0.7), Gaussian(2.0), ApproximateDP(0.3, 1e-8), ZCDP(0.2), PoissonSubsampled(Laplace(1.0), 0.1)],
)
def test_post_processing_has_the_views_of_its_mechanism(base: PrivacyLoss) -> None:
    shown = PostProcessed(base)
    assert shown.numeric == base.numeric
    assert shown.neighboring is base.neighboring
    for view in ("pure", "zcdp", "gdp", "log_profile", "rdp_curve"):
        arguments: list[object] = {"log_profile": [0.1], "rdp_curve": [ORDERS]}.get(view, [])  # type: ignore[assignment]
        try:
            expected = getattr(base, view)(*arguments)
        except UnsupportedView:
            with pytest.raises(UnsupportedView):
                getattr(shown, view)(*arguments)
            continue
        assert np.array_equal(getattr(shown, view)(*arguments), expected)


def test_declared_numbers_are_rounded_to_the_private_side() -> None:
    profile, curve = Profile([THIRD], [THIRD]), RDPCurve([THIRD * 9], [THIRD])
    for value in (profile.epsilons[0], profile.deltas[0], curve.epsilons[0]):
        assert Fraction(value) > Fraction(1, 3)
    assert Fraction(RDPCurve([cast("float", Fraction(10, 3))], [1.0]).orders[0]) <= Fraction(10, 3)
    for loss in (ApproximateDP(THIRD, THIRD), PureDP(THIRD)):
        assert Fraction(loss.pure().epsilon) > Fraction(1, 3)
    assert Fraction(GaussianDP(THIRD).mu) > Fraction(1, 3)
    assert Fraction(ZCDP(THIRD).rho) > Fraction(1, 3)


@cases("value", [np.longdouble(x) for x in ("0.3", "0.10000000000000000642", "1e-330")])
def test_longer_floats_are_rounded_to_the_private_side(value: np.longdouble) -> None:
    exact, number = Fraction(*value.as_integer_ratio()), cast("float", value)
    assert Fraction(PureDP(number).pure().epsilon) >= exact
    assert Fraction(ApproximateDP(1.0, number).pure().delta) >= exact
    assert Fraction(Gaussian(number).noise_multiplier) <= exact


def test_a_curve_that_begins_below_one_leaves_a_mass() -> None:
    loss = TradeOff([0, 0.5, 1], [0.9, 0.25, 0])
    assert loss.delta(50.0) >= 0.1 * (1 - 1e-12)
    assert loss.split()[0] >= 0.1 * (1 - 1e-12)
    assert loss.epsilon(0.05) == math.inf


def test_masses_are_kept_beside_what_is_left() -> None:
    # Without the first outcome the masses 0.6 and 0.3 are 2/3 and 1/3: the greatest loss grows.
    loss, inner = DiscretePair([0.1, 0.6, 0.3], [0.0, 0.1, 0.9]), math.log(0.6 / 0.9 / 0.1)
    assert loss.zcdp() == pytest.approx((pure_to_zcdp(inner), 0.1), rel=1e-9)
    assert loss.gdp() == pytest.approx((pure_to_gdp(inner), 0.1), rel=1e-9)
    assert np.isinf(loss.rdp_curve(ORDERS)).all()
    approximate = ApproximateDP(0.3, 1e-8)
    assert approximate.zcdp() == (pure_to_zcdp(0.3), 1e-8)
    assert approximate.gdp() == (pure_to_gdp(0.3), 1e-8)
    assert approximate.pure() == (0.3, 1e-8)


def test_zcdp_bounds_each_order_by_rho_times_it() -> None:
    assert ZCDP(0.3).rdp_curve(ORDERS) == pytest.approx(0.3 * ORDERS, rel=1e-12)
    # Bun and Steinke 2016, Proposition 1.3, at the best order, is above the better conversion.
    assert ZCDP(0.3).epsilon(1e-6) > 0.3 + math.sqrt(2 * 0.3 * math.log(1e6)) * 0.8


@pytest.mark.parametrize("size", [2, 5])
def test_groups_have_the_loss_of_all_their_steps(size: int) -> None:
    assert PureDP(0.25).group(size).pure().epsilon == 0.25 * size
    assert GaussianDP(0.5).group(size).gdp().mu == 0.5 * size
    assert ZCDP(0.1).group(size).zcdp().rho == pytest.approx(0.1 * size**2)
    assert ZCDP(0.1, neighboring=Neighboring.ZERO_OUT).under(
        Neighboring.REPLACE_ONE
    ).zcdp().rho == pytest.approx(0.4)
    assert PureDP(0.25).under(Neighboring.REPLACE_ONE).pure().epsilon == 0.5
    assert GaussianDP(0.5).under(Neighboring.REPLACE_ONE).gdp().mu == 1.0
