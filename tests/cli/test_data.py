"""The demo's table against totals that were taken from NIST's CSV before it was decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato.cli.data import ACS
from tests.cases import cases
from tools.make_acs import FIELDS, STATES

TOTALS: dict[str, Any] = json.loads(Path(__file__).with_name("acs_totals.json").read_text(encoding="utf-8"))
TEXT = [field for field in FIELDS if field.type == pa.string() and field.name != "state"]
NUMBERS = [field for field in FIELDS if field.type == pa.int32()]


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return pq.read_table(ACS)


def counts(column: pa.ChunkedArray) -> dict[str | None, int]:
    return {item["values"]: item["counts"] for item in pc.value_counts(column).to_pylist()}


def test_every_person_is_there_once_under_an_opaque_number(people: pa.Table) -> None:
    ids = people["person_id"].to_pylist()
    assert people.num_rows == TOTALS["rows"] == 27_253
    assert sorted(ids) == list(range(1, 27_254))
    assert ids != sorted(ids)


def test_columns_are_the_declared_ones_in_plain_types(people: pa.Table) -> None:
    assert people.column_names == ["person_id", *(field.name for field in FIELDS)]
    assert people.schema.types == [pa.int32(), *(field.type for field in FIELDS)]


def test_states_hold_the_counts_of_their_fips_codes(people: pa.Table) -> None:
    assert counts(people["state"]) == {STATES[code]: count for code, count in TOTALS["states"].items()}


@cases("field", TEXT, ids=lambda field: field.name)
def test_text_is_decoded_by_the_dictionary(people: pa.Table, field: Any) -> None:
    labels = set(TOTALS["labels"][field.code].values())
    assert {value for value in counts(people[field.name]) if value is not None} <= labels


@cases("field", [f for f in FIELDS if f.code in TOTALS["counts"]], ids=lambda f: f.name)
def test_each_label_has_as_many_people_as_its_code(people: pa.Table, field: Any) -> None:
    labels = TOTALS["labels"][field.code]
    codes = TOTALS["counts"][field.code].items()
    assert counts(people[field.name]) == {None if k == "N" else labels[k]: count for k, count in codes}


@cases("field", FIELDS, ids=lambda field: field.name)
def test_not_applicable_is_null(people: pa.Table, field: Any) -> None:
    assert people[field.name].null_count == TOTALS["not_applicable"][field.code]


@cases("field", NUMBERS, ids=lambda field: field.name)
def test_numbers_add_up_to_the_csv(people: pa.Table, field: Any) -> None:
    assert pc.sum(people[field.name]).as_py() == TOTALS["sums"][field.code]


def test_the_file_says_what_it_is_and_stays_small() -> None:
    metadata = pq.read_metadata(ACS).metadata
    assert {b"title", b"source", b"citation", b"notice"} <= set(metadata)
    assert b"17 U.S.C. 105" in metadata[b"notice"]
    assert ACS.stat().st_size < 500_000
    assert "section 105" in ACS.with_name("NOTICE.txt").read_text(encoding="utf-8")
