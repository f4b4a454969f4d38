"""What every noise for training is: added in place, and known by its key, step and parameter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from sfumato import _check

__all__ = ["Noise", "ParameterSlice", "parts_of"]

_FLOATS = {torch.float32, torch.float64, torch.bfloat16, torch.float16}
_MAX_STEPS = 1 << 31


class ParameterSlice(NamedTuple):
    """Where a tensor's entries lie in the parameter that it is a run of, and how many that has.

    Attributes
    ----------
    start : int
        The place of the tensor's first entry.
    whole : int
        The entries of the whole parameter, in the order of their indices.
    """

    start: int
    whole: int


Slices: TypeAlias = Sequence[ParameterSlice]
"""One for each tensor."""


def parts_of(gradients: Sequence[Tensor], parts: Slices | None) -> Slices:
    """Return the parts that tensors are: the whole of each unless given.

    Raises
    ------
    ParameterError
        If one does not lie in its parameter.
    """
    if parts is None:
        return [ParameterSlice(0, gradient.numel()) for gradient in gradients]
    if len(parts) != len(gradients):
        rule = f"have one entry for each of the {len(gradients)} gradients"
        _check.refuse_state("parts", rule, f"there are {len(parts)}", "pass one part for each gradient")
    for gradient, (start, whole) in zip(gradients, parts, strict=True):
        if not 0 <= start <= whole - gradient.numel():
            _check.refuse_state(
                "parts",
                "lie in their parameters",
                f"one begins at {start}, and has {gradient.numel()} of {whole} entries",
                "check where the parts begin",
            )
    return parts


class Noise(ABC):
    """Normal noise for sums of clipped gradients.

    Notes
    -----
    The noise of an entry is a function of the key, the step, the parameter's position in the list and the
    entry's position in the parameter: the same call gives the same noise again, so a step must never be run
    on other gradients with the same key. Two gradients with one noise differ by no noise at all. So a noise
    that protects is neither copied nor pickled with what holds it: checkpoints seal its key apart.

    Examples
    --------
    >>> from sfumato.learning import SimulatedNoise
    >>> noise: Noise = SimulatedNoise(seed=1)
    >>> noise.simulated
    True
    """

    @property
    @abstractmethod
    def simulated(self) -> bool:
        """Whether the noise follows from a seed; then it protects nobody."""

    @property
    def float_safe(self) -> bool:
        """Whether noisy sums have exactly the accounted distribution, not only up to float arithmetic."""
        return False

    def charged(self, noise_multiplier: float, entries: int) -> float:
        """Return the noise multiplier that stands in the loss of a step.

        Parameters
        ----------
        noise_multiplier : float
            That the deviations were asked for.
        entries : int
            Of all gradients together.

        Returns
        -------
        float
            The same, unless what is drawn costs more.
        """
        return _check.non_negative("noise_multiplier", noise_multiplier)

    def __getstate__(self) -> object:
        if not self.simulated:
            raise TypeError(
                "noise must stay where it was made, got a copy or a pickle of it, which would hold its key; "
                "save the run by its checkpoint, which seals the key apart"
            )
        return super().__getstate__()

    def add_(
        self,
        gradients: Sequence[Tensor],
        *,
        step: int,
        stddevs: Sequence[float],
        parts: Slices | None = None,
    ) -> None:
        """Add a step's noise to sums of clipped gradients, in place.

        Parameters
        ----------
        gradients : sequence of Tensor
            Sums over examples, in the same order at every step.
        step : int
            The logical batch, from 0.
        stddevs : sequence of float
            Standard deviation of the noise on each tensor's entries.
        parts : sequence of ParameterSlice, optional
            Where each tensor lies in its parameter, if it is a run of its entries only; as many tensors as
            there are parameters, some of them empty. Parts that are cut from the same sums, each with its
            own noise, have together the noise of the whole.

        Raises
        ------
        ParameterError
            If a tensor is not floating, or the numbers of tensors, deviations and parts differ.
        """
        _check.integer("step", step)
        if step >= _MAX_STEPS:
            _check.refuse("step", "be below 2**31", step, "start a new run with a new key")
        if len(gradients) != len(stddevs):
            remedy = "pass one deviation for each gradient"
            rule = f"have one entry for each of the {len(gradients)} gradients"
            _check.refuse_state("stddevs", rule, f"there are {len(stddevs)}", remedy)
        for gradient, stddev in zip(gradients, stddevs, strict=True):
            _check.non_negative("stddevs", stddev)
            if gradient.dtype not in _FLOATS or gradient.layout is not torch.strided:
                remedy = "call to_dense() first"
                _check.refuse_type("gradients", "be dense tensors of floats", gradient, remedy)
        with torch.no_grad():
            self._add(gradients, step, stddevs, parts_of(gradients, parts))

    @abstractmethod
    def _add(self, gradients: Sequence[Tensor], step: int, stddevs: Sequence[float], parts: Slices) -> None:
        """Add noise to checked gradients."""

    @abstractmethod
    def scalar(self, *, step: int, stddev: float) -> float:
        """Return the noise of a step's one number beside the gradients, such as a count of those clipped.

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
