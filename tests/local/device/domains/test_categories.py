"""Categories have places, a digest that is theirs, and errors that show no value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.local.device import Domain
from tests.cases import cases

VALUES = st.one_of(
    st.text(), st.binary(), st.floats(allow_nan=False), st.integers(), st.none(), st.booleans()
)
LISTS = st.lists(st.one_of(VALUES, st.tuples(VALUES, VALUES)), min_size=2, max_size=30, unique=True)


@given(LISTS)
def test_every_value_has_its_place(values: list[Any]) -> None:
    domain = Domain(values)
    assert len(domain) == len(values)
    assert domain.codes(values[::-1]).tolist() == list(range(len(values)))[::-1]
    assert [domain.values[code] for code in domain.codes(values)] == values
    assert domain.codes([]).tolist() == []


@given(st.integers(-100, 100), st.integers(2, 50), st.sampled_from([1, 2, -3]), st.sampled_from("bhilBHIL"))
def test_a_range_is_kept_and_counts_from_its_start(start: int, count: int, step: int, kind: str) -> None:
    values = range(start, start + count * step, step)
    domain = Domain(values)
    assert domain.values is values
    assert domain == Domain(list(values))
    assert isinstance(Domain(list(values)).values, range)
    for value in range(start - 3, start + 3):
        given = np.full(2, value).astype(kind)
        if value in values and given[0] == value:
            assert domain.codes(given).tolist() == [values.index(value)] * 2
            assert domain.codes([value, float(value)]).tolist() == [values.index(value)] * 2
        elif given[0] == value:
            with pytest.raises(ParameterError):
                domain.codes(given)
            with pytest.raises(ParameterError):
                domain.codes([value])


def test_a_range_is_never_written_out() -> None:
    domain = Domain(range(10**18))
    assert domain.codes(np.array([0, 10**18 - 1])).tolist() == [0, 10**18 - 1]
    assert domain.codes([10**18 - 1]).tolist() == [10**18 - 1]


@cases(
    ("values", "odd"),
    [
        (range(5), -1),
        (range(5), 5),
        (range(5), 2.5),
        (range(0, 10, 2), 3),
        (range(5), "3"),
        (range(5), None),
        (range(5), 2**64),
        (["a", "b"], "c"),
        (["a", "b"], ["a"]),
        ([3, 17, 5], 4),
        ([3, 17, 5], 99),
        ([3, 2**70], 2**71),
    ],
)
def test_what_is_outside_is_refused_and_not_shown(values: Any, odd: Any) -> None:
    domain = Domain(values)
    cases: list[Any] = [[odd], [domain.values[0], odd]]
    if isinstance(odd, int) and abs(odd) < 2**63:
        cases += [np.array([odd]), np.array([odd] * 3, np.int64)]
    for case in cases:
        with pytest.raises(
            ParameterError, match="values must be categories of the domain, got one"
        ) as caught:
            domain.codes(case)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert repr(odd) not in str(caught.value)


def test_arrays_of_every_kind() -> None:
    words = Domain(["no", "yes", "perhaps"])
    assert words.codes(np.array(["yes", "no"])).tolist() == [1, 0]
    assert words.codes(np.array(["yes", "no"], object)).tolist() == [1, 0]
    assert Domain(np.array(["x", "y"]).tolist()) == Domain(["x", "y"])
    assert Domain([False, True]).codes(np.array([True, False])).tolist() == [1, 0]
    assert Domain([3, 17, 5]).codes(np.array([5, 3, 17], np.uint64)).tolist() == [2, 0, 1]
    with pytest.raises(ParameterError):
        Domain(range(4)).codes(np.array([2**64 - 1], np.uint64))
    with pytest.raises(ParameterError, match="values must have one dimension"):
        words.codes(np.zeros((2, 2)))


@cases(
    "given",
    [
        "ab",
        ["a"],
        [],
        range(1),
        ["a", "a"],
        [1, True],
        [float("nan"), 1],
        [[1], [2]],
        5,
        {"a", "b"},
        [object(), 1],
    ],
)
def test_refuses_what_is_no_domain(given: Any) -> None:
    with pytest.raises(ParameterError, match="values must"):
        Domain(given)


def test_digests_are_fixed_for_ever() -> None:
    assert (
        Domain(range(1024)).digest.hex() == "522106557b805dae7d0abb4e7a6fc32e4b7db6f6747b4faa2137a3a302546b5a"
    )
    assert (
        Domain(["a", 1, None, (2.5, b"x")]).digest.hex()
        == "bdc4baac8d37c56ef72184652025d8aeddbf4c5311eb9db3ecbd217ed2486f54"
    )


def test_digests_do_not_depend_on_the_process() -> None:
    code = (
        "from sfumato.local.device import Domain\n"
        "print(Domain([frozenset('abcdef'), ('x', None)]).digest.hex())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1
    assert Domain([(np.int64(1), "a"), 2]) == Domain([(1, "a"), 2])


def test_digests_tell_domains_apart() -> None:
    domains = [
        Domain(["a", "b"]), Domain(["b", "a"]), Domain(["ab", ""]), Domain([b"a", b"b"]),
        Domain([("a", "b"), 0]),
        Domain([("a",), ("b",)]), Domain(range(2)), Domain(range(3)), Domain(range(1, 3)), Domain([0, 1.5]),
        Domain(["0", "1"]), Domain([False, True]), Domain([0, 2]), Domain([("a", ("b",)), 0]),
    ]  # fmt: skip
    assert len({domain.digest for domain in domains}) == len(domains)
    assert len(set(domains)) == len(domains)


def test_a_specification_makes_the_domain_again() -> None:
    for domain in (Domain(range(3, 30, 4)), Domain(["a", "ß", "\udc80"]), Domain([True, "x", 3])):
        told = json.loads(json.dumps(domain.specification()))
        assert Domain.from_specification(told) == domain
    odd = Domain([(1, 2), (3, 4)])
    assert Domain.from_specification(odd.specification(), odd) == odd
    for told, other in [
        (odd.specification(), None),
        (odd.specification(), Domain(range(2))),
        ({"range": [0, 5, 1], "digest": "00"}, None),
        ({"range": [0, 5, 0]}, None),
        ({"values": 3}, None),
        ({}, None),
    ]:
        with pytest.raises(ParameterError, match="domain must"):
            Domain.from_specification(told, other)
