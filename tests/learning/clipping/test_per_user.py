"""Clipping by user: no user moves the sum by more than the sensitivity, with however many examples."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_group import PerGroup
    from sfumato.learning.clipping.per_user import clipped_by_user


NAMES = ["a.weight", "b.weight"]


def batch(seed: int, users: int = 9, examples: int = 60) -> tuple[list[torch.Tensor], torch.Tensor]:
    draw = np.random.default_rng(seed)
    gradients = [torch.tensor(draw.normal(size=(examples, *shape))).float() for shape in ((4, 5), (7,))]
    return gradients, torch.tensor(draw.integers(0, users, examples) * 1000 - 3)


@cases("clipping", lambda: [Flat(clip_norm=1.0), PerGroup(clip_norms={"a": 2.0, "b": 0.5})])
def test_no_user_moves_the_sum_by_more(clipping: Flat | PerGroup) -> None:
    gradients, users = batch(1)
    whole = clipped_by_user(gradients, users, clipping=clipping, names=NAMES)
    assert whole.users == 9
    for user in users.unique():
        kept = users != user
        rest = clipped_by_user([g[kept] for g in gradients], users[kept], clipping=clipping, names=NAMES)
        moved = sum(
            float((a - b).double().square().sum())
            for a, b in zip(whole.gradients, rest.gradients, strict=True)
        )
        assert moved**0.5 <= clipping.sensitivity * (1 + 1e-6)
        assert moved**0.5 > 0.9 * clipping.sensitivity


def test_one_example_each_is_clipping_by_example() -> None:
    gradients, _ = batch(2)
    clipping = Flat(clip_norm=3.0)
    found = clipped_by_user(gradients, torch.arange(60), clipping=clipping, names=NAMES)
    squared = sum(g.flatten(1).square().sum(1) for g in gradients)
    factors = clipping.factors(torch.as_tensor(squared)[None])[0]
    for ours, each in zip(found.gradients, gradients, strict=True):
        assert torch.allclose(ours, torch.einsum("b,b...->...", factors, each), atol=1e-5)


def test_a_user_with_a_gradient_that_is_no_number_counts_for_nothing() -> None:
    gradients, users = batch(3)
    kept = users != users[0]
    expected = clipped_by_user(
        [g[kept] for g in gradients], users[kept], clipping=Flat(clip_norm=1.0), names=NAMES
    )
    gradients[1][0, 3] = float("nan")
    found = clipped_by_user(gradients, users, clipping=Flat(clip_norm=1.0), names=NAMES)
    for ours, theirs in zip(found.gradients, expected.gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_an_empty_batch_is_zero() -> None:
    found = clipped_by_user(
        [torch.zeros(0, 3), torch.zeros(0)],
        torch.zeros(0, dtype=torch.int64),
        clipping=Flat(clip_norm=1.0),
        names=NAMES,
    )
    assert [g.tolist() for g in found.gradients] == [[0, 0, 0], 0.0]
    assert found.users == 0


def test_bad_shapes_are_told() -> None:
    gradients, users = batch(1)
    with pytest.raises(ParameterError, match=r"users must be integers of shape"):
        clipped_by_user(gradients, users.float(), clipping=Flat(clip_norm=1.0), names=NAMES)
    with pytest.raises(ParameterError, match="gradients must have a row for each of 59 examples"):
        clipped_by_user(gradients, users[1:], clipping=Flat(clip_norm=1.0), names=NAMES)
    with pytest.raises(ParameterError, match="names must have one entry for each of the 2 gradients"):
        clipped_by_user(gradients, users, clipping=Flat(clip_norm=1.0), names=NAMES[:1])
