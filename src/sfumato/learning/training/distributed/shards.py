"""Modules whose parameters are cut up between processes: whole in a step, apart at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from sfumato import _check
from sfumato.learning.noise.noise import ParameterSlice

__all__ = ["Shards", "apart_as", "check_shards", "cut_module", "cut_optimizer", "gathered"]


def check_shards(module: nn.Module) -> None:
    """Refuse parameters that are cut up otherwise than by `fully_shard`, over all processes.

    Raises
    ------
    ParameterError
        With the remedy.
    """
    if any(isinstance(part, FullyShardedDataParallel) for part in module.modules()):
        remedy = "use torch.distributed.fsdp.fully_shard, which leaves each parameter its name and shape"
        rule = "keep each parameter by itself"
        _check.refuse_state("module", rule, "FullyShardedDataParallel flattens them", remedy)
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.reshard()
    cut = [isinstance(parameter, DTensor) for parameter in module.parameters()]
    if not any(cut) and not isinstance(module, FSDPModule):
        return
    if not all(cut) or not isinstance(module, FSDPModule):
        remedy = "call fully_shard(module) on the whole module too"
        rule = "have all of its parameters sharded by fully_shard"
        _check.refuse_state("module", rule, "some are not", remedy)
    for parameter in module.parameters():
        mesh = parameter.device_mesh  # type: ignore[attr-defined]
        by_rows = parameter.placements == (Shard(0),)  # type: ignore[attr-defined]
        if not by_rows or mesh.size() != dist.get_world_size():
            remedy = "call fully_shard without a mesh of several dimensions, replicas or another placement"
            rule = "be sharded by rows over all processes"
            _check.refuse_state("module", rule, "its mesh or placement is another", remedy)
    for part in module.modules():
        if isinstance(part, FSDPModule):
            _check_policy(part)


def _check_policy(part: FSDPModule) -> None:
    state = part._get_fsdp_state()  # noqa: SLF001
    policy = state._mp_policy  # noqa: SLF001
    if any(dtype is not None for dtype in (policy.param_dtype, policy.reduce_dtype, policy.output_dtype)):
        remedy = "use torch.autocast in the forward"
        rule = "have no precision policy"
        _check.refuse_state("module", rule, "fully_shard was given a MixedPrecisionPolicy", remedy)
    if {parameter.device.type for parameter in part.parameters()} != {state._device.type}:  # type: ignore[attr-defined]  # noqa: SLF001
        remedy = "leave offload_policy= out"
        rule = "keep its parameters on the device that it runs on"
        _check.refuse_state("module", rule, "fully_shard was given a CPUOffloadPolicy", remedy)
    for hooks in _hooks_of(part):
        if not any(_is_own(hook, part) for hook in hooks.values()):
            remedy = "call fully_shard on each module by itself"
            rule = "be sharded module by module"
            _check.refuse_state("module", rule, "one call took several modules", remedy)


def _hooks_of(part: Any) -> tuple[dict[int, Any], dict[int, Any]]:
    return part._forward_pre_hooks, part._forward_hooks  # noqa: SLF001


def _is_own(hook: object, part: FSDPModule) -> bool:
    return getattr(hook, "__self__", None) is part._get_fsdp_state()  # noqa: SLF001


@final
class Shards:
    """The parts that this process holds of a module's parameters; all of each where nothing is cut up.

    Parameters
    ----------
    module : torch.nn.Module
        Checked by `check_shards`.

    Notes
    -----
    From its forward to the optimizer's step a module is whole in each process: gathered before a forward by
    its own ``unshard``, given up by ``reshard``. So per-example gradients are those of whole parameters, and
    are clipped by whole norms; what is cut up for good is parameters at rest, released gradients and the
    optimizer's state. The hooks by which `fully_shard` would gather layers one by one, and add up gradients
    that nobody clipped, are off until `release`.
    """

    def __init__(self, module: nn.Module) -> None:
        self._parts = [part for part in module.modules() if isinstance(part, FSDPModule)]
        self._handles: list[Any] = []
        self._taken: list[tuple[dict[int, Any], dict[int, Any]]] = []
        self.apart()
        self.named: dict[str, nn.Parameter] = dict(module.named_parameters())
        """The parameters at rest: those that the optimizer steps."""

    def take(self) -> None:
        """Have every forward begin with whole parameters, and nothing else of `fully_shard` happen in it."""
        for part in self._parts:
            for hooks in _hooks_of(part):
                own = {number: hook for number, hook in hooks.items() if _is_own(hook, part)}
                self._taken.append((hooks, own))
                for number in own:
                    del hooks[number]
            module: Any = part
            self._handles.append(module.register_forward_pre_hook(self._before, prepend=True))

    def release(self) -> None:
        """Give `fully_shard` its hooks back."""
        for handle in self._handles:
            handle.remove()
        for hooks, own in self._taken:
            later = dict(hooks)
            hooks.clear()
            hooks.update(own | later)
        self._handles, self._taken = [], []
        self.apart()

    def _before(self, *_: object) -> None:
        self.whole()

    def whole(self) -> None:
        """Gather all parameters; every process must call this."""
        for part in self._parts:
            part.unshard()

    def apart(self) -> None:
        """Let go of what other processes hold."""
        for part in self._parts:
            part.reshard()

    def own(self, sums: Mapping[str, Tensor]) -> tuple[list[Tensor], list[ParameterSlice]]:
        """Return this process's runs of whole tensors, and where they lie.

        Parameters
        ----------
        sums : mapping of str to Tensor
            Whole, the same in all processes; by the parameters' names.
        """
        runs, parts = [], []
        for name, total in sums.items():
            parameter = self.named[name]
            if not isinstance(parameter, DTensor):
                runs.append(total)
                parts.append(ParameterSlice(0, total.numel()))
                continue
            mesh = parameter.device_mesh
            # Rows are dealt as torch.chunk deals them: all have as many but the last that have any.
            rows = -(-total.shape[0] // mesh.size())
            first = min(rows * mesh.get_local_rank(), total.shape[0])
            run = total[first : first + rows]
            if run.shape != parameter.to_local().shape:
                remedy = "use fully_shard's defaults"
                rule = "be sharded by rows, as torch.chunk splits them"
                _check.refuse_state("module", rule, "the rows of a shard differ", remedy)
            runs.append(run.contiguous())
            parts.append(ParameterSlice(first * (total[0].numel() if len(total) else 0), total.numel()))
        return runs, parts


def apart_as(like: Tensor, run: Tensor) -> Tensor:
    """Return a process's run of a tensor in the form in which a parameter is cut up."""
    if not isinstance(like, DTensor):
        return run
    return DTensor.from_local(
        run, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )


