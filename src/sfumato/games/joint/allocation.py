"""Private allocation: goods sold to agents at ascending prices, on noisy counts of bids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_array
from sfumato.games.joint.action_counter import ActionCounter
from sfumato.games.joint.supply_condition import SupplyCondition, checked_signal, supply_condition
from sfumato.games.joint.turns import TurnDynamics
from sfumato.games.joint.valuations import Demand, Valuation, checked_types, checked_valuations

__all__ = ["AllocationGuarantee", "PrivateAllocation"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationGuarantee:
    """What the signal says of welfare: a bound that holds but for a chance of ``beta``, and its parts.

    Parameters
    ----------
    gap : float
        The allocation's welfare is at least that of the best one, less this.
    prices : float
        The part of the gap that comes from steps of the prices.
    unsatisfied : float
        That of agents who ran out of bids or rounds.
    reserve : float
        That of copies that are left over at a positive price.
    per_agent : float
        The gap over the number of agents: the alpha of the theorem.
    supply_condition : bool
        Whether every good's supply is so large that its reserve costs at most ``step`` times the price of all
        its copies.

    Examples
    --------
    >>> AllocationGuarantee(gap=60.0, prices=40.0, unsatisfied=12.0, reserve=8.0, per_agent=0.06,
    ...                     supply_condition=True).gap
    60.0
    """

    gap: float
    prices: float
    unsatisfied: float
    reserve: float
    per_agent: float
    supply_condition: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivateAllocation(TurnDynamics):
    r"""Copies of goods for agents with private values, at prices that rise with noisy counts of bids.

    In its turn an agent that holds fewer goods than it can use bids for the best ones at the announced
    prices, if it gains by them. A good's price rises by ``step`` with each ``supply - reserve`` bids; whoever
    has been followed by so many bids for a good has lost it.

    Parameters
    ----------
    agents : int
        How many; public.
    supply : sequence of int
        How many copies there are of each good.
    epsilon, delta : float
        Of the whole run, jointly.
    step : float
        Of the prices, in the unit of the values; in (0, 1].
    rounds, blocks : int
        In each round every block of agents has one turn.
    turns : int, optional
        The most turns in which one agent bids; all rounds unless given.
    capacity : int
        How many different goods an agent can use, at most: 1, the default, is unit demand.
    beta : float
        The chance with which the bounds may fail.
    valuations : sequence of Valuation, optional
        What agents may be; public. A report is the position of one of them then, not a row of values, and
        the capacity the largest of their ranks.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, goods are no gross substitutes, or a supply is too small for the
        noise: the remedy says what is needed.

    Notes
    -----
    A report is a row of values, one for each good, clipped to [0, 1]; NaN counts as 0. A set of goods is
    worth its ``capacity`` best values in sum. These are gross substitutes. With ``valuations`` an agent has
    one of these: any gross substitutes, which is checked by enumeration. Goods that complement each other are
    refused, as there is no theorem for them.

    Guarantee: (epsilon, delta)-joint differential privacy under replacing one agent's report, by
    `TurnDynamics`: an agent bids in at most ``turns`` steps, one of each round, for at most ``capacity``
    goods in each. The number of unsatisfied agents is a further sum of the same counter, which an agent
    changes once, in a closing round without bids. An agent's part is the set of goods that it holds before
    that round.

    With probability at least ``1 - beta`` all noise is at most E = ``counter.error(beta)``; let that be so.
    Write s for a good's supply, B for the size of a block, w for the supply less the reserve of 2 E + B,
    c for the highest noisy count so far. The true count is within E of c, as it only rises.

    *Feasible.* Holders of a good bid in blocks after which c was above its last value less w. The first of
    these blocks has at most B bids, and the others at most w + 2 E: together at most s.

    *Prices.* From before a holder's bid to the end, c grows by less than w + B + 2 E, which is at most 2 w
    (this is what the supply must allow): the price rises by at most two steps. With prices as they were at
    the bid for goods that are held, and as they are for others, an agent who wants no more holds a favorite
    set, for unit demand plainly, for gross substitutes as no price of a good still held has risen (Kelso,
    Crawford 1982). So at final prices it holds a favorite set, but for two steps for each good held.

    *Sold out.* A good with a positive price has at least w - 2 E holders, as so many bids came after c was at
    its last value less w.

    *Welfare.* Add up over agents: welfare is at least that of the best allocation, less two steps for each
    good held, less ``capacity``, or what all goods are worth to the agent, for each unsatisfied agent, less
    price times (s - w + 2 E) for each good. `guarantee` computes it from the signal, and `supply_condition`
    says before a run for which supplies it is at most alpha for each agent.

    References
    ----------
    Hsu, Huang, Roth, Roughgarden, Wu (2014), "Private matchings and allocations" (STOC), for unit demand
    and for gross substitutes, where a block is one agent; Kelso, Crawford (1982), "Job matching, coalition
    formation, and gross substitutes".

    Examples
    --------
    >>> import numpy as np
    >>> market = PrivateAllocation(agents=4000, supply=(1500, 1500), epsilon=4.0, delta=1e-6, step=0.25,
    ...                            rounds=4, blocks=20)
    >>> values = np.random.default_rng(1).random((4000, 2))
    >>> release = market.release(values, rng=1)
    >>> goods = release.parts(values)
    >>> bool((goods.sum(axis=0) <= market.supply).all()), bool((goods.sum(axis=1) <= 1).all())
    (True, True)
    """

    agents: int
    supply: Sequence[int]
    epsilon: float
    delta: float
    step: float = 0.1
    rounds: int = 10
    blocks: int = 32
    turns: int | None = None
    capacity: int = 1
    beta: float = 0.05
    valuations: Sequence[Valuation] | None = None
    closing: ClassVar[bool] = True
    _counter: ActionCounter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_turns()
        supply = np.asarray(self.supply)
        if supply.ndim != 1 or not len(supply) or supply.dtype.kind not in "iu" or not (supply > 0).all():
            _check.refuse_type("supply", "be positive whole numbers", supply, "pass one for each good")
        object.__setattr__(self, "supply", tuple(supply.tolist()))
        if _check.positive("step", self.step) > 1:
            _check.refuse("step", "be at most 1, as values are", self.step, "pass a price step such as 0.1")
        _check.unit_interval("beta", self.beta)
        if _check.integer("capacity", self.capacity, minimum=1) > len(self.supply):
            _check.refuse(
                "capacity",
                f"be at most {len(self.supply)}",
                self.capacity,
                "no agent can use more goods than there are",
            )
        if self.valuations is not None:
            self._check_valuations(self.valuations)
        turns = self.rounds if self.turns is None else _check.integer("turns", self.turns, minimum=1)
        object.__setattr__(self, "turns", min(turns, self.rounds))
        object.__setattr__(self, "_counter", self._count())
        least = 2 * self.reserve
        if min(self.supply) < least:
            remedy = "raise epsilon, the supply or the number of blocks, or allow fewer turns"
            rule = f"be at least twice the reserve, {math.ceil(least)} copies of each good"
            _check.refuse("supply", rule, min(self.supply), remedy)

    @property
    def counter(self) -> ActionCounter:
        """What counts bids for each good, and in the last column the unsatisfied agents."""
        return self._counter

    @property
    def reserve(self) -> float:
        """How many copies of each good are set aside, so that never more are given than there are."""
        return 2 * self.counter.error(self.beta) + self.block_size

    @property
    def widths(self) -> _Floats:
        """How many bids raise each good's price by a step."""
        return np.asarray(self.supply, np.float64) - self.reserve

    @property
    def most_held(self) -> int:
        """How many goods all agents together hold at most."""
        each = self.capacity if self.valuations is None else len(self.supply)
        return int(min(self.agents * each, sum(self.supply)))

    @property
    def largest_value(self) -> float:
        """What any set of goods is worth to any agent at most."""
        if self.valuations is None:
            return float(self.capacity)
        return max(each.largest for each in self.valuations)

    def supply_condition(self, alpha: float) -> SupplyCondition:
        """Return whether the supply is large enough for a loss of welfare of ``alpha`` for each agent.

        Parameters
        ----------
        alpha : float
            In the unit of values, positive.

        Returns
        -------
        SupplyCondition
            It follows from public parameters, so that it is known before a run.
        """
        return supply_condition(
            alpha,
            agents=self.agents,
            supply=self.supply,
            step=self.step,
            most_held=self.most_held,
            largest_value=self.largest_value,
            error=self.counter.error(self.beta),
            reserve=self.reserve,
            shape=(self.counter.steps, self.counter.columns),
        )

    def prices(self, signal: Any) -> _Floats:
        """Return the prices after a run.

        Parameters
        ----------
        signal : array of shape (steps, columns)
            The value of a release.

        Returns
        -------
        float64 array of shape (goods,)
        """
        bidding = self._signal(signal)[: self.rounds * self.blocks, :-1]
        highest = np.maximum(bidding.max(axis=0), 0.0)
        return np.asarray(self.step * np.floor(highest / self.widths))

    def guarantee(self, signal: Any) -> AllocationGuarantee:
        """Return the bound on lost welfare that follows from the signal, so that it may be shown.

        Parameters
        ----------
        signal : array of shape (steps, columns)
            The value of a release.

        Returns
        -------
        AllocationGuarantee
            It holds together with feasibility, but for a chance of ``beta`` in all; for the allocation of
            agents who report their values and bid as their part says.

        Notes
        -----
        The theorem is in the notes of the class.
        """
        error, prices = self.counter.error(self.beta), self.prices(signal)
        unsatisfied = min(self.agents, max(0.0, float(self._signal(signal)[-1, -1]) + error))
        left = 2 * error + self.reserve
        parts = 2 * self.step * self.most_held, self.largest_value * unsatisfied, float(prices.sum()) * left
        gap = math.fsum(parts) * (1 + 1e-12)
        return AllocationGuarantee(
            gap=gap,
            prices=parts[0],
            unsatisfied=parts[1],
            reserve=parts[2],
            per_agent=gap / self.agents,
            supply_condition=min(self.supply) * self.step >= left,
        )

    def _signal(self, signal: Any) -> _Floats:
        return checked_signal(signal, self.counter.steps, self.counter.columns)

    def _count(self) -> ActionCounter:
        turns = self.turns or self.rounds
        return ActionCounter(
            steps=(self.rounds + 1) * self.blocks,
            columns=len(self.supply) + 1,
            turns=turns + 1,  # the last of them to be counted as unsatisfied
            separation=self.blocks,
            step_squared=self.capacity,
            state_squared=2 * (self.capacity * turns**2 + 1),
            epsilon=self.epsilon,
            delta=self.delta,
        )

    def _check_valuations(self, valuations: Any) -> None:
        checked = checked_valuations(valuations, len(self.supply))
        rank = max(each.rank for each in checked)
        if self.capacity not in {1, rank}:
            remedy = "it is the largest rank of the valuations"
            _check.refuse("capacity", "be left out where valuations are given", self.capacity, remedy)
        object.__setattr__(self, "valuations", checked)
        object.__setattr__(self, "capacity", rank)

    def _checked(self, reports: Any, count: int) -> Any:
        if self.valuations is not None:
            return checked_types(reports, count, len(self.valuations))
        remedy = "pass a row of values for each agent; one that is absent values all at 0"
        values = as_array("reports", reports, remedy)
        if values.ndim != 2 or values.shape != (count, len(self.supply)) or values.dtype.kind not in "iufb":
            _check.refuse_type("reports", "be numbers, one of each agent for each good", values, remedy)
        return clipped(values)

    def _opening(self) -> _Floats:
        return np.zeros(len(self.supply) + 1)

    def _players(self, agents: _Integers, reports: Any) -> _Bidders:
        return _Bidders(self, reports)

    def _final(self, players: _Bidders, signal: _Floats) -> NDArray[np.bool_]:
        return players.held(slice(None))


