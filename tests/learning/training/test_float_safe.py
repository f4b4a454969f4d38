"""Runs with noise on a grid: the same price, exact noise, and no other kind for a step computed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerMismatch, ParameterError
from sfumato.ledger import Ledger
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise.grid import GridNoise
    from tests.learning.training.conftest import Made

    Make = Callable[..., Made]
Open = Callable[..., Ledger]
REAL: dict[str, Any] = {"noise_generator": None, "delta": 1e-3}


def test_a_run_draws_from_the_grid_at_the_same_price(make: Make) -> None:
    plain, exact = make(), make(float_safe=True)
    assert not plain.engine.run.noise.float_safe
    assert exact.engine.run.noise.float_safe
    assert plain.epoch() == exact.epoch()
    assert plain.engine.get_epsilon(1e-3) == exact.engine.get_epsilon(1e-3)
    assert not any(torch.equal(a, b) for a, b in zip(plain.weights, exact.weights, strict=True))


def test_noise_that_costs_more_is_charged_for_it(make: Make) -> None:
    plain, exact = (make(float_safe=safe, noise_multiplier=1e7) for safe in (False, True))
    for made in (plain, exact):
        made.epoch()
    assert exact.engine.get_epsilon(1e-9) > plain.engine.get_epsilon(1e-9)


def test_two_kinds_at_once_are_refused(make: Make) -> None:
    with pytest.raises(ParameterError, match="float_safe must be left out where noise is given"):
        make(float_safe=True, noise=lambda sampler, key, seed: GridNoise(key, seed=seed))


def test_a_run_goes_on_with_its_own_kind_of_noise_only(make: Make, open_ledger: Open, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    first = make(**REAL, ledger=ledger, epochs=2, float_safe=True)
    first.epoch()
    first.engine.save_checkpoint(path=tmp_path / "at.pt")
    with pytest.raises(LedgerMismatch, match="noise must be the one that the run began with, grid-normal"):
        make(**REAL, ledger=ledger, epochs=2, resume_from=tmp_path / "at.pt")
    again = make(**REAL, ledger=ledger, epochs=2, float_safe=True, resume_from=tmp_path / "at.pt")
    kept = first.engine.run.noise
    assert isinstance(kept, GridNoise)
    assert again.engine.run.noise.key == kept.key  # type: ignore[attr-defined]
