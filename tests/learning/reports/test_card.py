"""The privacy card: its three forms say one thing, and nothing that is not public."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.learning import (
    FixedSizeSampler,
    FullBatchSampler,
    PoissonSampler,
    PrivacyCard,
    Sampler,
    ShuffledSampler,
    UserSampler,
)
from sfumato.learning.reports.card import public_sampling
from sfumato.privacy import Gaussian, Neighboring
from tests.cases import cases


def card(**changes: Any) -> PrivacyCard:
    usual: dict[str, Any] = {
        "epsilon": 1.25,
        "delta": 1e-5,
        "neighboring": Neighboring.ADD_REMOVE,
        "unit": "row",
        "loss": Gaussian(4.0) * 3,
        "steps": 3,
        "sampler": "full-batch",
        "sampling": {},
        "participation": 3,
        "noise": {"kind": "keyed-normal"},
        "noise_multiplier": 4.0,
        "clipping": {"kind": "flat", "clip_norm": 1.0},
        "float_safe": False,
        "simulated": False,
    }
    return PrivacyCard(**usual | changes)


@cases(
    ("sampler", "told"),
    [
        (
            PoissonSampler(population=977, sampling_probability=0.125, steps=3),
            {"sampling_probability": 0.125},
        ),
        (FullBatchSampler(population=977, steps=3), {}),
        (FullBatchSampler(population=977, steps=3, neighboring=Neighboring.ZERO_OUT), {"population": 977}),
        (ShuffledSampler(population=977, batch_size=10, steps=3), {"population": 977, "batch_size": 10}),
        (FixedSizeSampler(population=977, batch_size=10, steps=3), {"population": 977, "batch_size": 10}),
        (
            UserSampler(user_ids=[1, 1, 2], sampling_probability=0.5, steps=3),
            {"sampling_probability": 0.5},
        ),
    ],
)
def test_how_many_examples_there_are_is_told_where_it_is_public(
    sampler: Sampler, told: dict[str, float]
) -> None:
    assert public_sampling(sampler) == told


def test_all_forms_say_the_same() -> None:
    made = card(sampling={"sampling_probability": 0.125}, ledger={"id": "ab", "run": 7}, software={"x": "1"})
    plain = json.loads(made.to_json())
    assert PrivacyCard.from_json(made.to_json()) == made
    assert plain["guarantee"] == {
        "epsilon": 1.25,
        "delta": 1e-5,
        "neighboring": "add-remove",
        "unit": "row",
        "float_safe": False,
        "simulated": False,
    }
    assert plain["run"]["loss"] == (Gaussian(4.0) * 3).to_json()
    for text in (str(made), made.to_markdown()):
        for word in (
            "1.25",
            "1e-05",
            "row",
            "sampling probability 0.125",
            "flat, clip norm 1.0",
            "ab",
            "x 1",
        ):
            assert word in text
        assert all(sentence in text for sentence in made.conditions)


def test_what_a_guarantee_presupposes_is_said() -> None:
    plain = " ".join(card().conditions)
    assert "no ledger was charged" in plain
    assert "rounding is not covered" in plain
    assert "SIMULATED" not in plain
    better = " ".join(card(ledger={"run": 1}, float_safe=True).conditions)
    assert "no ledger" not in better
    assert "rounding" not in better
    assert "In 4 steps, on batches from elsewhere" in " ".join(card(foreign_steps=4).conditions)


def test_a_simulation_or_no_noise_claims_nothing() -> None:
    simulated = card(simulated=True)
    assert "SIMULATED" in simulated.conditions[0]
    assert "differentially private" not in str(simulated)
    bare = card(epsilon=math.inf, loss=Gaussian(0.0), noise_multiplier=0.0)
    assert json.loads(bare.to_json())["guarantee"]["epsilon"] == "inf"
    assert PrivacyCard.from_json(bare.to_json()) == bare
    assert "No guarantee" in bare.to_markdown()


@pytest.mark.parametrize(("changes", "says"), [({"epsilon": -1.0}, "epsilon"), ({"delta": 0.0}, "delta")])
def test_bad_input_is_told(changes: dict[str, float], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        card(**changes)


def test_the_text_shows_no_less_than_was_spent() -> None:
    made = card(
        epsilon=1.00049,
        delta=1.0000049e-5,
        noise_multiplier=1.9999999,
        sampling={"sampling_probability": 0.01000000001},
    )
    text = str(made)
    assert "(1.001, 1.00001e-05)-differentially private" in text
    for told in ("1.00049, 1.00001e-05", "sampling probability 0.0100001", "noise multiplier 1.99999"):
        assert told in text
        assert told in made.to_markdown()
    assert "epsilon, delta  1, 1e-05" in str(card(epsilon=1.0))  # as it is, where that has few digits


def test_a_card_of_another_format_version_or_content_is_refused() -> None:
    document = json.loads(card().to_json())
    for changes, says in (
        ({"format": "sfumato.loss"}, "document of the format sfumato.model-card"),
        ({"version": 2}, "version of sfumato.model-card from 1 to 1"),
        ({"other": 1}, "card must have the fields"),
        ({"run": {}}, "run must have the fields"),
        (
            {"guarantee": document["guarantee"] | {"neighboring": "next door"}},
            "neighboring must name a",
        ),
    ):
        with pytest.raises(ParameterError, match=says):
            PrivacyCard.from_json(json.dumps(document | changes))
