"""Batches of others: counted by example, charged for each participation, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.learning.sampling.epoch_sampler import ShuffledSampler
from sfumato.learning.sampling.foreign_loader import ForeignLoader, WatchedBatches
from sfumato.privacy import Gaussian, Neighboring

ZERO, REPLACE = Neighboring.ZERO_OUT, Neighboring.REPLACE_ONE


def test_the_busiest_example_is_what_the_run_has_cost() -> None:
    loader = ForeignLoader(max_participations=3)
    assert loader.loss_so_far(1.0).quick_epsilon(0.0) == 0
    costs = []
    for batch in ([0, 1], [2], [], [1, 2], [1]):
        loader.admit(batch)
        costs.append(loader.participations)
    assert costs == [1, 1, 1, 2, 3]
    assert loader.batches == 5
    assert loader.loss_so_far(1.5) == Gaussian(1.5, neighboring=ZERO) * 3
    assert loader.loss(1.5) == Gaussian(1.5, neighboring=ZERO) * 3
    assert loader.participation.max_steps(100) == 3


def test_nothing_is_amplified() -> None:
    """One of a thousand examples a batch: each participation is paid as if the batch were known."""
    loader = ForeignLoader(max_participations=1)
    for at in range(1000):
        loader.admit([at])
    assert loader.loss_so_far(1.0).epsilon(1e-5) == Gaussian(1.0, neighboring=ZERO).epsilon(1e-5)


def test_a_replaced_example_moves_sums_by_twice_as_much() -> None:
    loader = ForeignLoader(max_participations=2, neighboring=REPLACE)
    assert loader.loss(1.5) == Gaussian(0.75, neighboring=REPLACE) * 2
    assert loader.priced(Gaussian(3.0, neighboring=REPLACE), 1) == Gaussian(3.0, neighboring=REPLACE)
    with pytest.raises(NeighboringMismatch, match="step must be under"):
        loader.priced(Gaussian(3.0), 1)


def test_it_agrees_with_the_sampler_of_the_same_epochs() -> None:
    sampler = ShuffledSampler(population=50, batch_size=8, steps=14, seed=3)
    loader = ForeignLoader(max_participations=2)
    for batch in sampler.batches():
        loader.admit(batch)
    assert loader.loss_so_far(2.0) == sampler.loss(2.0)


def test_a_batch_that_was_not_charged_is_refused_and_not_counted() -> None:
    loader = ForeignLoader(max_participations=1)
    loader.admit([4, 5])
    with pytest.raises(ParameterError, match="ids must be in at most 1 batches, but an example is"):
        loader.admit([6, 5])
    assert (loader.batches, loader.participations) == (1, 1)
    loader.admit([6])


def test_an_example_twice_in_a_batch_is_refused() -> None:
    loader = ForeignLoader(max_participations=5)
    for ids in ([3, 3], ["a", "b", "a"]):
        with pytest.raises(ParameterError, match="ids must be different within a batch"):
            ForeignLoader(max_participations=5).admit(ids)
    assert loader.batches == 0


def test_examples_may_have_keys() -> None:
    loader = ForeignLoader(max_participations=2)
    loader.admit(["alice", "bob"])
    loader.admit(np.array(["bob", "carol"]))
    with pytest.raises(ParameterError, match="in at most 2 batches"):
        loader.admit(["dave", "bob"])
    loader.admit(["alice"])
    assert loader.participations == 2
    assert "alice" not in repr([getattr(loader, name) for name in ForeignLoader.__slots__])


def test_ids_that_cannot_be_known_are_refused() -> None:
    loader = ForeignLoader(max_participations=2)
    for ids in (None, [0.5], [[1, 2]], [True], [None]):
        with pytest.raises(ParameterError, match="ids must be"):
            loader.admit(ids)  # type: ignore[arg-type]
    for number in (-1, 2**31):
        with pytest.raises(ParameterError, match="ids must be positions"):
            loader.admit([number])
    loader.admit([1])
    with pytest.raises(ParameterError, match="positions, as in earlier batches, but they are keys"):
        loader.admit(["one"])


def test_bad_parameters_are_refused() -> None:
    for bad in (0, -1, 1.5):
        with pytest.raises(ParameterError, match="max_participations must"):
            ForeignLoader(max_participations=bad)  # type: ignore[arg-type]
    with pytest.raises(NeighboringMismatch, match="neighboring must be zero-out or replace-one"):
        ForeignLoader(max_participations=1, neighboring=Neighboring.ADD_REMOVE)


def test_watched_batches_are_admitted_before_they_are_handed_on() -> None:
    loader = ForeignLoader(max_participations=2)
    watched = WatchedBatches([[0, 1], [2]], loader)
    assert len(watched) == 2
    epoch = iter(watched)
    assert next(epoch) == [0, 1]
    assert loader.batches == 1
    assert list(epoch) == [[2]]
    assert list(watched) == [[0, 1], [2]]
    with pytest.raises(ParameterError, match="in at most 2 batches"):
        next(iter(watched))
    with pytest.raises(ParameterError, match="batches must have a length"):
        len(WatchedBatches(iter([[0]]), loader))
