"""The leak probe: one example is changed, and the outputs of all others must stay bitwise the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.checks.batch_tensors import batch_size, call, leaves
from sfumato.learning.checks.deterministic_mode import aligned
from sfumato.learning.checks.example_changes import alike, changes, leavings, one_after_another
from sfumato.learning.checks.leak_location import apart, different, leaking_module
from sfumato.learning.checks.random_batches import drawing_for
from sfumato.learning.checks.state_restoration import Buffers, preserved_state, seeded

__all__ = ["Leak", "LeakReport", "leak_probe"]


_SIZES = (5, 7, 3)
_CROWDS = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One way in which an example reaches the others.

    Parameters
    ----------
    module : str
        Name of the innermost module where it happens; empty for the module that was probed.
    kind : str
        That module's class.
    change : str
        What was done to the example.
    into : str
        ``"outputs"``, or the name of a buffer that keeps what it saw.
    """

    module: str
    kind: str
    change: str
    into: str

    def __str__(self) -> str:
        where = f"{self.module or 'the module itself'} ({self.kind})"
        reached = "the outputs of others" if self.into == "outputs" else f"the buffer {self.into}"
        return f"{where}: an example that is {self.change} changes {reached}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeakReport:
    """What the leak probe saw.

    Parameters
    ----------
    leaks : tuple of Leak
        Empty where no change of one example was seen anywhere else.
    probed : tuple of str
        Paths of the outputs that have a row for each example.
    aggregates : tuple of str
        Paths of the outputs that belong to no example, such as a loss inside the outputs; a term of it that
        is not a mean over examples shows in the self-test only.
    runs : int
        Forward passes.

    Examples
    --------
    >>> report = LeakReport(leaks=(), probed=("logits",), aggregates=(), runs=12)
    >>> bool(report.leaks), report.probed
    (False, ('logits',))
    """

    leaks: tuple[Leak, ...]
    probed: tuple[str, ...]
    aggregates: tuple[str, ...]
    runs: int

    @property
    def passed(self) -> bool:
        """Whether no leak was seen."""
        return not self.leaks

    def __str__(self) -> str:
        if not self.leaks and not self.probed:
            return f"no leak into a buffer seen in {self.runs} runs, and no output that is one example's"
        return "; ".join(map(str, self.leaks)) or f"no leak seen in {self.runs} runs"

    def check(self) -> None:
        """Refuse a module with a leak.

        Raises
        ------
        UnfitModule
            With the innermost module's name.
        """
        if self.leaks:
            raise UnfitModule(
                f"module must keep examples apart, got {self}; fix_module replaces batch normalisation, "
                "anything else must work on one example at a time"
            )


def leak_probe(
    module: nn.Module,
    batch: Any,
    *,
    run: Callable[[nn.Module, Any], Any] | None = None,
    random_batch: Callable[[int, int], Any] | None = None,
    aggregates: bool = False,
    brief: bool = False,
    seed: int = 0,
) -> LeakReport:
    """Change one example of a random batch, and look for it in the others' outputs and in the buffers.

    The module runs in train mode (as it stands, if it is in train mode already) from one fixed state of
    randomness, on random inputs; the values in ``batch`` are never used. An example is drawn anew, made 1000
    times as large, copied from its neighbor, and set to NaN; and changed among others that are all alike,
    for a capacity shows only where many ask for the same.

    Parameters
    ----------
    module : torch.nn.Module
        Left as it was.
    batch : tensor, tuple or mapping
        What the module is called with, as one argument, positional or named ones. Its shapes, types and
        devices are read; a tensor whose first dimension is not the batch's is shared by all, and stays.
    run : callable of (module, batch), optional
        Returns the outputs, where they are not ``module(batch)``.
    random_batch : callable of (size, seed), optional
        Draws the batch, where random entries within the range of the tables they are looked up in are none
        that the module takes.
    aggregates : bool
        Whether to accept a module with no output for each example, such as one that gives its loss only: then
        nothing but buffers is probed.
    brief : bool
        Whether to make fewer runs of fewer examples, each with one more example changed than the run before:
        copied from others until all are alike, and drawn anew. For outputs that are large, as of language
        models.
    seed : int

    Returns
    -------
    LeakReport

    Raises
    ------
    UnfitModule
        If the module does not run on the random batch, is not the same twice in the same state of randomness,
        gives NaN or no output for each example, or changes its parameters.

    Notes
    -----
    A leak that is seen is one. That none is seen proves nothing: a module may leak on inputs that were not
    tried.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from sfumato.learning.checks.leaks import leak_probe
    >>> print(leak_probe(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), torch.zeros(8, 3)).leaks[0])
    1 (BatchNorm1d): an example that is drawn anew changes the outputs of others
    """
    _check.instance("module", module, nn.Module, "pass the model itself")
    with preserved_state(module) as hold_still:
        if not module.training:
            module.train()
        probe = _Probe(module, batch, run or call, random_batch, seed, brief=brief)
        return probe.report(hold_still, aggregates=aggregates)


def _size(module: nn.Module, batch: Any, sizes: tuple[int, ...]) -> int:
    """Choose a number of examples by which no other dimension can be mistaken for that of the examples."""
    lengths = {length for _, t in leaves(batch) for length in t.shape[1:]}
    lengths.update(length for p in module.parameters() for length in p.shape)
    clashes = {size: sum(length % size == 0 for length in lengths) for size in sizes}
    return min(sizes, key=lambda size: clashes[size])


def _same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return set(first) == set(second) and all(
        second[path].shape == tensor.shape and not bool(different(second[path], tensor).any())
        for path, tensor in first.items()
    )


_Run: TypeAlias = tuple[Any, dict[str, Tensor], dict[tuple[str, str], int]]
"""A batch, its outputs, and the checksums of the buffers after it."""


