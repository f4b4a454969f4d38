"""Dynamics in turns: blocks of agents act one after the other on noisy sums of all actions so far."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.joint.action_counter import ActionCounter, Send
from sfumato.games.joint.joint_mechanism import JointMechanism
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Players", "TurnDynamics"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]


class Players(Protocol):
    """Some agents with their reports, in the middle of a run."""

    def act(self, who: _Integers, before: _Floats) -> _Integers:
        """Let some agents act, given the sums before their step; return how the sums change."""

    def observe(self, who: _Integers, after: _Floats) -> None:
        """Show the sums after the step to those who acted in it."""


class TurnDynamics(JointMechanism):
    r"""Agents act in rounds, block by block, and each reads the noisy sums of all actions only.

    A subclass is a frozen dataclass, whose players are a deterministic function of the sums and of their own
    reports.

    Attributes
    ----------
    agents : int
        How many; public. Block b of B is the agents from b n / B on, by position.
    rounds, blocks : int
        In each round each block has one step.
    epsilon, delta : float
        Of all steps together.
    closing : bool
        Whether one more round follows, in which nobody acts but the last sums are counted.

    Notes
    -----
    Guarantee: the signal is the noisy sums after each step, whose loss is that of `ActionCounter`; what an
    agent does, in the run as in its part, is a function of the signal and its own report. So `JointMechanism`
    applies. The numbers of rounds and steps are fixed beforehand: nothing is revealed by when a run ends.
    """

    __slots__ = ()

    agents: int
    rounds: int
    blocks: int
    epsilon: float
    closing: ClassVar[bool] = False

    @property
    @abstractmethod
    def counter(self) -> ActionCounter:
        """What counts the agents' actions."""

    @abstractmethod
    def _players(self, agents: _Integers, reports: Any) -> Players:
        """Return some agents before their first turn."""

    @abstractmethod
    def _opening(self) -> _Floats:
        """Return the public sums before the first step."""

    @abstractmethod
    def _final(self, players: Any, signal: _Floats) -> Any:
        """Return the parts of players at the end of a run."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Of the signal, which is joint for the parts."""
        return self.counter.privacy_loss

    @final
    def play(self, players: Players, agents: _Integers, send: Send) -> _Floats:
        """Run all steps.

        Parameters
        ----------
        players : Players
            Before their first turn.
        agents : int64 array
            Their positions, ascending.
        send : callable
            Takes a step's change of the sums and returns the sums that all see: a counter's, or those of a
            run that is played again.

        Returns
        -------
        float64 array of shape (steps, columns)
            The sums after each step.
        """
        bounds = [
            np.searchsorted(agents, -(-block * self.agents // self.blocks))
            for block in range(self.blocks + 1)
        ]
        members = [np.arange(bounds[b], bounds[b + 1]) for b in range(self.blocks)]
        seen, shown = self._opening(), []
        for _ in range(self.rounds + self.closing):
            for who in members:
                after = send(players.act(who, seen))
                players.observe(who, after)
                shown.append(after)
                seen = after
        return np.array(shown)

    def _check_turns(self) -> None:
        """Check the shared parameters."""
        _check.integer("agents", self.agents, minimum=1)
        _check.integer("rounds", self.rounds, minimum=1)
        if _check.integer("blocks", self.blocks, minimum=1) > self.agents:
            _check.refuse(
                "blocks", f"be at most {self.agents}", self.blocks, "no block may be without agents"
            )

    @property
    def block_size(self) -> int:
        """The most agents in one block."""
        return -(-self.agents // self.blocks)

    def _announce(self, reports: Any, source: RandomSource) -> _Floats:
        everyone = np.arange(self.agents)
        return self.play(self._players(everyone, reports), everyone, self.counter.open(source))

    def _parts(self, signal: Any, agents: Any, reports: Any) -> Any:
        players = self._players(agents, reports)
        rows: Iterator[_Floats] = iter(signal)
        self.play(players, agents, lambda change: next(rows))
        return self._final(players, signal)
