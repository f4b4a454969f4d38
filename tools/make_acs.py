"""Build the demo's table from NIST's excerpt of the American Community Survey.

Run ``python tools/make_acs.py national2019.csv data_dictionary.json OUTPUT.parquet`` with NIST's two files;
it writes the same table every time. With ``--totals FILE`` it also writes counts and sums that are taken
straight from the CSV, never from the table: the tests compare the shipped file with them.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FIELDS", "Field", "build", "main", "totals"]

NOT_APPLICABLE = "N"

METADATA = {
    "title": "American Community Survey 2019: people of twenty areas in sixteen US states",
    "source": (
        "NIST Diverse Communities Data Excerpts, national 2019 excerpt (SDNist); "
        "drawn from the public use microdata of the American Community Survey, US Census Bureau"
    ),
    "citation": (
        "Task C., Bhagat K., Streat D., Simpson A., Howarth G.S. (2023), NIST Diverse Communities Data "
        "Excerpts, National Institute of Standards and Technology, https://doi.org/10.18434/mds2-2895"
    ),
    "notice": (
        "A work of the US Government, not subject to copyright in the United States (17 U.S.C. 105); "
        "provided by NIST as is, without warranty. Columns were renamed and codes decoded for sfumato; "
        "person_id is made up. See NOTICE.txt beside this file."
    ),
}

STATES = {
    "01": "Alabama",
    "06": "California",
    "08": "Colorado",
    "13": "Georgia",
    "17": "Illinois",
    "19": "Iowa",
    "24": "Maryland",
    "26": "Michigan",
    "28": "Mississippi",
    "29": "Missouri",
    "30": "Montana",
    "32": "Nevada",
    "36": "New York",
    "38": "North Dakota",
    "40": "Oklahoma",
    "51": "Virginia",
}
"""The states of the excerpt, by the FIPS code that begins a PUMA."""

Row = Mapping[str, str]
Labels = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of the table.

    Parameters
    ----------
    name : str
        The column's name in the table.
    code : str
        The column's name in NIST's files.
    type : pyarrow.DataType
        Text is decoded with the dictionary; numbers stay numbers. "N", not applicable, is NULL in both.
    """

    name: str
    code: str
    type: pa.DataType

    def read(self, row: Row, labels: Labels) -> str | int | float | None:
        """Return the column's value for one person."""
        raw = row[self.code]
        if raw == NOT_APPLICABLE:
            return None
        if self.name == "state":
            return STATES[raw[:2]]
        if self.type == pa.string():
            return str(labels[self.code][raw])
        number = float(raw)
        if self.type == pa.float64():
            return number
        if not number.is_integer():
            raise ValueError(f"{self.code} must hold whole numbers; read it as a float64 field instead")
        return int(number)


FIELDS = (
    Field("state", "PUMA", pa.string()),
    Field("area", "PUMA", pa.string()),
    Field("population_density", "DENSITY", pa.float64()),
    Field("age", "AGEP", pa.int32()),
    Field("sex", "SEX", pa.string()),
    Field("race", "RAC1P", pa.string()),
    Field("hispanic_origin", "HISP", pa.string()),
    Field("marital_status", "MSP", pa.string()),
    Field("children", "NOC", pa.int32()),
    Field("family_size", "NPF", pa.int32()),
    Field("housing", "HOUSING_TYPE", pa.string()),
    Field("tenure", "OWN_RENT", pa.string()),
    Field("education", "EDU", pa.string()),
    Field("industry", "INDP_CAT", pa.string()),
    Field("industry_code", "INDP", pa.int32()),
    Field("income", "PINCP", pa.int32()),
    Field("income_decile", "PINCP_DECILE", pa.int32()),
    Field("poverty_ratio", "POVPIP", pa.int32()),
    Field("veteran_disability_rating", "DVET", pa.string()),
    Field("cognitive_difficulty", "DREM", pa.string()),
    Field("walking_difficulty", "DPHY", pa.string()),
    Field("vision_difficulty", "DEYE", pa.string()),
    Field("hearing_difficulty", "DEAR", pa.string()),
    Field("person_weight", "PWGTP", pa.int32()),
    Field("household_weight", "WGTP", pa.int32()),
)


def person_ids(count: int) -> list[int]:
    """Return a number from 1 for each person, in an order that never changes: that of a hash of the place."""
    order = sorted(range(count), key=lambda place: hashlib.sha256(str(place).encode()).digest())
    ids = [0] * count
    for number, place in enumerate(order, start=1):
        ids[place] = number
    return ids


def build(rows: Sequence[Row], labels: Labels) -> pa.Table:
    """Return the table: one row per person, in the CSV's order.

    Parameters
    ----------
    rows : sequence of mapping
        The lines of NIST's CSV.
    labels : mapping
        For each column of the CSV, code to meaning.

    Returns
    -------
    pyarrow.Table
        ``person_id`` and the columns of `FIELDS`, with title, source and notice in the schema's metadata.
    """
    columns = {"person_id": pa.array(person_ids(len(rows)), pa.int32())}
    for field in FIELDS:
        columns[field.name] = pa.array([field.read(row, labels) for row in rows], field.type)
    return pa.table(columns).replace_schema_metadata(METADATA)


def totals(rows: Sequence[Row]) -> dict[str, object]:
    """Return counts and sums of the CSV, under the CSV's own names and codes."""

    def counts(code: str, width: int | None = None) -> dict[str, int]:
        return dict(sorted(Counter(row[code][:width] for row in rows).items()))

    def total(code: str) -> int:
        return sum(int(float(row[code])) for row in rows if row[code] != NOT_APPLICABLE)

    return {
        "rows": len(rows),
        "states": counts("PUMA", 2),
        "not_applicable": {f.code: counts(f.code).get(NOT_APPLICABLE, 0) for f in FIELDS},
        "sums": {f.code: total(f.code) for f in FIELDS if f.type == pa.int32()},
        "counts": {code: counts(code) for code in ("SEX", "MSP", "EDU", "INDP_CAT", "RAC1P")},
    }


def write(table: pa.Table, path: Path) -> None:
    """Write the table as one small Parquet file."""
    pq.write_table(table, path, compression="zstd", compression_level=19)


def main(argv: Sequence[str] | None = None) -> int:
    """Build the Parquet file from the paths on the command line."""
    parser = argparse.ArgumentParser(description="Build the demo's table from NIST's excerpt of the ACS.")
    parser.add_argument("csv", type=Path, help="NIST's national2019.csv")
    parser.add_argument("dictionary", type=Path, help="NIST's data_dictionary.json")
    parser.add_argument("output", type=Path, help="the Parquet file to write")
    parser.add_argument("--totals", type=Path, help="a JSON file for the CSV's public totals")
    arguments = parser.parse_args(argv)
    with arguments.csv.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    dictionary = json.loads(arguments.dictionary.read_text(encoding="utf-8"))
    labels = {code: entry.get("values", {}) for code, entry in dictionary.items()}
    write(build(rows, labels), arguments.output)
    if arguments.totals:
        facts = {"labels": {f.code: labels[f.code] for f in FIELDS if f.type == pa.string()}, **totals(rows)}
        arguments.totals.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"{arguments.output}: {len(rows)} people, {arguments.output.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
