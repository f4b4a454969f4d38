"""The whole law of the batches of small runs, against enumeration."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb

import pytest

from sfumato.learning.sampling.allocation import AllocationSampler
from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.cyclic import CyclicSampler
from sfumato.learning.sampling.fixed_size import FixedSizeSampler, WithReplacementSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.separated import SeparatedSampler
from sfumato.learning.sampling.shuffled import ShuffledSampler
from sfumato.learning.sampling.truncated_poisson import TruncatedPoissonSampler
from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
from tests.learning.sampling.laws import assert_law, seen

Law = dict[Hashable, Fraction]
RUNS = 2000


def _sum(outcomes: object) -> Law:
    law: Law = {}
    for outcome, chance in outcomes:  # type: ignore[attr-defined]
        law[outcome] = law.get(outcome, Fraction(0)) + chance
    return law


def _check(make: Callable[[int], Sampler], law: Law) -> None:
    assert sum(law.values()) == 1
    assert_law(seen(make, RUNS), law)


def _cut(order: tuple[int, ...], size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sorted(order[at : at + size])) for at in range(0, len(order), size))


def test_an_epoch_is_a_random_order_that_is_cut() -> None:
    orders = list(permutations(range(5)))
    law = _sum((_cut(order, 2), Fraction(1, len(orders))) for order in orders)
    _check(lambda seed: ShuffledSampler(population=5, batch_size=2, steps=3, seed=seed), law)


def test_epochs_have_independent_orders() -> None:
    orders = list(permutations(range(3)))
    law = _sum((_cut(one + two, 1), Fraction(1, 36)) for one, two in product(orders, orders))
    _check(lambda seed: ShuffledSampler(population=3, batch_size=1, steps=6, seed=seed), law)


def test_a_dropped_rest_is_another_one_in_each_epoch() -> None:
    firsts = list(combinations(range(3), 2))
    law = _sum(((one, two), Fraction(1, 9)) for one, two in product(firsts, firsts))
    _check(lambda seed: ShuffledSampler(population=3, batch_size=2, steps=2, drop_last=True, seed=seed), law)


def test_cyclic_epochs_have_one_order() -> None:
    orders = list(permutations(range(4)))
    law = _sum((_cut(order, 1) * 2, Fraction(1, len(orders))) for order in orders)
    _check(lambda seed: CyclicSampler(population=4, batch_size=1, steps=8, seed=seed), law)


def test_batches_of_fixed_size_are_independent_uniform_subsets() -> None:
    sets = list(combinations(range(4), 2))
    law = _sum((pair, Fraction(1, 36)) for pair in product(sets, sets))
    _check(lambda seed: FixedSizeSampler(population=4, batch_size=2, steps=2, seed=seed), law)


def test_draws_with_replacement_are_independent() -> None:
    draws = product(range(3), repeat=4)
    law = _sum(((tuple(sorted(d[:2])), tuple(sorted(d[2:]))), Fraction(1, 81)) for d in draws)
    _check(lambda seed: WithReplacementSampler(population=3, batch_size=2, steps=2, seed=seed), law)


def test_each_ball_has_a_bin_of_its_own_for_all_epochs() -> None:
    def batches(bins: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        epoch = tuple(tuple(i for i, own in enumerate(bins) if own == b) for b in range(3))
        return epoch + epoch[:2]

    law = _sum((batches(bins), Fraction(1, 27)) for bins in product(range(3), repeat=3))
    _check(lambda seed: BallsInBinsSampler(population=3, bins=3, steps=5, seed=seed), law)


@pytest.mark.parametrize("selected", [1, 2, 3])
def test_each_example_has_steps_of_its_own(selected: int) -> None:
    sets = list(combinations(range(3), selected))
    law = _sum(
        (
            tuple(tuple(i for i in (0, 1) if step in chosen[i]) for step in range(3)),
            Fraction(1, len(sets) ** 2),
        )
        for chosen in product(sets, sets)
    )
    _check(
        lambda seed: AllocationSampler(population=2, round_steps=3, selected=selected, steps=3, seed=seed),
        law,
    )


def test_rounds_are_allocated_afresh() -> None:
    law = _sum(
        (tuple((0,) if step in {one, 3 + two} else () for step in range(5)), Fraction(1, 9))
        for one, two in product(range(3), range(3))
    )
    _check(lambda seed: AllocationSampler(population=1, round_steps=3, steps=5, seed=seed), law)


def _rested(p: Fraction, separation: int, steps: int) -> dict[tuple[int, ...], Fraction]:
    """The law of one example's steps."""
    law: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for step in range(steps):
        after: dict[tuple[int, ...], Fraction] = {}
        for taken, chance in law.items():
            may = not taken or step - taken[-1] >= separation
            drawn = chance * p if may else Fraction(0)
            after[taken] = after.get(taken, Fraction(0)) + chance - drawn
            if drawn:
                after[(*taken, step)] = drawn
        law = after
    return law


