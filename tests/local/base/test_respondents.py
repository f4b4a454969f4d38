"""Simulators take numbers of people that 64 bits hold, and seeds; all else is refused in our words."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local import shuffle
from sfumato.local.base.respondents import named_respondents, respondents, seeded, whole_counts
from tests.cases import cases

_DOMAIN = local.Domain(range(3))
_SHUFFLED: Any = {"epsilon": 1.0, "delta": 1e-6, "clients": 100}
_STRINGS = local.Strings(length=2, alphabet="ab")


@functools.cache
def _simulators() -> list[tuple[Any, Any]]:
    return [
        (local.RandomizedResponse(epsilon=1.0, domain=_DOMAIN), ([1, 1, 1],)),
        (local.HaarHistogram(epsilon=1.0, domain=_DOMAIN), ([1, 1, 1],)),
        (local.FourierMarginals(epsilon=1.0, domains=[_DOMAIN] * 2, order=2), ([[0, 1]], [5])),
        (local.TreeHist(epsilon=4.0, strings=_STRINGS), ({"a": 5},)),
        (local.Rappor(bits=16, cohorts=2), ({"a": 5},)),
        (local.OneBitMean(epsilon=1.0, bounds=(0.0, 1.0)), ([0.5],)),
        (local.SampledAttribute(epsilon=1.0, domains=[_DOMAIN] * 2), ([(0, 1)],)),
        (local.PrivUnit(epsilon=4.0, dimension=2, radius=1.0), ([[0.1, 0.2]],)),
        (shuffle.ShuffledHistogram(**_SHUFFLED, domain=_DOMAIN), ([1, 1, 1],)),
        (shuffle.ShuffledCounts(**_SHUFFLED, domain=_DOMAIN), ([1, 1, 1],)),
        (shuffle.ShuffledSum(**_SHUFFLED, bounds=(0.0, 1.0)), ([0.5],)),
    ]


@cases(("protocol", "people"), _simulators)
@cases("rng", [-1, True, "x", 1.5])
def test_a_simulator_refuses_what_is_no_seed(protocol: Any, people: Any, rng: Any) -> None:
    with pytest.raises(ParameterError, match=r"rng must be a seed of at least 0.*; pass rng=0"):
        protocol.simulate(*people, rng=rng)


@cases(
    ("protocol", "people"),
    lambda: [
        (_simulators()[0][0], ([2**62, 2**62, 2**62],)),  # whose sum is no number of 64 bits
        (_simulators()[1][0], ([2**53, 1, 0],)),
        (_simulators()[2][0], ([[0, 1]], np.array([2**63], np.uint64))),
        (_simulators()[3][0], ({"a": 2**70},)),
        (_simulators()[4][0], ({"a": 2**52, "b": 2**53},)),
        (_simulators()[6][0], ([(0, 1)], [2**60])),
        (_simulators()[8][0], ([2**62, 2**62, 0],)),
        (_simulators()[9][0], ([2**54, 0, 0],)),
    ],
)
def test_a_simulator_bounds_how_many_people_there_are(protocol: Any, people: Any) -> None:
    with pytest.raises(ParameterError, match=f"must add up to at most {2**53}, got"):
        protocol.simulate(*people, rng=1)


@cases("people", [["a"], None, 3, [("a", 1)]])
@cases("which", [3, 4])
def test_who_has_which_string_is_told_by_a_mapping(which: int, people: Any) -> None:
    with pytest.raises(ParameterError, match=r"must be a mapping of strings to numbers of people"):
        _simulators()[which][0].simulate(people, rng=1)


@cases("counts", [[1, 2], [-1, 1, 1], [0.5, 1, 1], [[1], [1, 2], [3]], "abc", None])
def test_counts_are_whole_and_as_many_as_kinds(counts: Any) -> None:
    with pytest.raises(ParameterError, match=r"counts must be 3 whole numbers of at least 0.*; pass three"):
        whole_counts("counts", counts, 3, "pass three")


def test_counts_up_to_the_bound_are_kept() -> None:
    assert whole_counts("counts", [2**53 - 1, 1], 2, "").tolist() == [2**53 - 1, 1]
    assert respondents(None, 3).tolist() == [1, 1, 1]
    assert respondents([], 0).dtype == np.int64
    assert named_respondents("people", {"a": 2**53}) == {"a": 2**53}
    generator = np.random.default_rng(5)
    assert seeded(generator) is generator
    assert seeded(5).integers(2**60) == generator.integers(2**60)
