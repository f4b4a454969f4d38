"""Price mechanisms on 64 prices instead of 2^36, so that all of them can be enumerated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.games.auctions import (
    attribute_auction,
    digital_goods,
    posted_price,
    price_curve,
    reserve_price,
)
from sfumato.games.auctions.price_curve import PriceCurve

FEW = 64


def use_few_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (attribute_auction, digital_goods, posted_price, price_curve, reserve_price):
        monkeypatch.setattr(module, "STEPS", FEW)


def enumerated(curve: PriceCurve) -> NDArray[np.float64]:
    """Return the probability of each of the prices 1 to 64."""
    prices = np.arange(1, FEW + 1)
    at = np.searchsorted(curve.ends, prices)
    assert (curve.starts[at] < prices).all()
    revenue = curve.intercepts[at] + curve.slopes[at] * prices
    weights = np.exp(float(curve.rate) * (revenue - revenue.max()))
    return np.asarray(weights / weights.sum())


def probabilities(mechanism: Any, bids: Any) -> NDArray[np.float64]:
    return enumerated(mechanism.curve(bids))
