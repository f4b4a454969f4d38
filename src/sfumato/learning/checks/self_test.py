"""The self-test: the engine against other means, on a few random examples of the batch's form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.checks.batch_tensors import batch_size, call, is_example, leaves
from sfumato.learning.checks.clipping_test import Findings, Trial
from sfumato.learning.checks.deterministic_mode import without_dropout
from sfumato.learning.checks.leaks import LeakReport, leak_probe
from sfumato.learning.checks.random_batches import drawing_for
from sfumato.learning.checks.reference_gradients import Loss
from sfumato.learning.checks.short_sequences import cutter, sequence_length
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
        self._targets: dict[tuple[torch.Size, torch.device], Tensor] = {}
        self.number: str | None = None
        """Which output is a loss by itself, beside those in rows; None if there is none."""

    @property
    def adds_rows(self) -> bool:
        """Whether it adds up what each row of the outputs has alone; else it is a number of the module's."""
        return bool(self._paths)

    def outputs(self, module: nn.Module, batch: Any) -> Any:
        """Return the module's outputs; those without a row for each example are left out from then on."""
        found = call(module, batch)
        outputs = dict(leaves(found))
        for path in self._note(outputs, batch_size(batch)):
            # Outputs of language models are large: one target serves all runs, and lies as they do.
            row = outputs[path].detach()[0]
            if (key := (row.shape, row.device)) not in self._targets:
                self._targets[key] = torch.empty_like(row, dtype=torch.float32).copy_(_target(*key))
        return found

    def __call__(self, module: nn.Module, batch: Any) -> Tensor:
        """Return the loss; outputs that once had no row for each example are left out from then on."""
        size = batch_size(batch)
        outputs = dict(leaves(call(module, batch)))
        chosen = [outputs[path] for path in sorted(self._note(outputs, size))]
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
        total = sum((self._of(tensor) for tensor in chosen), start=torch.zeros((), device=chosen[0].device))
        return total / size if self._reduction == "mean" else total

    def _note(self, outputs: dict[str, Tensor], size: int) -> set[str]:
        with_rows = {p for p, t in outputs.items() if is_example(t, size) and t.is_floating_point()}
        self._paths = with_rows if self._paths is None else self._paths & with_rows
        return self._paths

    def _of(self, tensor: Tensor) -> Tensor:
        """Return the sum over the rows of the mean square of a row's distance from a fixed target."""
        shape, known = tensor.shape[1:], self._targets.get((tensor.shape[1:], tensor.device))
        target = _target(shape, tensor.device) if known is None else known
        distance = F.mse_loss(tensor.float(), target.expand(tensor.shape), reduction="sum")
        return distance / max(1, shape.numel())


def _target(shape: torch.Size, device: torch.device) -> Tensor:
    return torch.arange(shape.numel(), device=device).mul(_TURN).cos().view(shape)


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


def outputs_of(loss: Loss) -> Callable[[nn.Module, Any], Any]:
    """Return what runs a loss and gives the outputs of the module in it."""
    if isinstance(loss, OwnLoss):
        return lambda module, batch: [loss.outputs(module, batch)]

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


