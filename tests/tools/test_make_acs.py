"""The builder of the demo's table, on two made-up people."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tools.make_acs import FIELDS, build, main, person_ids, totals

CODES = sorted({field.code for field in FIELDS})
LABELS = {code: {"1": f"{code} one", "2": f"{code} two", "06-07502": "Chinatown"} for code in CODES}
ADULT = dict.fromkeys(CODES, "1") | {"PUMA": "06-07502", "PINCP": "-1500.0", "DENSITY": "16.3"}
CHILD = ADULT | dict.fromkeys(("PINCP", "MSP", "DENSITY"), "N")


def test_codes_become_labels_and_numbers_stay_numbers() -> None:
    adult, child = build([ADULT, CHILD], LABELS).to_pylist()
    assert adult["state"] == "California"
    assert adult["area"] == "Chinatown"
    assert adult["marital_status"] == "MSP one"
    assert (adult["income"], adult["population_density"]) == (-1500, 16.3)
    assert (child["income"], child["population_density"], child["marital_status"]) == (None, None, None)


def test_the_totals_come_from_the_csv() -> None:
    facts = totals([ADULT, CHILD])
    assert facts["rows"] == 2
    assert facts["states"] == {"06": 2}
    assert facts["sums"]["PINCP"] == -1500  # type: ignore[index]
    assert facts["not_applicable"]["MSP"] == 1  # type: ignore[index]


@pytest.mark.parametrize(("code", "raw"), [("MSP", "9"), ("PUMA", "06-00000"), ("PUMA", "99-00001")])
def test_an_unknown_code_is_refused(code: str, raw: str) -> None:
    with pytest.raises(KeyError):
        build([ADULT | {code: raw}], LABELS)


def test_a_fraction_in_a_column_of_whole_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="PINCP must hold whole numbers"):
        build([ADULT | {"PINCP": "0.5"}], LABELS)


def test_ids_are_a_fixed_shuffle() -> None:
    assert person_ids(5) == person_ids(5)
    assert sorted(person_ids(100)) == list(range(1, 101)) != person_ids(100)


def test_the_command_writes_the_same_file_twice(tmp_path: Path) -> None:
    table, dictionary, facts = tmp_path / "in.csv", tmp_path / "in.json", tmp_path / "facts.json"
    with table.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, CODES)
        writer.writeheader()
        writer.writerows([ADULT, CHILD])
    dictionary.write_text(json.dumps({code: {"values": LABELS[code]} for code in CODES}), encoding="utf-8")
    for output in ("one.parquet", "two.parquet"):
        assert main([str(table), str(dictionary), str(tmp_path / output), "--totals", str(facts)]) == 0
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert pq.read_table(tmp_path / "one.parquet").num_rows == json.loads(facts.read_text())["rows"] == 2
