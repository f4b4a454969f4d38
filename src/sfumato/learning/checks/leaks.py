"""The leak probe: one example is changed, and the outputs of all others must stay bitwise the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.checks.batches import batch_size, call, is_example, leaves, mapped
from sfumato.learning.checks.culprit import apart, culprit, different
from sfumato.learning.checks.random_batches import drawing_for
from sfumato.learning.checks.undisturbed import Buffers, seeded, undisturbed

__all__ = ["Leak", "LeakReport", "leak_probe"]

_SIZES = (5, 7, 3)
_LARGE = 1e3


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
    seed: int = 0,
) -> LeakReport:
    """Change one example of a random batch, and look for it in the others' outputs and in the buffers.

    The module runs in train mode (as it stands, if it is in train mode already) from one fixed state of
    randomness, on random inputs; the values in ``batch`` are never used. An example is drawn anew, made 1000
    times as large, copied from its neighbor, and set to NaN: so maxima, capacities and sums show as means do.

    Parameters
    ----------
    module : torch.nn.Module
        Left as it was.
    batch : tensor, tuple or mapping
        What the module is called with, as one argument, positional or named ones. Its shapes, types and
        devices are read; a tensor whose first dimension is not the batch's is shared by all, and is kept.
    run : callable of (module, batch), optional
        Returns the outputs, where they are not ``module(batch)``.
    random_batch : callable of (size, seed), optional
        Draws the batch, where random entries within the range of the tables they are looked up in are none
        that the module takes.
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
    with undisturbed(module):
        if not module.training:
            module.train()
        return _Probe(module, batch, run or call, random_batch, seed).report()


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
        self._buffers = Buffers(module)
        self.runs = 0
        self.size = _size(module, batch)
        draw = random_batch or drawing_for(batch, self.run).batch
        self.batch, self._other = draw(self.size, seed), draw(self.size, seed + 1)
        if batch_size(self.batch) != self.size:
            _check.refuse("random_batch", f"return {self.size} examples when asked", batch_size(self.batch))

    def run(self, batch: Any) -> Any:
        """Return the outputs."""
        self._buffers.restore()
        self.runs += 1
        with seeded(self._module, self._seed), torch.no_grad():
            return self._run(self._module, batch)

    def report(self) -> LeakReport:
        """Try every change on the first, the middle and the last example."""
        outputs, sums = self._baseline()
        found: dict[tuple[str, str], Leak] = {}
        for example in sorted({0, self.size // 2, self.size - 1}):
            for change, batch in self._changes(example):
                try:
                    changed = self._kept(batch)
                except Exception as error:
                    if change == "NaN":  # a module may refuse it
                        continue
                    raise self._does_not_run(error) from error
                for leak in self._leaks(outputs, changed, sums, (change, batch, example)):
                    found.setdefault((leak.module, leak.into), leak)
        per_example = [path for path, tensor in outputs.items() if self._has_rows(tensor)]
        return LeakReport(
            leaks=tuple(found.values()),
            probed=tuple(per_example),
            aggregates=tuple(path for path in outputs if path not in per_example),
            runs=self.runs,
        )

    def _kept(self, batch: Any) -> dict[str, Tensor]:
        return {path: tensor.clone() for path, tensor in leaves(self.run(batch))}

    def _has_rows(self, tensor: Tensor) -> bool:
        return any(length and length % self.size == 0 for length in tensor.shape)

    def _does_not_run(self, error: Exception) -> UnfitModule:
        return UnfitModule(
            "module must run on random inputs of the batch's shape, "
            f"it raised {type(error).__name__}: {error}; pass random_batch="
        )

    def _baseline(self) -> tuple[dict[str, Tensor], dict[tuple[str, str], int]]:
        try:
            outputs = self._kept(self.batch)
        except Exception as error:
            raise self._does_not_run(error) from error
        sums = self._buffers.sums()
        again = self._kept(self.batch)
        if set(again) != set(outputs) or any(
            again[path].shape != t.shape or bool(different(again[path], t).any())
            for path, t in outputs.items()
        ):
            raise UnfitModule(
                "module must give the same outputs twice in the same state of randomness, got others; "
                "draw from torch's global generator only"
            )
        per_example = [t for t in outputs.values() if self._has_rows(t)]
        if not per_example:
            _check.refuse(
                "outputs", "have a row for each example", sorted(outputs), "pass run=", error=UnfitModule
            )
        if any(bool(t.isnan().any()) for t in per_example):
            _check.refuse(
                "outputs", "be numbers on random inputs", "NaN", "pass random_batch=", error=UnfitModule
            )
        return outputs, sums

    def _changes(self, example: int) -> Iterator[tuple[str, Any]]:
        neighbor = (example + 1) % self.size
        fresh = dict(leaves(self._other))

        def changed(make: Callable[[str, Tensor], Tensor]) -> Any:
            def put(path: str, tensor: Tensor) -> Tensor:
                if not is_example(tensor, self.size):
                    return tensor
                copy = tensor.clone()
                copy[example] = make(path, tensor)
                return copy

            return mapped(put, self.batch)

        yield "drawn anew", changed(lambda path, _: fresh[path][example])
        yield "made large", changed(lambda _, t: t[example] * (_LARGE if t.dtype.is_floating_point else 1))
        yield "copied from another", changed(lambda _, t: t[neighbor])
        if any(t.dtype.is_floating_point for _, t in leaves(self.batch)):
            yield (
                "NaN",
                changed(lambda _, t: t[example] * (torch.nan if t.dtype.is_floating_point else 1)),
            )

    def _leaks(
        self,
        outputs: dict[str, Tensor],
        changed: dict[str, Tensor],
        sums: dict[tuple[str, str], int],
        what: tuple[str, Any, int],
    ) -> Iterator[Leak]:
        change, batch, example = what
        kinds = {name: type(inner).__name__ for name, inner in self._module.named_modules()}
        kept = self._buffers.sums()
        same = set(changed) == set(outputs) and all(
            apart(tensor, changed[path], example, self.size)
            for path, tensor in outputs.items()
            if self._has_rows(tensor)
        )
        if not same:
            name = culprit(self._module, self.run, (self.batch, batch), example, self.size) or ""
            yield Leak(module=name, kind=kinds[name], change=change, into="outputs")
        for (owner, name), total in kept.items():
            if sums.get((owner, name)) != total:
                yield Leak(module=owner, kind=kinds[owner], change=change, into=name)
