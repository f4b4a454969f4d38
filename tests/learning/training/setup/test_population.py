"""Nothing public follows from how many examples there are, or the guarantee says that this is public."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.learning import (
    AllocationSampler,
    BallsInBinsSampler,
    FixedSizeSampler,
    FullBatchSampler,
    PoissonSampler,
    SeparatedSampler,
    ShuffledSampler,
    TruncatedPoissonSampler,
    UserRecordsSampler,
    UserSampler,
)
from sfumato.ledger import Ledger
from sfumato.privacy import Neighboring
from tests.chance import accepts_only, rate
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import (
        BatchSampler,
        DataLoader,
        Dataset,
        RandomSampler,
        Sampler,
        SequentialSampler,
        Subset,
        SubsetRandomSampler,
        TensorDataset,
        WeightedRandomSampler,
    )

    from sfumato.learning import PrivacyEngine
    from tests.learning.training.conftest import Made, grouped, make_data

    Make = Callable[..., Made]

HIDING: dict[str, Callable[..., Any]] = {
    "poisson": lambda population, steps, seed, **_: PoissonSampler(
        population=population, sampling_probability=0.2, steps=steps, seed=seed
    ),
    "bins": lambda population, steps, seed, **_: BallsInBinsSampler(
        population=population, bins=5, steps=steps, seed=seed
    ),
    "allocation": lambda population, steps, seed, **_: AllocationSampler(
        population=population, round_steps=5, steps=steps, seed=seed
    ),
    "separated": lambda population, steps, seed, **_: SeparatedSampler(
        population=population, sampling_probability=0.2, separation=2, steps=steps, seed=seed
    ),
    "full": lambda population, steps, seed, **_: FullBatchSampler(
        population=population, steps=steps, seed=seed
    ),
}
"""Samplers under which a run of a private number of examples can be promised to."""

COUNTING: dict[str, Callable[..., Any]] = {
    "fixed size": lambda population, steps, seed, **_: FixedSizeSampler(
        population=population, batch_size=5, steps=steps, seed=seed
    ),
    "shuffled": lambda population, steps, seed, **_: ShuffledSampler(
        population=population, batch_size=5, steps=steps, seed=seed
    ),
    "truncated": lambda population, steps, seed, **_: TruncatedPoissonSampler(
        population=population, sampling_probability=0.2, max_batch_size=30, steps=steps, seed=seed
    ),
}
"""Samplers that need the number itself."""


def rows(count: int) -> TensorDataset:
    return TensorDataset(torch.arange(3.0 * count).reshape(count, 3), torch.ones(count, 1))


def told(count: int, **options: Any) -> dict[str, Any]:
    """Return all that is public of a run on so many rows, which takes all its steps."""
    module = nn.Linear(3, 1)
    engine = PrivacyEngine()
    module, optimizer, loader = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(rows(count), batch_size=16),
        target_epsilon=2.0,
        target_delta=1e-3,
        epochs=1,
        max_grad_norm=1.0,
        noise_generator=7,
        **grouped({"self_test": False, **options}),
    )
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(module(x), y).backward()
        optimizer.step()
    return {
        "card": json.loads(engine.card(1e-3).to_json()),
        "plan": engine.parts.identity,
        "history": engine.accountant.history,
        "batches": len(loader),
        "divisor": engine.run.sampler.expected_batch_size,
        "epsilon": engine.get_epsilon(1e-3),
    }


def test_one_row_more_shows_in_nothing_but_the_gradients_where_a_number_is_declared() -> None:
    public = told(64, population=64)
    assert public["card"]["guarantee"]["neighboring"] == "add-remove"
    for count in (0, 1, 63, 65, 200):
        assert told(count, population=64) == public
    assert told(64, population=65) != public


@pytest.mark.parametrize("name", HIDING)
def test_any_sampler_that_draws_each_by_itself_hides_how_many_there_are(name: str) -> None:
    public = told(64, population=64, sampler=HIDING[name])
    assert told(65, population=64, sampler=HIDING[name]) == public
    assert told(0, population=64, sampler=HIDING[name]) == public


@pytest.mark.parametrize("name", HIDING)
def test_a_number_that_is_not_declared_is_public(name: str, make: Make) -> None:
    made = make(sampler=HIDING[name], steps=4)
    made.epoch()
    assert made.engine.run.neighboring is Neighboring.ZERO_OUT
    assert made.engine.run.loss_so_far().neighboring is Neighboring.ZERO_OUT
    card = made.engine.card(1e-3)
    assert (card.neighboring, card.sampling["population"]) == (Neighboring.ZERO_OUT, 40)
    assert "How many examples there are is public, and is not hidden." in card.conditions
    declared = make(sampler=HIDING[name], steps=4, population=40)
    declared.epoch()
    assert declared.engine.run.neighboring is Neighboring.ADD_REMOVE
    assert declared.engine.get_epsilon(1e-3) == made.engine.get_epsilon(1e-3)
    assert "population" not in declared.engine.card(1e-3).sampling


def test_examples_past_the_declared_number_are_drawn_too(make: Make) -> None:
    made = make(data_loader=DataLoader(rows(60), batch_size=10), population=20, steps=400)
    drawn = torch.zeros(60)
    for step in range(400):
        drawn[made.engine.run.sampler.batch(step)] += 1
    assert made.engine.run.sampler.expected_batch_size == 10

    def check(chances: list[float]) -> None:
        """Each example is in each of 400 batches with a chance of its own."""
        for hits, chance in zip(drawn.tolist(), chances, strict=True):
            rate(int(hits), 400)(chance)

    accepts_only(
        check,
        [0.5] * 60,
        declared_only=[0.5] * 20 + [0.0] * 40,
        last_never=[0.5] * 59 + [0.0],
        fewer=[0.35] * 60,
    )


@pytest.mark.parametrize("name", COUNTING)
def test_samplers_that_need_the_number_refuse_another(name: str, make: Make) -> None:
    with pytest.raises(ParameterError, match="must be left out"):
        make(sampler=COUNTING[name], steps=4, population=40)
    made = make(sampler=COUNTING[name], steps=4)
    assert made.engine.run.neighboring in (Neighboring.ZERO_OUT, Neighboring.REPLACE_ONE)


@pytest.mark.parametrize("kind", [UserSampler, UserRecordsSampler])
def test_users_of_a_private_number_of_examples(kind: Any, make: Make) -> None:
    words: dict[str, Any] = {"clip": "example"} if kind is UserSampler else {}

    def users(count: int, **more: Any) -> Callable[..., Any]:
        ids = [number // 2 for number in range(count)]
        return lambda steps, seed, **_: kind(
            user_ids=ids, sampling_probability=0.2, max_examples=2, steps=steps, seed=seed, **words, **more
        )

    public = told(64, population=64, sampler=users(64, public_batch_size=12.0))
    assert told(66, population=64, sampler=users(66, public_batch_size=12.0)) == public
    assert told(0, population=64, sampler=users(0, public_batch_size=12.0)) == public
    with pytest.raises(ParameterError, match="sampler must draw from 64 examples"):
        told(66, population=64, sampler=users(66))
    assert make(sampler=users(40), steps=4).engine.run.neighboring is Neighboring.ZERO_OUT


def test_batches_of_no_dataset_at_all_have_the_form_that_the_collate_function_gives(make: Make) -> None:
    class Nothing(Dataset[Any]):
        def __len__(self) -> int:
            return 0

        def __getitem__(self, index: int) -> Any:
            raise IndexError

    def collate(examples: list[Any]) -> Any:
        assert not examples
        return torch.zeros(0, 3), torch.zeros(0, 1)

    made = make(data_loader=DataLoader(Nothing(), batch_size=4, collate_fn=collate), population=8)
    assert made.epoch() == 2
    assert any(weight.abs().sum() > 0 for weight in made.weights)  # the steps of nobody are noise


def test_a_ledger_about_add_remove_takes_no_run_whose_number_of_examples_is_public(
    make: Make, open_ledger: Callable[..., Ledger]
) -> None:
    ledger = open_ledger(neighboring=Neighboring.ADD_REMOVE)
    with pytest.raises(NeighboringMismatch, match="population must be given where the ledger"):
        make(ledger=ledger, epochs=1, delta=1e-3)
    assert not list(ledger.entries())
    made = make(ledger=ledger, epochs=1, delta=1e-3, population=39)
    made.epoch()
    (entry,) = ledger.entries()
    assert entry.loss.neighboring is Neighboring.ADD_REMOVE
    assert entry.epsilon == made.engine.card(1e-3).epsilon


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "many"])
def test_a_number_that_is_none_is_refused(wrong: Any, make: Make) -> None:
    with pytest.raises(ParameterError, match="population must be an integer"):
        make(population=wrong)


def test_a_loader_whose_sampler_would_be_dropped_is_refused(make: Make) -> None:
    data = make_data()
    half = range(20)

    class Own(Sampler[int]):
        def __iter__(self) -> Any:
            return iter(half)

        def __len__(self) -> int:
            return len(half)

    batches: list[DataLoader[Any]] = [
        DataLoader(data, batch_size=5, sampler=SubsetRandomSampler(half)),
        DataLoader(data, batch_size=5, sampler=WeightedRandomSampler([1.0] * 40, 40)),
        DataLoader(data, batch_size=5, sampler=Own()),
        DataLoader(data, batch_size=5, sampler=list(half)),
        DataLoader(data, batch_size=5, sampler=SequentialSampler(half)),
        DataLoader(data, batch_size=5, sampler=RandomSampler(half)),
        DataLoader(data, batch_size=5, sampler=RandomSampler(data, replacement=True)),
        DataLoader(data, batch_size=5, sampler=RandomSampler(data, num_samples=20)),
        DataLoader(data, batch_sampler=BatchSampler(Own(), 5, drop_last=False)),
        DataLoader(data, batch_sampler=type("Batches", (list,), {"batch_size": 5})([[0, 1], [2]])),
    ]
    for loader in batches:
        with pytest.raises(ParameterError, match=r"SequentialSampler .*Subset\(dataset, "):
            make(data_loader=loader)
    for loader in (
        DataLoader(data, batch_size=5),
        DataLoader(data, batch_size=5, shuffle=True),
        DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 5, drop_last=False)),
        DataLoader(Subset(data, half), batch_size=5, shuffle=True),
    ):
        assert make(data_loader=loader).epoch() == len(loader)


def test_steps_that_were_released_are_not_priced_again(make: Make) -> None:
    made = make(noise_multiplier=0.5)
    made.epoch()
    before = made.engine.get_epsilon(1e-3), made.engine.card(1e-3).to_json()
    run: Any = made.engine.run
    for name, value in {
        "noise_multiplier": 5.0,
        "sampler": PoissonSampler(population=40, sampling_probability=0.01, steps=9),
        "noise": run.noise,
        "engine": run.engine,
        "steps": run.steps,
        "cursor": 0,
        "foreign_steps": 0,
        "released": 0,
    }.items():
        with pytest.raises(AttributeError, match="no setter"):
            setattr(run, name, value)
    run.go_on(cursor=0, foreign_steps=0)
    with pytest.raises(ParameterError, match="steps must be numbered by one ledger"):
        run.begin(run.steps)
    assert (made.engine.get_epsilon(1e-3), made.engine.card(1e-3).to_json()) == before
