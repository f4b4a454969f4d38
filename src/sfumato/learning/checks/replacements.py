"""Replacements for layers that mix examples, or keep statistics of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _LazyNormBase
from torch.nn.modules.instancenorm import _InstanceNorm

from sfumato import _check
from sfumato.errors import UnfitModule

__all__ = ["faults", "fix_module", "normalises_over_batch"]

_MAX_GROUPS = 32
_MIN_CHANNELS = {nn.BatchNorm1d: 16}
_MIN = 4


def _group_norm(old: Any) -> nn.Module:
    smallest = _MIN_CHANNELS.get(type(old), _MIN)
    channels = old.num_features
    groups = max(
        (n for n in range(1, _MAX_GROUPS + 1) if channels % n == 0 and channels >= n * smallest), default=1
    )
    return nn.GroupNorm(groups, channels, eps=old.eps, affine=old.affine)


def _without_statistics(old: Any) -> nn.Module:
    new: nn.Module = type(old)(old.num_features, eps=old.eps, affine=old.affine)
    return new


_REPLACEMENTS: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    nn.BatchNorm1d: _group_norm,
    nn.BatchNorm2d: _group_norm,
    nn.BatchNorm3d: _group_norm,
    nn.SyncBatchNorm: _group_norm,
    nn.InstanceNorm1d: _without_statistics,
    nn.InstanceNorm2d: _without_statistics,
    nn.InstanceNorm3d: _without_statistics,
}


def normalises_over_batch(module: nn.Module) -> bool:
    """Whether a layer is a batch normalisation whose statistics are those of the batch, not fixed ones."""
    return isinstance(module, _BatchNorm) and (module.training or module.running_mean is None)


def _fault(module: nn.Module) -> str | None:
    if isinstance(module, _BatchNorm):
        return "normalises over the batch"
    if isinstance(module, _InstanceNorm) and module.track_running_stats:
        return "keeps statistics of the data in its buffers"
    return None


def _irreplaceable(module: nn.Module) -> str | None:
    if isinstance(module, _LazyNormBase):
        return "run the module once on a batch, then fix it"
    if type(module) not in _REPLACEMENTS:
        return "replace it by hand: it is a class of its own"
    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:  # noqa: SLF001
        return "replace it by hand: hooks are on it"
    if isinstance(module, nn.BatchNorm1d) and module.num_features == 1:
        return "leave it out: one number has no group to be normalised in"
    return None


def faults(module: nn.Module) -> list[tuple[str, str, str | None]]:
    """Return what is known of a module's layers without running it.

    Parameters
    ----------
    module : torch.nn.Module

    Returns
    -------
    list of (str, str, str or None)
        A layer's name with its class, what it does, and why `fix_module` cannot replace it, if so.

    Notes
    -----
    Only layers of known classes are seen; `leak_probe` sees what a module does, whatever it is called. Batch
    normalisation in eval mode within a module in train mode is no fault: its statistics are fixed, and must
    be public or from before.
    """
    found = []
    for name, inner in module.named_modules():
        frozen = module.training and isinstance(inner, _BatchNorm) and not normalises_over_batch(inner)
        if (what := _fault(inner)) is not None and not frozen:
            shown = f"{name or 'the module itself'} ({type(inner).__name__})"
            found.append((shown, what, _irreplaceable(inner)))
    return found


def fix_module(module: nn.Module) -> nn.Module:
    """Return a copy in which layers that mix examples are replaced by ones that do not.

    Batch normalisation becomes `torch.nn.GroupNorm`, with as many groups as leave at least 4 channels in each
    (16 where there may be no positions to normalise over), and at most 32; instance normalisation loses its
    running statistics. Weights and biases are retained; a layer that is used twice stays one layer. Running
    statistics are dropped, so a trained module must be trained on.

    Parameters
    ----------
    module : torch.nn.Module
        Left as it is. Make the optimizer from the copy's parameters.

    Returns
    -------
    torch.nn.Module
        The same class with the same names of parameters; another class if ``module`` itself is replaced.

    Raises
    ------
    UnfitModule
        If a layer cannot be replaced, with the reason.

    References
    ----------
    Wu and He (2018), "Group normalization"; De et al. (2022), "Unlocking high-accuracy differentially private
    image classification through scale", section 3.

    Examples
    --------
    >>> fix_module(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)))
    Sequential(
      (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))
      (1): GroupNorm(2, 8, eps=1e-05, affine=True...)
    )
    """
    _check.instance("module", module, nn.Module, "pass the model itself")
    if stuck := [f"{name}: {why}" for name, _, why in faults(module) if why is not None]:
        raise UnfitModule(f"layers must be replaceable, got {'; '.join(stuck)}")
    fresh = copy.deepcopy(module)
    made: dict[nn.Module, nn.Module] = {}
    for inner in list(fresh.modules()):
        for name, child in inner._modules.items():  # noqa: SLF001 - named_children leaves repeated ones out
            if child is not None and _fault(child) is not None:
                if child not in made:
                    made[child] = _replaced(child)
                inner._modules[name] = made[child]  # noqa: SLF001
    return _replaced(fresh) if _fault(fresh) is not None else fresh


def _replaced(old: nn.Module) -> nn.Module:
    new = _REPLACEMENTS[type(old)](old)
    for name, parameter in old.named_parameters(recurse=False):
        setattr(new, name, parameter)
    new.training = old.training
    return new
