"""Games: mechanisms for agents who may lie, private by theorem and truthful by what privacy leaves to gain.

A `Game` says who may be of which type and what each alternative is worth to them; a `SocialChoice` draws an
alternative for the reports.

>>> from sfumato.games import ExponentialChoice, Game
>>> game = Game(types="ab", alternatives=("left", "right"), utilities=[[0, 1], [1, 0]], agents=12)
>>> ExponentialChoice(game=game, epsilon=0.5).privacy_loss.epsilon()
0.5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.games.auctions.attribute_auction import AttributeAuction, MarketPrices
    from sfumato.games.auctions.digital_goods import BestBid, DigitalGoods, OptimalPrice
    from sfumato.games.auctions.posted_price import PostedPrice
    from sfumato.games.auctions.reserve_price import ReservePrice
    from sfumato.games.auctions.revenue_guarantee import RevenueGuarantee, revenue_guarantee
    from sfumato.games.auctions.vickrey import ClarkePayments, UniformPrice, multi_unit_vickrey, vcg
    from sfumato.games.exponential_choice import ExponentialChoice
    from sfumato.games.game import Game
    from sfumato.games.incentives.largest_gain import Misreport, Regret, regret
    from sfumato.games.incentives.truthfulness_bound import TruthfulnessBound, truthfulness
    from sfumato.games.outcome import Outcome
    from sfumato.games.social_choice import Commitment, SocialChoice
    from sfumato.games.truthful.facility_location import (
        facility_location,
        price_list,
        price_scores,
        tree_distances,
    )
    from sfumato.games.truthful.gap_mechanism import GapMechanism, LotteryProbabilities

__all__ = [
    "AttributeAuction",
    "BestBid",
    "ClarkePayments",
    "Commitment",
    "DigitalGoods",
    "ExponentialChoice",
    "Game",
    "GapMechanism",
    "LotteryProbabilities",
    "MarketPrices",
    "Misreport",
    "OptimalPrice",
    "Outcome",
    "PostedPrice",
    "Regret",
    "ReservePrice",
    "RevenueGuarantee",
    "SocialChoice",
    "TruthfulnessBound",
    "UniformPrice",
    "facility_location",
    "multi_unit_vickrey",
    "price_list",
    "price_scores",
    "regret",
    "revenue_guarantee",
    "tree_distances",
    "truthfulness",
    "vcg",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AttributeAuction": "sfumato.games.auctions.attribute_auction",
        "BestBid": "sfumato.games.auctions.digital_goods",
        "ClarkePayments": "sfumato.games.auctions.vickrey",
        "Commitment": "sfumato.games.social_choice",
        "DigitalGoods": "sfumato.games.auctions.digital_goods",
        "ExponentialChoice": "sfumato.games.exponential_choice",
        "Game": "sfumato.games.game",
        "GapMechanism": "sfumato.games.truthful.gap_mechanism",
        "LotteryProbabilities": "sfumato.games.truthful.gap_mechanism",
        "MarketPrices": "sfumato.games.auctions.attribute_auction",
        "Misreport": "sfumato.games.incentives.largest_gain",
        "OptimalPrice": "sfumato.games.auctions.digital_goods",
        "Outcome": "sfumato.games.outcome",
        "PostedPrice": "sfumato.games.auctions.posted_price",
        "Regret": "sfumato.games.incentives.largest_gain",
        "ReservePrice": "sfumato.games.auctions.reserve_price",
        "RevenueGuarantee": "sfumato.games.auctions.revenue_guarantee",
        "SocialChoice": "sfumato.games.social_choice",
        "TruthfulnessBound": "sfumato.games.incentives.truthfulness_bound",
        "UniformPrice": "sfumato.games.auctions.vickrey",
        "facility_location": "sfumato.games.truthful.facility_location",
        "multi_unit_vickrey": "sfumato.games.auctions.vickrey",
        "price_list": "sfumato.games.truthful.facility_location",
        "price_scores": "sfumato.games.truthful.facility_location",
        "regret": "sfumato.games.incentives.largest_gain",
        "revenue_guarantee": "sfumato.games.auctions.revenue_guarantee",
        "tree_distances": "sfumato.games.truthful.facility_location",
        "truthfulness": "sfumato.games.incentives.truthfulness_bound",
        "vcg": "sfumato.games.auctions.vickrey",
    },
)
