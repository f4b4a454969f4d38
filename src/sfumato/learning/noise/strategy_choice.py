"""Which correlated noise is best for a run: optimised for its steps, participation and optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from sfumato.mechanisms.factorization.strategies.binary_tree import BinaryTree
from sfumato.mechanisms.factorization.strategies.buffered_toeplitz import BufferedToeplitz
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.strategy import Strategy

__all__ = ["Candidate", "StrategyChoice", "choose_strategy", "optimizer_workload"]

_MAX_BUFFERS = 5


def optimizer_workload(
    steps: int, *, momentum: float = 0.0, weight_decay: float = 0.0
) -> NDArray[np.float64]:
    r"""Return how much of a step's noise is in the parameters, by its age.

    Parameters
    ----------
    steps : int
    momentum : float
        Of SGD, in [0, 1), without dampening: :math:`m_t = \mu m_{t-1} + g_t`.
    weight_decay : float
        The learning rate times the weight decay, decoupled, in [0, 1): :math:`w_t = (1 - \lambda) w_{t-1} -
        \eta m_t`.

    Returns
    -------
    ndarray of shape (steps,)
        :math:`\sum_{i \le a} \mu^i (1 - \lambda)^{a-i}` for the age a: all ones for plain SGD, whose
        parameters are a prefix sum. The learning rate is constant, and its value does not matter.

    Examples
    --------
    >>> optimizer_workload(4, momentum=0.5).tolist()
    [1.0, 1.5, 1.75, 1.875]
    """
    _check.integer("steps", steps, minimum=1)
    carried = _check.probability("momentum", momentum)
    decay = 1 - _check.probability("weight_decay", weight_decay)
    weights = np.empty(steps)
    velocity = weight = 1.0
    for age in range(steps):
        weights[age] = weight
        velocity *= carried
        weight = decay * weight + velocity
    return weights


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A strategy and what it is worth.

    Parameters
    ----------
    name : str
    strategy : Strategy
    error : float
        Root of the mean expected squared noise in the parameters over all steps, at the same loss for all
        candidates: that of a noise multiplier of 1 and the strategy's sensitivity.
    memory : int
        How many copies of the model its noise keeps.
    """

    name: str
    strategy: Strategy
    error: float
    memory: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrategyChoice:
    """The best of some candidates.

    Parameters
    ----------
    best : Candidate
    independent : Candidate
        Noise that is drawn anew at every step, not amplified by sampling.
    candidates : tuple of Candidate
        From the smallest error to the largest.
    """

    best: Candidate
    independent: Candidate
    candidates: tuple[Candidate, ...]

    @property
    def strategy(self) -> Strategy:
        """The best strategy."""
        return self.best.strategy

    @property
    def gain(self) -> float:
        """By how many times the error of independent noise is the greater."""
        return self.independent.error / self.best.error


def choose_strategy(
    *,
    steps: int,
    participation: Participation = ONCE,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    memory: int = 8,
) -> StrategyChoice:
    """Optimise correlated noise for a run, and compare it with independent noise.

    Parameters
    ----------
    steps : int
        Of the whole run.
    participation : Participation
        In which steps one unit's examples may be.
    momentum, weight_decay : float
        Of the optimizer, see `optimizer_workload`.
    memory : int
        How many copies of the model the noise may keep.

    Returns
    -------
    StrategyChoice
        Among independent noise, banded and buffered Toeplitz strategies of the memory allowed, and, for plain
        SGD, the tree of DP-FTRL.

    Notes
    -----
    Guarantee: none by itself; a strategy's loss is `CorrelatedNoise.loss`. The choice depends on public
    parameters only. Its errors are of the noise alone, and without amplification by sampling, which
    independent noise would have under Poisson sampling: compare losses before choosing between the two.

    Examples
    --------
    >>> epochs = Participation(max_participations=None, separation=64)
    >>> choice = choose_strategy(steps=256, participation=epochs, memory=4)
    >>> choice.gain > 2, choice.best.memory <= 4
    (True, True)
    """
    workload = optimizer_workload(steps, momentum=momentum, weight_decay=weight_decay)
    _check.integer("memory", memory)
    plain = bool((workload == 1).all())
    found = []
    for name, strategy in _candidates(steps, participation, workload, memory, plain=plain):
        weights = None if plain else workload
        error = strategy.mean_error(participation, workload=weights)
        found.append(Candidate(name=name, strategy=strategy, error=error, memory=strategy.noise().memory))
    ranked = sorted(found, key=lambda candidate: (candidate.error, candidate.memory))
    return StrategyChoice(best=ranked[0], independent=found[0], candidates=tuple(ranked))


def _candidates(
    steps: int, participation: Participation, workload: NDArray[np.float64], memory: int, *, plain: bool
) -> Iterator[tuple[str, Strategy]]:
    yield "independent", BandedToeplitz(steps=steps, bands=[1.0])
    tree = BinaryTree(steps=steps)
    if plain and steps > 1 and tree.noise().memory <= memory:
        yield "tree", tree
    widest = min(memory + 1, steps)
    tried = {widest, min(participation.separation, widest), -(-widest // 2)}
    for bands in sorted(tried - {1}):
        yield (
            f"banded, {bands} bands",
            BandedToeplitz.optimal(steps=steps, bands=bands, participation=participation, workload=workload),
        )
    for buffers in range(1, min(memory, _MAX_BUFFERS) + 1 if steps > 1 else 1):
        strategy = BufferedToeplitz.optimal(
            steps=steps, buffers=buffers, participation=participation, workload=workload, objective="mean"
        )
        yield f"buffered, {buffers} buffers", strategy
