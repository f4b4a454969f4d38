"""ARX's excerpt of Adult with its hierarchies, and tables at random."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.table.microdata import Microdata

FOLDER = Path(__file__).parent / "data" / "arx_adult"


def adult(sensitive: str | None = None, *, order: bool = False) -> Microdata:
    """Give the 30,162 rows; the sensitive column in alphabetical order where ``order`` is set."""
    table = pq.read_table(FOLDER / "adult.parquet")
    paths = {name: str(FOLDER / f"adult_hierarchy_{name}.csv") for name in table.column_names}
    hidden = {} if sensitive is None else {sensitive: None if order else paths.pop(sensitive)}
    return Microdata(
        table, quasi_identifiers={name: paths[name] for name in paths if name not in hidden}, sensitive=hidden
    )


def random_table(rng: np.random.Generator, rows: int) -> Microdata:
    """Give a table with lattices of 4 x 3 x 2 nodes and a sensitive column of four values."""
    eight = GeneralizationHierarchy.from_rows(
        [(f"{i}", f"{i // 2}..", f"{i // 4}...", "*") for i in range(8)]
    )
    five = GeneralizationHierarchy.from_rows([(c, "early" if c < "c" else "late", "*") for c in "abcde"])
    jobs = GeneralizationHierarchy.from_rows(
        [(job, field, "*") for job, field in zip("wxyz", "hhss", strict=True)]
    )
    table = pa.table(
        {
            "number": [str(value) for value in rng.binomial(7, 0.4, rows)],
            "letter": rng.choice(list("abcde"), rows, p=[0.4, 0.3, 0.1, 0.1, 0.1]),
            "sex": rng.choice(["F", "M"], rows),
            "job": rng.choice(list("wxyz"), rows, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    return Microdata(
        table, quasi_identifiers={"number": eight, "letter": five, "sex": None}, sensitive={"job": jobs}
    )
