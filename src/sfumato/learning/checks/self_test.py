"""The self-test: the engine against other means, on a few random examples of the batch's form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.checks.batch_tensors import batch_size, call, is_example, leaves
from sfumato.learning.checks.clipping_test import Findings, Trial
from sfumato.learning.checks.deterministic_mode import without_dropout
from sfumato.learning.checks.leaks import LeakReport, leak_probe
from sfumato.learning.checks.random_batches import drawing_for
from sfumato.learning.checks.reference_gradients import Loss
from sfumato.learning.checks.state_restoration import preserved_state, seeded
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.engine import Engine, Mode, Reduction

__all__ = ["OwnLoss", "OwnNumber", "SelfTest", "outputs_of", "self_test"]


_TURN = 2.0


@final
class OwnLoss:
    """A curved loss of all outputs that have a row for each example, added up as declared.

    Where there are none and the module gives one number, that is the loss. Beside such outputs, `number`
    reports one that may be the loss that a loop takes, as of models that are given labels.

    Parameters
    ----------
    reduction : {"mean", "sum"}
    """

    def __init__(self, reduction: str) -> None:
        self._reduction = reduction
        self._paths: set[str] | None = None
        self.number: str | None = None
        """Which output is a loss by itself, beside those in rows; None if there is none."""

    def __call__(self, module: nn.Module, batch: Any) -> Tensor:
        """Return the loss; outputs that once had no row for each example are left out from then on."""
        size = batch_size(batch)
        outputs = dict(leaves(call(module, batch)))
        with_rows = {p for p, t in outputs.items() if is_example(t, size) and t.is_floating_point()}
        self._paths = with_rows if self._paths is None else self._paths & with_rows
        chosen = [outputs[path] for path in sorted(self._paths)]
        numbers = {path: t for path, t in outputs.items() if not t.ndim and t.is_floating_point()}
        if not chosen and len(numbers) == 1:
            return next(iter(numbers.values()))
        losses = [path for path, t in numbers.items() if t.requires_grad]
        named = [path for path in losses if path.endswith("loss")]
        if len(losses) == 1 or len(named) == 1:
            self.number = (named or losses)[0]
        if not chosen:
            rule = "have float entries in a row for each example"
            _check.refuse_state(
                "outputs", rule, f"no output has any: {sorted(outputs)}", "pass loss_fn=", error=UnfitModule
            )
        total = sum((_each(tensor) for tensor in chosen), start=torch.zeros(size, device=chosen[0].device))
        return total.mean() if self._reduction == "mean" else total.sum()


@final
class OwnNumber:
    """One output of the module as the loss.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, module: nn.Module, batch: Any) -> Tensor:
        """Return it."""
        return dict(leaves(call(module, batch)))[self._path]


def _each(tensor: Tensor) -> Tensor:
    flat = tensor.flatten(1) if tensor.ndim > 1 else tensor[:, None]
    target = torch.arange(flat.shape[1], device=flat.device).mul(_TURN).cos()
    return (flat.float() - target).square().mean(1)


def outputs_of(loss: Loss) -> Callable[[nn.Module, Any], Any]:
    """Return what runs a loss and gives the outputs of the module in it."""

    def run(module: nn.Module, batch: Any) -> Any:
        outputs_seen: list[Any] = []
        handle = module.register_forward_hook(lambda *called: outputs_seen.append(called[-1]))
        try:
            loss(module, batch)
        finally:
            handle.remove()
        if not outputs_seen:
            remedy = "call it in loss_fn"
            _check.refuse_state("loss_fn", "call the module", "it did not", remedy, error=UnfitModule)
        return outputs_seen

    return run


_FEW, _MAX_EXAMPLES = 4, 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """What the self-test saw.

    Parameters
    ----------
    leaks : LeakReport
        What passes from one example to the others.
    findings : Findings or None
        How the engine compares; None where leaks make that void.

    Examples
    --------
    >>> leaks = LeakReport(leaks=(), probed=("logits",), aggregates=(), runs=12)
    >>> SelfTest(leaks=leaks, findings=None).findings is None
    True
    """

    leaks: LeakReport
    findings: Findings | None

    @property
    def faults(self) -> tuple[str, ...]:
        """What speaks against the module, its loss or the engine on them; empty where nothing does."""
        return tuple(map(str, self.leaks.leaks)) + (self.findings.faults if self.findings else ())

    @property
    def passed(self) -> bool:
        """Whether nothing was seen that breaks the guarantee."""
        return not self.faults

    def __str__(self) -> str:
        if self.faults:
            return "REFUSED: " + "; ".join(self.faults)
        return f"passed: {self.leaks}; {self.findings}"

    def check(self) -> None:
        """Refuse what did not pass.

        Raises
        ------
        UnfitModule
            With every fault.
        """
        self.leaks.check()
        if self.faults:
            raise UnfitModule("; ".join(self.faults))


