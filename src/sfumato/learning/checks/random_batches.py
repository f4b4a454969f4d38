"""Random batches in the form of a given one: its shapes, types and devices are read, never its values.

Before there is any data, a batch is made of shapes alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode

from sfumato import _check
from sfumato.learning.checks.batch_tensors import batch_size, is_example, leaves, mapped

__all__ = ["Drawing", "batch_of", "drawing_for"]


_TYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "bool")
_SHAPE = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<sizes>|[1-9]\d*(?:,[1-9]\d*)*)(?::(?P<type>\w+))?")
_EXAMPLES = 8


def batch_of(*shapes: str) -> Any:
    """Return a batch of zeros for shapes of one example.

    Parameters
    ----------
    *shapes : str
        ``[NAME=]SIZE,SIZE,...[:TYPE]`` for each argument of a module, such as ``3,32,32``, ``128:int64`` or
        ``input_ids=128:int64``. No sizes at all is one number. The type is float32 unless given.

    Returns
    -------
    Tensor, tuple or dict
        One argument, several, or named ones; of 8 examples.

    Raises
    ------
    ParameterError
        If a shape cannot be read, or only some have names.

    Examples
    --------
    >>> batch_of("3,32,32").shape
    torch.Size([8, 3, 32, 32])
    >>> {name: entries.dtype for name, entries in batch_of("ids=16:int64", "weight=").items()}
    {'ids': torch.int64, 'weight': torch.float32}
    """
    if not shapes:
        _check.refuse("shape", "be given", None, "pass the shape of one example, such as 3,32,32")
    arguments: list[tuple[str | None, Tensor]] = []
    for shape in shapes:
        found = _SHAPE.fullmatch(shape.replace(" ", ""))
        kind = (found["type"] or "float32") if found else ""
        if found is None or kind not in _TYPES:
            remedy = f"pass [NAME=]SIZE,SIZE,...[:TYPE] of type {', '.join(_TYPES)}"
            return _check.refuse("shape", "name the sizes of one example", shape, remedy)
        sizes = [int(size) for size in found["sizes"].split(",") if size]
        arguments.append((found["name"], torch.zeros(_EXAMPLES, *sizes, dtype=getattr(torch, kind))))
    names = [name for name, _ in arguments]
    if not any(names):
        return arguments[0][1] if len(arguments) == 1 else tuple(tensor for _, tensor in arguments)
    if None in names or len(set(names)) < len(names):
        remedy = "write x=3,32,32 for each argument"
        _check.refuse("shape", "have a name of its own for each argument, or for none", shapes, remedy)
    return dict(arguments)


_FEW, _ENOUGH = 2, 3
_UNSET = -100
_LOSSES = (F.cross_entropy, F.nll_loss)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How a random batch is drawn.

    Parameters
    ----------
    like : object
        The batch whose form is taken; a tensor without a row for each example stays as it is.
    limits : mapping of str to int
        Path of an integer tensor to the number of values it may take.
    fractions : frozenset of str
        Paths of float tensors with entries in [0, 1); all others are standard normal.
    ignored : mapping of str to int
        Path of classes to the one that the loss leaves out, of which there are some in the first example.
    lengths : frozenset of str
        Paths of the lengths of packed sequences, of which none is 0.
    """

    like: Any
    limits: Mapping[str, int] = field(default_factory=dict)
    fractions: frozenset[str] = frozenset()
    ignored: Mapping[str, int] = field(default_factory=dict)
    lengths: frozenset[str] = frozenset()

    def batch(self, size: int, seed: int) -> Any:
        """Return ``size`` random examples; a pure function of the seed."""
        generator = torch.Generator().manual_seed(seed)
        given = batch_size(self.like)

        def fresh(path: str, tensor: Tensor) -> Tensor:
            if not is_example(tensor, given):
                return tensor
            shape = (size, *tensor.shape[1:])
            return self._drawn(path, tensor, shape, generator).to(device=tensor.device)

        return mapped(fresh, self.like)

    def _drawn(self, path: str, like: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        if like.dtype.is_floating_point or like.dtype.is_complex:
            wide = torch.float32 if like.dtype.itemsize < 4 else like.dtype
            make = torch.rand if path in self.fractions else torch.randn
            return make(shape, generator=generator, dtype=wide).to(like.dtype)
        is_mask = like.dtype == torch.bool or path.rpartition(".")[2].endswith("mask")
        limit = _FEW if is_mask else self.limits.get(path, _FEW)
        drawn = torch.randint(int(path in self.lengths), limit, shape, generator=generator)
        if is_mask and drawn.ndim > 1 and drawn.shape[-1] > 1:
            drawn[..., 0], drawn[..., 1] = 1, 0  # whichever value hides an entry, one stays to be seen
        if path in self.ignored and len(drawn):
            # A mean over what is not ignored divides by it: with none ignored it would look like any mean.
            drawn[0].view(-1)[::2] = self.ignored[path]
        return drawn.to(like.dtype)


def drawing_for(batch: Any, run: Callable[[Any], Any], *, padded: bool = False) -> Drawing:
    """Find the range of each integer tensor by running once on zeros, for three examples at most.

    A tensor of integers ranges over the rows of the table that it is looked up in, or over the classes of the
    loss that it is given to; one that is seen by neither (a copy, say) ranges over the least such number.

    Parameters
    ----------
    batch : object
        Only its form is read.
    run : callable of a batch
        What the batches are for.
    padded : bool
        Whether classes of an example's parts, such as tokens, may be torch's own -100, as of padding.
    """
    given = batch_size(batch)
    size = min(given, _ENOUGH)
    zeros = mapped(lambda _, t: torch.zeros_like(t[:size]) if is_example(t, given) else t, batch)
    own = {path for path, t in leaves(batch) if is_example(t, given)}
    watched = {t.untyped_storage().data_ptr(): path for path, t in leaves(zeros) if path in own}
    parts = {path for path, t in leaves(zeros) if path in own and t.numel() > size}
    watch = _Lookups(watched, parts if padded else set())
    try:
        with watch:
            run(zeros)
    except Exception:  # noqa: S110 - what zeros cannot run on may run on what is drawn
        pass
    smallest = min(watch.limits.values(), default=_FEW)
    whole = {path for path, t in leaves(zeros) if not t.dtype.is_floating_point and t.dtype != torch.bool}
    limits = {path: watch.limits.get(path, smallest) for path in whole}
    ignored = {
        path: value
        for path, value in watch.ignored.items()
        if path not in watch.looked_up or 0 <= value < limits.get(path, 0)
    }
    if watch.copied is not None:
        ignored |= dict.fromkeys((parts & whole) - watch.limits.keys(), watch.copied)
    return Drawing(
        like=batch,
        limits=limits,
        fractions=frozenset(watch.fractions),
        ignored=ignored,
        lengths=watch.lengths,
    )


class _Lookups(TorchFunctionMode):
    """Sees which tensors are looked up in tables, or are the classes of a loss."""

    def __init__(self, watched: Mapping[int, str], padded: set[str]) -> None:
        super().__init__()
        self._watched, self._padded = watched, padded
        self.limits: dict[str, int] = {}
        self.fractions: set[str] = set()
        self.ignored: dict[str, int] = {}
        self.looked_up: set[str] = set()
        self.copied: int | None = None
        self.lengths: frozenset[str] = frozenset()
        self._sorted: str | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _TABLES:
            index, limit = _TABLES[func](*args, **kwargs)
            if isinstance(index, Tensor) and (path := self._path(index)) is not None:
                self.limits[path] = min(limit, self.limits.get(path, limit))
                self._note(func, path, args, kwargs)
            elif isinstance(index, Tensor) and func in _LOSSES and self._padded:
                self.copied = _left_out(args, kwargs)  # shifted, say
        elif func in (F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
            target = kwargs.get("target", args[1] if len(args) > 1 else None)
            if isinstance(target, Tensor) and (path := self._path(target)) is not None:
                self.fractions.add(path)
        elif func is torch.sort and args[0].ndim == 1:
            self._sorted = self._path(args[0])  # as the lengths of sequences are, to be packed
        elif func is torch._VF._pack_padded_sequence and self._sorted is not None:  # noqa: SLF001
            self.lengths |= {self._sorted}
            self.limits[self._sorted] = args[0].shape[int(args[2])] + 1
        return func(*args, **kwargs)

    def _note(self, func: Any, path: str, args: Any, kwargs: Any) -> None:
        """Note a class that is left out by name; torch's own default stands in no labels but padded ones."""
        if func not in _LOSSES:
            self.looked_up.add(path)
            return
        value = _left_out(args, kwargs)
        if value != _UNSET or path in self._padded:
            self.ignored[path] = value

    def _path(self, tensor: Tensor) -> str | None:
        return self._watched.get(tensor.untyped_storage().data_ptr())


def _left_out(args: Any, kwargs: Any) -> int:
    return int(kwargs.get("ignore_index", args[4] if len(args) > 4 else _UNSET))


def _rows(input: Tensor, weight: Tensor, *_: Any, **__: Any) -> tuple[Any, int]:  # noqa: A002
    return input, weight.shape[0]


def _classes(input: Tensor, target: Tensor, *_: Any, **__: Any) -> tuple[Any, int]:  # noqa: A002
    return target, input.shape[1 if input.ndim > 1 else 0]


def _one_hot(tensor: Tensor, num_classes: int = -1) -> tuple[Any, int]:
    return (tensor, num_classes) if num_classes > 0 else (None, 0)


def _along(input: Tensor, dim: Any, index: Any = None, **__: Any) -> tuple[Any, int]:  # noqa: A002
    return index, input.shape[dim] if isinstance(dim, int) and input.ndim else 0


def _indexed(table: Tensor, index: Any) -> tuple[Any, int]:
    entries = index if isinstance(index, tuple) else (index,)
    found = [index for index, entry in enumerate(entries) if isinstance(entry, Tensor)]
    plain = bool(found) and all(isinstance(entry, Tensor | slice) for entry in entries)
    return (entries[found[0]], table.shape[found[0]]) if plain and table.ndim else (None, math.inf)  # type: ignore[return-value]


_TABLES: dict[Any, Callable[..., tuple[Any, int]]] = {
    F.embedding: _rows,
    F.embedding_bag: _rows,
    F.cross_entropy: _classes,
    F.nll_loss: _classes,
    F.multi_margin_loss: _classes,
    F.one_hot: _one_hot,
    torch.gather: _along,
    Tensor.gather: _along,
    torch.index_select: _along,
    Tensor.index_select: _along,
    Tensor.__getitem__: _indexed,
}
