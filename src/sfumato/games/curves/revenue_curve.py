"""Revenue against epsilon: what a private price earns, beside its guarantees and the best single price.

>>> curve = revenue_curve([1.0, 2.0, 2.5] * 100, upper=3, epsilons=(0.1, 1.0))
>>> print(curve)
epsilon   expected  partition function  McSherry, Talwar
    0.1      366.5               310.1            -103.7
      1      397.0               384.1             308.3
optimum 400
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.auctions.digital_goods import DigitalGoods
from sfumato.mechanisms.base.release import read_only
from sfumato.privacy.interpretation.plotting import axes

__all__ = ["RevenueCurve", "revenue_curve"]

_Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RevenueCurve:
    """Expected revenue and its two lower bounds, for several epsilons: private as the bids are.

    Parameters
    ----------
    epsilons, expected, partition_function, mcsherry_talwar : float64 array of shape (points,)
        See `DigitalGoods.expected_revenue` and `RevenueGuarantee`.
    optimum : float
        The revenue of the best single price.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.games import revenue_curve
    >>> curve = revenue_curve(np.linspace(0, 1, 500), upper=1, epsilons=(0.1, 1.0, 10.0))
    >>> bool((curve.partition_function <= curve.expected).all()), bool((curve.expected < curve.optimum).all())
    (True, True)
    """

    epsilons: _Floats
    expected: _Floats
    partition_function: _Floats
    mcsherry_talwar: _Floats
    optimum: float

    def plot(self, ax: Any = None) -> Any:
        """Draw revenue over the optimum against epsilon; needs ``sfumato[plot]``, and shows nothing.

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
        for label, numbers in (
            ("expected", self.expected),
            ("partition function", self.partition_function),
            ("McSherry, Talwar", self.mcsherry_talwar),
        ):
            ax.plot(self.epsilons, np.maximum(numbers, 0.0) / (self.optimum or 1.0), label=label)
        ax.set_xscale("log")
        ax.set_xlabel("epsilon")
        ax.set_ylabel("revenue over the optimum")
        ax.legend()
        return ax

    def __str__(self) -> str:
        lines = [f"{'epsilon':>7} {'expected':>10}  {'partition function':>18}  {'McSherry, Talwar':>16}"]
        columns = self.epsilons, self.expected, self.partition_function, self.mcsherry_talwar
        for epsilon, earned, ours, theirs in zip(*columns, strict=True):
            lines.append(f"{epsilon:>7g} {earned:>10.1f}  {ours:>18.1f}  {theirs:>16.1f}")
        return "\n".join([*lines, f"optimum {self.optimum:g}"])


def revenue_curve(
    bids: Any, *, upper: float, epsilons: Sequence[float], supply: int | None = None
) -> RevenueCurve:
    """Compute what `DigitalGoods` earns for several epsilons: for the curator, as it reads the bids.

    Parameters
    ----------
    bids : array of shape (bidders,)
    upper : float
        The highest price.
    epsilons : sequence of float
    supply : int, optional
        How many units there are; unlimited unless given.

    Returns
    -------
    RevenueCurve

    Raises
    ------
    ParameterError
        If there is no epsilon, or as for `DigitalGoods`.
    """
    listed = as_epsilons(epsilons)
    auctions = [DigitalGoods(upper=upper, epsilon=epsilon, supply=supply) for epsilon in listed]
    bounds = [auction.revenue_guarantee(bids) for auction in auctions]
    return RevenueCurve(
        epsilons=read_only(np.array(listed)),
        expected=read_only(np.array([auction.expected_revenue(bids) for auction in auctions])),
        partition_function=read_only(np.array([bound.partition_function for bound in bounds])),
        mcsherry_talwar=read_only(np.array([bound.mcsherry_talwar for bound in bounds])),
        optimum=auctions[0].optimum(bids).revenue,
    )


def as_epsilons(epsilons: Any) -> list[float]:
    """Return positive epsilons, one or more, ascending."""
    listed = sorted(_check.positive("epsilons", epsilon) for epsilon in epsilons)
    if not listed:
        _check.refuse_state("epsilons", "be one or more", "there is none", "pass such as (0.1, 1.0, 10.0)")
    return listed
