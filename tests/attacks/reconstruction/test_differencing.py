"""Differencing: all pairs of a log, and no other; exact answers give bits away, private ones do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import attacks
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from sfumato.privacy import PureDP


def test_the_pairs_are_those_that_differ_in_one_person() -> None:
    generator = np.random.default_rng(1)
    groups = generator.random((120, 7)) < 0.4  # 7 people: groups repeat, and some are empty
    expected = {
        (first, second, int(np.flatnonzero(one ^ two)[0]))
        for first, one in enumerate(groups)
        for second, two in enumerate(groups)
        if (one ^ two).sum() == 1 and one.sum() > two.sum()
    }
    found = attacks.differencing_pairs(groups)
    assert len(found) == len(expected) > 100
    assert set(found) == expected


def test_a_group_of_one_person_is_a_pair_with_nobody() -> None:
    groups = np.array([[False, True, False], [True, True, True]])
    assert attacks.differencing_pairs(groups) == [attacks.DifferencingPair(0, -1, 1)]
    assert attacks.differencing_pairs(groups[1:]) == []


def log(seed: int) -> tuple[Any, Any, Any]:
    """Counts of everybody over some age and everybody but one, for 200 people; half of them are isolated."""
    generator = np.random.default_rng(seed)
    secret = generator.random(200) < 0.3
    rows = [np.ones(200, bool)]
    for person in range(100):
        rows.append(rows[0].copy())
        rows[-1][person] = False
    groups = np.array(rows)
    return groups, secret, (groups & secret).sum(axis=1)


def test_exact_counts_give_everyone_away_who_is_isolated_and_private_ones_do_not() -> None:
    groups, secret, counts = log(2)
    attack = attacks.Differencing(groups=groups, prior=0.3)
    mechanism = Laplace(sensitivity=1, l0=len(counts), scale=len(counts))  # epsilon 1 for the log
    found = attacks.compare(
        attack, raw=counts, private=mechanism.release(counts, rng=1), truth=secret, controls=secret[:50]
    )
    assert (found.raw.targets.claims, found.raw.targets.hits) == (100, 100)
    assert found.raw.numbers == {"queries": 101, "pairs": 100, "people isolated": 100}
    assert found.raw.controls is not None
    assert found.raw.controls.claims == 0
    assert found.raw.precision is not None
    assert found.raw.precision.lower > 0.9
    assert found.private.targets.hits is not None
    assert 30 < found.private.targets.hits < 70
    (ceiling,) = found.private.bounds
    # A prior of .3 alone is right about .7; epsilon 1 for all answers adds at most a little.
    assert 0.7 <= ceiling.allowed < 0.8


def test_people_in_no_group_bound_nothing() -> None:
    # Answers that say nothing leave half of the bits right, and no claim about a control is ever right.
    groups, secret, counts = log(3)
    nothing = np.zeros(len(counts))
    options: dict[str, Any] = {"truth": secret, "controls": secret, "exchangeable": True, "loss": PureDP(0.0)}
    alone = attacks.Differencing(groups=groups).run(nothing, **options)
    linear = attacks.LinearReconstruction(queries=groups).run(nothing, **options)
    for found in (alone, linear):
        assert found.bounds == ()
        assert "guessed otherwise" in str(found)
    assert alone.success is not None
    assert alone.baseline is not None
    assert alone.success.lower > alone.baseline.upper


def test_bad_input_is_refused() -> None:
    for groups in ([[1, 0]], [True, False], np.zeros((0, 3), bool)):
        with pytest.raises(ParameterError, match="groups must be a bool matrix"):
            attacks.differencing_pairs(groups)
    with pytest.raises(ParameterError, match="prior must be"):
        attacks.Differencing(groups=[[True]], prior=1.5)
    for release in ([1.0, 2.0], ["a"]):
        with pytest.raises(ParameterError, match="release must be one number for each query"):
            attacks.Differencing(groups=[[True]]).run(release)
