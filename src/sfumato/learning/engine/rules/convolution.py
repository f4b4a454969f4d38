"""Convolutions, plain and transposed, in one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor

from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.memory_pool import MemoryPool
from sfumato.learning.engine.gradients.per_example import (
    LARGE,
    DenseGradients,
    PerExampleGradients,
    squares,
    wide,
)
from sfumato.learning.engine.rules.im2col import autocorrelated, by_patches, suited, turned
from sfumato.learning.engine.rules.operation import BatchedCall, NoRule, Operation, lowered, run
from sfumato.learning.engine.trace.batch_layout import BatchLayout

__all__ = ["convolution"]

_DOUBTFUL = 1e-2


@final
class Form:
    """What a convolution is but for its tensors.

    Parameters
    ----------
    stride, padding, dilation, output_padding : sequence of int
        One number for each dimension of space.
    transposed : bool
    groups : int
    """

    def __init__(
        self,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        *,
        transposed: bool = False,
        output_padding: Sequence[int] = (0, 0, 0),
        groups: int = 1,
    ) -> None:
        self.stride, self.padding, self.dilation = list(stride), list(padding), list(dilation)
        self.transposed, self.groups = transposed, groups
        sides = (self.stride, self.padding, self.dilation)
        self._options = (*sides, transposed, list(output_padding), groups)

    def forward(self, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the convolution."""
        return torch.convolution(values, weight, bias, *self._options)

    def backward(self, gradient: Tensor, values: Tensor, weight: Tensor, *, of_input: bool) -> Tensor:
        """Return the gradient of the input, or the sum of the weight's."""
        mask = [of_input, not of_input, False]
        backward: Any = torch.ops.aten.convolution_backward
        found = backward(gradient, values, weight, None, *self._options, mask)
        chosen: Tensor = found[0 if of_input else 1]
        return chosen

    def per_example(self, gradients: Tensor, values: Tensor, weight: Tensor) -> Tensor:
        """Return the weight's gradient for each example."""

        def one(gradient: Tensor, value: Tensor) -> Tensor:
            return self.backward(gradient[None], value[None], weight, of_input=False)

        found: Tensor = torch.func.vmap(one)(gradients, values)
        return found

    def reach(self, gradients: Tensor, values: Tensor, weight: Tensor) -> Tensor:
        """Return the square of what the norms of an example's terms, one for each position, add up to."""
        sliding, fixed = (gradients, values) if self.transposed else (values, gradients)
        sliding, fixed = (t.unflatten(1, (self.groups, -1)).square().sum(2) for t in (sliding, fixed))
        ones = sliding.new_ones(self.groups, 1, *weight.shape[2:])
        none = [0] * len(self.stride)
        options = (self.stride, self.padding, self.dilation, False, none, self.groups)
        patches = torch.convolution(sliding, ones, None, *options)
        sizes: Tensor = patches.clamp(min=0).sqrt() * fixed.sqrt()
        return sizes.flatten(2).sum(2).square().sum(1)


