"""Distinct counts by a sketch: the exact probabilities of its registers, its estimates and intervals."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import DistinctCountSketch
from sfumato.mechanisms.statistics.distinct_count import encoded_item, maximum_likelihood
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies


def upto(level: int) -> mpmath.mpf:
    """The probability that an item's level is at most this."""
    return 1 - mpmath.mpf(2) ** -level


def probability(sketch: DistinctCountSketch, items: int, registers: Counter[int]) -> mpmath.mpf:
    """The exact probability of registers, by how many of them have which level (inclusion and exclusion)."""
    taken, total = mpmath.mpf(sketch.sampled), mpmath.mpf(0)
    (first, count), (second, others) = (*registers.items(), (0, 0))[:2]

    def lowered(level: int, number: int) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
        """Signs and sums of probabilities if some of so many registers are below their level."""
        if not level:
            return [(mpmath.mpf(1), mpmath.mpf(0))]
        return [
            (mpmath.binomial(number, j) * (-1) ** j, (number - j) * upto(level) + j * upto(level - 1))
            for j in range(number + 1)
        ]

    for sign, inside in lowered(first, count):
        for other_sign, beside in lowered(second, others):
            inner = 1 - taken + taken * (inside + beside) / sketch.buckets
            total += sign * other_sign * inner ** (items + sketch.phantoms)
    return total


@cases("epsilon", [0.5, 2.0])
def test_the_loss_covers_the_exact_probabilities(epsilon: float) -> None:
    sketch = DistinctCountSketch(epsilon=epsilon, buckets=16)
    worst = 0.0
    with mpmath.workdps(60):
        for items in (0,):
            for first in range(10):
                for second, others in ((12, 1), (first + 1, 8), (30, 16)):
                    registers = Counter({first: 16 - others, second: others})
                    here, there = (probability(sketch, items + more, registers) for more in (0, 1))
                    if here > 1e-40:
                        worst = max(worst, abs(float(mpmath.log(here / there))))
    assert 0.4 * epsilon < worst <= epsilon


def test_registers_come_as_often_as_their_probability() -> None:
    sketch, count = DistinctCountSketch(epsilon=8.0, buckets=16), 400
    items, rng = [f"item {k}" for k in range(8)], np.random.default_rng(2)
    tops = Counter(int(sketch.release(items, rng).registers.max()) for _ in range(count))

    def highest(total: int) -> dict[int, float]:
        """Of the highest register of all."""
        taken = sketch.sampled
        tails = [float((1 - taken + taken * upto(level)) ** total) for level in range(20)]
        return {level: tails[level] - tails[level - 1] for level in range(3, 12)}

    total = 8 + sketch.phantoms
    accepts_only(
        frequencies(tops), highest(total), no_made_up_items=highest(8), four_times_as_many=highest(4 * total)
    )


def test_estimates_are_near_and_intervals_hold() -> None:
    sketch, rng = DistinctCountSketch(epsilon=1.0, buckets=256), np.random.default_rng(1)
    for items in (0, 3000):
        releases = [sketch.release(np.arange(items).tolist() * 2, rng) for _ in range(25)]
        held = sum(r.interval(0.9).lower <= items <= r.interval(0.9).upper for r in releases)
        assert held >= 18
        values = np.array([release.value for release in releases])
        assert abs(values.mean() - items) < 3 * releases[0].stddev / math.sqrt(25) + 20
        assert values.std() < 1.5 * releases[0].stddev
        assert releases[0].stddev < 0.12 * (items + sketch.phantoms)


def test_the_estimate_is_the_likeliest_number() -> None:
    rng = np.random.default_rng(3)
    levels = np.minimum(rng.geometric(0.5, 5000), 64)
    registers = np.zeros(64, np.uint8)
    np.maximum.at(registers, rng.integers(0, 64, 5000), levels.astype(np.uint8))

    def likelihood(total: float) -> float:
        mean = total / 64
        top = np.exp(-mean * 2.0 ** -registers.astype(float))
        below = np.where(registers > 0, np.exp(-mean * 2.0 ** (1.0 - registers)), 0.0)
        return float(np.log(top - below).sum())

    found = maximum_likelihood(registers)
    assert 3500 < found < 6500
    assert likelihood(found) >= max(likelihood(found * 0.99), likelihood(found * 1.01))


