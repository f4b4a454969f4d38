"""Draws from a density by its gradient."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, pi, sqrt
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from sfumato.synthetic.graphical_model.calibration import Array

__all__ = ["HamiltonianChains", "LogDensity"]

LogDensity: TypeAlias = Callable[[Array], tuple[Array, Array]]
"""From points, one in each row, to the logs of their densities and the gradients of these."""

_ACCEPTED: Final = 0.8
_LONGEST: Final = 40
_SHORTER: Final = 1.5


class _State(NamedTuple):
    """Where the chains are."""

    points: Array
    values: Array
    gradients: Array


@final
class HamiltonianChains:
    """Chains of draws from a density that is roughly standard normal, by Hamiltonian Monte Carlo.

    Parameters
    ----------
    density : callable
    parameters : int
    chains : int
        Side by side, from independent starts that are wider than a standard normal distribution.
    rng : numpy Generator

    Notes
    -----
    The leapfrog integrator for a time that is uniform about a quarter of the period of a normal density, then
    Metropolis's rule, which leaves the density as it is whatever the step is. Steps are shortened at random,
    to as little as a quarter, so that chains leave places of large curvature.

    References
    ----------
    Neal, "MCMC using Hamiltonian dynamics" (Handbook of Markov chain Monte Carlo, 2011); Hoffman, Gelman,
    "The No-U-Turn sampler" (JMLR 2014), section 3.2.1 for the step.

    Examples
    --------
    >>> normal = lambda points: (-0.5 * (points**2).sum(axis=1), -points)
    >>> chains = HamiltonianChains(normal, 2, chains=4, rng=np.random.default_rng(1))
    >>> chains.adapt(50)
    >>> drawn = chains.draw(500)
    >>> drawn.shape, bool(abs(drawn.std() - 1) < 0.05)
    ((4, 500, 2), True)
    """

    def __init__(
        self, density: LogDensity, parameters: int, *, chains: int, rng: np.random.Generator
    ) -> None:
        self._density, self._rng = density, rng
        points = 1.5 * rng.standard_normal((chains, parameters))
        self._state = _State(points, *density(points))
        self._choice = _StepChoice(parameters**-0.25)

    def adapt(self, draws: int) -> None:
        """Choose the step so that four proposals in five are accepted.

        Parameters
        ----------
        draws : int
            After which it is fixed.
        """
        for _ in range(draws):
            self._state, accepted = _moved(self._density, self._state, self._choice.trial, self._rng)
            self._choice.learn(accepted)

    def draw(self, draws: int) -> Array:
        """Return the next draws of each chain.

        Parameters
        ----------
        draws : int

        Returns
        -------
        array of shape (chains, draws, parameters)
        """
        drawn = np.empty((len(self._state.points), draws, self._state.points.shape[1]))
        for turn in range(draws):
            self._state, _ = _moved(self._density, self._state, self._choice.settled, self._rng)
            drawn[:, turn] = self._state.points
        return drawn


def _moved(density: LogDensity, state: _State, step: float, rng: np.random.Generator) -> tuple[_State, float]:
    """Return the chains' next points, and the mean probability of acceptance."""
    momenta = rng.standard_normal(state.points.shape)
    step *= exp(-_SHORTER * rng.random() ** 2)  # shared by all chains, and drawn without looking at them
    steps = min(_LONGEST, ceil(rng.uniform(0.25, 0.75) * pi / step))
    points, gradients, velocity = state.points, state.gradients, momenta
    values = state.values
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            velocity = velocity + 0.5 * step * gradients
            points = points + step * velocity
            values, gradients = density(points)
            velocity = velocity + 0.5 * step * gradients
        energy = state.values - 0.5 * (momenta**2).sum(axis=1)
        change = values - 0.5 * (velocity**2).sum(axis=1) - energy
    probability = np.exp(np.minimum(0.0, np.where(np.isnan(change), -np.inf, change)))
    taken = rng.random(len(points)) < probability
    return (
        _State(
            np.where(taken[:, None], points, state.points),
            np.where(taken, values, state.values),
            np.where(taken[:, None], gradients, state.gradients),
        ),
        float(probability.mean()),
    )


@final
class _StepChoice:
    """Dual averaging of the log of the step (Hoffman, Gelman 2014, algorithm 5)."""

    def __init__(self, first: float) -> None:
        self.trial = self.settled = first
        self._middle = np.log(10 * first)
        self._error, self._turns = 0.0, 0

    def learn(self, accepted: float) -> None:
        """Regard how many proposals were accepted."""
        self._turns += 1
        turns = self._turns
        self._error += (_ACCEPTED - accepted - self._error) / (turns + 10)
        log = self._middle - sqrt(turns) / 0.05 * self._error
        part = turns**-0.75
        self.settled = float(np.exp(part * log + (1 - part) * np.log(self.settled)))
        self.trial = float(np.exp(log))
