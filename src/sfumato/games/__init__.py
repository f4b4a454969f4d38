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
    from sfumato.games.curves.gap_curve import GapCurve, gap_curve
    from sfumato.games.curves.regret_curve import RegretCurve, regret_curve
    from sfumato.games.curves.revenue_curve import RevenueCurve, revenue_curve
    from sfumato.games.exponential_choice import ExponentialChoice
    from sfumato.games.game import Game
    from sfumato.games.incentives.largest_gain import Misreport, Regret, regret
    from sfumato.games.incentives.truthfulness_bound import TruthfulnessBound, truthfulness
    from sfumato.games.joint.action_counter import ActionCounter
    from sfumato.games.joint.allocation import AllocationGuarantee, PrivateAllocation
    from sfumato.games.joint.billboard import Billboard
    from sfumato.games.joint.congestion_game import CongestionGame, PlayRegret
    from sfumato.games.joint.distortion import distortion
    from sfumato.games.joint.enumeration import JointPrivacyCheck, check_joint_privacy
    from sfumato.games.joint.joint_mechanism import JointMechanism, JointRelease
    from sfumato.games.joint.mediator import Advice, Mediator
    from sfumato.games.joint.no_regret import NoRegretPlay
    from sfumato.games.joint.road_graphs import RoadGraph, road_graph
    from sfumato.games.joint.roads import EquilibriumGap, RoadNetwork
    from sfumato.games.joint.routing import PrivateRouting
    from sfumato.games.joint.school_choice import SchoolChoice
    from sfumato.games.joint.supply_condition import SupplyCondition
    from sfumato.games.joint.turns import TurnDynamics
    from sfumato.games.joint.valuations import Complements, Valuation
    from sfumato.games.joint.voting import PositionalVote, PrivateDictator, VotingRule
    from sfumato.games.joint.welfare import optimal_welfare, welfare_ceiling
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
    "ActionCounter",
    "Advice",
    "AllocationGuarantee",
    "AttributeAuction",
    "BestBid",
    "Billboard",
    "ClarkePayments",
    "Commitment",
    "Complements",
    "CongestionGame",
    "DigitalGoods",
    "EquilibriumGap",
    "ExponentialChoice",
    "Game",
    "GapCurve",
    "GapMechanism",
    "JointMechanism",
    "JointPrivacyCheck",
    "JointRelease",
    "LotteryProbabilities",
    "MarketPrices",
    "Mediator",
    "Misreport",
    "NoRegretPlay",
    "OptimalPrice",
    "Outcome",
    "PlayRegret",
    "PositionalVote",
    "PostedPrice",
    "PrivateAllocation",
    "PrivateDictator",
    "PrivateRouting",
    "Regret",
    "RegretCurve",
    "ReservePrice",
    "RevenueCurve",
    "RevenueGuarantee",
    "RoadGraph",
    "RoadNetwork",
    "SchoolChoice",
    "SocialChoice",
    "SupplyCondition",
    "TruthfulnessBound",
    "TurnDynamics",
    "UniformPrice",
    "Valuation",
    "VotingRule",
    "check_joint_privacy",
    "distortion",
    "facility_location",
    "gap_curve",
    "multi_unit_vickrey",
    "optimal_welfare",
    "price_list",
    "price_scores",
    "regret",
    "regret_curve",
    "revenue_curve",
    "revenue_guarantee",
    "road_graph",
    "tree_distances",
    "truthfulness",
    "vcg",
    "welfare_ceiling",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ActionCounter": "sfumato.games.joint.action_counter",
        "Advice": "sfumato.games.joint.mediator",
        "AllocationGuarantee": "sfumato.games.joint.allocation",
        "AttributeAuction": "sfumato.games.auctions.attribute_auction",
        "BestBid": "sfumato.games.auctions.digital_goods",
        "Billboard": "sfumato.games.joint.billboard",
        "ClarkePayments": "sfumato.games.auctions.vickrey",
        "Commitment": "sfumato.games.social_choice",
        "Complements": "sfumato.games.joint.valuations",
        "CongestionGame": "sfumato.games.joint.congestion_game",
        "DigitalGoods": "sfumato.games.auctions.digital_goods",
        "EquilibriumGap": "sfumato.games.joint.roads",
        "ExponentialChoice": "sfumato.games.exponential_choice",
        "Game": "sfumato.games.game",
        "GapCurve": "sfumato.games.curves.gap_curve",
        "GapMechanism": "sfumato.games.truthful.gap_mechanism",
        "JointMechanism": "sfumato.games.joint.joint_mechanism",
        "JointPrivacyCheck": "sfumato.games.joint.enumeration",
        "JointRelease": "sfumato.games.joint.joint_mechanism",
        "LotteryProbabilities": "sfumato.games.truthful.gap_mechanism",
        "MarketPrices": "sfumato.games.auctions.attribute_auction",
        "Mediator": "sfumato.games.joint.mediator",
        "Misreport": "sfumato.games.incentives.largest_gain",
        "NoRegretPlay": "sfumato.games.joint.no_regret",
        "OptimalPrice": "sfumato.games.auctions.digital_goods",
        "Outcome": "sfumato.games.outcome",
        "PlayRegret": "sfumato.games.joint.congestion_game",
        "PositionalVote": "sfumato.games.joint.voting",
        "PostedPrice": "sfumato.games.auctions.posted_price",
        "PrivateAllocation": "sfumato.games.joint.allocation",
        "PrivateDictator": "sfumato.games.joint.voting",
        "PrivateRouting": "sfumato.games.joint.routing",
        "Regret": "sfumato.games.incentives.largest_gain",
        "RegretCurve": "sfumato.games.curves.regret_curve",
        "ReservePrice": "sfumato.games.auctions.reserve_price",
        "RevenueCurve": "sfumato.games.curves.revenue_curve",
        "RevenueGuarantee": "sfumato.games.auctions.revenue_guarantee",
        "RoadGraph": "sfumato.games.joint.road_graphs",
        "RoadNetwork": "sfumato.games.joint.roads",
        "SchoolChoice": "sfumato.games.joint.school_choice",
        "SocialChoice": "sfumato.games.social_choice",
        "SupplyCondition": "sfumato.games.joint.supply_condition",
        "TruthfulnessBound": "sfumato.games.incentives.truthfulness_bound",
        "TurnDynamics": "sfumato.games.joint.turns",
        "UniformPrice": "sfumato.games.auctions.vickrey",
        "Valuation": "sfumato.games.joint.valuations",
        "VotingRule": "sfumato.games.joint.voting",
        "check_joint_privacy": "sfumato.games.joint.enumeration",
        "distortion": "sfumato.games.joint.distortion",
        "facility_location": "sfumato.games.truthful.facility_location",
        "gap_curve": "sfumato.games.curves.gap_curve",
        "multi_unit_vickrey": "sfumato.games.auctions.vickrey",
        "optimal_welfare": "sfumato.games.joint.welfare",
        "price_list": "sfumato.games.truthful.facility_location",
        "price_scores": "sfumato.games.truthful.facility_location",
        "regret": "sfumato.games.incentives.largest_gain",
        "regret_curve": "sfumato.games.curves.regret_curve",
        "revenue_curve": "sfumato.games.curves.revenue_curve",
        "revenue_guarantee": "sfumato.games.auctions.revenue_guarantee",
        "road_graph": "sfumato.games.joint.road_graphs",
        "tree_distances": "sfumato.games.truthful.facility_location",
        "truthfulness": "sfumato.games.incentives.truthfulness_bound",
        "vcg": "sfumato.games.auctions.vickrey",
        "welfare_ceiling": "sfumato.games.joint.welfare",
    },
)