def test_examples_rest_by_themselves() -> None:
    p, steps = Fraction(0.375), 5
    own = _rested(p, 2, steps)
    law = _sum(
        (tuple(tuple(i for i in (0, 1) if s in both[i]) for s in range(steps)), own[both[0]] * own[both[1]])
        for both in product(own, own)
    )
    _check(
        lambda seed: SeparatedSampler(
            population=2, sampling_probability=float(p), separation=2, steps=steps, seed=seed
        ),
        law,
    )


def test_of_samples_that_are_too_large_a_uniform_part_is_kept() -> None:
    q, n, most = Fraction(0.4), 5, 2
    outcomes = []
    for size in range(n + 1):
        chance = q**size * (1 - q) ** (n - size)
        for sample in combinations(range(n), size):
            kept = list(combinations(sample, min(size, most)))
            outcomes += [((part,), chance / len(kept)) for part in kept]
    make = {"population": n, "sampling_probability": float(q), "max_batch_size": most, "steps": 1}
    _check(lambda seed: TruncatedPoissonSampler(**make, seed=seed), _sum(outcomes))  # type: ignore[arg-type]


def test_users_come_with_some_of_their_examples_drawn_anew() -> None:
    """User a owns 0, 2, 3 of which two are kept, b owns 1; two steps."""
    q = Fraction(0.3)
    one = _sum(
        (
            tuple(sorted((*kept, *((1,) if b else ())))),
            (q if a else 1 - q) * (q if b else 1 - q) * (Fraction(1, 3) if a else 1),
        )
        for a, b in product([True, False], repeat=2)
        for kept in (combinations([0, 2, 3], 2) if a else [()])
    )
    law = _sum(((first, second), one[first] * one[second]) for first, second in product(one, one))
    ids = ["a", "b", "a", "a"]
    make = {"user_ids": ids, "sampling_probability": float(q), "steps": 2, "max_examples": 2}
    _check(lambda seed: UserSampler(**make, seed=seed), law)  # type: ignore[arg-type]


def test_records_of_users_are_kept_for_good_and_drawn_one_by_one() -> None:
    q = Fraction(0.3)
    outcomes = []
    for kept in combinations([0, 2, 3], 2):
        pool = sorted((*kept, 1))
        subsets_ = [c for size in range(4) for c in combinations(pool, size)]
        chances = {c: q ** len(c) * (1 - q) ** (3 - len(c)) for c in subsets_}
        outcomes += [
            ((one, two), Fraction(1, comb(3, 2)) * chances[one] * chances[two])
            for one, two in product(subsets_, subsets_)
        ]
    make = {"user_ids": [7, 2, 7, 7], "sampling_probability": float(q), "steps": 2, "max_examples": 2}
    _check(lambda seed: UserRecordsSampler(**make, seed=seed), _sum(outcomes))  # type: ignore[arg-type]
