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
    from sfumato.games.exponential_choice import ExponentialChoice
    from sfumato.games.game import Game
    from sfumato.games.incentives.largest_gain import Misreport, Regret, regret
    from sfumato.games.incentives.truthfulness_bound import TruthfulnessBound, truthfulness
    from sfumato.games.outcome import Outcome
    from sfumato.games.social_choice import Commitment, SocialChoice

__all__ = [
    "Commitment",
    "ExponentialChoice",
    "Game",
    "Misreport",
    "Outcome",
    "Regret",
    "SocialChoice",
    "TruthfulnessBound",
    "regret",
    "truthfulness",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Commitment": "sfumato.games.social_choice",
        "ExponentialChoice": "sfumato.games.exponential_choice",
        "Game": "sfumato.games.game",
        "Misreport": "sfumato.games.incentives.largest_gain",
        "Outcome": "sfumato.games.outcome",
        "Regret": "sfumato.games.incentives.largest_gain",
        "SocialChoice": "sfumato.games.social_choice",
        "TruthfulnessBound": "sfumato.games.incentives.truthfulness_bound",
        "regret": "sfumato.games.incentives.largest_gain",
        "truthfulness": "sfumato.games.incentives.truthfulness_bound",
    },
)
