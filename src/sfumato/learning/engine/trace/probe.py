"""Small batches in the likeness of a given one, and what a module's forward does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.utils._pytree
from torch import Tensor, nn

from sfumato.errors import UnfitModule
from sfumato.learning.engine.seeding import seed_torch
from sfumato.learning.engine.trace.activation_checkpointing import has_functions
from sfumato.learning.engine.trace.batch_layout import BatchLayout, Unclear, infer
from sfumato.learning.engine.trace.calls import called, tensors_in
from sfumato.learning.engine.trace.plan import ForwardPlan, compare, record

__all__ = ["ProbeResult", "few_examples", "probe", "size_of", "tensors_of", "undisturbed"]

_SEED = 20261121
_FEW = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What two small batches show of a forward.

    Parameters
    ----------
    plan : Plan or None
        None if the forward has none.
    outputs : sequence or None
        The layout of each tensor in the output: None for one that belongs to no example, False for an
        unclear one. None if the forward does not run on small batches.
    reason : str
        Why there is no plan.
    unseen : bool
        Whether there may be uses of parameters that are not among the calls of torch's functions: in autograd
        functions of the user's own, in scripts, in gradients that the forward takes itself, or under
        `torch.func.vmap`. A parameter that no call takes is a sign of one.
    needs_graph : bool
        Whether the forward does not run without a graph.
    """

    plan: ForwardPlan | None = None
    outputs: Sequence[BatchLayout | bool | None] | None = None
    reason: str = ""
    unseen: bool = False
    needs_graph: bool = False


def size_of(args: Sequence[Any], kwargs: Mapping[str, Any], batch_dim: int) -> int:
    """Return the number of examples: the size of the first tensor along the batch's dimension.

    Raises
    ------
    UnfitModule
        If no tensor has that dimension.
    """
    for tensor in tensors_in(args, kwargs):
        if tensor.dim() > batch_dim:
            return tensor.shape[batch_dim]
    raise UnfitModule(
        f"forward must take a tensor with the examples along dimension {batch_dim}, got none; "
        "pass the batch as an argument, or set batch_dim="
    )


def probe(
    module: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    batch_dim: int,
    parameters: Mapping[str, Tensor],
) -> ProbeResult:
    """Run the forward on two and on three examples, drawn from the entries of the given ones.

    Buffers and generators are put back. Only shapes and layouts come out.

    Raises
    ------
    UnfitModule
        If a checkpoint around trained parameters is reentrant.
    """
    outputs: list[Any] = [None, None]

    def runner(run_index: int, few: int) -> Callable[[], None]:
        def run() -> None:
            small = few_examples(args, kwargs, batch_dim, few)
            outputs[run_index] = called(module.forward, args, kwargs, small)

        return run

    try:
        with undisturbed(module):
            seed_torch(_SEED)
            two, _ = record(runner(0, 2))
            seed_torch(_SEED)
            three, checkpointed = record(runner(1, 3))
    except UnfitModule:
        raise
    except Exception as error:
        return ProbeResult(reason=f"it does not run on small batches ({type(error).__name__})")
    layouts = [_layout(a, b) for a, b in zip(*map(tensors_of, outputs), strict=True)]
    if checkpointed and has_functions(tensors_of(outputs[1])):
        return ProbeResult(outputs=layouts, reason="it has autograd functions of its own beside checkpoints")
    named = {id(tensor): name for name, tensor in parameters.items()}
    try:
        plan = compare(two, three, named, checkpointed=checkpointed)
    except Unclear as unclear:
        return ProbeResult(outputs=layouts, reason=str(unclear) or "its calls differ from batch to batch")
    scripted = any(isinstance(inner, torch.jit.ScriptModule) for inner in module.modules())
    inner_gradients = any(call.func is torch.autograd.grad for call in three)
    missing = not set(parameters) <= {key for step in plan.steps for key in step.keys}
    unseen = scripted or inner_gradients or missing or has_functions(tensors_of(outputs[1]))
    return ProbeResult(plan=plan, outputs=layouts, unseen=unseen)


def tensors_of(output: Any) -> list[Tensor]:
    """Return the tensors in an output, in the order of its tree."""
    leaves = torch.utils._pytree.tree_leaves(output)  # noqa: SLF001
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _layout(two: Tensor, three: Tensor) -> BatchLayout | bool | None:
    try:
        return infer(two, three)
    except Unclear:
        return False


def few_examples(args: Sequence[Any], kwargs: Mapping[str, Any], batch_dim: int, few: int) -> list[Tensor]:
    """Return the arguments' tensors with ``few`` examples, entries drawn from all of theirs."""
    count = size_of(args, kwargs, batch_dim)
    generator = torch.Generator().manual_seed(_SEED)
    small = []
    for tensor in tensors_in(args, kwargs):
        if tensor.dim() <= batch_dim or tensor.shape[batch_dim] != count or not tensor.numel():
            small.append(tensor)
            continue
        shape = [*tensor.shape]
        shape[batch_dim] = _FEW
        indices = torch.randint(tensor.numel(), shape, generator=generator).to(tensor.device)
        entries = tensor.detach().reshape(-1)[indices]
        if entries.is_floating_point():
            entries = entries.nan_to_num()
        small.append(entries.narrow(batch_dim, 0, few).requires_grad_(tensor.requires_grad))
    return small


@contextmanager
def undisturbed(module: nn.Module) -> Iterator[None]:
    """Make a context behind which buffers and generators are as before."""
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    devices = sorted({p.device.index or 0 for p in module.parameters() if p.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                if name in buffers:
                    buffer.copy_(buffers[name])
