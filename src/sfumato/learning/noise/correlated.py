"""Noise that is correlated over steps: it cancels in the sum of all gradients so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sfumato import _check
from sfumato.learning.noise.keyed import change_entries
from sfumato.learning.noise.noise import Noise, ParameterSlice, Slices
from sfumato.learning.noise.noise_key import NoiseKey
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.strategy import NoiseStream, Strategy
from sfumato.numerics.randomness.keyed_normal import add_normals
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CorrelatedNoise"]


@final
class CorrelatedNoise(Noise):
    r"""Noise of a matrix factorization, :math:`C^{-1} z` for fresh normal z: prefix sums have little of it.

    Parameters
    ----------
    strategy : Strategy
        `BinaryTree` of `sfumato.mechanisms` is DP-FTRL, `BandedToeplitz`, `BufferedToeplitz` and `SquareRoot`
        have less error; see `sfumato.learning.noise.strategy_choice.choose_strategy`.
    participation : Participation
        In which steps one unit's examples may be: the sampler must keep to it.
    key : bytes, optional
        32 secret bytes, used for one run only; fresh from the operating system unless given.
    seed : int, optional
        In place of a key, for simulation only.

    Notes
    -----
    Guarantee: `loss`, for all steps together, if every step's sum of clipped gradients moves by at most the
    sensitivity that the deviations are taken for, and a unit takes part as stated. Steps are not sampled:
    there is no amplification. Deviations must be the same at every step, so that clip norms stay as they are.

    Memory is ``memory`` arrays of float64 for each parameter. Steps go in order; any other step starts the
    recurrence again from the key, at the cost of all steps before it.

    References
    ----------
    Kairouz et al. (2021), "Practical and private (deep) learning without sampling or shuffling", DP-FTRL;
    Denisov et al. (2022), "Improved differential privacy for SGD via optimal private linear operators on
    adaptive streams"; Choquette-Choo et al. (2023), "(Amplified) banded matrix factorization".

    Examples
    --------
    >>> import torch
    >>> from sfumato.mechanisms import BandedToeplitz, Participation
    >>> strategy = BandedToeplitz(steps=100, bands=[1.0, 0.5])
    >>> noise = CorrelatedNoise(strategy, participation=Participation(max_participations=None, separation=50))
    >>> noise.memory, round(noise.loss(4.0).gdp().mu, 4)
    (1, 0.3953)
    >>> sums = [torch.zeros(3)]
    >>> noise.add_(sums, step=0, stddevs=[4.0])
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        participation: Participation = ONCE,
        key: bytes | None = None,
        seed: int | None = None,
    ) -> None:
        self.strategy = strategy
        self.participation = participation
        self._key = NoiseKey.of(key, seed)
        self._rows = self._key.subkey("correlated rows")
        self._streams: list[_Parameter] = []

    @property
    def key(self) -> bytes:
        """The secret key, to be sealed with a run that is to be resumed."""
        return self._key.secret

    @property
    def simulated(self) -> bool:
        """Whether the noise follows from a seed; then it protects nobody."""
        return self._key.simulated

    @property
    def memory(self) -> int:
        """How many arrays of each parameter's size are retained."""
        return self.strategy.noise().memory

    def loss(self, noise_multiplier: float, *, neighboring: Neighboring = Neighboring.ADD_REMOVE) -> Gaussian:
        """Return the loss of all steps together.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the fresh noise over the sensitivity of one step's sum.
        neighboring : Neighboring
            The relation that this sensitivity is about.

        Returns
        -------
        Gaussian
            Of the whole run, however many steps of it were taken.
        """
        return self.strategy.loss(noise_multiplier, participation=self.participation, neighboring=neighboring)

    def _add(self, gradients: Sequence[Tensor], step: int, stddevs: Sequence[float], parts: Slices) -> None:
        if step >= self.strategy.steps:
            remedy = "make a strategy of more steps"
            _check.refuse("step", f"be below the strategy's {self.strategy.steps}", step, remedy)
        shapes = [
            (gradient.numel(), stddev, part)
            for gradient, stddev, part in zip(gradients, stddevs, parts, strict=True)
        ]
        if not self._streams:
            self._streams = [
                _Parameter(self.strategy, self._rows, index, shape) for index, shape in enumerate(shapes)
            ]
        if [stream.shape for stream in self._streams] != shapes:
            remedy = "keep parameters and clip norms as they are, or begin a new run"
            rule = "stay the same at every step, as the gradients' shapes"
            _check.refuse_state("stddevs", rule, "parameters or stddevs changed", remedy)
        for stream, gradient in zip(self._streams, gradients, strict=True):
            change_entries(gradient, stream.adding(step))

    def scalar(self, *, step: int, stddev: float) -> float:
        """Refuse: the noise of a number beside the gradients is not in this loss.

        Parameters
        ----------
        step : int
            The logical batch, from 0.
        stddev : float
            Standard deviation of the noise.

        Returns
        -------
        float
        """
        remedy = "use a clipping that does not adapt"
        rule = "be independent for a number released beside the gradients"
        return _check.refuse_state("noise", rule, "this noise is correlated over the steps", remedy)


class _Parameter:
    """The correlated noise of one parameter."""

    def __init__(
        self, strategy: Strategy, key: bytes, index: int, shape: tuple[int, float, ParameterSlice]
    ) -> None:
        self._strategy, self._key, self._index = strategy, key, index
        self.shape = shape
        self._restart()

    def _restart(self) -> None:
        self._stream: NoiseStream = self._strategy.noise()
        self._time = self._row = 0
        self._last: NDArray[np.float64] = np.zeros(0)

    def _draw(self) -> NDArray[np.float64]:
        entries, stddev, part = self.shape
        fresh = np.zeros(entries)
        stream = self._row, self._index
        add_normals(fresh, self._key, stream=stream, start=part.start, scale=stddev)
        self._row += 1
        return fresh

    def adding(self, step: int) -> Any:
        """Return what adds a step's noise to entries; the last step's is retained, to be given again."""
        if step + 1 < self._time:
            self._restart()
        while self._time <= step:
            self._last = self._stream.send(self._draw)
            self._time += 1

        def add(entries: NDArray[Any]) -> None:
            np.add(entries, self._last, out=entries, casting="same_kind")

        return add
