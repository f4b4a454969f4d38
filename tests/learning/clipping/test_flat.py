"""Flat clipping: the bound, floats included, and what no number is."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.clipping.flat import Flat


@cases("dtype", lambda: [torch.float32, torch.float64])
@cases("norm", [1e-9, 0.37, 1.0, 3e7])
def test_what_is_clipped_stays_within_the_sensitivity(norm: float, dtype: torch.dtype) -> None:
    clipping = Flat(clip_norm=norm)
    draw = np.random.default_rng(1)
    gradients = torch.tensor(
        draw.normal(size=(500, 300)) * norm * 10 ** draw.uniform(-3, 3, (500, 1)), dtype=dtype
    )
    # The least that an engine may give for a norm.
    squared = (gradients.square().sum(1) * (1 - 2.0**-12))[None]
    clipped = (gradients * clipping.factors(squared)[0][:, None]).double()
    norms = clipped.norm(dim=1)
    assert norms.max() <= clipping.sensitivity
    assert norms.max() > norm * (1 - 1e-6)
    small = gradients.double().norm(dim=1) < 0.99 * norm
    assert small.any()
    assert torch.equal(clipped[small], gradients[small].double())


def test_what_is_not_finite_counts_for_nothing() -> None:
    squared = torch.tensor([[1.0, float("nan"), float("inf"), -1e-9, 0.0]])
    assert Flat(clip_norm=0.5).factors(squared).tolist() == [[0.5, 0.0, 0.0, 1.0, 1.0]]


def test_noise_is_relative_to_the_sensitivity() -> None:
    clipping = Flat(clip_norm=2.0)
    assert clipping.sensitivity == 2 * (1 + 2**-12)
    assert clipping.groups(["a", "b"]) == (0, 0)
    assert clipping.stddevs(1.5, ["a", "b"], [3, 4]) == (1.5 * clipping.sensitivity,) * 2


@cases("norm", [0.0, -1.0, float("nan"), float("inf"), 1e-30, 1e30, True])
def test_refuses_norms_that_floats_cannot_clip_to(norm: float) -> None:
    with pytest.raises(ParameterError, match="clip_norm must be"):
        Flat(clip_norm=norm)


@cases(
    "squared",
    lambda: [torch.zeros(3), torch.zeros(1, 3, dtype=torch.bfloat16), torch.zeros(1, 3, dtype=torch.int64)],
)
def test_refuses_norms_of_another_kind(squared: torch.Tensor) -> None:
    with pytest.raises(ParameterError, match=r"squared_norms must be float32 or float64 of shape"):
        Flat(clip_norm=1.0).factors(squared)
