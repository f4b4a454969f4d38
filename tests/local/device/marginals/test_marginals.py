"""Marginals on one device: the exact law of whole rows, that it is drawn, and what is refused."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import Domain, FourierMarginalsRandomizer, Randomizer, SampledMarginalsRandomizer
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import below_exponential, named_alike, reports, worst_odds

DOMAINS = (Domain(["a", "b"]), Domain(range(10, 13)), Domain(range(2)))
PEOPLE = list(product("ab", range(10, 13), range(2)))
VIEWS = ((0, 1), (1, 2), (0, 2))


def small(kind: Any, epsilon: float, protocol: str = "randomized-response") -> Any:
    if kind is FourierMarginalsRandomizer:
        return kind(epsilon=epsilon, domains=DOMAINS, order=2, weights=(3, 2))
    return kind(epsilon=epsilon, domains=DOMAINS, views=VIEWS, protocols=(protocol,) * 3)


KINDS: list[Any] = [FourierMarginalsRandomizer, SampledMarginalsRandomizer]


@cases("kind", KINDS)
@cases("epsilon", [0.5, 1.0, 4.0])
def test_the_odds_of_whole_rows_are_those_of_epsilon(kind: Any, epsilon: float) -> None:
    made = small(kind, epsilon)
    assert below_exponential(worst_odds(made.probabilities, PEOPLE), epsilon)


def test_unary_tables_keep_epsilon_too() -> None:
    made = small(SampledMarginalsRandomizer, 1.0, "optimized-unary-encoding")
    assert below_exponential(worst_odds(made.probabilities, PEOPLE[::3]), 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_the_law(kind: Any) -> None:
    made, n = small(kind, 1.0), 60_000
    rows = (("a", 12, 0), ("b", 10, 1))
    for row, other in (rows, rows[::-1]):
        law = made.probabilities(row)
        records = made.randomize_batch([row] * n, 3).records
        assert made.layout.genuine(records).all()
        assert made.well_formed(records).all()
        seen, counts = np.unique(records, axis=0, return_counts=True)
        found = dict(zip((one.tobytes() for one in seen), counts.tolist(), strict=True))
        assert set(found) <= set(law)
        sharper = named_alike(law, small(kind, 1.25).probabilities(row))
        another = made.probabilities(other)
        accepts_only(reports(found, law), law, of_another=another, of_epsilon_5_4=sharper)


def test_coefficients_are_products_of_characters() -> None:
    made = small(FourierMarginalsRandomizer, 1.0)
    assert made.coefficients == (1 + 3 + 1) + (3 + 1 + 3)
    assert made.sets == ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    codes = np.array(list(product(range(2), range(3), range(2)))).T
    bits = {0: [1], 1: [1, 2, 3], 2: [1]}
    number = 0
    for among in made.sets:
        for characters in product(*(bits[at] for at in among)):
            own = list(zip(characters, among, strict=True))
            wanted = [sum((a & int(row[at])).bit_count() for a, at in own) % 2 for row in codes.T]
            found = made.negative(np.full(codes.shape[1], number), codes)
            assert found.astype(int).tolist() == wanted
            number += 1
    assert number == made.coefficients
    # The same, read from a table of all coefficients.
    many = np.tile(np.arange(number), 3)
    rows = np.repeat(codes[:, [7]], len(many), axis=1)
    one_by_one = [bool(made.negative(np.array([at]), codes[:, [7]])[0]) for at in range(number)]
    assert made.negative(many, rows).tolist() == one_by_one * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_specification_makes_the_same_randomizer(kind: Any) -> None:
    made = small(kind, 1.0)
    told = json.loads(json.dumps(made.specification()))
    again: Any = Randomizer.from_specification(told)
    assert again == made
    assert again.digest == made.digest
    assert again.randomize(("b", 12, 1), 5) == made.randomize(("b", 12, 1), 5)
    assert len(made.randomize_batch([])) == 0
    changes: list[dict[str, Any]] = [{"domains": None}, {"epsilon": 2.0}, {"order": 1}, {"truth": 5}]
    changes += [
        {"weights": 3},
        {"coefficients": 3},
        {"tickets": ""},
        {"views": [[0, 1]]},
        {"views": 3},
        {"protocols": ["randomized-response"]},
        {"protocols": None},
    ]
    for change in changes:
        if set(change) <= set(told):
            with pytest.raises(ParameterError):
                Randomizer.from_specification({**told, **change})


@cases("kind", KINDS)
@cases("values", ["ab", [("a", 10)], [3], 3, [("a", 99, 0)], [("zz", 10, 0)]])
def test_other_rows_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(ParameterError, match="values must be") as caught:
        small(kind, 1.0).randomize_batch(values)
    assert "99" not in str(caught.value)
    assert "zz" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_only_records_that_may_be_sent_are_well_formed(kind: Any) -> None:
    made = small(kind, 1.0)
    law = made.probabilities(("a", 10, 0))
    noise = np.array(list(product(range(256), range(4), range(0, 256, 5))), np.uint8)[:, : made.width]
    rows = np.zeros((len(noise), made.width), np.uint8)
    rows[:, : noise.shape[1]] = noise
    both = np.concatenate([rows, np.array([list(report) for report in law], np.uint8)])
    made.layout.stamp(both)
    assert made.well_formed(both).tolist() == [row.tobytes() in law for row in both]


def test_default_weights_are_as_coefficients_are_used() -> None:
    made = FourierMarginalsRandomizer(epsilon=1.0, domains=(Domain(range(2)),) * 16, order=3)
    tickets = dict(zip(map(len, made.sets), made.tickets.tolist(), strict=True))
    assert tickets == {1: 655, 2: 239, 3: 64}  # 64 times the roots of 105, 14 and 1, rounded down
    mixed = FourierMarginalsRandomizer(epsilon=1.0, domains=DOMAINS, order=2)
    sizes = np.diff(mixed.starts).tolist()
    assert sum(chance * size for chance, size in zip(mixed.chances, sizes, strict=True)) == 1
    # Of (0,): tables of 2 by 3 and 2 by 2 cells, each with 1/2 of a coefficient's variance a cell.
    use = {(0,): (1 / 3 + 1 / 2) / 2, (1,): 2 / 12 * (1 / 2 + 1 / 2), (0, 1): 1 / 2 * 2 / 12, (0, 2): 1 / 4}
    own = dict(zip(mixed.sets, mixed.tickets.tolist(), strict=True))
    for among, weight in use.items():
        assert own[among] / own[0, 1] == pytest.approx((weight / use[0, 1]) ** 0.5, rel=0.02)


def test_parameters_that_break_a_rule() -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("order must", {"order": 0}),
        ("order must be at most 3", {"order": 4}),
        ("weights must", {"order": 2, "weights": (1,)}),
        ("weights must", {"order": 1, "weights": (0,)}),
        ("weights must", {"order": 1, "weights": (True,)}),
        ("epsilon must", {"epsilon": 1e-30}),
        ("domains must", {"domains": DOMAINS[:1]}),
        ("domains must", {"domains": 3}),
    ]
    for rule, change in wrong:
        with pytest.raises(ParameterError, match=rule):
            FourierMarginalsRandomizer(**{"epsilon": 1.0, "domains": DOMAINS, **change})
    with pytest.raises(ParameterError, match="order must leave"):
        FourierMarginalsRandomizer(epsilon=1.0, domains=(Domain(range(2)),) * 100, order=5)
    with pytest.raises(ParameterError, match="coefficients"):
        FourierMarginalsRandomizer(epsilon=1.0, domains=(Domain(range(3000)),) * 3, order=2)
    views: list[Any] = [3, [], [()], [(1, 0)], [(0, 0)], [(0, 5)], [(-1, 0)], [(0, 1), (0, 1)], [("a",)]]
    for view in views:
        with pytest.raises(ParameterError, match="views must"):
            SampledMarginalsRandomizer(
                epsilon=1.0, domains=DOMAINS, views=view, protocols=("randomized-response",)
            )
    lists: list[Any] = [("no such",), ("split-budget",), (), None, ([],)]
    for names in lists:
        with pytest.raises(ParameterError, match="protocols must"):
            SampledMarginalsRandomizer(epsilon=1.0, domains=DOMAINS, views=((0, 1),), protocols=names)
    with pytest.raises(ParameterError, match="cells"):
        SampledMarginalsRandomizer(
            epsilon=1.0,
            domains=(Domain(range(2000)),) * 2,
            views=((0, 1),),
            protocols=("randomized-response",),
        )


def test_protocols_of_several_messages_are_refused() -> None:
    told = {**small(SampledMarginalsRandomizer, 1.0).specification(), "oracles": ["shuffled-histogram"] * 3}
    for make in (
        lambda: small(SampledMarginalsRandomizer, 1.0, "shuffled-histogram"),
        lambda: made_again(told),
    ):
        with pytest.raises(ParameterError, match="protocols must name a client half"):
            make()


def made_again(told: Any) -> Randomizer:
    return Randomizer.from_specification(told, domains=DOMAINS)


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_read_piece_by_piece(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(1).integers(0, 2, (1000, 3))
    common: dict[str, Any] = {"epsilon": 12.0, "domains": (Domain(range(2)),) * 3}
    one_each: dict[str, Any] = {"views": ((0,), (1,), (2,)), "protocols": ("randomized-response",) * 3}
    made = kind(**common, order=1) if kind is FourierMarginalsRandomizer else kind(**common, **one_each)
    monkeypatch.setattr("sfumato.local.device.base.rows._BLOCK", 99)
    records = made.randomize_batch(rows, 1).records
    assert made.well_formed(records).all()
    # With so great an epsilon nearly every report is what its own row says.
    likely = [
        made.probabilities(row)[record.tobytes()] > 0.1 for row, record in zip(rows, records, strict=True)
    ]
    assert len(likely) == 1000
    assert np.mean(likely) > 0.99


JUNK: list[Any] = [
    None,
    0,
    -1,
    1e300,
    float("nan"),
    "x",
    [],
    [[]],
    {},
    [None],
    ["a"],
    [[[1]]],
    2**70,
    [[2**70]],
]
JUNK += [{"digest": "x", "each": [{}]}, {"digest": 1, "each": 3}, [1.5, 2.5], [[1.0, 2.0]]]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_specifications_are_refused(kind: Any) -> None:
    told = json.loads(json.dumps(small(kind, 1.0).specification()))
    for name in told:
        for junk in JUNK:
            with pytest.raises(ParameterError):
                Randomizer.from_specification({**told, name: junk})
        with pytest.raises(ParameterError):
            Randomizer.from_specification({key: part for key, part in told.items() if key != name})