@final
class Convolved(PerExampleGradients):
    """The gradients of a convolution's weight.

    Parameters
    ----------
    form : Form
    values, gradients : Tensor of shape (examples, channels, ...)
        The input and the output's gradient.
    weight : Tensor
        Its shape counts only.
    collector : GradientCollector
        Says how many entries of gradients may be stored, and where.
    """

    __slots__ = ("_collector", "_form", "_gradients", "_patched", "_values", "_weight", "_whole")

    def __init__(
        self, form: Form, values: Tensor, gradients: Tensor, weight: Tensor, collector: GradientCollector
    ) -> None:
        super().__init__(weight.shape, values.shape[0])
        self._form, self._weight, self._collector = form, wide(weight), collector
        self._values, self._gradients = wide(values), wide(gradients)
        self._patched = suited(form, self.shape, gradients)
        self._whole: Tensor | None = None

    def _made(self, values: Tensor, gradients: Tensor, pool: MemoryPool | None = None) -> Tensor:
        """Return per-example gradients of shape (pieces, examples, entries), in an order of their own."""
        if not self._patched:
            if pool is not None:
                pool.count(len(values) * math.prod(self.shape))
            return self._form.per_example(gradients, values, self._weight).reshape(1, len(values), -1)
        channels_out, channels_in, height, width = self.shape
        sides = (channels_out, width * channels_in)
        sides = sides[::-1] if turned(self.shape) else sides
        shape = (height, len(values), *sides)
        out = gradients.new_empty(shape) if pool is None else pool.take(shape, gradients)
        return by_patches(self._form, values, gradients, self.shape, out).flatten(2)

    def _ordered(self, pieces: Tensor) -> Tensor:
        """Return gradients, some or their sum, in the shape of the weight; pieces come first."""
        if not self._patched:
            return pieces[0].reshape(*pieces.shape[1:-1], *self.shape)
        channels_out, channels_in, height, width = self.shape
        if turned(self.shape):
            apart = pieces.reshape(height, *pieces.shape[1:-1], width, channels_in, channels_out)
            return apart.movedim((0, -3, -2, -1), (-2, -1, -3, -4))
        apart = pieces.reshape(height, *pieces.shape[1:-1], channels_out, width, channels_in)
        return apart.movedim((0, -1), (-2, -3))

    def per_example(self, start: int, stop: int) -> Tensor:
        """Return some gradients."""
        if self._whole is not None:
            return self._ordered(self._whole[:, start:stop])
        return self._ordered(self._made(self._values[start:stop], self._gradients[start:stop]))

    def weighted(self, factors: Tensor) -> Tensor:
        """Return the plain convolution's own backward, or the product with the stored gradients."""
        if self._whole is not None:
            return self._ordered(torch.stack([factors @ piece for piece in self._whole])).contiguous()
        shape = (-1, *[1] * (self._gradients.dim() - 1))
        gradients = self._gradients * factors.view(shape)
        return self._form.backward(gradients, self._values, self._weight, of_input=False)

    def squared_norms(self) -> Tensor:
        """Return them from the gradients, which are stored if they fit, or from small maps' correlations."""
        found = autocorrelated(self._form, self._values, self._gradients, self.shape)
        if found is not None:
            norms, reach = found
            doubtful = norms < _DOUBTFUL * reach
            for side in (self._values, self._gradients):
                doubtful |= side.abs().amax((1, 2, 3)).square() > LARGE
            if doubtful.any():
                chosen = doubtful.nonzero()[:, 0]
                norms[chosen] = self._by_parts(self._values[chosen], self._gradients[chosen])
            return self.without_faint(norms, reach)
        if self._collector.pool.holds(self.count * math.prod(self.shape)):
            self._whole = self._made(self._values, self._gradients, self._collector.pool)
            self._values = self._gradients = self._values.new_empty(0)  # the gradients say all
            return squares(self._whole).sum(0)
        reach = self._form.reach(self._gradients, self._values, self._weight)
        return self.without_faint(self._by_parts(self._values, self._gradients), reach)

    def _by_parts(self, values: Tensor, gradients: Tensor) -> Tensor:
        few = max(1, self._collector.max_entries // math.prod(self.shape))
        parts = zip(values.split(few), gradients.split(few), strict=True)
        return torch.cat([squares(self._made(v, g)).sum(0) for v, g in parts])

    def drop(self, examples: Tensor) -> None:
        """Fill inputs and gradients with zeros."""
        if self._whole is not None:
            self._whole[:, examples] = 0
            return
        values, gradients = self._values.clone(), self._gradients.clone()
        values[examples], gradients[examples] = 0, 0
        self._values, self._gradients = values, gradients


@final
class _Convolution(Operation):
    def __init__(self, collector: GradientCollector, form: Form, weight: Tensor, bias: Tensor | None) -> None:
        self._collector, self._form, self._weight, self._bias = collector, form, weight, bias
        for parameter in (weight, bias):
            if parameter is not None and id(parameter) in collector.followed:
                collector.expect(parameter)

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        (given,) = data
        self._dtype = given.dtype
        values, weight = lowered(given), lowered(self._weight.detach())
        bias = None if self._bias is None else lowered(self._bias.detach())
        return self._form.forward(values, weight, bias), (values, weight)

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        values, weight = saved
        gradient, collector = gradients[0], self._collector
        if id(self._weight) in collector.followed:
            collector.collect(self._weight, Convolved(self._form, values, gradient, weight, collector))
        if self._bias is not None and id(self._bias) in collector.followed:
            collector.collect(self._bias, DenseGradients(wide(gradient).sum([*range(2, gradient.dim())])))
        if not needed[0]:
            return (None,)
        return (self._form.backward(gradient, values, weight, of_input=True).to(self._dtype),)


def _each(value: Any, space: int) -> list[int]:
    return [value] * space if isinstance(value, int) else [*value] * (space if len(value) == 1 else 1)


def convolution(space: int, *, transposed: bool = False) -> Any:
    """Return the rule of a convolution of so many dimensions of space."""

    def plain(  # noqa: PLR0917 - the arguments of torch's own
        call: BatchedCall,
        input: Tensor,  # noqa: A002
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if isinstance(padding, str):
            padding = _named(padding, weight.shape[2:], _each(dilation, space))
        form = Form(
            _each(stride, space),
            _each(padding, space),
            _each(dilation, space),
            output_padding=[0] * space,
            groups=groups,
        )
        return _routed(call, form, input, weight, bias)

    def turned(  # noqa: PLR0917 - the arguments of torch's own
        call: BatchedCall,
        input: Tensor,  # noqa: A002
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        form = Form(
            _each(stride, space),
            _each(padding, space),
            _each(dilation, space),
            transposed=True,
            output_padding=_each(output_padding, space),
            groups=groups,
        )
        return _routed(call, form, input, weight, bias)

    def _routed(call: BatchedCall, form: Form, values: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
        call.shared(weight)
        call.shared(bias)
        if values.dim() != space + 2 or call.batched(values) != BatchLayout(0):
            raise NoRule
        if values.shape[0] != call.count:
            raise NoRule
        return run(call.collector, _Convolution(call.collector, form, weight, bias), values)

    return turned if transposed else plain


def _named(padding: str, kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Return what "valid" and "same" stand for; "same" only where both sides get as much."""
    if padding == "valid":
        return [0] * len(kernel)
    sides = [step * (size - 1) for size, step in zip(kernel, dilation, strict=True)]
    if any(side % 2 for side in sides):
        raise NoRule
    return [side // 2 for side in sides]
