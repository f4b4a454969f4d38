"""The card of a run says what the run was, whatever the examples were."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sfumato.ledger import Ledger
from sfumato.privacy import Neighboring, PrivacyLoss
from sfumato.privacy.catalog import loss_from_json
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from tests.learning.training.conftest import Made

    Make = Callable[..., Made]


def test_it_is_of_the_steps_so_far_and_can_be_priced_again(make: Make) -> None:
    made = make(noise_multiplier=2.0)
    assert made.engine.card(1e-3).steps == 0
    made.epoch()
    card = made.engine.card(1e-3, unit="visit")
    assert (card.steps, card.participation, card.unit) == (4, 4, "visit")
    assert card.epsilon == made.engine.get_epsilon(1e-3)
    again: PrivacyLoss = loss_from_json(json.loads(card.to_json())["run"]["loss"])
    assert again.epsilon(1e-3) == card.epsilon
    assert (card.simulated, card.float_safe, card.noise) == (True, False, {"kind": "simulated-normal"})
    assert (card.neighboring, card.sampling) == (
        Neighboring.ZERO_OUT,
        {"sampling_probability": 0.25, "population": 40},
    )
    assert not card.ledger
    assert dict(card.software)["torch"] == torch.__version__


def test_of_shuffled_epochs_and_foreign_batches(make: Make) -> None:
    with pytest.warns(UserWarning, match="hide nobody"):
        made = make(poisson_sampling=False)
    made.epoch()
    made.epoch()
    card = made.engine.card(1e-3)
    assert (card.steps, card.participation, card.neighboring) == (8, 2, Neighboring.ZERO_OUT)
    assert card.sampling == {"population": 40, "batch_size": 10}
    made.loss(*made.data_loader.dataset.tensors).backward()
    with pytest.warns(UserWarning, match="did not come from"):
        made.optimizer.step()
    card = made.engine.card(1e-3)
    assert card.foreign_steps == 1
    assert card.epsilon == made.engine.get_epsilon(1e-3)


def test_on_a_ledger_it_is_of_the_whole_run_that_was_charged(
    make: Make, open_ledger: Callable[..., Ledger]
) -> None:
    ledger = open_ledger()
    made = make(ledger=ledger, epochs=3, delta=1e-3, noise_multiplier=2.0)
    made.epoch()
    card = made.engine.card(1e-3)
    (entry,) = ledger.entries()
    assert card.steps == 12
    assert card.epsilon == pytest.approx(entry.epsilon, rel=1e-12)
    assert entry.epsilon > made.engine.get_epsilon(1e-3)
    run = made.engine.parts.reservation.run
    assert run is not None
    assert card.ledger == {"id": ledger.ledger_id, "run": run.number, "privacy_unit": "row"}


def test_it_is_the_same_whatever_the_examples_are(make: Make) -> None:
    """Nor does it tell their number, where that is hidden: 40 and 38 with a public 41."""
    told = []
    for examples, scale in ((40, 1.0), (38, 1e3)):
        x = torch.full((examples, 3), scale)
        data = TensorDataset(x, x[:, :1])
        made = make(data_loader=DataLoader(data, batch_size=10), population=41)
        made.epoch()
        told.append(made.engine.card(1e-3).to_json())
    assert told[0] == told[1]
    assert json.loads(told[0])["guarantee"]["neighboring"] == "add-remove"
    assert json.loads(told[0])["run"]["sampler"]["expected_batch_size"] == 41 * (1 / 5)