class _Probe:
    """The state of one probe; `run` always begins from the same buffers and the same randomness."""

    def __init__(
        self,
        module: nn.Module,
        batch: Any,
        run: Callable[[nn.Module, Any], Any],
        random_batch: Callable[[int, int], Any] | None,
        seed: int,
        *,
        brief: bool,
    ) -> None:
        self._module, self._run, self._seed, self._brief = module, run, seed, brief
        self._kinds = {name: type(inner).__name__ for name, inner in module.named_modules()}
        self._buffers = Buffers(module)
        self._found: dict[tuple[str, str], Leak] = {}
        self._with_graph = False
        self.runs = 0
        self.size = _size(module, batch, tuple(sorted(_SIZES)) if brief else _SIZES)
        draw = random_batch or drawing_for(batch, self.run).batch
        self._batches = [draw(self.size, seed + index) for index in range(1 + _CROWDS)]
        if (got := batch_size(self._batches[0])) != self.size:
            remedy = "make it return as many as its argument says"
            _check.refuse("random_batch", f"return {self.size} examples when asked", got, remedy)

    def run(self, batch: Any) -> Any:
        """Return the outputs."""
        self._buffers.restore()
        self.runs += 1
        with seeded(self._module, self._seed), torch.set_grad_enabled(self._with_graph), aligned():
            return self._run(self._module, batch)

    def report(self, hold_still: Callable[[], None], *, aggregates: bool) -> LeakReport:
        """Make all runs, and say what was seen."""
        outputs = self._outputs(self._batches[0])
        hold_still()
        self._check_outputs(outputs, aggregates=aggregates)
        if self._brief:
            self._try_few(outputs)
        else:
            self._try_all(outputs)
        per_example = [path for path, tensor in outputs.items() if self._has_rows(tensor)]
        return LeakReport(
            leaks=tuple(self._found.values()),
            probed=tuple(per_example),
            aggregates=tuple(path for path in outputs if path not in per_example),
            runs=self.runs,
        )

    def _try_all(self, outputs: dict[str, Tensor]) -> None:
        """Try every change on the first, the middle and the last example, and crowds of examples alike."""
        batch, *others = self._batches
        self._check_same(outputs, self._outputs(batch))
        before = batch, outputs, self._buffers.sums()
        for example in sorted({0, self.size // 2, self.size - 1}):
            for change, changed in changes(batch, others[0], example, self.size):
                self._compare(before, (change, changed), example)
        for index, other in enumerate(others):
            crowd = alike(other, self.size, self._seed + index)
            of_crowd = crowd, self._outputs(crowd), self._buffers.sums()
            for change, changed in leavings(crowd, self._batches[index], self.size):
                self._compare(of_crowd, (change, changed), 0)

    def _try_few(self, outputs: dict[str, Tensor]) -> None:
        """Try changes on top of each other."""
        batch, other = self._batches[:2]
        before = batch, outputs, self._buffers.sums()
        for change, example, changed in one_after_another(batch, other, self.size):
            before = self._compare(before, (change, changed), example)
        if self._found:  # or nothing leaks, and no run is like another
            self._check_same(outputs, self._outputs(batch))

    def _outputs(self, batch: Any) -> dict[str, Tensor]:
        try:
            return {path: tensor.detach().clone() for path, tensor in leaves(self.run(batch))}
        except UnfitModule:
            raise
        except Exception as error:
            if not self._with_graph:  # a forward may take gradients of its own, as an energy's
                self._with_graph = True
                return self._outputs(batch)
            raise UnfitModule(
                "module must run on random inputs of the batch's shape, "
                f"it raised {type(error).__name__}: {error}; pass random_batch="
            ) from error

    def _has_rows(self, tensor: Tensor) -> bool:
        return any(length and length % self.size == 0 for length in tensor.shape)

    def _check_same(self, outputs: dict[str, Tensor], again: dict[str, Tensor]) -> None:
        if not _same(outputs, again):
            raise UnfitModule(
                "module must give the same outputs twice in the same state of randomness, got others; "
                "draw from torch's global generator only"
            )

    def _check_outputs(self, outputs: dict[str, Tensor], *, aggregates: bool) -> None:
        per_example = [t for t in outputs.values() if self._has_rows(t)]
        if not per_example and not aggregates:
            rule = "have a row for each example"
            _check.refuse_state(
                "outputs", rule, f"no output has one: {sorted(outputs)}", "pass run=", error=UnfitModule
            )
        if any(bool(t.isnan().any()) for t in per_example):
            rule = "be numbers on random inputs"
            _check.refuse_state("outputs", rule, "some are NaN", "pass random_batch=", error=UnfitModule)

    def _compare(self, before: _Run, after: tuple[str, Any], example: int) -> _Run:
        """Note what an example that is changed reaches; return the run with it, or the one before."""
        (batch, outputs, sums), (change, other) = before, after
        try:
            changed = self._outputs(other)
        except UnfitModule:
            if change == "NaN":  # a module may refuse it
                return before
            raise
        checksums = self._buffers.sums()
        same = set(changed) == set(outputs) and all(
            apart(tensor, changed[path], example, self.size)
            for path, tensor in outputs.items()
            if self._has_rows(tensor)
        )
        if not same:
            name = leaking_module(self._module, self.run, (batch, other), example, self.size) or ""
            self._note(name, change, "outputs")
        for (owner, name), total in checksums.items():
            if sums.get((owner, name)) != total:
                self._note(owner, change, name)
        return other, changed, checksums

    def _note(self, module: str, change: str, into: str) -> None:
        leak = Leak(
            module=module, kind=self._kinds.get(module, "made in the forward"), change=change, into=into
        )
        self._found.setdefault((module, into), leak)
