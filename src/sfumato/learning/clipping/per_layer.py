"""Clipping layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import bounded, clip_norm_of
from sfumato.learning.clipping.per_group import SeveralNorms, grouped_factors, root_of_squares
from sfumato.numerics.rounding import div_down, sqrt_up

__all__ = ["PerLayer", "layer_of"]


def layer_of(name: str) -> str:
    """Return the module that a parameter's name says it is in."""
    return name.rpartition(".")[0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PerLayer(SeveralNorms):
    """Clip each module's own parameters alike, such that all together have one norm.

    Parameters
    ----------
    clip_norm : float
        Over all layers: each is clipped to it over the root of their number.
    layers : sequence of str
        Names of the modules that have trained parameters; see `of`.
    allocation : {"optimal", "equal"}
        The smallest total noise, see `allocated`, or the same standard deviation everywhere.

    Notes
    -----
    Guarantee: see `PerGroup`.

    Examples
    --------
    >>> names = ["0.weight", "0.bias", "2.weight", "2.bias"]
    >>> clipping = PerLayer.of(names, clip_norm=1.0)
    >>> clipping.layers, clipping.groups(names)
    (('0', '2'), (0, 0, 1, 1))
    """

    clip_norm: float
    layers: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip_norm", clip_norm_of("clip_norm", self.clip_norm))
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.layers or len(set(self.layers)) != len(self.layers):
            remedy = "use PerLayer.of(names, clip_norm=...)"
            rule = "be one or more different names"
            _check.refuse_state("layers", rule, "there are none, or one occurs twice", remedy)
        self._check_allocation()

    @classmethod
    def of(cls, names: Sequence[str], *, clip_norm: float, allocation: str = "optimal") -> PerLayer:
        """Return the clipping for parameters of these names, such as ``module.named_parameters()`` gives.

        Parameters
        ----------
        names : sequence of str
            Names of parameters; a layer's weight and bias share a group.
        clip_norm : float
            The L2 bound on an example's whole gradient, over all layers.
        allocation : {"optimal", "uniform"}
            How the noise is allotted to the layers.

        Returns
        -------
        PerLayer
            With one group for each layer.
        """
        layers = tuple(dict.fromkeys(layer_of(name) for name in names))
        return cls(clip_norm=clip_norm, layers=layers, allocation=allocation)

    @property
    def layer_norm(self) -> float:
        """The clip norm of each layer."""
        return div_down(self.clip_norm, sqrt_up(float(len(self.layers))))

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the index of each parameter's layer; every layer must have a parameter.

        Parameters
        ----------
        names : sequence of str
            The parameters' names.

        Returns
        -------
        tuple of int
            The group of each parameter, from 0.
        """
        indices = {layer: index for index, layer in enumerate(self.layers)}
        for name in names:
            if layer_of(name) not in indices:
                remedy = "make them by PerLayer.of"
                _check.refuse_state("layers", "hold every parameter", f"{name!r} is in none", remedy)
        if len({layer_of(name) for name in names}) != len(indices):
            _check.refuse("layers", "be of trained parameters only", self.layers, "make them by PerLayer.of")
        return tuple(indices[layer_of(name)] for name in names)

    def factors(self, squared_norms: Tensor) -> Tensor:
        """Return the layer's clip norm over its norm, at most 1.

        Parameters
        ----------
        squared_norms : Tensor of shape (groups, examples)
            Of each example's gradient.

        Returns
        -------
        Tensor of shape (groups, examples)
            At most what keeps each example within its bound; 0 where a norm is not finite.
        """
        return grouped_factors(squared_norms, [self.layer_norm] * len(self.layers))

    @property
    def sensitivity(self) -> float:
        """At most the clip norm, and what floats may add."""
        return min(bounded(self.clip_norm), root_of_squares(self.group_sensitivities))

    @property
    def group_sensitivities(self) -> tuple[float, ...]:
        """Each layer's clip norm, and what floats may add."""
        return (bounded(self.layer_norm),) * len(self.layers)
