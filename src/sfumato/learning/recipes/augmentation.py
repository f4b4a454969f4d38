"""Augmented views of each example, in the order in which the engine takes them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from torch.utils.data import default_collate

from sfumato import _check

__all__ = ["Views"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Several views of each example, made at random when a batch is put together.

    Pass it to `PrivacyEngine.make_private` as ``views``: a batch of n examples then has ``n * count`` rows,
    each label as often as its example has views, and the loop stays what it was. The engine averages the
    gradients of one example's views before it clips their mean.

    Parameters
    ----------
    count : int
        How many views there are of each example.
    transform : callable, optional
        Takes one example's input and returns a view of it, of one shape for all. It sees one example at a
        time: nothing that mixes examples, such as mixup, can be a view. None repeats the input.
    field : int, str or None
        Which part of an example is its input: an index of a tuple, a key of a mapping, or the whole example.

    Notes
    -----
    Guarantee: the rows of one batch are, in a row, ``count`` rows for each example, each a function of that
    example and of randomness that no example has a part in, if `transform` is. Then, for any views that were
    drawn, the mean of their gradients is a function of that example alone, clipped as any: adding or removing
    the example moves the sum by the clipping's sensitivity at most, and the step has the loss that it has
    without views. So has the mean over draws, whose distribution is the same with and without the example:
    divergences of mixtures are at most the mixture's divergences (joint convexity).

    Condition: what the loop gives to the module has the rows in the order of the batch. Rows that were put
    into another order join views of several examples; no check can see that.

    A mean over all rows of a batch is, for each example, the mean over its views; a sum is taken for the sum
    over examples of sums over views, and divided by ``count``.

    References
    ----------
    De et al. (2022), "Unlocking high-accuracy differentially private image classification through scale",
    section 3 (augmentation multiplicity).

    Examples
    --------
    >>> import torch
    >>> views = Views(count=2, transform=lambda x: x + 0.5)
    >>> views.collated(None)([(torch.tensor([1.0]), 3), (torch.tensor([2.0]), 4)])
    [tensor([[1.5000],
            [1.5000],
            [2.5000],
            [2.5000]]), tensor([3, 3, 4, 4])]
    """

    count: int
    transform: Callable[[Any], Any] | None = None
    field: int | str | None = 0

    def __post_init__(self) -> None:
        """Check."""
        _check.integer("count", self.count, minimum=1)
        if self.transform is not None and not callable(self.transform):
            _check.refuse("transform", "be callable", self.transform, "pass a function of one input")

    def of(self, example: Any) -> list[Any]:
        """Return the views of one example, each in the form of the example.

        Parameters
        ----------
        example : object
            One item of the dataset, such as ``(image, label)``.

        Returns
        -------
        list
            As many views as the augmentation makes.

        Raises
        ------
        ParameterError
            If an example has no such part.
        """
        return [self._view(example) for _ in range(self.count)]

    def collated(self, collate: Callable[[list[Any]], Any] | None) -> Callable[[list[Any]], Any]:
        """Return a collate function that makes a batch of the examples' views.

        Parameters
        ----------
        collate : callable or None
            Makes a batch of a list of examples; torch's own if None.

        Returns
        -------
        callable
            From a list of examples to a batch with all views of each.
        """
        return _Collated(self, default_collate if collate is None else collate)

    def _view(self, example: Any) -> Any:
        if self.transform is None:
            return example
        if self.field is None:
            return self.transform(example)
        if isinstance(example, Mapping) and self.field in example:
            return {**example, self.field: self.transform(example[self.field])}
        if isinstance(example, tuple | list) and isinstance(self.field, int) and self.field < len(example):
            parts = [*example]
            parts[self.field] = self.transform(parts[self.field])
            return type(example)(*parts) if hasattr(example, "_fields") else type(example)(parts)
        remedy = "pass None where examples are inputs"
        return _check.refuse("field", "be a part of an example", self.field, remedy)


@final
@dataclass(frozen=True, slots=True)
class _Collated:
    """What can be sent to the loader's workers."""

    views: Views
    collate: Callable[[list[Any]], Any]

    def __call__(self, examples: list[Any]) -> Any:
        return self.collate([view for example in examples for view in self.views.of(example)])
