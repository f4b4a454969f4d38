"""Functions that are run as the smaller calls they consist of, so that each use of a parameter is seen."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode

from sfumato.learning.engine.trace.recurrent import CELLS, LAYERS

__all__ = ["UnfusedRecurrence", "decomposition_of"]


def decomposition_of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[], Any] | None:
    """Return what runs in place of a call with a parameter among its arguments, if anything does."""
    decomposed = _DECOMPOSITIONS.get(func)
    if decomposed is None or (func in LAYERS and not _regular(args, kwargs)):
        return None
    if func in _AFFINE and not any(isinstance(value, Tensor) for value in _affine(func, args, kwargs)):
        return None
    return partial(decomposed, *args, **kwargs)


class UnfusedRecurrence(TorchFunctionMode):
    """Runs fused recurrent layers as loops over their cells: vmap has no rule for the fused ones."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        decomposed = decomposition_of(func, args, kwargs) if func in LAYERS or func in CELLS else None
        return func(*args, **kwargs) if decomposed is None else decomposed()


@cache
def _opened(func: Any) -> Callable[..., Any]:
    """Return a Python function of torch without its question whether someone overrides it."""
    names = {"has_torch_function": _nobody, "has_torch_function_unary": _nobody}
    space = func.__globals__ | names | {"has_torch_function_variadic": _nobody}
    fresh = types.FunctionType(func.__code__, space, func.__name__, func.__defaults__, func.__closure__)
    fresh.__kwdefaults__ = func.__kwdefaults__
    return fresh


def _nobody(*_: object) -> bool:
    return False


def _regular(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a recurrent layer gets sequences of one length; packed ones come with batch sizes."""
    return not kwargs and len(args) == 9 and not isinstance(args[3], Tensor)


_AFFINE = {F.rms_norm: 2, F.instance_norm: 3}


def _affine(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the weight and bias of a norm: without them it has no parameters to separate."""
    return (*args[_AFFINE[func] : _AFFINE[func] + 2], kwargs.get("weight"), kwargs.get("bias"))


def _rms_norm(
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    plain = F.rms_norm(input, list(normalized_shape), None, eps)
    return plain if weight is None else plain * weight


def _instance_norm(  # noqa: PLR0917 - the arguments of torch's own
    input: Tensor,  # noqa: A002
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    plain = F.instance_norm(
        input, running_mean, running_var, None, None, use_input_stats, momentum, eps
    ).movedim(1, -1)
    plain = plain if weight is None else plain * weight
    return (plain if bias is None else plain + bias).movedim(-1, 1)


def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:  # noqa: A002
    product = torch.mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    return product + (input if beta == 1 else input * beta)


def _in_place(change: Callable[[Tensor, Any], Tensor]) -> Callable[..., Any]:
    """Return what writes the result into the first argument, as the call would: others may look at it."""

    def run(one: Tensor, other: Any) -> Tensor:
        return one.copy_(change(one.clone(), other))

    return run


_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    F.multi_head_attention_forward: _opened(F.multi_head_attention_forward),
    F.rms_norm: _rms_norm,
    F.instance_norm: _instance_norm,
    **dict.fromkeys((torch.addmm, Tensor.addmm), _addmm),
    **dict.fromkeys((Tensor.add_, Tensor.__iadd__), _in_place(torch.add)),
    **dict.fromkeys((Tensor.sub_, Tensor.__isub__), _in_place(torch.sub)),
    **dict.fromkeys((Tensor.mul_, Tensor.__imul__), _in_place(torch.mul)),
    **LAYERS,
    **CELLS,
}
