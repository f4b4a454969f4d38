"""Congestion games with listed actions: costs, and how much agents would gain by other actions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_array, as_numbers
from sfumato.mechanisms.base.release import read_only

__all__ = ["CongestionGame", "PlayRegret"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_MOST: Final = 1 << 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlayRegret:
    """How much agents would have gained in the rounds of a run: private, for the curator.

    Parameters
    ----------
    external : float
        The largest gain of an agent, per round, by one action in all rounds. A round drawn at random is a
        coarse correlated equilibrium, but for so much.
    swap : float
        The largest gain by one action wherever another was recommended, for all recommendations. A round
        drawn at random is a correlated equilibrium, but for so much.
    mean_external, mean_swap : float
        The same, on average over agents.
    cost : float
        The mean cost of an agent and round.

    Examples
    --------
    >>> PlayRegret(external=0.1, swap=0.2, mean_external=0.05, mean_swap=0.1, cost=1.0).swap
    0.2
    """

    external: float
    swap: float
    mean_external: float
    mean_swap: float
    cost: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CongestionGame:
    r"""Agents who use sets of resources, each of which costs more the more agents use it.

    Parameters
    ----------
    uses : bool array of shape (types, actions, resources)
        Which resources an action uses. A type with fewer actions repeats one.
    fixed, growth : array of shape (resources,)
        The cost of a resource is :math:`f + g (x/n)^p` for x users of n agents; both are non-negative.
    agents : int
        How many agents there are: n.
    power : float
        The exponent p, from 1 to 16.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    All of it is public; which agent has which type is not.

    References
    ----------
    Rosenthal (1973), "A class of games possessing pure-strategy Nash equilibria".

    Examples
    --------
    >>> game = CongestionGame(uses=[[[1, 0], [0, 1]]], fixed=[0.0, 0.5], growth=[1.0, 1.0], agents=100)
    >>> game.costs([75, 25]).tolist(), game.largest_cost
    ([0.75, 0.75], 1.5)
    """

    uses: Any
    fixed: Any
    growth: Any
    agents: int
    power: float = 1.0

    def __post_init__(self) -> None:
        remedy = "pass an array of 0 and 1 with axes for types, actions and resources"
        uses = as_array("uses", self.uses, remedy)
        if uses.ndim != 3 or not uses.size or uses.size > _MOST or not np.isin(uses, (0, 1)).all():
            _check.refuse_type("uses", "say which resources each action uses", uses, remedy)
        if not uses.any(axis=2).all():
            _check.refuse_state("uses", "name a resource for each action", "an action uses none", "name one")
        object.__setattr__(self, "uses", read_only(uses.astype(np.bool_)))
        for name in ("fixed", "growth"):
            numbers = as_numbers(name, getattr(self, name), "pass one for each resource")
            if numbers.shape != uses.shape[2:] or not ((numbers >= 0) & (numbers < math.inf)).all():
                _check.refuse_type(name, "be non-negative numbers", numbers, "pass one for each resource")
            object.__setattr__(self, name, read_only(numbers))
        _check.integer("agents", self.agents, minimum=1)
        if not 1 <= _check.positive("power", self.power) <= 16:
            _check.refuse("power", "be from 1 to 16", self.power, "pass 1 for costs that grow in proportion")
        if not self.largest_cost < math.inf:
            remedy = "state costs in another unit"
            _check.refuse_state("fixed and growth", "add up to finite costs", "they do not", remedy)

    @property
    def largest_action(self) -> int:
        """The most resources that an action uses."""
        return int(self.uses.sum(axis=2).max())

    @property
    def largest_cost(self) -> float:
        """The cost of the costliest action, if all agents use all of its resources."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float((self.uses @ (self.fixed + self.growth)).max())

    def costs(self, loads: Any) -> _Floats:
        """Return what each resource costs each of its users.

        Parameters
        ----------
        loads : array of shape (resources,)
            Users; less than none counts as none, more than all agents as all.

        Returns
        -------
        float64 array of shape (resources,)
        """
        share = np.clip(np.asarray(loads, np.float64) / self.agents, 0.0, 1.0)
        return np.asarray(self.fixed + self.growth * share**self.power)

    def loads(self, types: Any, actions: Any) -> _Integers:
        """Return how many agents use each resource.

        Parameters
        ----------
        types, actions : int array of shape (agents,)

        Returns
        -------
        int64 array of shape (resources,)
        """
        kinds, listed = self.uses.shape[:2]
        chosen = np.bincount(np.asarray(types) * listed + np.asarray(actions), minlength=kinds * listed)
        return np.asarray(chosen @ self.uses.reshape(kinds * listed, -1).astype(np.int64))

    def deviations(self, loads: Any) -> _Floats:
        """Return what an agent pays that changes alone, for each type, present action and new action.

        Parameters
        ----------
        loads : array of shape (resources,)
            With the present actions of all agents.

        Returns
        -------
        float64 array of shape (types, actions, actions)
            Exact: a resource that the agent uses already has no more users afterwards.
        """
        uses = self.uses.astype(np.float64)
        present, joined = self.costs(loads), self.costs(np.asarray(loads) + 1)
        shared = (uses * (present - joined)) @ uses.transpose(0, 2, 1)
        return np.asarray(shared + (uses @ joined)[:, None, :])

    def _played(self, types: Any, actions: Any) -> tuple[_Integers, _Integers]:
        """Return types and actions of one round or more, or refuse them."""
        remedy = "pass the types that were reported, and what a release returns for them"
        kinds, played = as_array("types", types, remedy), as_array("actions", actions, remedy)
        whole = kinds.dtype.kind in "iu" and played.dtype.kind in "iu"
        if not whole or not played.size or played.ndim != 2 or kinds.shape != played.shape[:1]:
            rule = "be whole numbers, for each agent, and for each agent and round"
            _check.refuse_state("types and actions", rule, "they are not", remedy)
        known, listed = self.uses.shape[:2]
        if min(kinds.min(), played.min()) < 0 or kinds.max() >= known or played.max() >= listed:
            _check.refuse_state("types and actions", "be those of the game", "one of them is none", remedy)
        return kinds.astype(np.int64), played.astype(np.int64)

    def play_regret(self, types: Any, actions: Any) -> PlayRegret:
        """Compute what agents would have gained by other actions, exactly: private, for the curator.

        Parameters
        ----------
        types : int array of shape (agents,)
        actions : int array of shape (agents, rounds)

        Returns
        -------
        PlayRegret

        Raises
        ------
        ParameterError
            If there is no agent or no round, or a type or an action is none of the game's.

        Examples
        --------
        >>> game = CongestionGame(uses=[[[1, 0], [0, 1]]], fixed=[0.0, 0.0], growth=[1.0, 1.0], agents=2)
        >>> game.play_regret([0, 0], [[0], [0]]).external
        0.5
        """
        kinds, played = self._played(types, actions)
        agents, rounds = played.shape
        paid = np.zeros((agents, self.uses.shape[1], self.uses.shape[1]))
        everyone = np.arange(agents)
        for step in range(rounds):
            now = played[:, step]
            table = self.deviations(self.loads(kinds, now))
            paid[everyone, now] += table[kinds, now]
        own = np.trace(paid, axis1=1, axis2=2)
        external = (own - paid.sum(axis=1).min(axis=1)) / rounds
        swap = (own - paid.min(axis=2).sum(axis=1)) / rounds
        return PlayRegret(
            external=max(0.0, float(external.max())),
            swap=float(swap.max()),
            mean_external=float(external.mean()),
            mean_swap=float(swap.mean()),
            cost=float(own.mean() / rounds),
        )
