"""The supply condition: how many copies of each good make a private allocation nearly optimal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_numbers

__all__ = ["SupplyCondition", "supply_condition"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SupplyCondition:
    r"""Whether the supply is large enough for welfare of at least OPT - alpha n, and what it takes.

    Parameters
    ----------
    alpha : float
        What may be lost for each of the n agents.
    supply : int
        The smallest of the goods' supplies.
    needed : float
        What it must be at least; infinite if it is beyond floats. More goods can be held where the supply is
        larger, so that more may be needed then: ask the market with that supply.
    step : float
        Of the prices.
    largest_step : float
        What it must be at most.
    unsatisfied : float
        How many agents the signal may announce as unsatisfied; below 0 if the noise alone is too large.
    shape : (int, int)
        Of the market's signals.

    Notes
    -----
    Theorem. Let ``holds`` be true. With probability at least 1 - beta, that of the market, more copies are
    never given than there are, and if `met` is true of the signal, welfare is at least OPT - alpha n.

    *Proof.* The notes of `PrivateAllocation` bound what is lost by three sums; each is at most alpha n / 3
    here. Let all noise be at most E, N be the most goods that are held, c the smallest width, and r the
    reserve. *Prices* cost 2 N steps. *Unsatisfied* agents are at most E more than announced, and each loses
    at most what all goods are worth. *Reserve*: nobody bids at a price of 1 or more, as a good alone is worth
    1 at most and adds no more to other substitutes. So a price is below 1 + step: with K the least whole
    number of steps that is 1 or more, the last bids come at a noisy count below K w, where w is the good's
    width; at most B agents bid in their block, and all later noisy counts are below K w + B + 2 E, which is
    at most (K + 1) w. A good with a positive price has at least c - 2 E holders, so there are at most
    N / (c - 2 E) such goods, and no more than there are goods. Each costs its price times 2 E + r.

    The paper has the same three parts, with counters and constants of its own: supplies that grow as
    1 / (alpha^3 epsilon) up to logarithms. These are the constants of this mechanism.

    References
    ----------
    Hsu, Huang, Roth, Roughgarden, Wu (2014), "Private matchings and allocations" (STOC).

    Examples
    --------
    >>> from sfumato.games import PrivateAllocation
    >>> market = PrivateAllocation(agents=30_000, supply=(9000, 9000), epsilon=4.0, delta=1e-3, step=0.05,
    ...                            rounds=6, blocks=100)
    >>> print(market.supply_condition(0.3))
    The supply condition holds for a loss of 0.3 an agent: 9000 copies, of ...
    """

    alpha: float
    supply: int
    needed: float
    step: float
    largest_step: float
    unsatisfied: float
    shape: tuple[int, int]

    @property
    def holds(self) -> bool:
        """Whether the theorem applies: supply, steps and noise are as they must be."""
        return self.supply >= self.needed and self.step <= self.largest_step and self.unsatisfied >= 0

    def met(self, signal: Any) -> bool:
        """Return whether the welfare of a run is at least OPT - alpha n, by the theorem.

        Parameters
        ----------
        signal : array of shape (steps, columns)
            The value of a release of the market.

        Returns
        -------
        bool
            Whether ``holds``, and few enough agents are announced as unsatisfied.

        Raises
        ------
        ParameterError
            If the signal is not of the market's shape.
        """
        announced = checked_signal(signal, *self.shape)[-1, -1]
        return self.holds and bool(announced <= self.unsatisfied)

    def __str__(self) -> str:
        says = "holds" if self.holds else "does not hold"
        return (
            f"The supply condition {says} for a loss of {self.alpha:g} an agent: {self.supply} copies, of "
            f"{self.needed:.0f} that it needs; price steps of {self.step:g}, of {self.largest_step:.3g} at "
            f"most; {self.unsatisfied:.0f} agents may be announced as unsatisfied."
        )


def supply_condition(
    alpha: float,
    *,
    agents: int,
    supply: Sequence[int],
    step: float,
    most_held: int,
    largest_value: float,
    error: float,
    reserve: float,
    shape: tuple[int, int],
) -> SupplyCondition:
    """Return the condition of a market; see `SupplyCondition`."""
    third = _check.positive("alpha", alpha) * agents / 3 * (1 - 1e-12)
    least = 2 * reserve
    each = (1 + step) * (2 * error + reserve)
    if len(supply) * each > third:
        least = max(least, reserve + 2 * error + most_held * each / third) if third else math.inf
    return SupplyCondition(
        alpha=float(alpha),
        supply=min(supply),
        needed=math.ceil(least * (1 + 1e-12)) if least < math.inf else math.inf,
        step=step,
        largest_step=third / (2 * most_held),
        unsatisfied=third / largest_value - error if largest_value else math.inf,
        shape=shape,
    )


def checked_signal(signal: Any, steps: int, columns: int) -> NDArray[np.float64]:
    """Return a signal as an array of the shape that a market's signals have."""
    remedy = "pass the value of a release of the market"
    found = as_numbers("signal", signal, remedy)
    if found.shape != (steps, columns):
        _check.refuse_state("signal", f"have the shape {(steps, columns)}", f"it is {found.shape}", remedy)
    return found