def clipped(values: Any) -> _Floats:
    """Return values in [0, 1], with 0 for NaN."""
    return np.clip(np.nan_to_num(np.asarray(values, np.float64), nan=0.0), 0.0, 1.0)


class _Bidders:
    """Agents with their values, the goods that they bid for, and where the counts were then."""

    def __init__(self, market: PrivateAllocation, reports: Any) -> None:
        self.reports, self.market, self.widths = reports, market, market.widths
        self.demand = None if market.valuations is None else Demand(market.valuations)
        shape = len(reports), len(market.supply)
        self.since = np.full(shape, -np.inf)
        self.bids = np.zeros(shape, np.bool_)
        self.turns = np.zeros(len(reports), np.int64)
        self.steps = 0
        self.highest = np.zeros(shape[1])

    def held(self, who: Any) -> NDArray[np.bool_]:
        """Return what agents hold at the counts that were last seen."""
        return np.asarray(self.highest - self.since[who] < self.widths)

    def act(self, who: _Integers, before: _Floats) -> _Integers:
        """Bid; or in the closing round say whether more is wanted."""
        if self.steps < self.market.rounds * self.market.blocks:
            wanted = self._wanted(who)
            bidding = wanted & (self.turns[who] < (self.market.turns or 0))[:, None]
            self.bids[who] = bidding
            self.turns[who] += bidding.any(axis=1)
            return np.append(np.count_nonzero(bidding, axis=0), 0).astype(np.int64)
        unsatisfied = np.count_nonzero(self._wanted(who).any(axis=1))
        return np.append(np.zeros(len(self.widths), np.int64), unsatisfied)

    def observe(self, who: _Integers, after: _Floats) -> None:
        """Remember where the counts are after a bid."""
        self.steps += 1
        if self.steps > self.market.rounds * self.market.blocks:
            return
        self.highest = np.maximum(self.highest, after[:-1])
        since = self.since[who]
        self.since[who] = np.where(self.bids[who], self.highest, since)

    def _wanted(self, who: _Integers) -> NDArray[np.bool_]:
        """Return the best goods that fill each agent's free places, if it gains by them."""
        held = self.held(who)
        price = self.market.step * np.floor(self.highest / self.widths)
        if self.demand is not None:
            return self.demand.wanted(self.reports[who], held, price)
        gains = np.where(held, -np.inf, self.reports[who] - price)
        free = self.market.capacity - np.count_nonzero(held, axis=1)
        wanted = np.zeros(held.shape, np.bool_)
        rows = np.arange(len(held))
        for place in range(self.market.capacity):
            best = gains.argmax(axis=1)
            taken = rows[(gains[rows, best] > 0) & (free > place)]
            wanted[taken, best[taken]] = True
            gains[rows, best] = -np.inf
        return wanted
