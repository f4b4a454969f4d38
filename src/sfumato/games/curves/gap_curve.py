"""Equilibrium gap against the number of agents: how private play nears an equilibrium in large games.

>>> from sfumato.games import EquilibriumGap
>>> curve = gap_curve((100, 400), lambda n: EquilibriumGap(mean=50 / n, largest=1.0, mean_lower=0.0,
...                                                        travel_time=2.0))
>>> print(curve)
 agents  mean gap over cost  largest gap
    100              0.2500       1.0000
    400              0.0625       1.0000
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.joint.congestion_game import PlayRegret
from sfumato.games.joint.roads import EquilibriumGap
from sfumato.mechanisms.base.release import read_only
from sfumato.privacy.interpretation.plotting import axes, label_text

__all__ = ["GapCurve", "gap_curve"]

_Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GapCurve:
    """How much agents would gain by leaving their parts, for several numbers of agents: private.

    Parameters
    ----------
    agents : int64 array of shape (points,)
        How many.
    relative : float64 array of shape (points,)
        The mean gain over the mean cost.
    largest : float64 array of shape (points,)
        The largest gain of an agent, in the unit of the costs.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.games import GapCurve
    >>> curve = GapCurve(agents=np.array([10, 100]), relative=np.array([0.5, 0.1]), largest=np.ones(2))
    >>> curve.relative.tolist()
    [0.5, 0.1]
    """

    agents: NDArray[np.int64]
    relative: _Floats
    largest: _Floats

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the relative gap against the number of agents; needs ``sfumato[plot]``, and shows nothing.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.
        label : str, optional
            Of the line; there is a legend if it is given.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        ax = axes(ax)
        ax.plot(self.agents, self.relative, marker="o", label=None if label is None else label_text(label))
        ax.set_xscale("log")
        if (self.relative > 0).all():
            ax.set_yscale("log")
        ax.set_xlabel("agents")
        ax.set_ylabel("mean gain of leaving, over the mean cost")
        if label:
            ax.legend()
        return ax

    def __str__(self) -> str:
        lines = [f"{'agents':>7}  {'mean gap over cost':>18}  {'largest gap':>11}"]
        for count, relative, largest in zip(self.agents, self.relative, self.largest, strict=True):
            lines.append(f"{count:>7}  {relative:>18.4f}  {largest:>11.4f}")
        return "\n".join(lines)


def gap_curve(agents: Sequence[int], play: Callable[[int], EquilibriumGap | PlayRegret]) -> GapCurve:
    """Play a game with several numbers of agents: for the curator, as the gap reads reports and parts.

    Parameters
    ----------
    agents : sequence of int
        How many there are in each run.
    play : callable
        Takes a number of agents, runs a mechanism for so many, and returns how far from equilibrium it ends:
        what `RoadNetwork.equilibrium_gap` returns, or `CongestionGame.play_regret`.

    Returns
    -------
    GapCurve

    Raises
    ------
    ParameterError
        If there is no number of agents, or something else is returned.
    """
    counts = sorted(_check.integer("agents", count, minimum=1) for count in agents)
    if not counts:
        _check.refuse_state("agents", "be one or more", "there is none", "pass such as (100, 1000, 10_000)")
    found = [_relative(play(count)) for count in counts]
    return GapCurve(
        agents=read_only(np.array(counts, np.int64)),
        relative=read_only(np.array([relative for relative, _ in found])),
        largest=read_only(np.array([largest for _, largest in found])),
    )


def _relative(found: object) -> tuple[float, float]:
    if isinstance(found, PlayRegret):
        return found.mean_external / found.cost if found.cost else 0.0, found.external
    if not isinstance(found, EquilibriumGap):
        remedy = "return what equilibrium_gap or play_regret returns"
        _check.refuse_type("play", "return an EquilibriumGap or a PlayRegret", found, remedy)
    return found.relative, found.largest
