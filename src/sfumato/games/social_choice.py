"""Social choice: a random alternative for all agents' reports, with its exact distribution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.game import Game
from sfumato.games.outcome import Outcome
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt

__all__ = ["PROBABILITY_ERROR", "Commitment", "Ledger", "SocialChoice", "charged"]

PROBABILITY_ERROR: Final = 1e-11
"""What is the most that the probabilities of all alternatives are off by, added up."""


class Ledger(Protocol):
    """What can be charged: a ledger, a view of one, or a session's."""

    def charge(
        self, loss: PrivacyLoss, *, delta: float, description: str = ..., simulated: bool = ...
    ) -> Receipt:
        """Record a charge, or refuse it."""


class Commitment(NamedTuple):
    """A lottery that a mechanism plays instead, with imposed actions and without looking at the reports.

    Attributes
    ----------
    probability : float
        Of the lottery.
    distribution : float64 array of shape (alternatives,)
        What it draws.
    """

    probability: float
    distribution: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SocialChoice(Mechanism):
    """A random alternative of a game for the reports of its agents.

    Parameters
    ----------
    game : Game
        What is played.

    Notes
    -----
    A subclass states the exact distribution of what it draws, so that `regret` can say how much a lie gains.
    One whose loss has a delta returns it as ``delta``, or a ledger would read an epsilon that is infinite.
    Neighbors are profiles in which one agent's report is replaced.

    Examples
    --------
    >>> from sfumato.games import ExponentialChoice, Game
    >>> game = Game(types="ab", alternatives=(0, 1), utilities=[[0, 1], [1, 0]], agents=3)
    >>> choice = ExponentialChoice(game=game, epsilon=1.0)
    >>> isinstance(choice, SocialChoice), choice.probabilities("aba").round(3).tolist()
    (True, [0.378, 0.622])
    """

    game: Game

    @property
    @final
    def neighboring(self) -> Neighboring:
        """One agent's report is replaced; who takes part is public."""
        return Neighboring.REPLACE_ONE

    @property
    def commitment(self) -> Commitment | None:
        """The lottery that is played instead with some probability; None if there is none."""
        return None

    @property
    def delta(self) -> float:
        """Where a ledger reads the guarantee; 0, unless a subclass has a loss that is not pure."""
        return 0.0

    @property
    def anonymous(self) -> bool:
        """Whether only the multiset of reports matters; False where nobody has shown that it does."""
        return False

    @property
    def log_factors(self) -> NDArray[np.float64] | None:
        """The log of what a report multiplies each weight by, (types, alternatives), where that is all."""
        return None

    @final
    def probabilities(self, reports: Any) -> NDArray[np.float64]:
        """Return the probability of each alternative: private, for its agents and for tests.

        Parameters
        ----------
        reports : sequence of shape (agents,)
            One type for each agent.

        Returns
        -------
        float64 array of shape (alternatives,)
            A lottery with imposed actions is in it.
        """
        own = self.distributions(self.game.positions(reports)[None])[0]
        lottery = self.commitment
        if lottery is None:
            return np.asarray(own)
        mixed = (1 - lottery.probability) * own + lottery.probability * lottery.distribution
        return np.asarray(mixed)

    @abstractmethod
    def distributions(self, profiles: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the distribution for many profiles, given that no lottery is played.

        Parameters
        ----------
        profiles : int64 array of shape (m, agents)
            Positions of reported types.

        Returns
        -------
        float64 array of shape (m, alternatives)
            Each row is off by at most `PROBABILITY_ERROR` altogether.
        """

    @abstractmethod
    def draw(self, profile: NDArray[np.int64], source: RandomSource) -> tuple[int, bool]:
        """Draw the position of an alternative, and whether actions are imposed.

        Parameters
        ----------
        profile : int64 array of shape (agents,)
            Positions of reported types.
        source : RandomSource

        Returns
        -------
        (int, bool)
        """

    def release(
        self,
        value: Any,
        rng: Rng = None,
        *,
        ledger: Ledger | None = None,
        description: str = "social choice",
    ) -> Outcome:
        """Choose an alternative.

        Parameters
        ----------
        value : sequence of shape (agents,)
            One reported type for each agent.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.
        ledger : Ledger, optional
            Charged before anything is drawn.
        description : str
            For the ledger.

        Returns
        -------
        Outcome

        Raises
        ------
        ParameterError
            If there is not one type for each agent.
        BudgetExceeded
            If the ledger cannot pay.
        """
        profile, source = self.game.positions(value), random_source(rng)
        receipt = charged(ledger, self.privacy_loss, description, source, self.delta)
        index, imposed = self.draw(profile, source)
        chosen = self.game.alternatives[index]
        return self._release_as(
            Outcome, chosen, source, receipt=receipt, game=self.game, index=index, imposed=imposed
        )


def charged(
    ledger: Ledger | None, loss: PrivacyLoss, description: str, source: RandomSource, delta: float = 0.0
) -> Receipt | None:
    """Charge a ledger, if there is one, and return its receipt."""
    _check.ledger(ledger)
    if ledger is None:
        return None
    return ledger.charge(loss, delta=delta, description=description, simulated=source.simulated)
