"""Closed forms and draws over all prices, against enumeration."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.games.auctions import price_curve
from sfumato.games.auctions.price_curve import STEPS, PriceCurve, bid_steps
from sfumato.numerics import random_source
from tests.chance import accepts_only, frequencies

from .few_prices import FEW, enumerated, use_few_prices


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 100_000), Fraction(3)])
def test_closed_forms_are_sums_over_all_prices(monkeypatch: pytest.MonkeyPatch, rate: Fraction) -> None:
    use_few_prices(monkeypatch)
    curve = PriceCurve.of_bids(np.array([0, 5, 5, 17, 40, 63, 64]), rate)
    exact = enumerated(curve)
    prices = np.arange(1, FEW + 1)
    piece = np.searchsorted(curve.ends, prices)
    shares = np.bincount(piece, exact, minlength=len(curve.ends))
    assert curve.shares() == pytest.approx(shares, rel=1e-11)
    means = np.bincount(piece, exact * prices, minlength=len(curve.ends)) / shares
    assert curve.means()[shares > 0] == pytest.approx(means[shares > 0], rel=1e-11)
    revenue = curve.intercepts[piece] + curve.slopes[piece] * prices
    assert curve.expected_revenue() == pytest.approx(float(exact @ revenue), rel=1e-11)
    total = mpmath.fsum(mpmath.exp(mpmath.mpf(rate.numerator) / rate.denominator * int(q)) for q in revenue)
    assert curve.log_total() == pytest.approx(float(mpmath.log(total)), rel=1e-13)


def test_means_on_long_pieces_against_mpmath() -> None:
    mpmath.mp.dps = 60
    ends = np.array([STEPS // 3, STEPS - 5, STEPS])
    for rate in (Fraction(1, 10**13), Fraction(1, 10**11), Fraction(1, 2)):
        curve = PriceCurve.of_pieces(ends, np.array([9, 4, 0]), np.array([7, 2, 1]), rate)
        for start, end, slope, mean in zip(
            curve.starts.tolist(), ends.tolist(), curve.slopes.tolist(), curve.means().tolist(), strict=True
        ):
            theta = mpmath.mpf(rate.numerator) / rate.denominator * slope
            length = end - start
            distance = 1 / mpmath.expm1(theta) - length / mpmath.expm1(length * theta)
            assert mean == pytest.approx(float(end - distance), rel=1e-14)


@pytest.mark.parametrize("rate", [Fraction(1, 40), Fraction(1, 2)])
def test_draws_have_the_distribution(monkeypatch: pytest.MonkeyPatch, rate: Fraction) -> None:
    use_few_prices(monkeypatch)
    monkeypatch.setattr(price_curve, "_FAR", 3.0)  # so that what is far below is drawn as well
    curve = PriceCurve.of_bids(np.array([9, 30, 31, 60]), rate)
    exact, size = enumerated(curve), 40_000
    counts = np.bincount(curve.draw(size, random_source(5)), minlength=FEW + 1)[1:]
    slower = enumerated(PriceCurve.of_bids(np.array([9, 30, 31, 60]), rate * Fraction(3, 4)))
    accepts_only(
        frequencies(dict(enumerate(counts.tolist()))),
        dict(enumerate(exact)),
        a_lower_rate=dict(enumerate(slower)),
    )


def test_a_draw_lies_where_weights_are() -> None:
    bids = np.full(1000, STEPS // 2)
    drawn = PriceCurve.of_bids(bids, Fraction(10, STEPS)).draw(200, random_source(2))
    assert drawn.min() > STEPS // 2 - STEPS // 100
    assert drawn.max() <= STEPS // 2
    assert len(np.unique(drawn)) > 150


def test_pieces_are_cut_where_weights_fall_by_a_factor_e_and_only_where_they_may_be_drawn() -> None:
    steep = PriceCurve.of_bids(np.full(1000, STEPS // 2), Fraction(10_000, STEPS))
    starts, ends, slopes, _ = steep._cut()
    assert 70 <= starts.size <= 75
    flat = PriceCurve.of_bids(np.full(1000, STEPS // 2), Fraction(3, 100 * STEPS))
    for curve, least in ((steep, STEPS // 2 - STEPS // 10**6 * 69), (flat, -1)):
        starts, ends, slopes, _ = curve._cut()
        assert (ends - starts).sum() == STEPS
        near = starts > least
        assert (slopes * (ends - starts))[near].max() * float(curve.rate) <= 1
    few = PriceCurve.of_pieces(np.array([64]), np.array([0]), np.array([1]), Fraction(2, 5))
    assert (few._cut()[1] - few._cut()[0]).max() == 2  # three prices would fall by exp(1.2)


def test_no_bids_and_bids_of_nothing_leave_all_prices_alike() -> None:
    for bids in (np.zeros(0, np.int64), np.zeros(3, np.int64)):
        curve = PriceCurve.of_bids(bids, Fraction(1, STEPS))
        assert curve.means().tolist() == [(STEPS + 1) / 2]
        assert curve.expected_revenue() == 0


def test_bids_follow_one_fixed_rule() -> None:
    bids = [np.nan, -1.0, np.inf, 0.0, 10.0, 11.0, 5.0, 10 / STEPS * 1.5]
    assert bid_steps("bids", bids, 10.0).tolist() == [0, 0, STEPS, 0, STEPS, STEPS, STEPS // 2, 1]


def test_a_bid_beyond_all_bounds_gives_no_warning() -> None:
    # Warnings are errors in these tests: one would tell that somebody bid so much.
    assert bid_steps("bids", [1e308, -1e308, 1.7e308], 0.5).tolist() == [STEPS, 0, STEPS]
