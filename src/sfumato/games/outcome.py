"""Outcomes: the alternative that was chosen for all, as a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from sfumato.games.game import Game, as_agent
from sfumato.mechanisms.base.release import Release

__all__ = ["Outcome"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome(Release):
    """What a mechanism chose: an alternative, and whether it imposes the agents' actions.

    Parameters
    ----------
    game : Game
        What was played; public.
    index : int
        The position of the alternative in the game.
    imposed : bool
        Whether every agent must take the action that is best for the type it reported. Drawn independently of
        the reports.
    value, loss, neighboring, receipt, simulated, labels
        As in `sfumato.mechanisms.Release`; the value is the alternative.

    Examples
    --------
    >>> from sfumato.games import ExponentialChoice, Game
    >>> game = Game(types="ab", alternatives=("left", "right"), utilities=[[0, 1], [1, 0]], agents=3)
    >>> outcome = ExponentialChoice(game=game, epsilon=1.0).release("aba", rng=2)
    >>> outcome.value, outcome.imposed, outcome.action("a")
    ('left', False, None)
    """

    game: Game
    index: int
    imposed: bool = False

    def action(self, report: Any, *, agent: int = 0) -> Any:
        """Return the best action of a reported type: what is imposed, if anything is.

        Parameters
        ----------
        report : hashable
            A type. What an agent must do follows from the public alternative and its own report.
        agent : int
            Its position, where the game is not anonymous.

        Returns
        -------
        object
            One of the game's actions; None if it has none.

        Raises
        ------
        ParameterError
            If the report is no type of the game, or there is no such agent.
        """
        if self.game.actions is None:
            return None
        place = as_agent(agent, self.game.agents)
        best = self.game.best_actions if self.game.anonymous else self.game.best_actions[place]
        return self.game.actions[int(best[self.game.position(report), self.index])]
