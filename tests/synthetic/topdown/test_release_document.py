"""A release of TopDown is written in few bytes, and read back with the same counts and intervals."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Hierarchy, Invariant, TableDomain, TopDown, TopDownRelease, UnitCounts
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    PLACES = Hierarchy.from_table(
        pa.table({"state": ["a", "a", "b", "b"], "town": [7, -(2**62), 9, 8]}), ["state", "town"], root="land"
    )
DOMAIN = TableDomain(sex=["f", "m"], age=[0, 1, 2])
COUNTS = UnitCounts(np.arange(400) % 3, np.arange(400) * 7 % 6, np.full(400, 90))


def released(**given: Any) -> TopDownRelease:
    mechanism = TopDown(
        hierarchy=PLACES, domain=DOMAIN, queries=[(), ("sex",), ("age", "sex")], rho=2,
        invariants=[Invariant("state")],
    )  # fmt: skip
    return mechanism.release(COUNTS, rng=3, **given)


@functools.cache
def written() -> str:
    return released().to_json()


def test_what_is_read_back_has_the_same_counts_and_intervals() -> None:
    first = released()
    back = TopDownRelease.from_json(first.to_json())
    assert back.to_json() == first.to_json()
    assert (back.outside_guarantee, back.unfinished, back.loss) == (
        ("the total at each state",), first.unfinished, first.loss
    )  # fmt: skip
    for level in PLACES.levels:
        assert back.hierarchy.places(level).equals(PLACES.places(level))
        assert back.to_arrow(level).equals(first.to_arrow(level))
    assert back.to_arrow().equals(first.to_arrow("town"))
    for columns, places in (((), None), (("sex",), {"town": [9]}), (("sex", "age"), {"state": ["a"]})):
        one, other = first.estimate(*columns, places=places), back.estimate(*columns, places=places)
        assert np.array_equal(one.counts, other.counts)
        assert (one.stddev, one.total, one.labels) == (other.stddev, other.total, other.labels)
    assert first.estimate(places={"state": ["b"]}).stddev == 0


def test_without_intervals_there_are_none_to_read() -> None:
    text = released(intervals=False).to_json()
    assert len(text) < len(released().to_json())
    back = TopDownRelease.from_json(text)
    assert back.to_json() == text
    with pytest.raises(ParameterError, match="release must be made with intervals"):
        back.estimate("age")


def test_numbers_take_as_few_bits_as_hold_them() -> None:
    document = json.loads(written())
    assert [each["bits"] for each in document["hierarchy"]["children"]] == [8, 8]
    assert document["counts"]["counts"]["bits"] == 16
    [total, *_] = document["measured"][0]
    assert total["counts"]["bits"] == 32  # some 36,000 people, beyond 15 bits and a sign
    held = base64.b64decode(total["counts"]["base64"])
    assert len(held) == 4
    assert abs(int.from_bytes(held, "little", signed=True) - 36_000) < 100


def array(*numbers: int, bits: int = 8) -> dict[str, Any]:
    held = np.array(numbers, f"<i{bits // 8}").tobytes()
    return {"bits": bits, "base64": base64.b64encode(held).decode()}


CHANGES: list[tuple[str, Callable[[Any], Any]]] = [
    ("released counts of places with", lambda d: d.pop("unfinished")),
    ("unfinished must be an integer", lambda d: d.update(unfinished="x")),
    ("name each level", lambda d: d["hierarchy"].update(levels=["town", "town"])),
    ("name each level", lambda d: d["hierarchy"].update(levels=[])),
    ("have places of each level", lambda d: d["hierarchy"].update(levels=["town"])),
    ("different texts or whole numbers", lambda d: d["hierarchy"]["labels"].__setitem__(0, ["a", "a"])),
    ("different texts or whole numbers", lambda d: d["hierarchy"]["labels"].__setitem__(0, ["a", 1])),
    ("different texts or whole numbers", lambda d: d["hierarchy"]["labels"].__setitem__(0, [True, False])),
    ("different texts or whole numbers", lambda d: d["hierarchy"]["labels"].__setitem__(0, [2**64, 1])),
    ("different texts or whole numbers", lambda d: d["hierarchy"]["labels"].__setitem__(0, ["\ud800", "b"])),
    ("how many it has within it", lambda d: d["hierarchy"]["children"].__setitem__(1, array(3, 2))),
    ("how many it has within it", lambda d: d["hierarchy"]["children"].__setitem__(1, array(4, 0))),
    ("how many it has within it", lambda d: d["hierarchy"]["children"].__setitem__(1, array(4))),
    ("8, 16, 32 or 64 bits", lambda d: d["counts"].update(cells={"bits": 8})),
    ("8, 16, 32 or 64 bits", lambda d: d["counts"]["cells"].update(bits=24)),
    ("8, 16, 32 or 64 bits", lambda d: d["counts"]["cells"].update(base64="&")),
    ("8, 16, 32 or 64 bits", lambda d: d["counts"]["cells"].update(base64=3)),
    ("8, 16, 32 or 64 bits", lambda d: d["counts"]["cells"].update(base64="AAA=", bits=32)),
    ("counts of the places by cell", lambda d: d["counts"].update(entries=array(1))),
    ("counts of the places by cell", lambda d: d["counts"].update(entries=array(-1, 1, 0, 0))),
    ("counts of the places by cell", lambda d: d.update(counts=single(cell=6))),
    ("counts of the places by cell", lambda d: d.update(counts=single(cell=-1))),
    ("counts of the places by cell", lambda d: d.update(counts=single(count=0))),
    ("counts of the places by cell", lambda d: d.update(counts=single(entries=2))),
    ("what was measured of each level", lambda d: d["measured"].pop()),
    ("tables of the domain's columns", lambda d: d["measured"][0][0].update(columns=[2])),
    ("tables of the domain's columns", lambda d: d["measured"][0][2].update(columns=[1, 0])),
    ("a count of each place and cell", lambda d: d["measured"][0][1].update(columns=[1])),
    ("a count of each place and cell", lambda d: d["measured"][0][0].update(variance=-1.0)),
    ("a count of each place and cell", lambda d: d["measured"][0][0].update(variance="inf")),
]  # fmt: skip


def single(entries: int = 1, cell: int = 0, count: int = 1) -> dict[str, Any]:
    """Counts with people in the first town alone."""
    return {
        "entries": array(entries, 0, 0, 0),
        "cells": array(*[cell] * entries),
        "counts": array(*[count] * entries),
    }


@cases(("message", "change"), CHANGES)
def test_what_was_never_written_is_refused(message: str, change: Callable[[Any], Any]) -> None:
    document = json.loads(written())
    change(document)
    with pytest.raises(ParameterError, match=message):
        TopDownRelease.from_json(json.dumps(document))


def test_counts_of_few_people_are_read() -> None:
    document = json.loads(written())
    document["counts"] = single(cell=5, count=100)
    assert TopDownRelease.from_json(json.dumps(document)).counts("land", "age").tolist() == [[0, 0, 100]]
