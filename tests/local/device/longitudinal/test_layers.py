"""Client halves with memos: exact laws of one report, of several, and of whole histories."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import (
    Domain,
    LongitudinalLocalHashingRandomizer,
    LongitudinalRandomizedResponseRandomizer,
    LongitudinalUnaryEncodingRandomizer,
    MemoizedBitFlipRandomizer,
    MemoizedOneBitMeanRandomizer,
    OptimalLocalHashingRandomizer,
    Randomizer,
)
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.device.longitudinal.histories import law_of_one_value, law_of_rounds, permanent
from tests.local.laws import below_exponential, reports, worst_odds

CHAINS = ["SUE", "OUE", "OSUE", "SOUE"]
LAYERED: list[Any] = [
    LongitudinalRandomizedResponseRandomizer(epsilon=1.0, permanent_epsilon=2.5, domain=Domain(range(3))),
    *(
        LongitudinalUnaryEncodingRandomizer(
            epsilon=1.0, permanent_epsilon=2.5, chain=chain, domain=Domain(range(3))
        )
        for chain in CHAINS
    ),
    LongitudinalLocalHashingRandomizer(
        epsilon=1.0, permanent_epsilon=2.5, domain=Domain(range(9)), buckets=3
    ),
]
ALL: list[Any] = [
    *LAYERED,
    MemoizedBitFlipRandomizer(epsilon=1.0, domain=Domain(range(4)), asked=2),
    MemoizedOneBitMeanRandomizer(epsilon=1.0, bounds=(0.0, 3.0), steps=3),
]
BITS: list[Any] = [
    MemoizedBitFlipRandomizer(epsilon=1.0, permanent_epsilon=2.5, domain=Domain(range(4)), asked=4),
    MemoizedBitFlipRandomizer(epsilon=1.0, permanent_epsilon=1.001, domain=Domain(range(4)), asked=1),
    MemoizedOneBitMeanRandomizer(epsilon=1.0, permanent_epsilon=2.5, bounds=(0.0, 3.0), steps=3),
]


def name(device: Any) -> str:
    return f"{type(device).__name__}-{getattr(device, 'chain', '')}"


@cases("chain", CHAINS)
@cases(("epsilon", "permanent_epsilon"), [(0.5, 1.0), (1.0, 4.0), (4.0, 8.0)])
def test_unary_reports_keep_both_epsilons(chain: str, epsilon: float, permanent_epsilon: float) -> None:
    made = LongitudinalUnaryEncodingRandomizer(
        epsilon=epsilon, permanent_epsilon=permanent_epsilon, chain=chain, domain=Domain(range(3))
    )
    assert below_exponential(worst_odds(made.probabilities, range(3)), epsilon)
    assert below_exponential(worst_odds(made.permanent.probabilities, range(3)), permanent_epsilon)


@pytest.mark.parametrize(("epsilon", "permanent_epsilon"), [(0.5, 1.0), (1.0, 1.01), (1.0, 4.0), (4.0, 8.0)])
def test_responses_keep_both_epsilons(epsilon: float, permanent_epsilon: float) -> None:
    shape: dict[str, Any] = {"epsilon": epsilon, "permanent_epsilon": permanent_epsilon}
    made = LongitudinalRandomizedResponseRandomizer(**shape, domain=Domain(range(5)))
    assert below_exponential(worst_odds(made.probabilities, range(5)), epsilon)
    assert below_exponential(worst_odds(made.permanent.probabilities, range(5)), permanent_epsilon)
    hashed = LongitudinalLocalHashingRandomizer(**shape, domain=Domain(range(30)))
    for seed in (1, 2):
        odds = worst_odds(partial(hashed.probabilities, seed=seed), range(30))
        assert below_exponential(odds, epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_memos_that_are_sent_keep_epsilon(epsilon: float) -> None:
    for asked in (1, 2, 4):
        flips = MemoizedBitFlipRandomizer(epsilon=epsilon, domain=Domain(range(4)), asked=asked)
        assert below_exponential(worst_odds(flips.probabilities, range(4)), epsilon)
    mean = MemoizedOneBitMeanRandomizer(epsilon=epsilon, bounds=(-1.0, 1.0), steps=4)
    assert below_exponential(worst_odds(mean.probabilities, range(5)), epsilon)


@pytest.mark.parametrize("device", BITS, ids=name)
def test_bits_that_are_told_again_keep_both_epsilons(device: Any) -> None:
    values = range(4)
    assert below_exponential(worst_odds(device.probabilities, values), 1.0)
    both = 2 if getattr(device, "asked", 1) > 1 else 1
    layers = device.layers
    assert below_exponential(
        (layers.memo.chance / (1 - layers.memo.chance)) ** both, device.permanent_epsilon
    )
    # All sequences of three reports of one bit, memo by memo.
    laws: list[list[Fraction]] = [[], []]
    for ones in range(4):
        likely = layers.again.chance**ones * (1 - layers.again.chance) ** (3 - ones)
        unlikely = layers.again.chance ** (3 - ones) * (1 - layers.again.chance) ** ones
        memo = layers.memo.chance
        laws[0].append(memo * likely + (1 - memo) * unlikely)
        laws[1].append((1 - memo) * likely + memo * unlikely)
    assert max(one / other for one, other in zip(*laws, strict=True)) == layers.odds(3)
    assert layers.odds(1) ** both == worst_odds(device.probabilities, values)
    assert layers.odds(1) < layers.odds(3) < memo / (1 - memo)


@pytest.mark.parametrize("device", BITS, ids=name)
def test_bits_that_are_told_again_are_of_one_memo(device: Any) -> None:
    n, layers = 60_000, device.layers
    value = 0
    batches = device.randomize_rounds([np.full(n, value)] * 2, 8)
    if isinstance(device, MemoizedOneBitMeanRandomizer):
        first, second = (batch.records[:, :1] & 1 for batch in batches)
        true = np.zeros(first.shape, np.bool_)
    else:
        (drawn, first), (again, second) = (device.inner.opened(batch.records) for batch in batches)
        assert (drawn == again).all()
        true = drawn == value
    memo, kept = float(layers.memo.chance), float(layers.again.chance)
    right = (first == true) & (second == true)
    chance = memo * kept**2 + (1 - memo) * (1 - kept) ** 2
    anew = (memo * kept + (1 - memo) * (1 - kept)) ** 2
    accepts_only(rate(int(right.sum()), right.size), chance, memos_drawn_anew=anew)
    assert (first != second).any()


@cases("device", LAYERED, ids=name)
def test_a_report_is_the_second_layer_of_the_first(device: Any) -> None:
    if isinstance(device, LongitudinalLocalHashingRandomizer):
        device = device.inner
    for value in range(3):
        found: dict[bytes, Fraction] = {}
        for memo, chance in permanent(device).probabilities(value).items():
            for row, part in device.fresh_probabilities(memo).items():
                found[row] = found.get(row, Fraction(0)) + chance * part
        assert found == device.probabilities(value)


@cases("device", LAYERED, ids=name)
def test_two_reports_of_one_value_stay_below_the_memos_epsilon(device: Any) -> None:
    odds = [worst_odds(partial(law_of_one_value, device, t), range(3)) for t in (1, 2)]
    memo = worst_odds(permanent(device).probabilities, range(3))
    assert odds[0] < odds[1] < memo


def test_histories_alike_in_their_changes_lose_one_epsilon_for_each_value() -> None:
    device = LAYERED[0]
    memo = worst_odds(device.permanent.probabilities, range(3))
    # Two values each, which change and come back: every pair of such histories.
    alike = [(a, b, a, b) for a in range(3) for b in range(3) if a != b]
    odds = worst_odds(partial(law_of_rounds, device), alike)
    assert 1.3 * memo < odds <= memo**2
    # One value the same in both: nothing is lost for it.
    odds = worst_odds(partial(law_of_rounds, device), [(0, 1, 1), (0, 2, 2)])
    assert odds <= memo
    # Histories that differ in when they change are told apart better and better: no bound is claimed.
    apart = [worst_odds(partial(law_of_rounds, device), [(0, 0) * t, (1, 2) * t]) for t in (1, 2)]
    assert apart[1] > apart[0]


@cases("device", ALL, ids=name)
def test_what_is_drawn_in_two_rounds_is_the_law(device: Any) -> None:
    n, true, other = 60_000, 1, 0
    first, second = device.randomize_rounds([np.full(n, 1)] * 2, 3)
    pairs = Counter(map(b"".join, zip(first, second, strict=True)))
    if isinstance(device, LongitudinalLocalHashingRandomizer):
        seeds = device.opened(first.records)[0]
        assert (seeds == device.opened(second.records)[0]).all()
        buckets = device.keys(np.full(n, 1), seeds.astype("<u4").view(np.uint8).reshape(n, 4))
        # Which bucket it is, counted from the true one on.
        rows = list(device.inner.probabilities(0))
        told = (((device.opened(batch.records)[1] - buckets) % 3).tolist() for batch in (first, second))
        pairs = Counter(rows[one] + rows[two] for one, two in zip(*told, strict=True))
        device, true, other = device.inner, 0, 1
    if isinstance(device, MemoizedBitFlipRandomizer | MemoizedOneBitMeanRandomizer):
        law, wrong = ({2 * row: p for row, p in device.probabilities(x).items()} for x in (true, other))
    else:
        law, wrong = (law_of_rounds(device, (value, value)) for value in (true, other))
    assert set(pairs) <= set(law)
    alone = device.probabilities(true).items()
    anew = {one + two: p * q for one, p in alone for two, q in alone}
    accepts_only(reports(pairs, law), law, of_another_value=wrong, with_two_memos=anew)


def test_memos_of_different_values_are_independent() -> None:
    device, n = LAYERED[0], 60_000
    first, second = device.randomize_rounds([np.full(n, 0), np.full(n, 1)], 5)
    pairs = Counter(map(b"".join, zip(first, second, strict=True)))
    law, one, swapped = (law_of_rounds(device, values) for values in ((0, 1), (0, 0), (1, 0)))
    accepts_only(reports(pairs, law), law, one_memo=one, swapped=swapped)


def test_chances_of_hashed_reports_are_those_of_local_hashing() -> None:
    # The paper's second layer leaves part of epsilon unused for more than two buckets; this one does not.
    for epsilon, permanent_epsilon in ((0.5, 1.0), (1.0, 3.0), (2.0, 2.2)):
        made = LongitudinalLocalHashingRandomizer(
            epsilon=epsilon, permanent_epsilon=permanent_epsilon, domain=Domain(range(99))
        )
        plain = OptimalLocalHashingRandomizer(epsilon=epsilon, domain=Domain(range(99)))
        assert made.buckets == plain.buckets
        assert float(made.chances[0]) == pytest.approx(float(plain.truth.chance), rel=1e-12)
        a, b, g = np.exp(permanent_epsilon), np.exp(epsilon), made.buckets
        again = (a * b - 1) / (a - b)
        p1, p2 = a / (a + g - 1), again / (again + g - 1)
        papers = (1 - p2) / (g - 1) + p1 * (p2 - (1 - p2) / (g - 1))
        assert papers <= float(made.chances[0]) * (1 + 1e-12)
        assert (papers < 0.999 * float(made.chances[0])) == (g > 2)


@cases("device", [*ALL, *BITS], ids=name)
def test_specifications_come_back(device: Any) -> None:
    told = json.loads(json.dumps(device.specification()))
    again = Randomizer.from_specification(told)
    assert again == device
    assert again.digest == device.digest
    assert again.randomize(1, 4) == device.randomize(1, 4)
    assert type(device)(**{**parts(device), "max_memos": 3}).digest != device.digest
    with pytest.raises(ParameterError):
        Randomizer.from_specification({**told, "max_memos": "many"})


def parts(device: Any) -> dict[str, Any]:
    names = ("epsilon", "domain", "bounds", "steps", "permanent_epsilon", "chain", "buckets", "asked")
    return {
        part: getattr(device, part)
        for part in names
        if part in type(device).__dataclass_fields__ and part in type(device).__init__.__annotations__
    }


def test_poisoned_records_are_not_well_formed() -> None:
    response, hashed, flips = ALL[0], ALL[5], ALL[6]
    assert not response.well_formed(response.layout.pack(np.array([3], np.uint64))).any()
    assert not hashed.well_formed(hashed.layout.pack(np.array([3 << 32], np.uint64))).any()
    bits = np.ones((1, 2), np.bool_)
    for drawn in ([3, 3], [3, 2]):
        assert not flips.well_formed(flips.inner.packed(np.array([drawn]), bits)).any()


@cases(
    ("kind", "shape", "message"),
    [
        (
            LongitudinalRandomizedResponseRandomizer,
            {"permanent_epsilon": 1.0},
            "permanent_epsilon must be greater",
        ),
        (
            LongitudinalRandomizedResponseRandomizer,
            {"permanent_epsilon": 0.5},
            "permanent_epsilon must be greater",
        ),
        (
            LongitudinalRandomizedResponseRandomizer,
            {"permanent_epsilon": 41.0},
            "permanent_epsilon must be at most 40",
        ),
        (
            LongitudinalRandomizedResponseRandomizer,
            {"permanent_epsilon": "x"},
            "permanent_epsilon must be positive",
        ),
        (LongitudinalRandomizedResponseRandomizer, {"max_memos": 0}, "max_memos must be"),
        (LongitudinalRandomizedResponseRandomizer, {"max_memos": 1 << 17}, "max_memos must be at most"),
        (LongitudinalUnaryEncodingRandomizer, {"chain": "OOE"}, "chain must be one of SUE, OUE, OSUE, SOUE"),
        (
            LongitudinalUnaryEncodingRandomizer,
            {"chain": "OUE", "permanent_epsilon": 1.2},
            "use the chain 'OSUE'",
        ),
        (LongitudinalUnaryEncodingRandomizer, {"epsilon": 1e-19}, "epsilon must be greater"),
        (LongitudinalLocalHashingRandomizer, {"buckets": 1}, "buckets must be"),
        (LongitudinalLocalHashingRandomizer, {"buckets": 1 << 17}, "buckets must be at most"),
        (MemoizedBitFlipRandomizer, {"asked": 0}, "asked must be"),
        (MemoizedBitFlipRandomizer, {"max_memos": -1}, "max_memos must be"),
        (MemoizedBitFlipRandomizer, {"permanent_epsilon": 0.9}, "permanent_epsilon must be greater"),
        (MemoizedBitFlipRandomizer, {"permanent_epsilon": 41.0}, "permanent_epsilon must be at most 40"),
    ],
)
def test_odd_parameters_are_refused(kind: Any, shape: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kind(**{"epsilon": 1.0, "domain": Domain(range(4)), **shape})


def test_values_are_refused_without_being_shown() -> None:
    for device in ALL[:-1]:
        with pytest.raises(ParameterError, match="values must be categories") as told:
            device.randomize_rounds([[987_654]])
        assert "987" not in str(told.value)
    with pytest.raises(ParameterError, match="values must be numbers"):
        ALL[-1].randomize_rounds([[4.0]])
    with pytest.raises(ParameterError, match="rounds must be a list"):
        ALL[0].randomize_rounds([])
    with pytest.raises(ParameterError, match="rounds must have as many values each"):
        ALL[0].randomize_rounds([[1, 2], [1]])
