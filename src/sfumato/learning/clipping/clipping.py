"""What every way of clipping is: factors for per-example gradients, and the sensitivity that follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from sfumato import _check
from sfumato.numerics.rounding import mul_up

if TYPE_CHECKING:
    from sfumato.learning.noise.noise import Noise

__all__ = ["SLACK", "Clipping", "bounded", "clip_norm_of", "finite_only", "norms_of"]

SLACK = 2.0**-12
"""By how much a clipped gradient may pass its bound, relative to it: what floats may lose of a norm."""

_MIN, _MAX = 2.0**-40, 2.0**40


def clip_norm_of(name: str, value: object) -> float:
    """Return a clip norm as a float, or refuse one whose square float32 cannot hold to full accuracy."""
    norm = _check.positive(name, value)
    if not _MIN <= norm <= _MAX:
        _check.refuse(name, "be between 2**-40 and 2**40", value, "rescale the loss")
    return norm


def bounded(norm: float) -> float:
    """Return the sensitivity that clipping to ``norm`` gives, the slack of floats included."""
    return mul_up(norm, 1 + SLACK)


def norms_of(squared_norms: Tensor) -> Tensor:
    """Return the norms, of shape (groups, examples); what rounding made negative counts as 0."""
    if squared_norms.dim() != 2 or squared_norms.dtype not in {torch.float32, torch.float64}:
        rule = "be float32 or float64 of shape (groups, examples)"
        _check.refuse_type("squared_norms", rule, squared_norms, "accumulate norms in float32")
    return squared_norms.clamp(min=0).sqrt()


def finite_only(factors: Tensor, squared_norms: Tensor) -> Tensor:
    """Return the factors, zero in all groups for an example with a norm that is not finite in any."""
    return torch.where(squared_norms.isfinite().all(0), factors, 0)


class Clipping(ABC):
    r"""By which factor each example's gradient enters the sum.

    Parameters are put into groups, and each group's part of an example's gradient has its own norm and
    factor. Subclasses are frozen dataclasses.

    Notes
    -----
    Guarantee: adding or removing one example moves the sum of clipped gradients by at most `sensitivity` in
    the L2 norm, if the engine's ``squared_norms`` are at least :math:`1 - 2^{-12}` times the squared norms of
    what the factors are applied to. Proof for a bound C: the norm computed is at least :math:`\sqrt{1 -
    2^{-12}}` of the true one, and square root, quotient and product lose less than :math:`2^{-20}` in
    float32; so a clipped gradient has at most the norm :math:`C (1 + 2^{-20}) / \sqrt{1 - 2^{-12}} < C (1 +
    2^{-12})`, which is the sensitivity that is stated. Sums of squares in float32 meet the condition up to
    4,000 terms in a row, and up to any number in pairs or blocks.

    The rounding of the sum over examples is not in it: like the noise, it is float (see `GridNoise`). An
    example with a gradient that is not finite contributes zero.

    Examples
    --------
    >>> from sfumato.learning import Flat
    >>> clipping: Clipping = Flat(clip_norm=0.5)
    >>> 0.5 < clipping.sensitivity < 0.501
    True
    """

    __slots__ = ()

    @abstractmethod
    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the group of each parameter, in the order of the names; groups count from 0.

        Parameters
        ----------
        names : sequence of str
            The parameters' names.

        Returns
        -------
        tuple of int
            The group of each parameter, from 0.
        """

    @abstractmethod
    def factors(self, squared_norms: Tensor) -> Tensor:
        """Return what to multiply each example's gradients by.

        Parameters
        ----------
        squared_norms : float32 or float64 Tensor of shape (groups, examples)

        Returns
        -------
        Tensor of shape (groups, examples)
            All zero for an example with a norm that is not finite.
        """

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """The most by which adding or removing one example moves the sum over all groups, in the L2 norm."""

    @property
    @abstractmethod
    def group_sensitivities(self) -> tuple[float, ...]:
        """The same for each group alone."""

    def stddevs(
        self, noise_multiplier: float, names: Sequence[str], sizes: Sequence[int]
    ) -> tuple[float, ...]:
        """Return the standard deviation of each parameter's noise.

        Parameters
        ----------
        noise_multiplier : float
            Of the step as a whole: its loss is that of ``Gaussian(noise_multiplier)``.
        names, sizes : sequence
            The parameters' names and numbers of entries.

        Returns
        -------
        tuple of float
            For the sums of clipped gradients, not for their means.
        """
        noise = _check.non_negative("noise_multiplier", noise_multiplier)
        if len(names) != len(sizes):
            remedy = "pass the sizes in the order of the names"
            rule = f"have one entry for each of the {len(names)} names"
            _check.refuse_state("sizes", rule, f"there are {len(sizes)}", remedy)
        return (mul_up(noise, self.sensitivity),) * len(names)

    def after(
        self,
        squared_norms: Tensor,
        *,
        noise_multiplier: float,
        expected_batch_size: float,
        step: int,
        noise: Noise,
    ) -> Self:
        """Return the clipping of the next step; the same unless it adapts.

        Parameters
        ----------
        squared_norms : Tensor of shape (groups, examples)
            Of the whole logical batch.
        noise_multiplier, expected_batch_size : float
            Of the run.
        step : int
            The step that the norms are of.
        noise : Noise
            What an adapting clipping draws from; its draws are part of the step's loss.

        Returns
        -------
        Clipping
            This very object, unless the clipping adapts.
        """
        return self

    @property
    def adapts(self) -> bool:
        """Whether the next step may clip otherwise: `after` is not the one that returns the same."""
        return type(self).after is not Clipping.after
