"""Regret against epsilon: what a lie gains in one game, beside what the theorem allows in any.

>>> from sfumato.games import Game
>>> game = Game(types="ab", alternatives=(0, 1, 2), utilities=[[0, 1, 0.4], [1, 0.3, 0]], agents=4)
>>> curve = regret_curve(game, epsilons=(0.5, 1.0))
>>> bool((curve.upper <= curve.bound).all()), curve.exact
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.curves.revenue_curve import as_epsilons
from sfumato.games.exponential_choice import ExponentialChoice
from sfumato.games.game import Game
from sfumato.games.incentives.largest_gain import regret
from sfumato.games.social_choice import SocialChoice
from sfumato.mechanisms.base.release import read_only
from sfumato.privacy.interpretation.plotting import axes

__all__ = ["RegretCurve", "regret_curve"]

_Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegretCurve:
    """The largest gain of a lie and its bound for several epsilons; it follows from public parameters.

    Parameters
    ----------
    epsilons, lower, upper, bound : float64 array of shape (points,)
        See `Regret`: the two ends of the largest gain, and what the theorem allows.
    exact : bool
        Whether all reports of the others were examined at all points.

    Examples
    --------
    >>> from sfumato.games import Game, regret_curve
    >>> game = Game(types="ab", alternatives=(0, 1, 2), utilities=[[0, 1, 0.4], [1, 0.3, 0]], agents=4)
    >>> print(str(regret_curve(game, epsilons=(1.0,))).splitlines()[0])
    epsilon  largest gain    bound
    """

    epsilons: _Floats
    lower: _Floats
    upper: _Floats
    bound: _Floats
    exact: bool

    def plot(self, ax: Any = None) -> Any:
        """Draw the largest gain and its bound against epsilon; needs ``sfumato[plot]``, and shows nothing.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        ax = axes(ax)
        label = "in this game, exact" if self.exact else "in this game, at least"
        ax.plot(self.epsilons, np.maximum(self.lower, 0.0), label=label)
        ax.plot(self.epsilons, self.bound, linestyle=":", label="theorem, any game")
        ax.set_xscale("log")
        if (self.lower > 0).all():
            ax.set_yscale("log")
        ax.set_xlabel("epsilon")
        ax.set_ylabel("largest gain of a lie")
        ax.legend()
        return ax

    def __str__(self) -> str:
        lines = [f"{'epsilon':>7}  {'largest gain':>12}  {'bound':>7}"]
        for epsilon, gain, bound in zip(self.epsilons, self.lower, self.bound, strict=True):
            lines.append(f"{epsilon:>7g}  {gain:>12.4f}  {bound:>7.4f}")
        return "\n".join(lines if self.exact else [*lines, "by search: lies that gain more may exist"])


def regret_curve(
    game: Game, *, epsilons: Sequence[float], mechanism: Callable[[float], SocialChoice] | None = None
) -> RegretCurve:
    """Compute the largest gain of a lie for several epsilons.

    Parameters
    ----------
    game : Game
    epsilons : sequence of float
    mechanism : callable, optional
        Returns the mechanism of an epsilon; `ExponentialChoice` of the game unless given.

    Returns
    -------
    RegretCurve

    Raises
    ------
    ParameterError
        If there is no epsilon, or the mechanism is of another game.
    """
    _check.instance("game", game, Game, "pass Game(...)")
    listed = as_epsilons(epsilons)
    made = mechanism or (lambda epsilon: ExponentialChoice(game=game, epsilon=epsilon))
    found = [regret(made(epsilon), game) for epsilon in listed]
    return RegretCurve(
        epsilons=read_only(np.array(listed)),
        lower=read_only(np.array([each.gain.lower for each in found])),
        upper=read_only(np.array([each.gain.upper for each in found])),
        bound=read_only(np.array([each.bound for each in found])),
        exact=all(each.exact for each in found),
    )
