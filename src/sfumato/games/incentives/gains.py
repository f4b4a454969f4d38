"""The gains of all lies of one agent, against many reports of the others at once."""

from __future__ import annotations

from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.games.game import Game
from sfumato.games.social_choice import PROBABILITY_ERROR, SocialChoice

__all__ = ["Found", "Gains"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_ROUNDING: Final = 2.0**-48


class Found(NamedTuple):
    """A lie and what it gains; positions, not labels."""

    gain: float
    type: int
    report: int
    others: tuple[int, ...]
    truth_utility: float


@final
class Gains:
    """What one agent's lies gain.

    Parameters
    ----------
    mechanism : SocialChoice
    game : Game
    agent : int
        Its position.
    """

    def __init__(self, mechanism: SocialChoice, game: Game, agent: int) -> None:
        self.mechanism, self.game, self.agent = mechanism, game, agent
        own = slice(None) if game.anonymous else agent
        self.utilities: Final[_Floats] = np.asarray(game.free_utilities[own])
        kinds = len(game.types)
        lottery = mechanism.commitment
        self.weight: Final = 1.0 if lottery is None else 1.0 - lottery.probability
        # A common part of the utilities would only add rounding errors to sums.
        self.low: Final = game.utility_range[0]
        self.imposed: Final[_Floats] = (
            np.zeros((kinds, kinds))
            if lottery is None
            else lottery.probability
            * ((game.imposed_utilities[own] - self.low) @ lottery.distribution + self.low)
        )
        largest = max(map(abs, game.utility_range))
        self.slack: Final = 4 * PROBABILITY_ERROR * game.range_length + _ROUNDING * largest

    def table(self, others: _Ints) -> _Floats:
        """Return the expected utilities for (m, agents - 1) reports: (m, type, report)."""
        kinds = len(self.game.types)
        profiles = np.empty((len(others), kinds, self.game.agents), np.int64)
        profiles[:, :, : self.agent] = others[:, None, : self.agent]
        profiles[:, :, self.agent] = np.arange(kinds)
        profiles[:, :, self.agent + 1 :] = others[:, None, self.agent :]
        drawn = self.mechanism.distributions(profiles.reshape(-1, self.game.agents))
        drawn = drawn.reshape(len(others), kinds, -1)
        free = np.swapaxes(drawn @ (self.utilities - self.low).T, 1, 2) + self.low
        return np.asarray(self.weight * free + self.imposed)

    def largest(self, others: _Ints) -> Found:
        """Return the lie that gains most, over all rows of others' reports."""
        table = self.table(others)
        kinds = table.shape[1]
        truth = table[:, np.arange(kinds), np.arange(kinds)]
        gain = table - truth[:, :, None]
        gain[:, np.arange(kinds), np.arange(kinds)] = -np.inf
        row, kind, report = np.unravel_index(int(gain.argmax()), gain.shape)
        return Found(
            float(gain[row, kind, report]),
            int(kind),
            int(report),
            tuple(others[row].tolist()),
            float(truth[row, kind]),
        )
