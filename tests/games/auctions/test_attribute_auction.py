"""Attribute auctions: the joint distribution of split and prices, its epsilon, its optimum."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import AttributeAuction, DigitalGoods
from sfumato.games.auctions.price_curve import STEPS

from .few_prices import enumerated, use_few_prices

ATTRIBUTES: dict[str, list[Any]] = {"region": ["n", "s", "n", "s"], "age": [1, 1, 1, 2]}


def joint(auction: AttributeAuction, bids: Any) -> dict[Any, np.ndarray]:
    """Return the log-probabilities of the prices of each split, as an array over all markets."""
    found = {}
    for name, curves in auction._splits(bids).items():
        logs = math.log(auction.probabilities(bids)[name])
        parts = [np.log(enumerated(curve)) for curve in curves.values()]
        found[name] = logs + (parts[0] if len(parts) == 1 else parts[0][:, None] + parts[1][None])
    return found


def test_the_joint_choice_is_of_range_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    use_few_prices(monkeypatch)
    auction = AttributeAuction(upper=1, epsilon=0.9, attributes=ATTRIBUTES)
    rows = {bid: joint(auction, [bid, 0.5, 0.25, 1.0]) for bid in (0.0, 0.25, 0.75, 1.0)}
    widest = 0.0
    for first, second in product(rows.values(), repeat=2):
        losses = np.concatenate([(first[name] - second[name]).ravel() for name in first])
        assert np.abs(losses).max() <= 0.9
        widest = max(widest, losses.max() - losses.min())
    assert 0.85 < widest <= 0.9
    assert sum(np.exp(part).sum() for part in rows[1.0].values()) == pytest.approx(1, rel=1e-9)


def test_the_error_of_the_draw_is_that_of_the_notes() -> None:
    auction = AttributeAuction(upper=1, epsilon=3, attributes=ATTRIBUTES)
    assert auction.error == Fraction(16 + 2 + 3 * 4, 1 << 40)
    assert auction.rate * STEPS == 3 - 8 * auction.error
    assert list(auction.probabilities([0.5] * 4)) == [None, "region", "age"]


def test_each_split_weighs_the_mean_over_its_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    use_few_prices(monkeypatch)
    auction = AttributeAuction(upper=1, epsilon=3, attributes=ATTRIBUTES, whole=False)
    bids = np.array([1.0, 0.5, 0.75, 0.25])
    means = {}
    prices = np.arange(1, 65) / 64
    for name, column in ATTRIBUTES.items():
        means[name] = 1.0
        for label in set(column):
            own = bids[[value == label for value in column]]
            means[name] *= np.exp(3 * prices * (own[None] >= prices[:, None]).sum(axis=1)).mean()
    total = sum(means.values())
    assert auction.probabilities(bids) == pytest.approx({n: m / total for n, m in means.items()}, rel=1e-8)


def test_one_market_is_digital_goods() -> None:
    bids = np.random.default_rng(1).uniform(0, 1, 100)
    auction = AttributeAuction(upper=1, epsilon=1, attributes={"all": ["x"] * 100}, whole=False)
    whole = DigitalGoods(upper=1, epsilon=1)
    assert auction.expected_revenue(bids) == pytest.approx(whole.expected_revenue(bids), rel=1e-6)
    best, revenue = auction.optimum(bids)
    assert revenue == whole.optimum(bids).revenue
    assert best.prices == {"x": whole.optimum(bids).price}


def test_draws_take_the_split_that_pays() -> None:
    rng = np.random.default_rng(1)
    region = rng.integers(2, size=400)
    bids = rng.uniform(0, 0.5, 400) + 0.5 * region
    auction = AttributeAuction(upper=1, epsilon=2, attributes={"region": region, "age": region[::-1]})
    release = auction.release(bids, rng=4)
    assert release.value.attribute == "region"
    assert set(release.value.prices) == {0, 1}
    assert release.value.prices[0] < 0.45 < release.value.prices[1]
    assert auction.expected_revenue(bids) <= auction.optimum(bids)[1]
    assert auction.probabilities(bids)["region"] > 0.99


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attributes": {}}, "attributes must be a mapping that is not empty"),
        ({"attributes": {"a": [1, 2], None: [1, 2]}}, "attributes must have names, but one is no text"),
        ({"upper": 2.0**901}, r"upper must be from 2\*\*-900 to 2\*\*900"),
        ({"attributes": {"a": [1], "b": [1, 2]}}, "attributes must have one length"),
        ({"attributes": {"a": 3}}, "attributes must hold sequences"),
        ({"epsilon": 1e-10}, "epsilon must exceed the error of the draw"),
        ({"epsilon": 2**21 + 1}, r"epsilon must be at most 2\*\*22 over the number of bidders"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"upper": 1, "epsilon": 1, "attributes": {"a": [1, 2]}} | change
    with pytest.raises(ParameterError, match=message):
        AttributeAuction(**given)


def test_there_is_one_bid_for_each_bidder() -> None:
    auction = AttributeAuction(upper=1, epsilon=1, attributes={"a": [1, 2]})
    with pytest.raises(ParameterError, match="bids must be one for each bidder"):
        auction.release([0.5])
