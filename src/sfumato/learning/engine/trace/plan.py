"""The plan of a module's forward: each use of a parameter, and where the examples lie in what it meets.

A plan comes from two runs of the forward on small batches, of two examples and of the same two and a third.
Comparing them call by call shows which tensors belong to single examples, along which dimension, and which
follow from parameters alone. A layout that the values contradict is none: the module then runs by the
fallbacks, which look at its inputs and outputs only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode

from sfumato.learning.engine.trace.activation_checkpointing import around
from sfumato.learning.engine.trace.batch_layout import BatchLayout, Unclear, infer
from sfumato.learning.engine.trace.calls import tensors_in
from sfumato.learning.engine.trace.decompositions import decomposition_of

__all__ = ["DETERMINISTIC", "ForwardPlan", "Step", "compare", "record"]


_Still = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


def _same(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return args[0] if args else kwargs["input"]


def _filled(value: float) -> _Still:
    def still(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return func(*args, **kwargs).fill_(value)

    return still


def _without_dropout(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    args = [*args[:4], 0.0, *args[5:]] if len(args) > 4 else args
    return func(*args, **{name: 0.0 if name == "dropout_p" else value for name, value in kwargs.items()})


def _in_eval(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    bound = inspect.signature(func).bind(*args, **kwargs)
    bound.arguments["training"] = False
    return func(*bound.args, **bound.kwargs)


DETERMINISTIC: dict[Any, _Still] = {
    **dict.fromkeys(
        (
            F.dropout,
            F.dropout1d,
            F.dropout2d,
            F.dropout3d,
            F.alpha_dropout,
            F.feature_alpha_dropout,
            torch.dropout,
            torch.dropout_,
            torch.alpha_dropout,
            torch.feature_dropout,
            torch.feature_alpha_dropout,
        ),
        _same,
    ),
    **dict.fromkeys((torch.rand, torch.rand_like, Tensor.uniform_), _filled(0.5)),
    **dict.fromkeys((torch.randn, torch.randn_like, Tensor.normal_, torch.normal), _filled(0.25)),
    **dict.fromkeys((torch.bernoulli, Tensor.bernoulli, Tensor.bernoulli_), _filled(1.0)),
    F.scaled_dot_product_attention: _without_dropout,
    F.rrelu: _in_eval,
}
"""Each function to what stands in for it."""


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One call that takes a parameter, or what follows from parameters.

    Parameters
    ----------
    func : callable
        What is called.
    keys : tuple of str
        The parameters by name, and what follows from them by number, in the order of the arguments.
    arguments, outputs : tuple
        The layout of each tensor; None for one that belongs to no example, False for an output with more
        than one layout that explains it.
    """

    func: Callable[..., Any]
    keys: tuple[str, ...]
    arguments: tuple[BatchLayout | None, ...]
    outputs: tuple[BatchLayout | bool | None, ...]

    @property
    def batched(self) -> bool:
        """Whether examples meet the parameters here; otherwise the outputs follow from parameters alone."""
        return any(layout is not None for layout in (*self.arguments, *self.outputs))


@final
@dataclass(frozen=True, slots=True)
class ForwardPlan:
    """The steps of one forward, in order, and whether a checkpoint is around some of them."""

    steps: tuple[Step, ...]
    checkpointed: bool = False

    def explained(self) -> str:
        """Return what each parameter meets, one line for each."""
        lines: dict[str, list[str]] = {}
        for step in self.steps:
            kind = getattr(step.func, "__name__", str(step.func)) + (
                "" if step.batched else " (made from it)"
            )
            for key in step.keys:
                lines.setdefault(key, []).append(kind)
        shown = [f"{key}: {', '.join(kinds)}" for key, kinds in lines.items()]
        left_out = "checkpoints are left out, so they save no memory; pass chunk= where it is short"
        return "\n".join([*shown, left_out] if self.checkpointed else shown)


@final
@dataclass(frozen=True, slots=True)
class Recorded:
    """One call, with its tensors held so that their identities stay apart."""

    func: Callable[..., Any]
    arguments: Sequence[Tensor]
    outputs: Sequence[Tensor]


@dataclass
class _Recorder(TorchFunctionMode):
    calls: list[Recorded] = field(default_factory=list)
    checkpointed: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in DETERMINISTIC:
            return DETERMINISTIC[func](func, args, kwargs)
        decomposed = decomposition_of(func, args, kwargs)
        if decomposed is not None:
            with self:
                return decomposed()
        arguments = tensors_in(args, kwargs)
        self.checkpointed |= around(arguments)
        output = func(*args, **kwargs)
        outputs = tensors_in(output)
        if outputs:
            self.calls.append(Recorded(func, arguments, outputs))
        elif _writes(func):
            self.calls.append(Recorded(func, arguments, ()))
        return output


def _writes(func: Any) -> bool:
    return getattr(func, "__name__", "") in {"__setitem__", "backward"}


def record(run: Callable[[], object]) -> tuple[Sequence[Recorded], bool]:
    """Return every call of a torch function with a tensor among its results; and if one is checkpointed.

    Raises
    ------
    UnfitModule
        If a reentrant checkpoint is around trained parameters.
    """
    recorder = _Recorder()
    with torch.enable_grad(), recorder:
        run()
    return recorder.calls, recorder.checkpointed


def compare(
    two: Sequence[Recorded],
    three: Sequence[Recorded],
    parameters: Mapping[int, str],
    *,
    checkpointed: bool = False,
) -> ForwardPlan:
    """Make the plan out of the calls of both runs.

    Parameters
    ----------
    two, three : sequence of Recorded
        The calls with two examples, and with those and a third.
    parameters : mapping of int to str
        The identity of each parameter that requires a gradient, to its name.
    checkpointed : bool
        Whether a checkpoint is around some of the calls.

    Raises
    ------
    Unclear
        If the runs differ in their calls, or a call's tensors have no layout.
    """
    if [call.func for call in two] != [call.func for call in three]:
        raise Unclear
    known = dict(parameters)
    steps: list[Step] = []
    for one, other in zip(two, three, strict=True):
        keys = tuple(known[id(tensor)] for tensor in other.arguments if id(tensor) in known)
        if not keys:
            continue
        if not other.outputs:
            raise Unclear  # written into in place
        if not any(tensor.requires_grad for tensor in other.outputs):
            continue
        steps.append(_step(one, other, keys, known))
        if not steps[-1].batched:
            for index, tensor in enumerate(other.outputs):
                known.setdefault(id(tensor), f"~{len(steps) - 1}.{index}")
    return ForwardPlan(tuple(steps), checkpointed)


def _step(one: Recorded, other: Recorded, keys: tuple[str, ...], known: Mapping[int, str]) -> Step:
    if len(one.arguments) != len(other.arguments) or len(one.outputs) != len(other.outputs):
        raise Unclear
    arguments = tuple(
        None if id(b) in known else infer(a, b) for a, b in zip(one.arguments, other.arguments, strict=True)
    )
    return Step(other.func, keys, arguments, tuple(map(_output, one.outputs, other.outputs)))


def _output(one: Tensor, other: Tensor) -> BatchLayout | bool | None:
    try:
        return infer(one, other)
    except Unclear:
        return False
