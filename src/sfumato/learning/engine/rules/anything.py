"""The generic rule: whatever the call, its own backward, once for each example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor

from sfumato.learning.engine.gradients.per_example import RecomputedGradients, wide
from sfumato.learning.engine.rules.operation import BatchedCall, NoRule, Operation, autocast_as_now, run
from sfumato.learning.engine.trace.batch_layout import BatchLayout
from sfumato.learning.engine.trace.calls import called, tensors_in
from sfumato.learning.engine.vmap import over_examples

__all__ = ["anything"]


@final
class _Pulled(RecomputedGradients):
    """The gradients of one call, from its inputs and the gradient of its output."""

    __slots__ = ("_index", "_operation", "_outputs", "_values")

    def __init__(
        self, operation: _Anything, index: int, values: Sequence[Tensor], outputs: Sequence[Tensor | None]
    ) -> None:
        call = operation.call
        super().__init__(operation.parameters[index].shape, call.count, call.collector.max_entries)
        self._operation, self._index = operation, index
        self._values, self._outputs = list(values), list(outputs)

    def per_example(self, start: int, stop: int) -> Tensor:
        operation, count = self._operation, self.count
        values = [
            layout.examples(value, count)[start:stop]
            for layout, value in zip(operation.layouts, self._values, strict=True)
        ]
        outputs = [
            None if gradient is None else layout.examples(gradient, count)[start:stop]
            for layout, gradient in zip(operation.outputs, self._outputs, strict=True)
        ]
        return operation.per_example(self._index, values, outputs)

    def drop(self, examples: Tensor) -> None:
        layouts = (*self._operation.layouts, *self._operation.outputs)
        tensors = [
            None if tensor is None else _without(tensor, layout, examples)
            for tensor, layout in zip((*self._values, *self._outputs), layouts, strict=True)
        ]
        self._values = [tensor for tensor in tensors[: len(self._values)] if tensor is not None]
        self._outputs = tensors[len(self._values) :]


def _without(tensor: Tensor, layout: BatchLayout, examples: Tensor) -> Tensor:
    return torch.where(layout.expanded(examples, tensor), torch.zeros((), dtype=tensor.dtype), tensor)


@final
class _Anything(Operation):
    """A call whose tensors are split into those of examples, parameters, and the rest."""

    def __init__(self, call: BatchedCall) -> None:
        self.call = call
        tensors = call.tensors
        self.data_indices = [k for k, tensor in enumerate(tensors) if call.layout(tensor) is not None]
        self._parameter_indices = [k for k, tensor in enumerate(tensors) if call.followed(tensor)]
        self.parameters = [tensors[k] for k in self._parameter_indices]
        self.layouts = [call.batched(tensors[k]) for k in self.data_indices]
        self._context = autocast_as_now(tensors)
        self.outputs: list[BatchLayout] = []
        for layout in call.step.outputs:
            if not isinstance(layout, BatchLayout):
                raise NoRule
            self.outputs.append(layout)
        for parameter in self.parameters:
            call.collector.expect(parameter)

    def rerun(self, data: Sequence[Tensor], parameters: Sequence[Tensor]) -> list[Tensor]:
        """Call the function on other tensors."""
        tensors: list[Any] = [tensor.detach() for tensor in self.call.tensors]
        for index, tensor in zip(self.data_indices, data, strict=True):
            tensors[index] = tensor
        for index, tensor in zip(self._parameter_indices, parameters, strict=True):
            tensors[index] = tensor
        with self._context():
            self._form = called(self.call.func, self.call.args, self.call.kwargs, tensors)
        return tensors_in(self._form)

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        self.rerun(data, [parameter.detach() for parameter in self.parameters])
        form, self._form = self._form, None
        return form, (*data, *(parameter.detach() for parameter in self.parameters))

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        values = list(saved[: len(self.layouts)])
        for index, parameter in enumerate(self.parameters):
            self.call.collector.collect(parameter, _Pulled(self, index, values, gradients))
        if not any(needed):
            return [None] * len(needed)
        with torch.enable_grad():
            inputs = [v.detach().requires_grad_(n) for v, n in zip(values, needed, strict=True)]
            outputs = self.rerun(inputs, [parameter.detach() for parameter in self.parameters])
        present = [(o, g) for o, g in zip(outputs, gradients, strict=True) if g is not None]
        asked = [value for value, need in zip(inputs, needed, strict=True) if need]
        found = iter(
            torch.autograd.grad([o for o, _ in present], asked, [g for _, g in present], allow_unused=True)
        )
        return [next(found) if need else None for need in needed]

    def per_example(self, index: int, values: Sequence[Tensor], outputs: Sequence[Tensor | None]) -> Tensor:
        """Return the gradients of one parameter for the examples given."""
        fixed = [parameter.detach() for parameter in self.parameters]
        present = [output for output in outputs if output is not None]

        def one(values: Sequence[Tensor], present: Sequence[Tensor]) -> Tensor:
            def forward(parameter: Tensor) -> list[Tensor]:
                made = self.rerun(values, [*fixed[:index], parameter, *fixed[index + 1 :]])
                return [m for m, output in zip(made, outputs, strict=True) if output is not None]

            (gradient,) = torch.func.vjp(forward, fixed[index])[1](list(present))
            found: Tensor = gradient
            return found

        found: Tensor = over_examples(one, list(values), present)
        return wide(found)


def anything(call: BatchedCall, *_: Any, **__: Mapping[str, Any]) -> Any:
    """Run any call that maps examples to examples, with parameters beside them."""
    operation = _Anything(call)
    if not operation.layouts:
        raise NoRule
    return run(call.collector, operation, *(call.tensors[k] for k in operation.data_indices))
