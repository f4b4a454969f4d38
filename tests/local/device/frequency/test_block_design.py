"""Reports from sets that support the truth: their exact law, that it is drawn, and what is no report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import (
    Domain,
    HadamardResponseRandomizer,
    NoisyHistogramRandomizer,
    OneBitHadamardRandomizer,
    ProjectiveGeometryResponseRandomizer,
    SubsetSelectionRandomizer,
)
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import below_exponential, of_more_epsilon, reports, worst_odds

KINDS: list[Any] = [
    HadamardResponseRandomizer,
    OneBitHadamardRandomizer,
    ProjectiveGeometryResponseRandomizer,
    SubsetSelectionRandomizer,
]
DIGESTS = {
    "HadamardResponseRandomizer": "83df064b358af4ff",
    "OneBitHadamardRandomizer": "731b5d6b98b40ce8",
    "ProjectiveGeometryResponseRandomizer": "0b78ddc6cff21cd2",
    "SubsetSelectionRandomizer": "b340d118d48ce2b6",
    "NoisyHistogramRandomizer": "8592ab576e5e000c",
}


def ids(kind: Any) -> str:
    return str(kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=ids)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 4.0, 6.0])
@pytest.mark.parametrize("count", [2, 3, 7, 12])
def test_the_odds_of_all_reports_are_those_of_epsilon(kind: Any, epsilon: float, count: int) -> None:
    made = kind(epsilon=epsilon, domain=Domain(range(count)))
    odds = worst_odds(made.probabilities, range(count))
    assert odds == made.odds
    assert below_exponential(odds, epsilon, 1 - 1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=ids)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("count", [2, 7, 10])
def test_what_is_drawn_is_the_law(kind: Any, epsilon: float, count: int) -> None:
    made, n = kind(epsilon=epsilon, domain=Domain(range(count))), 40_000
    for value in (0, count // 2, count - 1):
        law = made.probabilities(value)
        found, times = np.unique(
            made.randomize_batch(np.full(n, value), value).records, axis=0, return_counts=True
        )
        seen = {row.tobytes(): int(time) for row, time in zip(found, times, strict=True)}
        assert set(seen) <= set(law)
        sharper = of_more_epsilon(law, 1.3)
        another = made.probabilities((value + 1) % count)
        accepts_only(reports(seen, law), law, of_another=another, of_13_tenths_of_epsilon=sharper)


@cases("kind", KINDS, ids=ids)
@cases("epsilon", [0.5, 1.0, 4.0])
def test_sets_that_support_values_are_all_as_large(kind: Any, epsilon: float) -> None:
    made = kind(epsilon=epsilon, domain=Domain(range(11)))
    number = len(made.reports())
    assert {int(made.supporting(code).sum()) for code in range(11)} == {made.part * number}
    assert made.well_formed(made.reports()).all()


def test_payloads_beyond_the_reports_are_not_well_formed() -> None:
    for kind in (HadamardResponseRandomizer, ProjectiveGeometryResponseRandomizer):
        made = kind(epsilon=2.0, domain=Domain(range(50)))
        most = 1 << made.layout.bits
        assert made.number < most
        sound = made.well_formed(made.layout.pack(np.arange(most, dtype=np.uint64)))
        assert sound.tolist() == [True] * made.number + [False] * (most - made.number)


def test_sets_of_another_size_are_not_well_formed() -> None:
    made = SubsetSelectionRandomizer(epsilon=0.3, domain=Domain(range(9)))
    assert not made.listed
    records = made.layout.pack(np.arange(1 << 9, dtype=np.uint64))
    sizes = np.array([number.bit_count() for number in range(1 << 9)])
    assert made.well_formed(records).tolist() == (sizes == made.subset_size).tolist()


def test_lists_that_do_not_rise_or_go_beyond_are_not_well_formed() -> None:
    made = SubsetSelectionRandomizer(epsilon=3.0, domain=Domain(range(40)))
    assert made.listed
    assert made.subset_size == 2
    first, second = np.divmod(np.arange(1 << 12, dtype=np.uint64), 64)
    records = made.layout.pack(first + second * 64)
    assert made.well_formed(records).tolist() == ((first < second) & (second < 40)).tolist()


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_an_encoding_tells_the_set_and_nothing_else(epsilon: float) -> None:
    made = SubsetSelectionRandomizer(epsilon=epsilon, domain=Domain(range(40)))
    records = made.randomize_batch(np.arange(4000) % 40, 1).records
    sets = made.members(records) if made.listed else np.nonzero(made.flags(records))[1].reshape(4000, -1)
    assert sets.shape == (4000, made.subset_size)
    assert (np.diff(sets, axis=1) > 0).all()
    held = np.zeros((4000, 40), np.bool_)
    np.put_along_axis(held, sets, True, axis=1)
    assert made._written(held).tolist() == records.tolist()


def test_the_field_is_the_prime_with_the_least_variance() -> None:
    found = {}
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        made = ProjectiveGeometryResponseRandomizer(epsilon=epsilon, domain=Domain(range(65_536)))
        found[epsilon] = (made.order, made.dimension)
        assert made.width == 7
        assert made.order ** (made.dimension - 1) >= 65_536
    assert found == {0.1: (2, 17), 0.5: (3, 12), 1.0: (3, 12), 2.0: (7, 7), 4.0: (53, 4)}


@cases("epsilon", [0.3, 1.0, 3.0, 6.0, 9.0, 20.0])
@cases("count", [2, 100, 5000, 1_000_000])
def test_scalar_products_are_those_of_digits(epsilon: float, count: int) -> None:
    made = ProjectiveGeometryResponseRandomizer(epsilon=epsilon, domain=Domain(range(count)))
    order, free = made.order, made.dimension - 1
    generator = np.random.default_rng(1)
    codes = generator.integers(0, count, 50)
    starts = generator.integers(0, (order**free - 1) // (order - 1), 50)
    for code, start, found in zip(
        codes.tolist(), starts.tolist(), made._products(codes, starts), strict=True
    ):
        length = max(x for x in range(free) if (order**x - 1) // (order - 1) <= start)
        rest = start - (order**length - 1) // (order - 1) + order**length
        total = sum(code // order**j % order * (rest // order**j % order) for j in range(free))
        assert total % order == found


@pytest.mark.parametrize(
    ("kind", "count"),
    [(HadamardResponseRandomizer, 1 << 27), (OneBitHadamardRandomizer, 1 << 27),
    (ProjectiveGeometryResponseRandomizer, 1 << 25),
     (SubsetSelectionRandomizer, 1 << 21)],
)  # fmt: skip
def test_large_domains_are_refused(kind: Any, count: int) -> None:
    with pytest.raises(ParameterError, match="domain must have at most"):
        kind(epsilon=1.0, domain=Domain(range(count)))


@pytest.mark.parametrize("kind", KINDS, ids=ids)
def test_an_epsilon_that_tells_nothing_is_refused(kind: Any) -> None:
    with pytest.raises(ParameterError, match="epsilon must be greater"):
        kind(epsilon=1e-20, domain=Domain(range(5)))


def test_digests_are_fixed_for_ever() -> None:
    digests = {
        kind.__name__: kind(epsilon=1.0, domain=Domain(range(1000))).digest.hex()[:16]
        for kind in [*KINDS, NoisyHistogramRandomizer]
    }
    assert digests == DIGESTS
