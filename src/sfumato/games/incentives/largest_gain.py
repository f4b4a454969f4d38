"""The largest gain of a lie, exactly: over every type, every report, and all reports of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.game import Game
from sfumato.games.incentives.gain_search import climb
from sfumato.games.incentives.gains import Found, Gains
from sfumato.games.incentives.profiles import all_profiles, multisets, number_of_multisets
from sfumato.games.incentives.screening import MOST_REACH, reach, screened
from sfumato.games.incentives.truthfulness_bound import truthfulness
from sfumato.games.social_choice import SocialChoice
from sfumato.numerics.interval import Interval

__all__ = ["Misreport", "Regret", "regret"]

_BLOCK: Final = 1 << 10
_ENUMERATED: Final = 1 << 25
_SCREENED: Final = 1 << 36
_SEARCHES: Final = 8


class Misreport(NamedTuple):
    """A lie that gains: who, what, and against which reports of the others.

    Attributes
    ----------
    agent : int
        Its position; 0 stands for every agent where the game and the mechanism are anonymous.
    type, report : object
        What it is, and what it reports instead.
    others : tuple
        The reports of the other agents, in their order.
    truth_utility, lie_utility : float
        Its expected utilities.
    """

    agent: int
    type: Any
    report: Any
    others: tuple[Any, ...]
    truth_utility: float
    lie_utility: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """The largest gain of any lie by any type of any agent, and the lie.

    Parameters
    ----------
    gain : Interval
        Encloses the largest expected gain of a lie; below 0 where every lie costs something. Its ends are
        apart by rounding alone where all reports of the others were examined.
    witness : Misreport
        A lie that gains the lower end.
    bound : float
        What the loss's theorem allows; see `truthfulness`.
    exact : bool
        Whether all reports of the others were examined; if not, the upper end of the gain is the bound.
    profiles : int
        How many reports of the others were examined: for each agent, or by all searches together.

    Examples
    --------
    >>> from sfumato.games import ExponentialChoice, Game
    >>> game = Game(types="ab", alternatives=(0, 1), utilities=[[0, 1], [1, 0]], agents=4)
    >>> found = regret(ExponentialChoice(game=game, epsilon=1.0), game)
    >>> found.dominant, found.profiles, found.gain.upper <= found.bound
    (True, 4, True)
    """

    gain: Interval
    witness: Misreport
    bound: float
    exact: bool
    profiles: int

    @property
    def dominant(self) -> bool:
        """Whether it is proved that no lie gains anything: truth-telling is a dominant strategy."""
        return self.gain.upper <= 0

    def __str__(self) -> str:
        how = "exact" if self.exact else "by search; no proof that no lie gains more"
        if self.gain.lower > 0:
            return (
                f"Largest gain of a lie: {self.gain.lower:.6g} ({how}); the theorem allows {self.bound:.6g}."
            )
        if self.exact:
            who = "No lie gains anything" if self.dominant else "No lie is known to gain anything"
            return f"{who}: {self.gain.upper:.6g} at most (exact)."
        return f"No lie was found that gains anything ({how}); the theorem allows {self.bound:.6g}."


def regret(mechanism: SocialChoice, game: Game, *, searches: int = _SEARCHES, seed: int = 0) -> Regret:
    r"""Return the largest gain of any lie by any type of any agent, and a lie that gains it.

    Parameters
    ----------
    mechanism : SocialChoice
        What chooses.
    game : Game
        What agents' utilities truly are. Its types, alternatives and number of agents are the mechanism's.
    searches : int
        How many searches start where the game is too large to be enumerated.
    seed : int
        Of the searches. Nothing private is in them.

    Returns
    -------
    Regret

    Raises
    ------
    ParameterError
        If the game has other types, alternatives or agents than that of the mechanism; or other best actions,
        where the mechanism imposes them.

    Notes
    -----
    Guarantee: where ``exact``, the gain's interval holds the largest gain over all agents, types, other
    reports and reports of the others. All reports of the others are enumerated; only their multiset counts
    where the mechanism is anonymous. Exponential mechanisms are screened in single precision, with its error
    bounded; what may be the largest is computed again in double precision. In larger games the lower end is
    the gain of a lie that was found, and the upper end the theorem's bound.

    Pure strategies of the others suffice: an expectation over their reports is no larger than the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.games import ExponentialChoice, Game
    >>> homes = (0.0, 0.25, 0.5, 0.75, 1.0)
    >>> game = Game(types=homes, alternatives=homes, agents=5,
    ...             utilities=lambda home, site: 1 - np.abs(home - site))
    >>> found = regret(ExponentialChoice(game=game, epsilon=1.0), game)
    >>> print(found)
    Largest gain of a lie: 0.00487215 (exact); the theorem allows 0.244919.
    >>> found.witness.type, found.witness.report, found.witness.others
    (0.75, 1.0, (0.0, 0.0, 0.0, 1.0))
    """
    _check.instance("mechanism", mechanism, SocialChoice, "pass a mechanism of this room")
    _check.instance("game", game, Game, "pass what agents' utilities are")
    _require_same(mechanism, game)
    searches = _check.integer("searches", searches, minimum=1)
    bound = truthfulness(mechanism.privacy_loss, game.utility_range).gain
    agents = range(1) if mechanism.anonymous and game.anonymous else range(game.agents)
    gains = [Gains(mechanism, game, agent) for agent in agents]
    number = _profiles(mechanism, game)
    work = number * len(game.types) * len(game.alternatives)
    if work <= _ENUMERATED:
        found = [_enumerated(each, _others(mechanism, game)) for each in gains]
    elif work <= _SCREENED and _can_be_screened(mechanism):
        found = [screened(each, climb(each, searches, seed)[0]) for each in gains]
    else:
        climbed = [climb(each, searches, seed) for each in gains]
        return _regret(gains, [best for best, _ in climbed], bound, sum(seen for _, seen in climbed), False)
    return _regret(gains, found, bound, number, True)


def _can_be_screened(mechanism: SocialChoice) -> bool:
    logs = mechanism.log_factors
    return mechanism.anonymous and logs is not None and reach(logs) <= MOST_REACH


def _profiles(mechanism: SocialChoice, game: Game) -> int:
    others, kinds = game.agents - 1, len(game.types)
    return number_of_multisets(others, kinds) if mechanism.anonymous else kinds**others


def _others(mechanism: SocialChoice, game: Game) -> Iterator[NDArray[np.int64]]:
    each = multisets if mechanism.anonymous else all_profiles
    return each(game.agents - 1, len(game.types), _BLOCK)


def _enumerated(gains: Gains, blocks: Iterator[NDArray[np.int64]]) -> Found:
    return max((gains.largest(block) for block in blocks), key=lambda found: found.gain)


def _regret(gains: list[Gains], found: list[Found], bound: float, profiles: int, exact: bool) -> Regret:
    at = max(range(len(found)), key=lambda index: found[index].gain)
    best, each = found[at], gains[at]
    types = each.game.types
    lower, upper = best.gain - each.slack, best.gain + each.slack
    witness = Misreport(
        agent=each.agent,
        type=types[best.type],
        report=types[best.report],
        others=tuple(types[report] for report in best.others),
        truth_utility=best.truth_utility,
        lie_utility=best.truth_utility + best.gain,
    )
    top = min(upper, bound) if exact else max(lower, bound)
    return Regret(
        gain=Interval(lower, top, exact), witness=witness, bound=bound, exact=exact, profiles=profiles
    )


def _require_same(mechanism: SocialChoice, second: Game) -> None:
    first = mechanism.game
    for name in ("types", "alternatives", "agents"):
        if getattr(first, name) != getattr(second, name):
            remedy = f"pass a game of the mechanism's {name}"
            _check.refuse_state("game", f"have the mechanism's {name}", "it has others", remedy)
    imposes = mechanism.commitment is not None
    if imposes and (first.best_actions != second.best_actions).any():
        remedy = "pass the mechanism's game"
        _check.refuse_state("game", "have the best actions that are imposed", "it has others", remedy)
    if len(second.types) < 2:
        _check.refuse_state("game", "have two types or more", "it has one: nobody can lie", "add types")
