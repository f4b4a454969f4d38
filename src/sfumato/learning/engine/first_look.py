"""How a module's gradients are found: its parameters, its probe, and where need be a trial of its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from sfumato.errors import UnfitModule
from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.unattributed import UnattributedGradients
from sfumato.learning.engine.rules.dispatch import RuleDispatch
from sfumato.learning.engine.trace.calls import called
from sfumato.learning.engine.trace.plan import ForwardPlan
from sfumato.learning.engine.trace.probe import ProbeResult, few_examples, probe, tensors_of, undisturbed

__all__ = ["CallForms", "check_same", "first_look", "trainable"]

_FEW = 2
_FAILED = (RuntimeError, NotImplementedError, TypeError, ValueError)


@final
class CallForms:
    """What is known of a module's forward for each form of its arguments, such as with and without a mask.

    Two calls have one form if their arguments are nested alike, and tensors are in the same positions.
    """

    def __init__(self) -> None:
        self._form: Any = None
        self._known: dict[Any, tuple[ProbeResult | None, bool | None]] = {}

    def switched(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], found: ProbeResult | None, vmap: bool | None
    ) -> tuple[ProbeResult | None, bool | None]:
        """Note what was found for the last form, and return what is known for this one.

        Parameters
        ----------
        args, kwargs
            Of the forward that comes.
        found : ProbeResult or None
            For the last form.
        vmap : bool or None
            Whether its fallback is by vmap.

        Returns
        -------
        tuple
            The same two for this form; None each, where it is new.
        """
        form = (*map(_form, args), *((name, _form(value)) for name, value in kwargs.items()))
        if form == self._form:
            return found, vmap
        self._known[self._form] = found, vmap
        self._form = form
        return self._known.get(form, (None, None))


def _form(value: Any) -> Any:
    """Return whether an argument is a tensor; of a container, how it is nested and where its tensors are."""
    if not isinstance(value, list | tuple | Mapping):
        return isinstance(value, Tensor)
    leaves, spec = pytree.tree_flatten(value)
    return str(spec), *(isinstance(leaf, Tensor) for leaf in leaves)


def trainable(module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters that require a gradient, by name.

    Raises
    ------
    UnfitModule
        If one is complex: what norm its gradient has is a matter of convention.
    """
    found: dict[str, Tensor] = {name: p for name, p in module.named_parameters() if p.requires_grad}
    for name, parameter in found.items():
        if parameter.is_complex():
            raise UnfitModule(
                f"{name} must be real, got a complex parameter; make it of real entries, and view them as "
                "complex in the forward by torch.view_as_complex"
            )
    return found


def check_same(module: nn.Module, parameters: Mapping[str, Tensor]) -> None:
    """Refuse a module whose trainable parameters are not those that it was attached with.

    Parameters
    ----------
    module : torch.nn.Module
    parameters : mapping of str to Tensor
    """
    now = trainable(module)
    if now.keys() != parameters.keys() or any(now[name] is not p for name, p in parameters.items()):
        raise UnfitModule(
            "module must keep the parameters that it had when the engine was attached, got others; use "
            "functional_call under no_grad or on a deepcopy, or detach the engine and attach it again"
        )


def first_look(
    module: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    batch_dim: int,
    parameters: Mapping[str, Tensor],
    collector: Callable[[int], GradientCollector],
    unattributed: UnattributedGradients,
) -> ProbeResult:
    """Probe a forward; without a plan where a trial shows that gradients would pass the rules by.

    Parameters
    ----------
    module, args, kwargs, batch_dim, parameters
        As for `probe`.
    collector : callable
        Makes the collector of so many rows.
    unattributed : UnattributedGradients
        Its hooks are on the parameters.

    Returns
    -------
    ProbeResult
    """
    found = probe(module, args, kwargs, batch_dim=batch_dim, parameters=parameters)

    def run() -> list[Tensor]:
        small = few_examples(args, kwargs, batch_dim, _FEW)
        return tensors_of(called(module.forward, args, kwargs, small))

    if found.plan is not None and found.unseen:
        with undisturbed(module), unattributed.apart() as names:
            reason = _trial(run, found.plan, collector(_FEW), names)
        if reason:
            found = replace(found, plan=None, reason=reason)
    if found.plan is None and found.outputs is not None:
        with undisturbed(module), torch.no_grad():
            try:
                run()
            except RuntimeError:
                found = replace(found, needs_graph=True)
    return found


def _trial(
    run: Callable[[], list[Tensor]], plan: ForwardPlan, collector: GradientCollector, names: set[str]
) -> str:
    """Run a few examples by the rules, forward and back; return why the plan will not do, or nothing."""
    try:
        with torch.enable_grad(), RuleDispatch(plan, collector):
            outputs = [made for made in run() if made.requires_grad]
        torch.autograd.backward(outputs, [torch.ones_like(made) for made in outputs])
    except _FAILED as error:
        return f"its rules do not run ({type(error).__name__})"
    finally:
        collector.pool.release()
    return "it uses parameters where no call is seen" if names else ""