def self_test(
    module: nn.Module,
    loss_fn: Loss | None,
    batch: Any,
    clipping: Clipping,
    *,
    loss_reduction: Reduction = "mean",
    mode: Mode = "auto",
    examples: int = _FEW,
    random_batch: Callable[[int, int], Any] | None = None,
    seed: int = 0,
) -> SelfTest:
    """Test that the engine clips what a module's examples add, before it is trusted with real ones.

    On random examples in the form of ``batch``, in train mode with dropout off: no example reaches another's
    outputs (`leak_probe`); the loss adds up its examples as declared; the engine's per-example norms and
    clipped sums equal those of per-example gradients found by `torch.func.vmap` over the whole module (by a
    loop, where vmap cannot), both where nothing is clipped and where everything is; and leaving out any one
    example moves the sum by at most the clipping's sensitivity.

    Parameters
    ----------
    module : torch.nn.Module
        No engine may be attached to it. Left as it was.
    loss_fn : callable of (module, batch), or None
        The loss on a batch as one number, as training computes it. None takes a loss of the module's own
        outputs, and of their only number, where it gives its loss itself.
    batch : object
        What ``loss_fn`` takes, or for None what the module is called with: a tensor, tuple or mapping. Its
        shapes, types and devices are read, never its values.
    clipping : Clipping
    loss_reduction : {"mean", "sum"}
        How the loss is said to add up its examples.
    mode : str
        The engine's.
    examples : int
        From 2 to 8.
    random_batch : callable of (size, seed), optional
        Draws the batch instead.
    seed : int

    Returns
    -------
    SelfTest

    Raises
    ------
    UnfitModule
        If the test cannot be run; what it finds is in the result, and raised by its ``check``.

    Notes
    -----
    What fails here breaks the guarantee. What passes is no proof: the module was tried on a few inputs. With
    randomness other than dropout, only the norm of each example's own sum is compared with the sensitivity.

    Examples
    --------
    >>> import torch
    >>> from sfumato.learning.clipping.flat import Flat
    >>> from sfumato.learning.checks.self_test import self_test
    >>> def loss(module, batch):
    ...     return nn.functional.mse_loss(module(batch[0]), batch[1])
    >>> batch = torch.zeros(4, 3), torch.zeros(4, 1)
    >>> self_test(nn.Linear(3, 1), loss, batch, Flat(clip_norm=1.0)).passed
    True
    """
    if not 2 <= _check.integer("examples", examples) <= _MAX_EXAMPLES:
        _check.refuse("examples", f"be from 2 to {_MAX_EXAMPLES}", examples, "use the default, 4")
    if any(isinstance(getattr(h, "__self__", None), Engine) for h in module._forward_pre_hooks.values()):  # noqa: SLF001
        remedy = "call the engine's detach() first"
        _check.refuse_state("module", "have no engine attached", "an engine is attached to it", remedy)
    loss: Loss = OwnLoss(loss_reduction) if loss_fn is None else loss_fn
    with preserved_state(module):
        if not module.training:
            module.train()
        with seeded(module, seed):
            draw = (
                random_batch
                or drawing_for(batch, lambda drawn: loss(module, drawn), padded=loss_fn is None).batch
            )
        leaks = leak_probe(module, batch, run=outputs_of(loss), random_batch=draw, aggregates=True, seed=seed)
        if not leaks.passed:
            return SelfTest(leaks=leaks, findings=None)
        with without_dropout(module):

            def tried(chosen: Loss) -> Findings:
                return Trial(
                    module=module,
                    loss=chosen,
                    batch=draw(examples, seed),
                    other=draw(_MAX_EXAMPLES, seed + 1),
                    clipping=clipping,
                    reduction=loss_reduction,
                    mode=mode,
                    seed=seed,
                ).findings()

            findings = tried(loss)
            if isinstance(loss, OwnLoss) and loss.number is not None and not findings.faults:
                # The loop may take the module's own loss, in which outputs that are apart may be joined.
                findings = replace(findings, faults=tried(OwnNumber(loss.number)).faults)
            return SelfTest(leaks=leaks, findings=findings)
