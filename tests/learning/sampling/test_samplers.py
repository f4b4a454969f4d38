"""What every sampler keeps: pure batches, its own participation, relation, loss and errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.epoch_sampler import CyclicSampler, ShuffledSampler
from sfumato.learning.sampling.fixed_size import FixedSizeSampler, WithReplacementSampler
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.random_allocation import AllocationSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.seed import Seed
from sfumato.learning.sampling.separated import SeparatedSampler
from sfumato.learning.sampling.truncated_poisson import TruncatedPoissonSampler
from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from sfumato.privacy import (
    BallsInBins,
    FixedSizeSampled,
    Gaussian,
    Neighboring,
    PoissonRecords,
    PoissonSubsampled,
    PrivacyLoss,
    RandomAllocation,
    SampledWithReplacement,
    SeparatedPoisson,
    TruncatedPoisson,
    loss_from_json,
)
from tests.cases import cases
from tests.chance import accepts_only

ADD, REPLACE, ZERO = Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE, Neighboring.ZERO_OUT
STEPS, N = 24, 600
IDS = (np.arange(N) * 7919 % 1000 % 120).tolist()
CASES: dict[str, tuple[Callable[..., Sampler], dict[str, Any]]] = {
    "poisson": (PoissonSampler, {"population": N, "sampling_probability": 0.1}),
    "truncated": (
        TruncatedPoissonSampler,
        {"population": N, "sampling_probability": 0.1, "max_batch_size": 62},
    ),
    "shuffled": (ShuffledSampler, {"population": N, "batch_size": 70}),
    "shuffled, replaced": (ShuffledSampler, {"population": N, "batch_size": 70, "neighboring": REPLACE}),
    "shuffled, dropped": (ShuffledSampler, {"population": N, "batch_size": 70, "drop_last": True}),
    "cyclic": (CyclicSampler, {"population": N, "batch_size": 70}),
    "in order": (CyclicSampler, {"population": N, "batch_size": 100, "shuffle": False}),
    "fixed size": (FixedSizeSampler, {"population": N, "batch_size": 60}),
    "with replacement": (WithReplacementSampler, {"population": N, "batch_size": 60}),
    "bins": (BallsInBinsSampler, {"population": N, "bins": 10}),
    "allocation": (AllocationSampler, {"population": N, "round_steps": 10, "selected": 2}),
    "most allocated": (AllocationSampler, {"population": N, "round_steps": 10, "selected": 9}),
    "separated": (SeparatedSampler, {"population": N, "sampling_probability": 0.2, "separation": 4}),
    "users": (UserSampler, {"user_ids": IDS, "sampling_probability": 0.2}),
    "users, few": (UserSampler, {"user_ids": IDS, "sampling_probability": 0.2, "max_examples": 2}),
    "user records": (UserRecordsSampler, {"user_ids": IDS, "sampling_probability": 0.2, "max_examples": 3}),
    "full": (FullBatchSampler, {"population": N}),
}
NAMES = list(CASES)


def make(name: str, **changes: Any) -> Sampler:
    kind, parameters = CASES[name]
    return kind(**{"steps": STEPS, "seed": 1} | parameters | changes)


@cases("name", NAMES)
def test_batches_are_pure_functions_of_seed_and_step(name: str) -> None:
    sampler, other = make(name), make(name)
    forwards = [batch.tolist() for batch in sampler.batches()]
    backwards = [other.batch(step).tolist() for step in reversed(range(STEPS))][::-1]
    assert forwards == backwards
    assert [batch.tolist() for batch in other.batches(17)] == forwards[17:]
    resumed = make(name, seed=Seed.of(sampler.seed).reveal())
    assert resumed.batch(20).tolist() == forwards[20]
    assert sampler.simulated
    assert not resumed.simulated
    if name not in {"full", "in order"}:
        assert [batch.tolist() for batch in make(name, seed=2).batches()] != forwards


@cases("name", NAMES)
def test_a_caller_may_change_its_batch(name: str) -> None:
    sampler = make(name)
    before = sampler.batch(3).tolist()
    sampler.batch(3)[:] = 0
    assert sampler.batch(3).tolist() == before


@cases("name", NAMES)
def test_indices_are_distinct_examples(name: str) -> None:
    sampler = make(name)
    for batch in sampler.batches():
        assert batch.dtype == np.int64
        assert ((batch >= 0) & (batch < sampler.population)).all()
        if sampler.distinct:
            assert len(np.unique(batch)) == len(batch)
    assert sampler.distinct == (name != "with replacement")


@cases("name", [n for n in NAMES if n not in {"with replacement", "user records"}])
def test_units_keep_to_their_participation(name: str) -> None:
    sampler = make(name)
    owner = sampler.owners if isinstance(sampler, UserSampler) else np.arange(sampler.population)
    steps: dict[int, list[int]] = {}
    for step, batch in enumerate(sampler.batches()):
        for unit in np.unique(owner[batch]).tolist():
            steps.setdefault(unit, []).append(step)
    told = sampler.participation
    assert max(map(len, steps.values())) <= told.max_steps(STEPS)
    gaps = {after - before for taken in steps.values() for before, after in pairwise(taken)}
    assert not gaps or min(gaps) >= told.separation
    if told.fixed_order:
        assert gaps == {told.separation}
        assert all(taken[0] < told.separation for taken in steps.values())


@cases("name", NAMES)
def test_the_expected_batch_size_is_that_of_the_batches(name: str) -> None:
    sampler = make(name, steps=400)
    sizes = [_size(sampler, batch) for batch in sampler.batches(40)]
    mean = {"shuffled": 600 / 9, "shuffled, replaced": 600 / 9, "cyclic": 600 / 9}.get(name)
    close = 0.03 if name != "truncated" else 0.06

    def check(expected: float) -> None:
        """Off by at most so much, which a mean of 360 sizes is by more with a chance below 1e-5."""
        assert np.mean(sizes) == pytest.approx(expected, rel=close)

    right = mean or sampler.expected_batch_size
    accepts_only(check, right, tenth_more=1.1 * right, tenth_less=0.9 * right)


def _size(sampler: Sampler, batch: Any) -> int:
    if isinstance(sampler, UserSampler):
        return len(np.unique(sampler.owners[batch]))
    return len(batch)


HAND: dict[str, tuple[Neighboring, Callable[[int], PrivacyLoss]]] = {
    "poisson": (ADD, lambda t: PoissonSubsampled(Gaussian(1.5), 0.1) * t),
    "truncated": (ADD, lambda t: TruncatedPoisson(Gaussian(1.5), 0.1, 62, N + 1) * t),
    "shuffled": (ZERO, lambda t: Gaussian(1.5, neighboring=ZERO) * -(-t // 9)),
    "shuffled, replaced": (REPLACE, lambda t: Gaussian(0.75, neighboring=REPLACE) * -(-t // 9)),
    "shuffled, dropped": (ZERO, lambda t: Gaussian(1.5, neighboring=ZERO) * -(-t // 8)),
    "cyclic": (ZERO, lambda t: Gaussian(1.5, neighboring=ZERO) * -(-t // 9)),
    "in order": (ZERO, lambda t: Gaussian(1.5, neighboring=ZERO) * -(-t // 6)),
    "fixed size": (REPLACE, lambda t: FixedSizeSampled(Gaussian(0.75, neighboring=REPLACE), 60, N) * t),
    "with replacement": (
        REPLACE,
        lambda t: SampledWithReplacement(Gaussian(0.75, neighboring=REPLACE), 60, N) * t,
    ),
    "bins": (ADD, lambda t: BallsInBins(Gaussian(1.5), 10, max(1, -(-t // 10))) * min(1, t)),
    "allocation": (ADD, lambda t: RandomAllocation(Gaussian(1.5), 10, 2) * -(-t // 10)),
    "most allocated": (ADD, lambda t: RandomAllocation(Gaussian(1.5), 10, 9) * -(-t // 10)),
    "separated": (ADD, lambda t: SeparatedPoisson(Gaussian(1.5), 0.2, 4, max(1, t)) * min(1, t)),
    "users": (ADD, lambda t: PoissonSubsampled(Gaussian(1.5), 0.2) * t),
    "users, few": (ADD, lambda t: PoissonSubsampled(Gaussian(1.5), 0.2) * t),
    "user records": (ADD, lambda t: PoissonRecords(Gaussian(1.5), 0.2, 3) * t),
    "full": (ADD, lambda t: Gaussian(1.5) * t),
}


@cases("name", NAMES)
def test_the_loss_is_that_of_the_law_that_draws(name: str) -> None:
    sampler = make(name)
    neighboring, by_hand = HAND[name]
    assert sampler.neighboring is neighboring
    for steps in (1, 9, 10, 11, 18, 19, STEPS):
        loss = sampler.loss_of(1.5, steps)
        assert loss == by_hand(int(steps)), steps
        assert loss.neighboring is neighboring
    assert sampler.loss(1.5) == by_hand(STEPS)
    assert sampler.loss_of(1.5, 0).quick_epsilon(0.0) == 0
    assert loss_from_json(sampler.loss(1.5).to_json()) == sampler.loss(1.5)


@cases("name", NAMES)
def test_a_step_under_another_relation_is_refused(name: str) -> None:
    sampler = make(name)
    for neighboring in Neighboring:
        step = Gaussian(1.0, neighboring=neighboring)
        if neighboring is sampler.neighboring:
            assert sampler.priced(step, 2).neighboring is neighboring
        else:
            with pytest.raises(NeighboringMismatch, match="step must be under"):
                sampler.priced(step, 2)


@cases("name", ["bins", "allocation", "separated", "shuffled", "poisson"])
def test_another_step_can_be_priced(name: str) -> None:
    """Two releases in one step, as a clipping bound that is adapted costs, are priced as one step."""
    sampler = make(name)
    step = Gaussian(2.5, neighboring=sampler.neighboring)
    assert sampler.priced(step, 5) == sampler.loss_of(2.5, 5)


def test_full_batches_hold_under_every_relation() -> None:
    for neighboring, noise in ((ADD, 1.5), (ZERO, 1.5), (REPLACE, 0.75)):
        loss = make("full", neighboring=neighboring).loss(1.5)
        assert loss == Gaussian(noise, neighboring=neighboring) * STEPS


def test_lists_that_are_cut_hold_under_no_add_and_remove() -> None:
    for kind in (ShuffledSampler, CyclicSampler):
        with pytest.raises(NeighboringMismatch, match="neighboring must be zero-out or replace-one"):
            kind(population=10, batch_size=2, steps=3, neighboring=ADD)
        with pytest.raises(ParameterError, match="neighboring must be a Neighboring"):
            kind(population=10, batch_size=2, steps=3, neighboring="zero-out")  # type: ignore[arg-type]


def test_the_halved_noise_of_replacement_is_the_doubled_move() -> None:
    """A replaced example moves the sum by two clip norms: the loss must be that of half the noise."""
    for name in ("fixed size", "with replacement", "shuffled, replaced"):
        assert make(name).step_loss(1.5).gdp().mu == pytest.approx(2 / 1.5)
    assert make("shuffled").step_loss(1.5).gdp().mu == pytest.approx(1 / 1.5)


@pytest.mark.parametrize("name", ["cyclic", "bins", "shuffled", "separated"])
def test_correlated_noise_is_priced_by_the_participation(name: str) -> None:
    sampler = make(name)
    strategy = BandedToeplitz(steps=STEPS, bands=[1.0, 0.5, 0.25])
    loss = strategy.loss(3.0, participation=sampler.participation, neighboring=sampler.neighboring)
    worst = 0.0
    matrix = strategy.matrix()
    for unit in range(N):
        steps = [step for step, batch in enumerate(sampler.batches()) if unit in batch] if unit < 12 else []
        worst = max(worst, float(np.linalg.norm(matrix[:, steps].sum(axis=1))))
    assert worst <= 3.0 * loss.gdp().mu * (1 + 1e-9)


def test_truncated_batches_are_padded() -> None:
    sampler = TruncatedPoissonSampler(
        population=200, sampling_probability=0.1, max_batch_size=20, steps=30, seed=1
    )
    sizes = set()
    for step in range(30):
        indices, mask = sampler.padded(step)
        assert indices.shape == mask.shape == (20,)
        assert indices[mask].tolist() == sampler.batch(step).tolist()
        sizes.add(int(mask.sum()))
    assert len(sizes) > 3
    assert max(sizes) == 20


def test_a_truncated_loss_bounds_both_neighbors() -> None:
    """The neighbor may have one example more, so that as many others fill a batch as there are here."""
    assert make("truncated").loss(1.5) == TruncatedPoisson(Gaussian(1.5), 0.1, 62, N + 1) * STEPS
    bounded = make("truncated", population_bound=1000)
    assert bounded.loss(1.5) == TruncatedPoisson(Gaussian(1.5), 0.1, 62, 1000) * STEPS


def test_users_whose_examples_are_clipped_move_sums_by_several() -> None:
    sampler = make("users, few", clip="example")
    assert sampler.clips == make("user records").clips == make("poisson").clips == "example"
    assert make("users, few").clips == "user"
    assert sampler.loss(1.5) == PoissonSubsampled(Gaussian(0.75), 0.2) * STEPS
    assert isinstance(sampler, UserSampler)
    sizes = np.minimum(np.bincount(sampler.owners), 2)
    assert sampler.expected_batch_size == pytest.approx(0.2 * sizes.sum())
    for batch in sampler.batches():
        assert np.bincount(sampler.owners[batch], minlength=sampler.users).max() <= 2
    with pytest.raises(ParameterError, match="max_examples must be given"):
        make("users", clip="example")
    with pytest.raises(ParameterError, match='clip must be "user" for correlated noise'):
        _ = sampler.participation
    with pytest.raises(ParameterError, match="sampler must draw users for correlated noise"):
        _ = make("user records").participation


def test_the_records_of_a_user_are_few_over_the_whole_run() -> None:
    sampler = make("user records", steps=300)
    assert isinstance(sampler, UserRecordsSampler)
    used = np.unique(np.concatenate([sampler.batch(step) for step in range(300)]))
    assert np.bincount(sampler.owners[used]).max() == 3


def test_ids_of_users_may_be_texts_or_numbers() -> None:
    texts = [f"user {i}" for i in (3, 1, 3, 2)]
    for ids in (texts, np.array(texts, object), np.array([3, 1, 3, 2], np.uint8)):
        sampler = UserSampler(user_ids=ids, sampling_probability=1.0, steps=1)
        assert sampler.owners.tolist() == [2, 0, 2, 1]
        assert sampler.batch(0).tolist() == [0, 1, 2, 3]
    for bad in ([], [[1, 2]], [1.5, 2.0], ["a", None], 7):
        with pytest.raises(ParameterError, match="user_ids must be a list of ids"):
            UserSampler(user_ids=bad, sampling_probability=0.5, steps=1)  # type: ignore[arg-type]


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("poisson", {"sampling_probability": 0.0}, "sampling_probability must"),
    ("truncated", {"max_batch_size": 0}, "max_batch_size must"),
    ("truncated", {"population_bound": 10}, "population_bound must be at least population"),
    ("truncated", {"sampling_probability": 2}, "sampling_probability must"),
    ("shuffled", {"batch_size": 0}, "batch_size must"),
    ("shuffled", {"batch_size": N + 1}, "batch_size must be at most population"),
    ("shuffled", {"drop_last": 1}, "drop_last must"),
    ("cyclic", {"shuffle": "yes"}, "shuffle must"),
    ("fixed size", {"batch_size": N + 1}, "batch_size must be at most population"),
    ("with replacement", {"population": 1}, "population must"),
    ("bins", {"bins": 0}, "bins must"),
    ("allocation", {"selected": 11}, "selected must be at most round_steps"),
    ("allocation", {"round_steps": 0}, "round_steps must"),
    ("separated", {"separation": 0}, "separation must"),
    ("separated", {"sampling_probability": -1}, "sampling_probability must"),
    ("users", {"clip": "both"}, "clip must"),
    ("users", {"max_examples": 0}, "max_examples must"),
    ("user records", {"max_examples": 0}, "max_examples must"),
    ("full", {"neighboring": "add-remove"}, "neighboring must"),
    ("full", {"population": 0}, "population must"),
]


@cases(("name", "changes", "message"), BAD)
def test_bad_parameters_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make(name, **changes)


@cases("name", NAMES)
def test_steps_that_are_not_planned_are_refused(name: str) -> None:
    sampler = make(name)
    for step in (-1, STEPS, 0.5):
        with pytest.raises(ParameterError, match="step must"):
            sampler.batch(step)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="steps must be at most the planned"):
        sampler.loss_of(1.0, STEPS + 1)
    with pytest.raises(ParameterError, match="steps must"):
        make(name, steps=0)
    with pytest.raises(ParameterError, match="seed must"):
        make(name, seed=-1)


def test_a_rested_batch_size_is_that_of_the_long_run() -> None:
    sampler = SeparatedSampler.of_batch_size(population=1000, batch_size=20, separation=10, steps=5)
    assert sampler.expected_batch_size == pytest.approx(20)
    with pytest.raises(ParameterError, match="batch_size must be at most population / separation"):
        SeparatedSampler.of_batch_size(population=100, batch_size=20, separation=10, steps=5)


@cases("name", NAMES)
def test_the_seed_is_never_shown(name: str) -> None:
    shown = repr(make(name, seed=Seed(bytes(range(32)))))
    assert "seed" not in shown
    assert "Seed" not in shown


def test_an_example_may_be_in_each_step_of_a_round_and_in_no_more() -> None:
    every = AllocationSampler(population=5, round_steps=2, selected=2, steps=2, seed=1)
    assert [every.batch(step).tolist() for step in range(2)] == [[0, 1, 2, 3, 4]] * 2
    with pytest.raises(ParameterError, match="selected must be at most round_steps, got 3"):
        AllocationSampler(population=5, round_steps=2, selected=3, steps=2, seed=1)
