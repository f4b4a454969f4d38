"""Several questions on one device: the exact law of whole persons, that it is drawn, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import (
    Domain,
    FakeDataRandomizer,
    Randomizer,
    SampledAttributeRandomizer,
    SplitBudgetRandomizer,
)
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import below_exponential, named_alike, reports, worst_odds

KINDS: list[Any] = [SplitBudgetRandomizer, SampledAttributeRandomizer, FakeDataRandomizer]
DOMAINS = (Domain(["a", "b"]), Domain(range(10, 13)))
PEOPLE = list(product("ab", range(10, 13)))


def small(kind: Any, epsilon: float, protocol: str = "randomized-response") -> Any:
    return kind(epsilon=epsilon, domains=DOMAINS, protocol=protocol)


def law_of(made: Any, person: Any) -> dict[bytes, Fraction]:
    """The law of whole reports, put together from those of the parts by what the protocols say."""
    one, two = (part.probabilities(value) for part, value in zip(made.parts, person, strict=True))
    law: dict[bytes, Fraction] = {}
    if isinstance(made, SampledAttributeRandomizer):
        for at, own in enumerate((one, two)):
            law |= {bytes([at, 0]) + report: mass / 2 for report, mass in own.items()}
    else:
        means: list[dict[bytes, Fraction]] = []
        for part, domain in zip(made.parts, made.domains, strict=True):
            laws = [part.probabilities(value) for value in domain.values]
            means.append(
                {report: sum((x[report] for x in laws), Fraction(0)) / len(laws) for report in laws[0]}
            )
        for (first, p), (second, q) in product(one.items(), two.items()):
            fake = (p * means[1][second] + q * means[0][first]) / 2
            law[first + second] = fake if isinstance(made, FakeDataRandomizer) else p * q
    rows = np.zeros((len(law), made.width), np.uint8)
    for row, report in zip(rows, law, strict=True):
        row[: len(report)] = list(report)
    made.layout.stamp(rows)
    return {row.tobytes(): mass for row, mass in zip(rows, law.values(), strict=True)}


@cases("kind", KINDS)
@cases("protocol", ["randomized-response", "optimized-unary-encoding"])
@cases("epsilon", [0.5, 1.0, 4.0])
def test_the_odds_of_whole_persons_are_those_of_epsilon(kind: Any, protocol: str, epsilon: float) -> None:
    made = small(kind, epsilon, protocol)
    odds = worst_odds(lambda person: law_of(made, person), PEOPLE)
    # Unary reports that support no made-up answer but the true one are few: fake data mix them with others.
    share = 0.5 if kind is FakeDataRandomizer and protocol != "randomized-response" else 0.999
    assert below_exponential(odds, epsilon, share)


def test_sampling_among_fake_data_amplifies_one_answer_and_no_person() -> None:
    made = FakeDataRandomizer(epsilon=1.0, domains=DOMAINS[:1] * 2, protocol="randomized-response")
    laws = {person: law_of(made, person) for person in product("ab", "ab")}
    whole = worst_odds(laws.__getitem__, [("a", "a"), ("b", "b")])
    single = worst_odds(laws.__getitem__, [("a", "a"), ("b", "a")])
    # The paper's gain, ln((e + d - 1) / d) for d = 2, is there for one answer, and not for the person.
    assert float(whole) == pytest.approx(np.e, rel=1e-9)
    assert float(single) == pytest.approx((np.e + 1) / 2, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_the_law(kind: Any) -> None:
    made, n = small(kind, 1.0), 40_000
    for person, other in ((("a", 11), ("b", 10)), (("b", 10), ("a", 10))):
        law = law_of(made, person)
        records = made.randomize_batch([person] * n, 3).records
        assert made.layout.genuine(records).all()
        assert made.well_formed(records).all()
        seen, counts = np.unique(records, axis=0, return_counts=True)
        found = dict(zip((row.tobytes() for row in seen), counts.tolist(), strict=True))
        assert set(found) <= set(law)
        sharper = named_alike(law, law_of(small(kind, 1.25), person))
        accepts_only(reports(found, law), law, of_another=law_of(made, other), of_epsilon_5_4=sharper)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_never_cost_more_than_all(kind: Any) -> None:
    for epsilon in (0.1, 0.7, 1.0, 3.3):
        made = kind(epsilon=epsilon, domains=[Domain(range(2))] * 7)
        parts = [Fraction(part.epsilon) for part in made.parts]
        assert (sum(parts) if kind is SplitBudgetRandomizer else max(parts)) <= Fraction(epsilon)
        assert parts[0] == pytest.approx(epsilon / 7 if kind is SplitBudgetRandomizer else epsilon)


@pytest.mark.parametrize("kind", KINDS)
def test_a_specification_makes_the_same_randomizer(kind: Any) -> None:
    made = small(kind, 1.0, "optimal-local-hashing")
    told = json.loads(json.dumps(made.specification()))
    again: Any = Randomizer.from_specification(told)
    assert type(again) is kind
    assert again == made
    assert again.digest == made.digest
    assert again.randomize(("b", 12), 5) == made.randomize(("b", 12), 5)
    assert len(made.randomize_batch([])) == 0
    array = np.array([[0, 1], [1, 0]])
    numbers = kind(epsilon=1.0, domains=[Domain(range(2))] * 2)
    assert (
        numbers.randomize_batch(array, 1).to_bytes() == numbers.randomize_batch(array.tolist(), 1).to_bytes()
    )
    changes: list[dict[str, Any]] = [
        {"domains": None},
        {"domains": {"each": [1]}},
        {"domains": {"each": []}},
        {"oracle": "split-budget"},
        {"oracle": []},
        {"epsilon": 2.0},
        {"parts": []},
    ]
    for change in changes:
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **change})
    with pytest.raises(ParameterError, match="domains must be 2"):
        Randomizer.from_specification(told, domains=DOMAINS[:1])


@cases("kind", KINDS)
@cases("values", ["ab", [("a",)], [("a", 10, 1)], [3], 3, ["a1"], [("a", 99)], [("zz", 10)]])
def test_other_rows_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(ParameterError, match="values must be") as caught:
        small(kind, 1.0).randomize_batch(values)
    assert "99" not in str(caught.value)
    assert "zz" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_only_records_that_may_be_sent_are_well_formed(kind: Any) -> None:
    made = small(kind, 1.0)
    law = law_of(made, ("a", 10))
    rows = np.array(list(product(range(256), range(256), (0, 1, 17, 255))), np.uint8)
    noise = np.zeros((len(rows), made.width), np.uint8)
    noise[:, : min(3, made.width)] = rows[:, : made.width]
    known = np.array([list(report) for report in law], np.uint8)
    both = np.concatenate([noise, known])
    made.layout.stamp(both)
    assert made.well_formed(both).tolist() == [row.tobytes() in law for row in both]


def test_parameters_that_break_a_rule() -> None:
    wrong: list[Any] = [DOMAINS[:1], 3, [1, 2], "ab", DOMAINS[0]]
    for domains in wrong:
        with pytest.raises(ParameterError, match="domains must be"):
            SampledAttributeRandomizer(epsilon=1.0, domains=domains)
    for protocol in ("split-budget", "one-bit-mean", "no such"):
        with pytest.raises(ParameterError, match="protocol must name"):
            SplitBudgetRandomizer(epsilon=1.0, domains=DOMAINS, protocol=protocol)


def test_nothing_hides_after_a_short_part() -> None:
    made = SampledAttributeRandomizer(
        epsilon=1.0, domains=(Domain(range(2)), Domain(range(1000))), protocol="randomized-response"
    )
    records = made.randomize_batch([(0, 7)] * 200, 1).records.copy()
    short = made.named(records) == 0
    assert 0 < short.sum() < 200
    records[:, 3] ^= 1
    sound = made.well_formed(records)
    assert not sound[short].any()
    assert sound[~short].any()


@pytest.mark.parametrize("kind", KINDS)
def test_protocols_of_several_messages_are_refused(kind: Any) -> None:
    domains = (Domain(range(3)), Domain(range(4)))
    told = {**kind(epsilon=1.0, domains=domains).specification(), "oracle": "shuffled-histogram"}
    with pytest.raises(ParameterError, match="protocol must name a client half"):
        kind(epsilon=1.0, domains=domains, protocol="shuffled-histogram")
    with pytest.raises(ParameterError, match="protocol must name a client half"):
        Randomizer.from_specification(told)
