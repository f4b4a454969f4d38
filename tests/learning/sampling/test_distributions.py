"""The whole law of the batches of small runs, against enumeration."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product

import pytest

from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.epoch_sampler import CyclicSampler, ShuffledSampler
from sfumato.learning.sampling.fixed_size import FixedSizeSampler, WithReplacementSampler
from sfumato.learning.sampling.random_allocation import AllocationSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.separated import SeparatedSampler
from sfumato.learning.sampling.truncated_poisson import TruncatedPoissonSampler
from sfumato.learning.sampling.users import UserRecordsSampler, UserSampler
from tests.chance import accepts_only
from tests.learning.sampling.schedules import fits, seen

Law = dict[Hashable, Fraction]
RUNS = 2000


def _sum(outcomes: Iterable[tuple[Hashable, Fraction]]) -> Law:
    law: Law = {}
    for outcome, chance in outcomes:
        law[outcome] = law.get(outcome, Fraction(0)) + chance
    return law


def _alike(outcomes: Iterable[Hashable]) -> Law:
    """The law of outcomes that are equally likely."""
    listed = list(outcomes)
    return _sum((outcome, Fraction(1, len(listed))) for outcome in listed)


def _check(make: Callable[[int], Sampler], law: Law, **wrong: Law) -> None:
    assert {sum(each.values()) for each in (law, *wrong.values())} == {1}
    accepts_only(fits(seen(make, RUNS)), law, **wrong)


def _cut(order: tuple[int, ...], size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sorted(order[at : at + size])) for at in range(0, len(order), size))


def test_an_epoch_is_a_random_order_that_is_cut() -> None:
    orders, pairs = list(permutations(range(5))), list(combinations(range(5), 2))
    _check(
        lambda seed: ShuffledSampler(population=5, batch_size=2, steps=3, seed=seed),
        _alike(_cut(order, 2) for order in orders),
        turned=_alike(_cut((*range(k, 5), *range(k)), 2) for k in range(5)),
        last_stays=_alike(_cut(order, 2) for order in orders if order[-1] == 4),
        independent_batches=_alike(product(pairs, pairs, ((i,) for i in range(5)))),
    )


def test_epochs_have_independent_orders() -> None:
    orders = list(permutations(range(3)))
    _check(
        lambda seed: ShuffledSampler(population=3, batch_size=1, steps=6, seed=seed),
        _alike(_cut(one + two, 1) for one, two in product(orders, orders)),
        one_order=_alike(_cut(one + one, 1) for one in orders),
        backwards=_alike(_cut(one + one[::-1], 1) for one in orders),
    )


def test_a_dropped_rest_is_another_one_in_each_epoch() -> None:
    firsts = list(combinations(range(3), 2))
    _check(
        lambda seed: ShuffledSampler(population=3, batch_size=2, steps=2, drop_last=True, seed=seed),
        _alike(product(firsts, firsts)),
        same_rest=_alike(zip(firsts, firsts, strict=True)),
        never_twice=_alike(permutations(firsts, 2)),
    )


def test_cyclic_epochs_have_one_order() -> None:
    orders = list(permutations(range(4)))
    _check(
        lambda seed: CyclicSampler(population=4, batch_size=1, steps=8, seed=seed),
        _alike(_cut(order, 1) * 2 for order in orders),
        fresh_orders=_alike(_cut(one + two, 1) for one, two in product(orders, orders)),
        first_stays=_alike(_cut(order, 1) * 2 for order in orders if order[0] == 0),
    )


def _halves(draws: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(draws[:2])), tuple(sorted(draws[2:]))


def test_batches_of_fixed_size_are_independent_uniform_subsets() -> None:
    sets = list(combinations(range(4), 2))
    _check(
        lambda seed: FixedSizeSampler(population=4, batch_size=2, steps=2, seed=seed),
        _alike(product(sets, sets)),
        cut=_alike(_cut(order, 2) for order in permutations(range(4))),
        replaced=_alike(_halves(draws) for draws in product(range(4), repeat=4)),
    )


def test_draws_with_replacement_are_independent() -> None:
    sets, multisets = combinations(range(3), 2), combinations_with_replacement(range(3), 2)
    _check(
        lambda seed: WithReplacementSampler(population=3, batch_size=2, steps=2, seed=seed),
        _alike(_halves(draws) for draws in product(range(3), repeat=4)),
        without=_alike(product(sets, repeat=2)),
        multisets_alike=_alike(product(multisets, repeat=2)),
    )


def test_each_ball_has_a_bin_of_its_own_for_all_epochs() -> None:
    def epoch(bins: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(i for i, own in enumerate(bins) if own == b) for b in range(3))

    epochs = [epoch(bins) for bins in product(range(3), repeat=3)]
    _check(
        lambda seed: BallsInBinsSampler(population=3, bins=3, steps=5, seed=seed),
        _alike(one + one[:2] for one in epochs),
        fresh_bins=_alike(one + two[:2] for one, two in product(epochs, epochs)),
        one_in_each=_alike(one + one[:2] for one in map(epoch, permutations(range(3)))),
    )


@pytest.mark.parametrize("selected", [1, 2, 3])
def test_each_example_has_steps_of_its_own(selected: int) -> None:
    def law(*numbers: int, together: bool = False) -> Law:
        sets = [chosen for number in numbers for chosen in combinations(range(3), number)]
        both = zip(sets, sets, strict=True) if together else product(sets, sets)
        return _alike(
            tuple(tuple(i for i in (0, 1) if step in chosen[i]) for step in range(3)) for chosen in both
        )

    wrong = {"one_less": law(selected - 1), "coins": law(0, 1, 2, 3)}
    if selected < 3:
        wrong["together"] = law(selected, together=True)
    _check(
        lambda seed: AllocationSampler(population=2, round_steps=3, selected=selected, steps=3, seed=seed),
        law(selected),
        **wrong,
    )


def test_rounds_are_allocated_afresh() -> None:
    def taken(one: int, two: int) -> tuple[tuple[int, ...], ...]:
        return tuple((0,) if step in {one, 3 + two} else () for step in range(5))

    _check(
        lambda seed: AllocationSampler(population=1, round_steps=3, steps=5, seed=seed),
        _alike(taken(one, two) for one, two in product(range(3), range(3))),
        same_step=_alike(taken(one, one) for one in range(3)),
        other_step=_alike(taken(one, two) for one, two in permutations(range(3), 2)),
    )


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
    steps = 5

    def law(p: Fraction, separation: int) -> Law:
        own = _rested(p, separation, steps)
        return _sum(
            (
                tuple(tuple(i for i in (0, 1) if s in both[i]) for s in range(steps)),
                own[both[0]] * own[both[1]],
            )
            for both in product(own, own)
        )

    p = Fraction(0.375)
    _check(
        lambda seed: SeparatedSampler(
            population=2, sampling_probability=float(p), separation=2, steps=steps, seed=seed
        ),
        law(p, 2),
        restless=law(p, 1),
        longer=law(p, 3),
        rarer=law(p * Fraction(7, 8), 2),
    )


def test_of_samples_that_are_too_large_a_uniform_part_is_kept() -> None:
    q, n, most = Fraction(0.4), 5, 2
    uniform, first, whole = [], [], []
    for size in range(n + 1):
        chance = q**size * (1 - q) ** (n - size)
        for sample in combinations(range(n), size):
            kept = list(combinations(sample, min(size, most)))
            uniform += [((part,), chance / len(kept)) for part in kept]
            first.append(((kept[0],), chance))
            whole.append(((sample,), chance))
    make = {"population": n, "sampling_probability": float(q), "max_batch_size": most, "steps": 1}
    _check(
        lambda seed: TruncatedPoissonSampler(**make, seed=seed),  # type: ignore[arg-type]
        _sum(uniform),
        first_are_kept=_sum(first),
        all_are_kept=_sum(whole),
    )


def test_users_come_with_some_of_their_examples_drawn_anew() -> None:
    """User a owns 0, 2, 3 of which two are kept, b owns 1; two steps."""
    q = Fraction(0.3)

    def batches(*parts: tuple[int, ...]) -> Law:
        return _sum(
            (
                tuple(sorted((*kept, *((1,) if b else ())))),
                (q if a else 1 - q) * (q if b else 1 - q) / (len(parts) if a else 1),
            )
            for a, b in product([True, False], repeat=2)
            for kept in (parts if a else [()])
        )

    def twice(one: Law) -> Law:
        return {(first, second): one[first] * one[second] for first, second in product(one, one)}

    parts = list(combinations([0, 2, 3], 2))
    ids = ["a", "b", "a", "a"]
    make = {"user_ids": ids, "sampling_probability": float(q), "steps": 2, "max_examples": 2}
    _check(
        lambda seed: UserSampler(**make, seed=seed),  # type: ignore[arg-type]
        twice(batches(*parts)),
        kept_for_good=_sum(
            (pair, chance / 3) for part in parts for pair, chance in twice(batches(part)).items()
        ),
        first_are_kept=twice(batches(parts[0])),
        all_are_kept=twice(batches((0, 2, 3))),
    )


def test_records_of_users_are_kept_for_good_and_drawn_one_by_one() -> None:
    q = Fraction(0.6)

    def batch(*kept: int) -> Law:
        pool = sorted((*kept, 1))
        drawn = [c for size in range(len(pool) + 1) for c in combinations(pool, size)]
        return {c: q ** len(c) * (1 - q) ** (len(pool) - len(c)) for c in drawn}

    def both(*laws: tuple[Law, Law]) -> Law:
        return _sum(
            ((one, two), first[one] * second[two] / len(laws))
            for first, second in laws
            for one, two in product(first, second)
        )

    kept = [batch(*part) for part in combinations([0, 2, 3], 2)]
    make = {"user_ids": [7, 2, 7, 7], "sampling_probability": float(q), "steps": 2, "max_examples": 2}
    _check(
        lambda seed: UserRecordsSampler(**make, seed=seed),  # type: ignore[arg-type]
        both(*((one, one) for one in kept)),
        kept_anew=both(*product(kept, kept)),
        first_are_kept=both((kept[0], kept[0])),
        all_are_kept=both((batch(0, 2, 3), batch(0, 2, 3))),
    )
