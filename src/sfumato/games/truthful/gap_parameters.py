"""The parameters of a gap mechanism: what a lie loses under a lottery, and how much lottery it takes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from sfumato import _check
from sfumato.games.exponential_choice import ExponentialChoice
from sfumato.games.game import Game
from sfumato.games.incentives.gains import Gains
from sfumato.games.incentives.profiles import all_profiles, multisets, number_of_multisets
from sfumato.games.incentives.truthfulness_bound import truthfulness

__all__ = [
    "SCALE",
    "best_lottery",
    "least_probability",
    "lie_losses",
    "require_separation",
    "separating_lottery",
    "sufficient_probability",
    "up_to_scale",
]

_Floats = NDArray[np.float64]

SCALE: Final = 1 << 40
"""Probabilities of a lottery are whole multiples of its inverse."""

_BLOCK: Final = 1 << 10
_MOST: Final = 1 << 26
_SLACK: Final = 1e-9


class SeparatingLottery(NamedTuple):
    """The lottery of Nissim, Smorodinsky and Tennenholtz: even over alternatives that separate all types.

    Attributes
    ----------
    weights : int64 array of shape (alternatives,)
        Of equal weights where positive.
    gap : float
        Every lie loses this at one of them at least; 0 if no alternative separates a lie for all agents.
    """

    weights: NDArray[np.int64]
    gap: float


def _pair_losses(game: Game) -> _Floats:
    """Return what a lie loses if actions are imposed: (agents or 1, type, report, alternative)."""
    losses = game.free_utilities[..., :, None, :] - game.imposed_utilities
    return losses if losses.ndim == 4 else losses[None]


def lie_losses(game: Game, distribution: _Floats) -> _Floats:
    """Return what each lie loses in expectation under a lottery that imposes actions.

    Parameters
    ----------
    game : Game
    distribution : float64 array of shape (alternatives,)

    Returns
    -------
    float64 array of shape (agents or 1, types, types)
        By agent if they differ, type and report.
    """
    return np.asarray(_pair_losses(game) @ distribution)


def require_separation(game: Game) -> _Floats:
    """Return what each lie of each agent loses by alternative, (lies, alternatives), or refuse the game.

    Parameters
    ----------
    game : Game

    Returns
    -------
    float64 array of shape (lies, alternatives)
        Without repetitions.

    Raises
    ------
    ParameterError
        If some lie never loses anything.
    """
    losses = _pair_losses(game)
    off = ~np.eye(len(game.types), dtype=bool)
    pairs = np.unique(losses[:, off].reshape(-1, losses.shape[-1]), axis=0)
    if not (pairs.max(axis=1) > _SLACK * game.range_length).all():
        remedy = "offer alternatives and actions that some types want and others do not"
        _check.refuse_state(
            "game", "have types that actions tell apart", "some lie loses nothing anywhere", remedy
        )
    return np.asarray(pairs)


def separating_lottery(game: Game) -> SeparatingLottery:
    """Return an even lottery over few alternatives such that each lie loses at one of them.

    Parameters
    ----------
    game : Game

    Returns
    -------
    SeparatingLottery
        Found greedily: for each lie that loses more elsewhere, the alternative at which it loses most.
    """
    losses = _pair_losses(game).min(axis=0)
    kinds = len(game.types)
    chosen: list[int] = []
    for kind in range(kinds):
        for report in range(kinds):
            best = losses[kind, report].max()
            if kind != report and (not chosen or losses[kind, report, chosen].max() < best):
                chosen.append(int(losses[kind, report].argmax()))
    weights = np.zeros(len(game.alternatives), np.int64)
    weights[chosen] = 1
    off = ~np.eye(kinds, dtype=bool)
    return SeparatingLottery(weights, float(losses[:, :, chosen].max(axis=2)[off].min()))


def best_lottery(game: Game) -> NDArray[np.int64]:
    """Return the lottery under which the lie that loses least loses most, by a linear program.

    Parameters
    ----------
    game : Game

    Returns
    -------
    int64 array of shape (alternatives,)
        Weights; whatever the solver's accuracy, what lies lose is computed from them.

    Raises
    ------
    ParameterError
        If some lie never loses anything.
    """
    pairs = require_separation(game)
    size = pairs.shape[-1]
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.hstack([-pairs / game.range_length, np.ones((len(pairs), 1))]),
        b_ub=np.zeros(len(pairs)),
        A_eq=np.append(np.ones(size), 0.0)[None],
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    if found.x is None:
        return separating_lottery(game).weights
    return np.asarray(np.rint(np.maximum(found.x[:-1], 0) * SCALE), np.int64)


def sufficient_probability(game: Game, choice: ExponentialChoice, losses: _Floats) -> float:
    """Return how likely a lottery must be for the loss's theorem to make the truth dominant.

    Parameters
    ----------
    game : Game
    choice : ExponentialChoice
    losses : float64 array of shape (agents or 1, types, types)
        What `lie_losses` returns.

    Returns
    -------
    float
    """
    free = game.free_utilities
    apart = float((free.max(axis=-1) - free.min(axis=-1)).max())
    gain = truthfulness(choice.privacy_loss, (0.0, apart)).gain if apart else 0.0
    least = float(losses[:, ~np.eye(len(game.types), dtype=bool)].min())
    return _enough(gain, least, game)


def least_probability(game: Game, choice: ExponentialChoice, losses: _Floats) -> float | None:
    """Return the smallest probability of a lottery that makes the truth dominant, by enumeration.

    Parameters
    ----------
    game : Game
    choice : ExponentialChoice
    losses : float64 array of shape (agents or 1, types, types)
        What `lie_losses` returns.

    Returns
    -------
    float or None
        None if there are too many reports to enumerate.
    """
    others, kinds = game.agents - 1, len(game.types)
    anonymous = choice.anonymous
    number = number_of_multisets(others, kinds) if anonymous else kinds**others
    if number * kinds * (kinds + len(game.alternatives)) > _MOST:
        return None
    enough = 0.0
    for agent in range(1 if anonymous and game.anonymous else game.agents):
        gains, most = Gains(choice, game, agent), np.full((kinds, kinds), -np.inf)
        each = multisets if anonymous else all_profiles
        for block in each(others, kinds, _BLOCK):
            table = gains.table(block)
            most = np.maximum(most, (table - np.diagonal(table, axis1=1, axis2=2)[:, :, None]).max(axis=0))
        own = losses[min(agent, len(losses) - 1)]
        for pair in np.argwhere(most > 0).tolist():
            gain, loss = float(most[tuple(pair)]), float(own[tuple(pair)])
            enough = max(enough, _enough(gain, loss, game))
    return enough


def up_to_scale(probability: float) -> Fraction:
    """Return a probability as a multiple of 1 / `SCALE`, rounded up."""
    return Fraction(math.ceil(Fraction(probability) * SCALE), SCALE)


def _enough(gain: float, loss: float, game: Game) -> float:
    """Return q with ``(1 - q) gain <= q loss``, with room for the rounding of both."""
    gain += _SLACK * game.range_length
    return min(1.0, gain / (gain + max(loss - _SLACK * game.range_length, 0.0)) * (1 + _SLACK))
