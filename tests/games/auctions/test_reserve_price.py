"""A reserve learned from past auctions: revenue by enumeration, and its epsilon."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import ReservePrice
from sfumato.games.auctions import reserve_price

from .few_prices import FEW, probabilities, use_few_prices


def earned(past: np.ndarray, reserve: float) -> float:
    total = 0.0
    for row in past:
        bids = sorted(np.nan_to_num(row, nan=0.0))
        if bids[-1] >= reserve:
            total += max(reserve, bids[-2] if len(bids) > 1 else 0.0)
    return total


@pytest.mark.parametrize("bidders", [1, 2, 4])
def test_revenue_is_that_of_past_auctions(monkeypatch: pytest.MonkeyPatch, bidders: int) -> None:
    use_few_prices(monkeypatch)
    rng = np.random.default_rng(bidders)
    past = rng.integers(0, FEW + 1, (7, bidders)) / FEW
    past[0, 0] = np.nan
    curve = ReservePrice(upper=1, epsilon=1).curve(past)
    for price in range(1, FEW + 1):
        at = int(np.searchsorted(curve.ends, price))
        revenue = curve.intercepts[at] + curve.slopes[at] * price
        assert revenue / FEW == pytest.approx(earned(past, price / FEW))


def test_the_epsilon_is_that_of_moves_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    use_few_prices(monkeypatch)
    reserve = ReservePrice(upper=1, epsilon=0.8)
    rows = list(product([0.0, 0.5, 62 / 64, 1.0], repeat=2))
    other = [[0.3, 0.6]]
    found = [np.log(probabilities(reserve, [[*row], *other])) for row in rows]
    apart = [first - second for first in found for second in found]
    widest = max(float(loss.max() - loss.min()) for loss in apart)
    assert widest <= 0.8
    assert widest > 0.75  # with weights as of digital goods it would be 1.5
    assert max(float(np.abs(loss).max()) for loss in apart) <= 0.8


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for bids in ([0.5, 0.5], [["a", "b"]], [[None, 0.5]], np.zeros((2, 0)), [[True, False]]):
        with pytest.raises(ParameterError, match="bids must be numbers, with an axis of auctions"):
            ReservePrice(upper=1, epsilon=1).release(bids)
    assert 0 < ReservePrice(upper=1, epsilon=1).release(np.zeros((0, 2)), rng=1).value <= 1
    monkeypatch.setattr(reserve_price, "MOST_BIDS", 3)
    assert len(ReservePrice(upper=1, epsilon=1).curve(np.full((3, 2), 0.5)).ends) == 2
    with pytest.raises(ParameterError, match="bids must be of at most 3 auctions"):
        ReservePrice(upper=1, epsilon=1).curve(np.full((4, 2), 0.5))