@cases(
    ("neighboring", "items", "chain"),
    [(Neighboring.ADD_REMOVE, 1, 1), (Neighboring.REPLACE_ONE, 1, 2), (Neighboring.ZERO_OUT, 3, 3)],
)
def test_a_unit_is_a_chain_of_its_items(neighboring: Any, items: int, chain: int) -> None:
    sketch = DistinctCountSketch(epsilon=1.2, items_per_unit=items, neighboring=neighboring)
    assert sketch.privacy_loss.epsilon(0.0) == 1.2
    assert sketch.sampled <= -math.expm1(-1.2 / chain)
    assert sketch.sampled == pytest.approx(-math.expm1(-1.2 / chain))
    assert sketch.phantoms >= 1024 / -math.expm1(-1.2 / chain)
    assert DistinctCountSketch(epsilon=1e3).sampled <= -math.expm1(-30)


def test_kinds_of_items() -> None:
    sketch = DistinctCountSketch(epsilon=4.0, buckets=1024)
    for items in (
        np.arange(500),
        (f"{k}".encode() for k in range(500)),
        [*range(250), *map(str, range(250))],
    ):
        assert sketch.release(items, rng=4).value == pytest.approx(500, abs=200)
    for given in ("text", 5, None):
        with pytest.raises(ParameterError, match="value must be many items"):
            sketch.release(given)
    for array in (np.zeros((3, 2)), np.array(3.0), np.zeros(3, complex)):
        with pytest.raises(ParameterError, match="value must be an array of items of one dimension"):
            sketch.release(array)


class Odd(float):
    """A number whose methods fail."""

    def fail(self, *_: object) -> Any:
        raise ValueError

    __float__ = __int__ = __index__ = __trunc__ = __eq__ = __ne__ = __str__ = is_integer = fail
    __hash__ = fail


class Hidden:
    """An item that fails where it is asked for its class."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise ValueError


ODD: tuple[Any, ...] = (
    *(None, math.nan, np.datetime64("NaT", "s"), 0.5, math.inf, -0.0, 10**6000, Odd(2.5), np.float16(0.5)),
    *(
        Hidden(),
        1 + 2j,
        (1, 2),
        [],
        {},
        Decimal("sNaN"),
        b"a",
        np.void(b"a"),
        "\ud800",
        "a",
        True,
        np.int8(1),
    ),
    *(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.time(1), pytest, object()),
)


def test_no_item_raises_and_one_item_moves_one_register_at_most() -> None:
    """The error that an item's type caused showed that the item was there."""
    sketch = DistinctCountSketch(epsilon=30.0, buckets=4096)
    whole = sketch.release(ODD, rng=5).registers
    moved = 0
    for index in range(len(ODD)):
        without = sketch.release(ODD[:index] + ODD[index + 1 :], rng=5).registers
        assert np.all(without <= whole)
        assert np.count_nonzero(without != whole) <= 1
        moved += int(np.count_nonzero(without != whole))
    assert moved >= 4  # most items are there twice, or below what is there


@cases(
    ("items", "distinct"),
    [
        ([1, 1.0, True, np.float32(1), np.uint8(1), np.bool_(True)], 1),
        ([None, math.nan, np.nan, np.datetime64("NaT", "s")], 0),
        ([0.5, np.float16(0.5), Odd(0.5), -0.5, math.inf, -math.inf], 4),
        ([0.0, -0.0, 0], 1),
        (["1", b"1", 1], 3),
        ([(1, 2), [], {}, Hidden(), Decimal(1), 1j], 1),
        ([10**6000, 10**6000 + 1, -(10**6000), 10**6000], 3),
        ([dt.date(2020, 1, 2), dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2, 0, 0, 1)], 3),
        (["\ud800", "\ud801", np.str_("\ud800")], 2),
    ],
)
def test_which_items_are_the_same(items: list[Any], distinct: int) -> None:
    assert len({encoded_item(item) for item in items} - {None}) == distinct


def test_arrays_and_columns_have_the_items_of_lists() -> None:
    days = np.array(["2020-01-01", "2020-01-02", "NaT", "2020-01-01"], "M8[D]")
    sketch = DistinctCountSketch(epsilon=30.0, buckets=4096)

    def registers(value: Any) -> list[int]:
        return sorted(sketch.release(value, rng=3).registers.tolist())

    assert registers(days) == registers([18262, 18263])
    assert registers(np.array([1.0, np.nan, 2.5])) == registers([1, 2.5])
    assert registers(np.array([1, "a", None], object)) == registers([1, "a"])


@cases(
    ("given", "message"),
    [
        ({"epsilon": 0}, "epsilon must"),
        ({"epsilon": 2.0**-40}, "epsilon must be at least"),
        ({"buckets": 100}, "buckets must be a power of two"),
        ({"buckets": 8}, "buckets must"),
        ({"items_per_unit": 0}, "items_per_unit must"),
        ({"neighboring": "any"}, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DistinctCountSketch(**{"epsilon": 1.0} | given)