def gathered(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state of a module or an optimizer with all tensors whole; every process must call this.

    The very state where nothing in it is cut up.
    """
    leaves = torch.utils._pytree.tree_leaves(dict(state))  # noqa: SLF001
    if not any(isinstance(leaf, DTensor) for leaf in leaves):
        return state
    whole: dict[str, Any] = torch.utils._pytree.tree_map(_whole, dict(state))  # noqa: SLF001
    return whole


def _whole(leaf: Any) -> Any:
    return leaf.full_tensor() if isinstance(leaf, DTensor) else leaf


def cut_module(module: nn.Module, state: dict[str, Any]) -> dict[str, Any]:
    """Return a module's whole state cut up as the module is; the very state where that is not."""
    now = module.state_dict(keep_vars=True)
    if not any(isinstance(tensor, DTensor) for tensor in now.values()):
        return state
    return {name: _cut(now.get(name), value) for name, value in state.items()}


def cut_optimizer(parameters: Sequence[Tensor], state: dict[str, Any]) -> dict[str, Any]:
    """Return an optimizer's whole state cut up as its parameters are, which it numbers in their order."""
    if not any(isinstance(parameter, DTensor) for parameter in parameters):
        return state
    cut = {
        number: {
            key: _cut(parameters[number], value) if _like(parameters[number], value) else value
            for key, value in values.items()
        }
        for number, values in state["state"].items()
    }
    return {**state, "state": cut}


def _like(parameter: Tensor, value: Any) -> bool:
    return isinstance(value, Tensor) and value.shape == parameter.shape


def _cut(like: Any, value: Any) -> Any:
    if not isinstance(like, DTensor) or isinstance(value, DTensor):
        return value
    whole: Tensor = value.to(like.device) if isinstance(value, torch.Tensor) else value
    return distribute_tensor(whole, like.device_mesh, like.placements, src_data_rank=None)
