"""Clipping user by user: one user's examples are summed first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.clipping.precision import in_full

__all__ = ["UserSums", "clipped_by_user"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserSums:
    """Sums over users of their clipped gradients.

    Parameters
    ----------
    gradients : tuple of Tensor
        One for each parameter, not averaged and without noise.
    users : int
        How many there are.
    squared_norms : Tensor of shape (groups, users)
        Of each user's gradient; for the curator only.
    """

    gradients: tuple[Tensor, ...]
    users: int
    squared_norms: Tensor


def clipped_by_user(
    gradients: Sequence[Tensor], users: Tensor, *, clipping: Clipping, names: Sequence[str]
) -> UserSums:
    """Sum each user's gradients, clip every user's sum, and add them all up.

    Parameters
    ----------
    gradients : sequence of Tensor
        For each parameter the gradients of all examples, shape (examples, ...).
    users : Tensor of shape (examples,)
        Integers that name each example's user.
    clipping : Clipping
    names : sequence of str
        The parameters' names.

    Returns
    -------
    UserSums

    Notes
    -----
    Guarantee: adding or removing one user with all examples moves the sum by at most ``clipping.sensitivity``
    in the L2 norm, however many examples there are: each user's sum is clipped as one example's gradient is,
    see `Clipping`, and no user's sum depends on another's examples. A user with a gradient that is not finite
    contributes zero.

    Examples
    --------
    >>> from sfumato.learning.clipping.flat import Flat
    >>> each = torch.tensor([[3.0], [4.0], [0.5]])
    >>> users = torch.tensor([8, 8, 5])
    >>> clipped_by_user([each], users, clipping=Flat(clip_norm=1.0), names=["w"]).gradients
    (tensor([1.5000]),)
    """
    if users.dim() != 1 or users.is_floating_point() or users.dtype is torch.bool:
        _check.refuse_type("users", "be integers of shape (examples,)", users, "number the users")
    for gradient in gradients:
        if not gradient.dim() or len(gradient) != len(users):
            rule = f"have a row for each of {len(users)} examples"
            _check.refuse_type("gradients", rule, gradient, "pass one gradient for each example")
    groups = clipping.groups(names)
    if len(groups) != len(gradients):
        rule = f"have one entry for each of the {len(gradients)} gradients"
        _check.refuse_state("names", rule, f"they name {len(groups)}", "name each gradient once")
    present, index = torch.unique(users, return_inverse=True)
    sums = [_summed(gradient, index, len(present)) for gradient in gradients]
    wide = torch.promote_types(torch.float32, sums[0].dtype) if sums else torch.float32
    squared = torch.zeros(1 + max(groups, default=0), len(present), dtype=wide, device=users.device)
    for group, total in zip(groups, sums, strict=True):
        squared[group] += total.square().sum(1).to(wide)
    factors = clipping.factors(squared)
    clipped = []
    for group, total, gradient in zip(groups, sums, gradients, strict=True):
        counted = torch.where(factors[group][:, None] > 0, total, 0)
        with in_full(total.device):
            clipped.append((factors[group].to(total.dtype) @ counted).reshape(gradient.shape[1:]))
    return UserSums(gradients=tuple(clipped), users=len(present), squared_norms=squared)


def _summed(gradient: Tensor, index: Tensor, users: int) -> Tensor:
    flat = gradient.detach()[:, None].flatten(1)
    wide = torch.promote_types(torch.float32, flat.dtype)
    return flat.new_zeros(users, flat.shape[1], dtype=wide).index_add_(0, index, flat.to(wide))
