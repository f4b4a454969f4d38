import numpy as np
import pyarrow as pa

from sfumato.anonymity.table.microdata import Microdata
from sfumato.anonymity.table.released_table import labelled, released_table


def test_missing_values_stay_missing_and_suppressed_rows_are_stars() -> None:
    hidden = np.array([False, True, False])
    column = labelled(["a", None], np.array([0, 0, 1]), hidden)
    assert column.to_pylist() == ["a", "*", None]
    table = pa.table({"job": ["x", "y", "z"], "note": [1, 2, 3], "letter": ["a", "a", None]})
    data = Microdata(table, quasi_identifiers=["letter"], sensitive=["job"])
    released = released_table(data, {"letter": column}, hidden)
    assert released.to_pydict() == {"job": ["x", None, "z"], "letter": ["a", "*", None]}
