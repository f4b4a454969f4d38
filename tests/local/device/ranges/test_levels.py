"""Levels on one device: the exact law of whole reports, that it is drawn, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import (
    Bins,
    Domain,
    HaarHistogramRandomizer,
    HierarchicalHistogramRandomizer,
    Randomizer,
    SignedHadamardRandomizer,
)
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import below_exponential, of_more_epsilon, reports, worst_odds

SIZE = 6
CUTS = ((1, 0), (3, 2**64 // 7))
"""Chances of one and two sevenths in steps of 2^-64, and what came before."""


def tree(
    epsilon: float, protocol: str = "randomized-response", **given: Any
) -> HierarchicalHistogramRandomizer:
    domain = given.pop("domain", Domain(range(SIZE)))
    return HierarchicalHistogramRandomizer(
        epsilon=epsilon, domain=domain, branching=2, protocols=(protocol,) * 3, **given
    )


def haar(epsilon: float, protocol: str = "signed-hadamard", **given: Any) -> HaarHistogramRandomizer:
    domain = given.pop("domain", Domain(range(SIZE)))
    return HaarHistogramRandomizer(epsilon=epsilon, domain=domain, protocols=(protocol,) * 3, **given)


def law_of(made: Any, value: int) -> dict[bytes, Fraction]:
    """The law of whole reports, from those of the parts and where a value lies on each level."""
    law: dict[bytes, Fraction] = {}
    levels = zip(made.parts, made.chances, strict=True)
    for at, (part, chance) in enumerate(levels):
        # The tree's leaves are 0 to 5: 4, 2 and 1 of them make a node below the root.
        place = value // (4, 2, 1)[at]
        for report, mass in part.probabilities(place).items():
            row = np.zeros((1, made.width), np.uint8)
            row[0, : 1 + len(report)] = [at, *report]
            made.layout.stamp(row)
            law[row.tobytes()] = chance * mass
    return law


@cases("epsilon", [0.5, 1.0, 4.0])
@cases(
    ("make", "protocol"),
    [
        (tree, "randomized-response"),
        (tree, "one-bit-hadamard"),
        (haar, "signed-hadamard"),
        (haar, "randomized-response"),
        (tree, "optimized-unary-encoding"),
    ],
)
def test_the_odds_are_those_of_epsilon(make: Any, protocol: str, epsilon: float) -> None:
    made = make(epsilon, protocol)
    assert below_exponential(worst_odds(lambda value: law_of(made, value), range(SIZE)), epsilon)


@cases("epsilon", [0.5, 1.0, 4.0])
@cases("size", [2, 3, 4, 6, 10])
def test_signed_bits_keep_epsilon(epsilon: float, size: int) -> None:
    made = SignedHadamardRandomizer(epsilon=epsilon, domain=Domain(range(size)))
    assert below_exponential(worst_odds(made.probabilities, range(size)), epsilon)


@pytest.mark.parametrize("make", [tree, haar])
@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 4.0)])
def test_what_is_drawn_is_the_law(make: Any, weights: Any) -> None:
    made, n = make(1.0, weights=weights), 60_000
    for value in (0, 3, 5):
        law = law_of(made, value)
        found = Counter(made.randomize_batch(np.full(n, value), rng=11))
        assert found.keys() <= law.keys()
        another, sharper = law_of(made, (value + 1) % SIZE), of_more_epsilon(law, 1.25)
        accepts_only(reports(found, law), law, of_another=another, of_epsilon_5_4=sharper)
    if weights is not None:
        assert made.chances[:2] == tuple(Fraction(2**64 * top // 7 - before, 2**64) for top, before in CUTS)
        assert sum(made.chances) == 1


@pytest.mark.parametrize("make", [tree, haar])
def test_a_specification_makes_the_same_randomizer(make: Any) -> None:
    for domain in (Domain(range(SIZE)), Bins(np.linspace(0, 1, SIZE + 1)), Domain(list("abcdef"))):
        made = make(1.0, domain=domain, weights=(3, 2, 1))
        told = json.loads(json.dumps(made.specification()))
        again = Randomizer.from_specification(told)
        assert again == made
        assert again.digest == made.digest
        value: Any = "c" if domain.values[0] == "a" else 0.6 if isinstance(domain, Bins) else 3
        assert again.randomize(value, 5) == made.randomize(value, 5)
        assert len(made.randomize_batch([])) == 0
        assert Randomizer.from_specification(told, domain=domain) == made
    changes: list[dict[str, Any]] = [
        {"domain": None},
        {"protocols": None},
        {"protocols": ["randomized-response"]},
        {"protocols": ["one-bit-mean"] * 3},
        {"weights": [1, 2]},
        {"weights": [1, 2, 0]},
        {"weights": [1, 1, 1e-9]},
        {"weights": "abc"},
        {"epsilon": 2.0},
        {"parts": []},
    ]
    if make is tree:
        changes += [{"branching": 1}, {"branching": 3}, {"branching": "2"}]
    for change in changes:
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **change})


@pytest.mark.parametrize("weights", [(3, 2, 1), (np.int64(3), np.float64(2), Fraction(1))])
def test_weights_of_any_kind_are_the_same_numbers(weights: Any) -> None:
    assert tree(1.0, weights=weights).digest == tree(1.0, weights=(3.0, 2.0, 1.0)).digest


def test_versions_are_told_apart() -> None:
    digests = {
        tree(1.0).digest,
        haar(1.0, "randomized-response").digest,
        tree(1.0, weights=(1, 1, 2)).digest,
        tree(1.0, domain=Domain(range(1, SIZE + 1))).digest,
        tree(1.0, domain=Bins(range(SIZE + 1))).digest,
        tree(1.1).digest,
    }
    assert len(digests) == 6


@pytest.mark.parametrize("make", [tree, haar])
def test_only_records_that_may_be_sent_are_well_formed(make: Any) -> None:
    made = make(1.0)
    law = law_of(made, 0)
    rows = np.array(np.meshgrid(range(256), range(256))).reshape(2, -1).T.astype(np.uint8)
    noise = np.zeros((len(rows), made.width), np.uint8)
    noise[:, :2] = rows
    made.layout.stamp(noise)
    assert made.well_formed(noise).tolist() == [row.tobytes() in law for row in noise]
    assert sum(row.tobytes() in law for row in noise) == len(law)


def test_bins_are_half_open_but_the_last() -> None:
    bins = Bins([0, 1, 2.5, 4])
    assert bins.codes([0, 0.999, 1, 2.5, 3.9, 4]).tolist() == [0, 0, 1, 2, 2, 2]
    assert bins.codes(np.array([1], np.int64)).tolist() == [1]
    assert bins.codes([]).tolist() == []
    assert bins.values[1] == (1.0, 2.5)
    assert bins == Bins(np.array([0, 1, 2.5, 4]))
    assert hash(bins) == hash(Bins((0, 1, 2.5, 4)))
    assert bins != Bins([0, 1, 2, 4])
    assert len(Bins([-1.7e308, 1.7e308, 1.75e308])) == 2
    assert "3 from 0.0 to 4.0" in repr(bins)
    for values in ([-0.1], [4.1], [np.nan], ["7777"], [[1]], 1, [[1], [2, 3]]):
        with pytest.raises(ParameterError, match="values must be numbers from") as caught:
            bins.codes(values)
        assert "7777" not in str(caught.value)
    wrong: list[Any] = [[0, 1], [0, 1, 1], [0, 2, 1], [0, 1, np.inf], "abc", 3, [[0, 1, 2]], None, [0, "x"]]
    for edges in wrong:
        with pytest.raises(ParameterError, match="edges must be"):
            Bins(edges)
    with pytest.raises(ParameterError, match="domain must be the one of the specification"):
        Bins.from_specification(bins.specification(), Bins([0, 1, 2, 4]))


def test_parameters_that_break_a_rule() -> None:
    wrong: Any = range(6)
    with pytest.raises(ParameterError, match="domain must be a Domain or Bins"):
        tree(1.0, domain=wrong)
    with pytest.raises(ParameterError, match="domain must have at most"):
        tree(1.0, domain=Domain(range(1 << 25)))
    with pytest.raises(ParameterError, match="domain must have at most"):
        SignedHadamardRandomizer(epsilon=1.0, domain=Domain(range(1 << 27)))
    with pytest.raises(ParameterError, match="values must be"):
        tree(1.0).randomize(6)


@cases("name", ["shuffled-histogram", "shuffled-counts", "rappor", "Domain", 7, None])
def test_levels_are_told_by_client_halves_that_report_a_category(name: Any) -> None:
    with pytest.raises(ParameterError, match="protocols must name a client half"):
        HierarchicalHistogramRandomizer(
            epsilon=1.0, domain=Domain(range(9)), branching=3, protocols=(name, name)
        )
