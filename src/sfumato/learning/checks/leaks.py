"""The leak probe: one example is changed, and the outputs of all others must stay bitwise the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.checks.batch_tensors import batch_size, call, is_example, leaves, mapped
from sfumato.learning.checks.deterministic_mode import aligned
from sfumato.learning.checks.leak_location import apart, different, leaking_module
from sfumato.learning.checks.random_batches import drawing_for
from sfumato.learning.checks.state_restoration import Buffers, preserved_state, seeded

__all__ = ["Leak", "LeakReport", "leak_probe"]


_LARGE = 1e3
_NEAR = 1e-3


def changes(batch: Any, other: Any, example: int, size: int) -> Iterator[tuple[str, Any]]:
    """Yield what is done to the example, and the batch in which it is done.

    A fresh draw shows in means, a large one in maxima, a copy where examples are counted or compared, and NaN
    in sums that come to nothing otherwise.
    """
    neighbor = (example + 1) % size
    fresh = dict(leaves(other))
    yield "drawn anew", _changed(batch, example, size, lambda path, _: fresh[path][example])
    yield "copied from another", _changed(batch, example, size, lambda _, t: t[neighbor])
    if any(t.is_floating_point() for _, t in leaves(batch)):
        yield "made large", _changed(batch, example, size, lambda _, t: t[example] * _times(t, _LARGE))
        yield "NaN", _changed(batch, example, size, lambda _, t: t[example] * _times(t, torch.nan))


def leavings(crowd: Any, other: Any, size: int) -> Iterator[tuple[str, Any]]:
    """Yield changes that make the first of a crowd ask for another position.

    A large multiple and its opposite ask a linear router for two positions, one of them not the crowd's.
    """
    fresh = dict(leaves(other))
    yield "drawn anew", _changed(crowd, 0, size, lambda path, _: fresh[path][0])
    if any(t.is_floating_point() for _, t in leaves(crowd)):
        yield "made large", _changed(crowd, 0, size, lambda _, t: t[0] * _times(t, _LARGE))
        yield "made large and opposite", _changed(crowd, 0, size, lambda _, t: t[0] * _times(t, -_LARGE))


def alike(batch: Any, size: int, seed: int) -> Any:
    """Return a batch of examples that are all nearly the first, so that they ask for the same positions."""
    generator = torch.Generator().manual_seed(seed)

    def diverse(_: str, tensor: Tensor) -> Tensor:
        if not is_example(tensor, size):
            return tensor
        same = tensor[:1].expand_as(tensor).clone()
        if not tensor.is_floating_point():
            return same
        noise = torch.randn(tensor.shape, generator=generator)
        return same * (1 + _NEAR * noise).to(device=tensor.device, dtype=tensor.dtype)

    return mapped(diverse, batch)


def _times(tensor: Tensor, factor: float) -> float:
    return factor if tensor.is_floating_point() else 1


def _changed(batch: Any, example: int, size: int, make: Callable[[str, Tensor], Tensor]) -> Any:
    def put(path: str, tensor: Tensor) -> Tensor:
        if not is_example(tensor, size):
            return tensor
        copy = tensor.clone()
        copy[example] = make(path, tensor)
        return copy

    return mapped(put, batch)


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
        probe = _Probe(module, batch, run or call, random_batch, seed)
        return probe.report(hold_still, aggregates=aggregates)


def _size(module: nn.Module, batch: Any) -> int:
    """Choose a number of examples by which no other dimension can be mistaken for that of the examples."""
    lengths = {length for _, t in leaves(batch) for length in t.shape[1:]}
    lengths.update(length for p in module.parameters() for length in p.shape)
    clashes = {size: sum(length % size == 0 for length in lengths) for size in _SIZES}
    return min(_SIZES, key=lambda size: clashes[size])


def _same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return set(first) == set(second) and all(
        second[path].shape == tensor.shape and not bool(different(second[path], tensor).any())
        for path, tensor in first.items()
    )


class _Probe:
    """The state of one probe; `run` always begins from the same buffers and the same randomness."""

    def __init__(
        self,
        module: nn.Module,
        batch: Any,
        run: Callable[[nn.Module, Any], Any],
        random_batch: Callable[[int, int], Any] | None,
        seed: int,
    ) -> None:
        self._module, self._run, self._seed = module, run, seed
        self._kinds = {name: type(inner).__name__ for name, inner in module.named_modules()}
        self._buffers = Buffers(module)
        self._found: dict[tuple[str, str], Leak] = {}
        self._with_graph = False
        self.runs = 0
        self.size = _size(module, batch)
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
        """Try every change on the first, the middle and the last example, and crowds of examples alike."""
        batch, *others = self._batches
        outputs = self._outputs(batch)
        hold_still()
        self._check_outputs(outputs, self._outputs(batch), aggregates=aggregates)
        sums = self._buffers.sums()
        for example in sorted({0, self.size // 2, self.size - 1}):
            for change, changed in changes(batch, others[0], example, self.size):
                self._compare((batch, outputs, sums), (change, changed), example)
        for index, other in enumerate(others):
            crowd = alike(other, self.size, self._seed + index)
            before = crowd, self._outputs(crowd), self._buffers.sums()
            for change, changed in leavings(crowd, self._batches[index], self.size):
                self._compare(before, (change, changed), 0)
        per_example = [path for path, tensor in outputs.items() if self._has_rows(tensor)]
        return LeakReport(
            leaks=tuple(self._found.values()),
            probed=tuple(per_example),
            aggregates=tuple(path for path in outputs if path not in per_example),
            runs=self.runs,
        )

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

    def _check_outputs(
        self, outputs: dict[str, Tensor], again: dict[str, Tensor], *, aggregates: bool
    ) -> None:
        if not _same(outputs, again):
            raise UnfitModule(
                "module must give the same outputs twice in the same state of randomness, got others; "
                "draw from torch's global generator only"
            )
        per_example = [t for t in outputs.values() if self._has_rows(t)]
        if not per_example and not aggregates:
            rule = "have a row for each example"
            _check.refuse_state(
                "outputs", rule, f"no output has one: {sorted(outputs)}", "pass run=", error=UnfitModule
            )
        if any(bool(t.isnan().any()) for t in per_example):
            rule = "be numbers on random inputs"
            _check.refuse_state("outputs", rule, "some are NaN", "pass random_batch=", error=UnfitModule)

    def _compare(
        self,
        before: tuple[Any, dict[str, Tensor], dict[tuple[str, str], int]],
        after: tuple[str, Any],
        example: int,
    ) -> None:
        (batch, outputs, sums), (change, other) = before, after
        try:
            changed = self._outputs(other)
        except UnfitModule:
            if change == "NaN":  # a module may refuse it
                return
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

    def _note(self, module: str, change: str, into: str) -> None:
        leak = Leak(
            module=module, kind=self._kinds.get(module, "made in the forward"), change=change, into=into
        )
        self._found.setdefault((module, into), leak)
