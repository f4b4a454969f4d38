"""Batches that workers load ahead of a ``break`` are given again: they are no steps."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import RunExhausted
from sfumato.ledger import Ledger
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch.utils.data import DataLoader

    from tests.learning.training.conftest import Made, make_data

Make = Callable[..., "Made"]


def loader_of(workers: int) -> Any:
    return DataLoader(make_data(), batch_size=10, num_workers=workers)


def broken_epochs(made: Made, epochs: int) -> list[torch.Tensor]:
    seen = []
    for _ in range(epochs):
        for x, y in made.loader:
            made.loss(x, y).backward()
            made.optimizer.step()
            seen.append(x)
            break
    return seen


def test_a_break_costs_the_steps_that_were_made(make: Make) -> None:
    plain, ahead = (make(data_loader=loader_of(workers)) for workers in (0, 2))
    seen, loaded = broken_epochs(plain, 3), broken_epochs(ahead, 3)
    assert ahead.engine.run.cursor == ahead.engine.run.released == plain.engine.run.cursor == 3
    assert all(torch.equal(one, other) for one, other in zip(seen, loaded, strict=True))
    assert ahead.engine.get_epsilon(1e-3) == plain.engine.get_epsilon(1e-3)


def test_a_batch_that_was_given_is_not_given_again(make: Make) -> None:
    made = make(data_loader=loader_of(2))
    (first, _), (again, _) = (next(iter(made.loader)) for _ in range(2))
    assert first.shape != again.shape or not torch.equal(first, again)


def test_a_charged_run_loses_no_step_to_a_break(
    make: Make, open_ledger: Callable[..., Ledger], tmp_path: Path
) -> None:
    ledger = open_ledger(tmp_path / "of.ledger", simulated=False)
    options = {"noise_generator": None, "delta": 1e-3, "steps": 6, "key_file": tmp_path / "key"}
    made = make(data_loader=loader_of(1), ledger=ledger, **options)
    broken_epochs(made, 6)
    assert made.engine.run.released == made.engine.run.cursor == 6
    with pytest.raises(RunExhausted):
        broken_epochs(made, 1)


def test_workers_of_a_run_without_steps_end_at_once(make: Make, open_ledger: Callable[..., Ledger]) -> None:
    """Nothing holds the refused iterator: with other garbage its pipes would be closed twice."""
    made = make(data_loader=loader_of(1), ledger=open_ledger(), delta=1e-3, steps=2)
    broken_epochs(made, 2)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(RunExhausted):
            broken_epochs(made, 1)
        assert not any(type(each).__name__ == "_MultiProcessingDataLoaderIter" for each in gc.get_objects())
    finally:
        gc.enable()