@contextmanager
def _entries_seen(module: nn.Module) -> Iterator[list[int]]:
    """Gather how many entries an example has in each of the outputs that a module gives meanwhile."""
    seen: list[int] = []

    def look(_: nn.Module, __: Any, outputs: Any) -> None:
        seen.extend(t.numel() // max(1, t.shape[0]) for _, t in leaves(outputs) if t.ndim)

    handle = module.register_forward_hook(look)
    try:
        yield seen
    finally:
        handle.remove()


_FEWEST, _FEW, _MAX_EXAMPLES = 2, 4, 8
_LARGE, _LARGEST, _TOKENS = 1 << 20, 1 << 25, 32
"""Entries of an example's outputs that make every run long; those of a run's outputs, at most; and how many
tokens the engine is compared on, where they are large."""
_PROBED = 3


@final
class _Draws:
    """Random batches of the test: of fewer examples and tokens where a module's outputs are large.

    Parameters
    ----------
    module : torch.nn.Module
    loss : callable
    draw : callable of (size, seed)
    width : int
        How many entries an example's outputs have.
    seed : int
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
        draw: Callable[[int, int], Any],
        *,
        width: int,
        seed: int,
    ) -> None:
        self._module, self._loss, self._draw, self._width, self._seed = module, loss, draw, width, seed
        self.large = width > _LARGE
        self._cut: Callable[[Any], Any] | None = None

    def probed(self, batch: Any) -> Any:
        """Return a batch with as many tokens as the leak probe may have."""
        if self._cut is None:
            fitting = sequence_length(batch) * _LARGEST // (_PROBED * max(1, self._width))
            # No multiple of the number of examples, which would be mistaken for a dimension of theirs.
            self._cut = self._cutter(max(_TOKENS, fitting - (fitting % _PROBED == 0)))
        return self._cut(batch)

    def for_probe(self, size: int, seed: int) -> Any:
        """Draw a batch of the leak probe."""
        return self.probed(self._draw(size, seed))

    def for_trial(self, examples: int | None) -> tuple[Any, Any]:
        """Draw the two batches of a `Trial`."""
        few, many = (_FEWEST, _FEW) if self.large else (_FEW, _MAX_EXAMPLES)
        cut = self._cutter(_TOKENS)
        return cut(self._draw(examples or few, self._seed)), cut(self._draw(many, self._seed + 1))

    def _cutter(self, length: int) -> Callable[[Any], Any]:
        """Return what cuts sequences, if the module takes shorter ones and then gives smaller outputs."""
        if not self.large:
            return lambda batch: batch

        def runs(short: Any) -> bool:
            with seeded(self._module, self._seed), _entries_seen(self._module) as seen:
                outputs_of(self._loss)(self._module, short)
            return max(seen) < self._width

        return cutter(length, self._draw(_FEWEST, self._seed), runs)


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
    examples: int | None = None,
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
    examples : int, optional
        From 2 to 8; 4 by default, and 2 where the outputs of an example have more than a million entries, as
        of language models. Then the leak probe is brief, and the engine is compared on 32 tokens of each;
        tokens are left out of the probe only as far as a run's outputs would take more than 128 MiB.
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
    if examples is not None and not _FEWEST <= _check.integer("examples", examples) <= _MAX_EXAMPLES:
        remedy = "leave it out"
        _check.refuse("examples", f"be from {_FEWEST} to {_MAX_EXAMPLES}", examples, remedy)
    if any(isinstance(getattr(h, "__self__", None), Engine) for h in module._forward_pre_hooks.values()):  # noqa: SLF001
        remedy = "call the engine's detach() first"
        _check.refuse_state("module", "have no engine attached", "an engine is attached to it", remedy)
    loss: Loss = OwnLoss(loss_reduction) if loss_fn is None else loss_fn
    with preserved_state(module):
        if not module.training:
            module.train()
        with seeded(module, seed), _entries_seen(module) as entries:
            draw = (
                random_batch
                or drawing_for(batch, lambda drawn: loss(module, drawn), padded=loss_fn is None).batch
            )
        draws = _Draws(module, loss, draw, width=max(entries, default=0), seed=seed)
        leaks = leak_probe(
            module,
            draws.probed(batch),
            run=outputs_of(loss),
            random_batch=draws.for_probe,
            aggregates=True,
            brief=draws.large,
            seed=seed,
        )
        if not leaks.passed:
            return SelfTest(leaks=leaks, findings=None)
        with without_dropout(module):
            few, more = draws.for_trial(examples)

            def tried(chosen: Loss) -> Findings:
                return Trial(
                    module=module,
                    loss=chosen,
                    batch=few,
                    other=more,
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
