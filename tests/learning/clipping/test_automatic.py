"""Automatic clipping: never above its norm, and as published."""

from __future__ import annotations

import pytest

from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.clipping.automatic import Automatic


def test_gradients_stay_below_the_norm_and_small_ones_stay_small() -> None:
    clipping = Automatic(clip_norm=2.0, gamma=0.01)
    norms = torch.logspace(-12, 12, 500)
    clipped = norms * clipping.factors(norms.square()[None] * (1 - 2.0**-12))[0]
    assert clipped.max() <= clipping.sensitivity
    assert torch.allclose(clipped, 2 * norms / (norms + 0.01), rtol=2e-4)


def test_what_is_not_finite_counts_for_nothing() -> None:
    squared = torch.tensor([[float("nan"), float("inf"), 1.0]])
    assert Automatic(gamma=1.0).factors(squared).tolist() == [[0, 0, 0.5]]


def test_bad_gamma_is_told() -> None:
    with pytest.raises(ParameterError, match="gamma must be positive"):
        Automatic(gamma=0.0)
    with pytest.raises(ParameterError, match=r"gamma must be at least 2\*\*-40"):
        Automatic(gamma=1e-30)


def test_the_least_gamma_is_what_the_refusal_says() -> None:
    assert Automatic(gamma=2.0**-40).gamma == 2.0**-40
    with pytest.raises(ParameterError, match=r"gamma must be at least 2\*\*-40"):
        Automatic(gamma=2.0**-40 * (1 - 2.0**-53))
