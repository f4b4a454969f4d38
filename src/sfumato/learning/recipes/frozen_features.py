"""Features of a frozen, public extractor, computed once: what is left to train is a small head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from sfumato import _check
from sfumato.learning.checks.batch_tensors import call
from sfumato.learning.checks.leaks import leak_probe

__all__ = ["Normalization", "frozen_features"]

Normalization: TypeAlias = Literal["none", "length", "standard"]
_TINY = 1e-6


def frozen_features(
    extractor: nn.Module,
    dataset: Dataset[Any],
    *,
    public: bool = False,
    normalization: Normalization = "length",
    batch_size: int = 256,
    num_workers: int = 0,
    random_batch: Callable[[int, int], Any] | None = None,
) -> TensorDataset:
    """Return a dataset of an extractor's features and of all that came with them, such as labels.

    Parameters
    ----------
    extractor : torch.nn.Module
        Maps inputs to features, one row for each. It runs in eval mode, without gradients.
    dataset : Dataset
        Of inputs, or of tuples of an input and tensors or numbers; it has a length.
    public : bool
        Say True where the extractor's weights follow from public data only, see Notes.
    normalization : {"length", "standard", "none"}
        What is done to each example's features: scaled to the length 1, or to their own mean 0 and
        variance 1. Statistics over examples would be a release of their own: none are taken.
    batch_size : int
        How many inputs run at a time. With 1, a row of features follows from its own input to the last bit;
        else which inputs run together may change how kernels round, as in any training.
    num_workers : int
        Of the loader.
    random_batch : callable of (size, seed), optional
        Draws inputs for the leak probe, where random entries are none that the extractor takes.

    Returns
    -------
    TensorDataset
        Of the features, of shape (examples, features), and the other parts; examples are in the dataset's
        order.

    Raises
    ------
    ParameterError
        If `public` is not True, or an example has a part that is no tensor or number.
    UnfitModule
        If the extractor mixes examples, or keeps what it saw, see `leak_probe`.

    Notes
    -----
    Guarantee: the features are as private as the data, and are not for release. A row of them is a function
    of its own example and the extractor, so that training on them has the guarantee of training on the data,
    with the same neighbours. Conditions: the extractor does not depend on the private data, not even by
    pretraining on the same examples or by a choice among extractors that they made, for its weights are
    released with the head; and it keeps examples apart, which is probed on random inputs and not proved.

    References
    ----------
    Tramer and Boneh (2021), "Differentially private learning needs better features (or much more data)";
    De et al. (2022), section 5, for fine-tuning a last layer.

    Examples
    --------
    >>> data = TensorDataset(torch.randn(20, 3), torch.arange(20))
    >>> features = frozen_features(nn.Linear(3, 5), data, public=True)
    >>> features.tensors[0].shape, features.tensors[0].norm(dim=1).allclose(torch.ones(20))
    (torch.Size([20, 5]), True)
    """
    if public is not True:
        remedy = "one that was trained on private rows releases them: train it privately, and all in one run"
        rule = "be True, for an extractor whose weights follow from public data only"
        _check.refuse("public", rule, public, remedy)
    if normalization not in get_args(Normalization):
        rule = f"be one of {', '.join(get_args(Normalization))}"
        _check.refuse("normalization", rule, normalization, "use the default if unsure")
    size = _check.integer("batch_size", batch_size, minimum=1)
    if not getattr(dataset, "__len__", int)():
        _check.refuse_type("dataset", "have a length and examples", dataset, "pass a Dataset with indices")
    loader = DataLoader(dataset, batch_size=size, num_workers=num_workers)
    first, _ = _parts(next(iter(DataLoader(dataset, batch_size=min(size, 8)))))
    leak_probe(extractor, first, run=_in_eval, random_batch=random_batch).check()
    features: list[Tensor] = []
    others: list[list[Tensor]] = []
    with _frozen(extractor), torch.no_grad():
        for batch in loader:
            inputs, rest = _parts(batch)
            rows = _rows(extractor(inputs), len(inputs))
            features.append(_normalized(rows, normalization))
            others.append(rest)
    return TensorDataset(torch.cat(features), *(torch.cat(part) for part in zip(*others, strict=True)))


def _in_eval(module: nn.Module, batch: Any) -> Any:
    return call(module.eval(), batch)


@contextmanager
def _frozen(module: nn.Module) -> Iterator[None]:
    modes = {inner: inner.training for inner in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for inner, mode in modes.items():
            inner.training = mode


def _parts(batch: Any) -> tuple[Tensor, list[Tensor]]:
    """Return a batch's inputs and its other parts."""
    parts = list(batch) if isinstance(batch, tuple | list) else [batch]
    if not parts or not all(isinstance(part, Tensor) for part in parts):
        kinds = ", ".join(type(part).__name__ for part in parts)
        remedy = "wrap it in one that does"
        rule = "give tuples of tensors and numbers"
        _check.refuse_state("dataset", rule, f"an example has parts of the types {kinds}", remedy)
    return parts[0], parts[1:]


def _rows(output: Any, count: int) -> Tensor:
    if not isinstance(output, Tensor) or output.shape[:1] != (count,):
        remedy = "return the features as one tensor"
        _check.refuse_type("extractor", "return one tensor with a row for each input", output, remedy)
    return output.detach().flatten(1)


def _normalized(rows: Tensor, normalization: Normalization) -> Tensor:
    if normalization == "none":
        return rows
    if normalization == "standard":
        rows = rows - rows.mean(1, keepdim=True)
        scale = rows.square().mean(1, keepdim=True).sqrt()
    else:
        scale = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / scale.clamp(min=_TINY)
