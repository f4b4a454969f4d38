"""Where clients' contributions are added up: the place of secure aggregation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, final, runtime_checkable

import torch
from torch import Tensor

from sfumato import _check

__all__ = ["TrustedAggregator", "UpdateAggregator"]


@runtime_checkable
class UpdateAggregator(Protocol):
    """What adds up the clients' updates; secure aggregation sees no more than their sum.

    Notes
    -----
    Who must be trusted follows from the implementation; the guarantee of the training is that of whoever sees
    the noisy sum only. Contributions are clipped before they come here.

    Examples
    --------
    >>> aggregation: UpdateAggregator = TrustedAggregator()
    >>> aggregation.total([[torch.ones(1)]] * 3, like=[torch.zeros(1)])[0].tolist()
    [3.0]
    """

    def total(self, contributions: Iterable[Sequence[Tensor]], like: Sequence[Tensor]) -> list[Tensor]:
        """Return the sum over all clients, one tensor for each parameter.

        Parameters
        ----------
        contributions : iterable of sequence of Tensor
            Of each client in the round, one after the other; possibly none.
        like : sequence of Tensor
            The parameters, whose shapes the contributions have.

        Returns
        -------
        list of torch.Tensor
            In the order and the shapes of ``like``.
        """


@final
class TrustedAggregator:
    """A plain sum in one process: whoever runs it sees every client's contribution and is trusted with it.

    Examples
    --------
    >>> sums = TrustedAggregator().total([[torch.ones(2)], [torch.ones(2)]], like=[torch.zeros(2)])
    >>> sums[0].tolist()
    [2.0, 2.0]
    """

    def total(self, contributions: Iterable[Sequence[Tensor]], like: Sequence[Tensor]) -> list[Tensor]:
        """Return the sum in at least single precision; zeros if there is no client.

        Parameters
        ----------
        contributions : iterable of sequence of torch.Tensor
            Of each client in the round, already clipped.
        like : sequence of torch.Tensor
            The parameters, whose shapes the contributions have.

        Returns
        -------
        list of torch.Tensor
            In the order and the shapes of ``like``.
        """
        wide = [torch.promote_types(part.dtype, torch.float32) for part in like]
        sums = [torch.zeros_like(part, dtype=kind) for part, kind in zip(like, wide, strict=True)]
        for contribution in contributions:
            if [part.shape for part in contribution] != [part.shape for part in like]:
                shown = [tuple(part.shape) for part in contribution]
                remedy = "return one tensor for each parameter"
                rule = "have the parameters' shapes"
                _check.refuse_state("contributions", rule, f"a contribution has the shapes {shown}", remedy)
            for total, part in zip(sums, contribution, strict=True):
                total.add_(part)
        return sums
