"""Noisy running sums of what agents do: the public state on which they act."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.mechanisms.factorization.continual_sum import ContinualSum
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.mechanisms.factorization.strategies.square_root import SquareRoot
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ActionCounter", "Send"]

_Floats: TypeAlias = NDArray[np.float64]
Send: TypeAlias = Callable[[NDArray[np.int64]], _Floats]
"""Takes how the agents of one step change the sums, and returns the sums so far with noise."""

_REPLACE: Final = Neighboring.REPLACE_ONE
_MOST: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ActionCounter:
    r"""Sums of agents' actions after each step, private for each agent's whole history of actions.

    Parameters
    ----------
    steps : int
        How many; public, at most 65,536.
    columns : int
        How many sums.
    turns : int
        The most steps in which one agent changes a sum.
    separation : int
        Two steps of one agent are at least this many apart.
    step_squared : int
        The most that one agent changes the sums in one step, in the squared L2 norm.
    state_squared : int
        The most by which the sums of two agents' changes so far differ, in the squared L2 norm.
    epsilon, delta : float
        Of all steps together.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP of all sums under replacing one agent's report. Fix the sums announced so
    far. Every other agent's next action is a function of these and of its own report, so it is the same for
    both reports of the agent, and the exact sums differ by this agent's actions alone. Two mechanisms are
    priced, and from public parameters the one with less noise is taken:

    - `sfumato.mechanisms.ContinualSum` with the square-root strategy, under replace-one, for an agent that
      takes part in ``turns`` steps at least ``separation`` apart, whose values may depend on earlier answers;
    - fresh noise on all sums in each step: on every path the differences of all steps together are at most
      ``steps * state_squared`` in the squared L2 norm, for which `sfumato.mechanisms.Gaussian` is priced.

    References
    ----------
    Hsu, Huang, Roth, Roughgarden, Wu (2014), "Private matchings and allocations"; Rogers, Roth (2014),
    "Asymptotically truthful equilibrium selection in large congestion games".

    Examples
    --------
    >>> counter = ActionCounter(steps=64, columns=3, turns=2, separation=8, step_squared=1, state_squared=2,
    ...                         epsilon=1.0, delta=1e-6)
    >>> counter.privacy_loss.epsilon(1e-6) <= 1, counter.continual, counter.error(0.05) < 150
    (True, True, True)
    """

    steps: int
    columns: int
    turns: int
    separation: int
    step_squared: int
    state_squared: int
    epsilon: float
    delta: float
    _mechanism: ContinualSum | Gaussian = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("steps", "columns", "turns", "separation", "step_squared", "state_squared"):
            _check.integer(name, getattr(self, name), minimum=1)
        if self.steps > _MOST:
            _check.refuse("steps", f"be at most {_MOST:,}", self.steps, "pass fewer rounds or larger blocks")
        continual = ContinualSum.calibrated(
            strategy=SquareRoot(steps=self.steps),
            sensitivity=sqrt_up(Fraction(self.step_squared)),
            epsilon=self.epsilon,
            delta=self.delta,
            participation=Participation(
                max_participations=self.turns, separation=min(self.separation, self.steps)
            ),
            l0=self.step_squared,
            integral=True,
            neighboring=_REPLACE,
        )
        fresh = Gaussian.calibrated(
            l2=sqrt_up(Fraction(self.steps * self.state_squared)),
            epsilon=self.epsilon,
            delta=self.delta,
            integral=True,
            neighboring=_REPLACE,
        )
        better = continual.stddevs.max() < float(fresh.stddev)
        object.__setattr__(self, "_mechanism", continual if better else fresh)

    @property
    def continual(self) -> bool:
        """Whether noise is that of a continual counter, not fresh in each step."""
        return isinstance(self._mechanism, ContinualSum)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Of all steps together."""
        return self._mechanism.privacy_loss

    @property
    def stddev(self) -> float:
        """The largest standard deviation of a sum's noise over all steps."""
        if isinstance(self._mechanism, ContinualSum):
            return float(self._mechanism.stddevs.max())
        return float(self._mechanism.stddev)

    def error(self, beta: float) -> float:
        r"""Bound the noise of all sums in all steps together, but for a chance of ``beta``.

        Parameters
        ----------
        beta : float
            Strictly between 0 and 1.

        Returns
        -------
        float

        Notes
        -----
        A discrete Gaussian variable is subgaussian with its parameter: :math:`E e^{tZ} = e^{t^2 \sigma^2/2}
        \sum_z e^{-(z - t \sigma^2)^2/2\sigma^2} / \sum_z e^{-z^2/2\sigma^2} \le e^{t^2\sigma^2/2}`, as by
        Poisson summation no shifted sum is larger than the one at 0. So is a weighted sum of independent
        ones, with the sum's variance; the rest is the union bound over both signs, steps and sums. One is
        added for what float arithmetic loses, which is less for fewer than 2^30 actions in all.
        """
        beta = _check.unit_interval("beta", beta)
        reach = math.sqrt(2 * math.log(2 * self.steps * self.columns / beta))
        return self.stddev * reach * (1 + 1e-9) + 1.0

    def open(self, source: RandomSource) -> Send:
        """Return a fresh counter: a function that takes each step's changes and returns the noisy sums.

        Parameters
        ----------
        source : RandomSource

        Returns
        -------
        callable
            For the curator: the loss is that of all steps, to be charged before the first.
        """
        mechanism = self._mechanism
        if isinstance(mechanism, ContinualSum):
            stream = mechanism.stream(source)
            return lambda change: np.asarray(stream.send(change).value, np.float64)
        state = np.zeros(self.columns, np.int64)

        def send(change: Any) -> _Floats:
            np.add(state, change, out=state)
            return np.asarray(mechanism.release(state, source).value, np.float64)

        return send
