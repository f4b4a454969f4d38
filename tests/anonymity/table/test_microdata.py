from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.hierarchies.intervals import Intervals
from sfumato.anonymity.table.microdata import Microdata
from sfumato.errors import ParameterError


def people() -> pa.Table:
    return pa.table({"age": [34, 21, 58], "sex": ["F", "M", None], "job": ["cook", "nurse", "cook"]})


def test_columns_are_encoded_by_their_hierarchies(tmp_path: Path) -> None:
    path = tmp_path / "sex.csv"
    path.write_text("M;*\nF;*\n")
    data = Microdata(
        people(), quasi_identifiers={"age": Intervals((10,)), "sex": str(path)}, sensitive={"job": None}
    )
    assert data.rows == 3
    assert data.quasi_identifiers == ("age", "sex")
    assert data.sensitive == ("job",)
    assert {name: codes.tolist() for name, codes in data.codes.items()} == {
        "age": [1, 0, 2],
        "sex": [1, 0, 2],
        "job": [0, 1, 0],
    }
    assert data.hierarchies["sex"].labels == (("M", "F", None), ("*",))
    assert data.table.equals(people())
    assert repr(data) == "Microdata(3 rows, quasi_identifiers=['age', 'sex'], sensitive=['job'])"


def test_wrong_input_is_one_clear_error() -> None:
    only_women = GeneralizationHierarchy.from_rows([("F", "*")])
    refused: list[tuple[dict[str, Any], str]] = [
        ({"quasi_identifiers": "age"}, "quasi_identifiers must be names of columns"),
        ({"quasi_identifiers": []}, "quasi_identifiers must name at least one column"),
        ({"quasi_identifiers": ["age", "age"]}, "quasi_identifiers must be different names of columns"),
        ({"quasi_identifiers": [1]}, "quasi_identifiers must be different names of columns"),
        ({"quasi_identifiers": ["age"], "sensitive": ["age"]}, "sensitive must not be a quasi-identifier"),
        ({"quasi_identifiers": ["agee"]}, "got 'agee'; did you mean 'age'?"),
        ({"quasi_identifiers": ["wage of all"]}, "got 'wage of all'; it has age, sex, job"),
        (
            {"quasi_identifiers": {"age": 3}},
            "the hierarchy of 'age' must be a GeneralizationHierarchy, a path, Intervals",
        ),
        ({"quasi_identifiers": {"sex": only_women}}, "hierarchy of 'sex' must cover every value, got 'M'"),
        ({"quasi_identifiers": {"sex": "no.csv"}}, "the hierarchy of 'sex' must be a text file"),
    ]
    for given, message in refused:
        with pytest.raises(ParameterError) as raised:
            Microdata(people(), **given)
        assert message in str(raised.value)


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(ParameterError, match="frame must have at least one row"):
        Microdata(people().slice(0, 0), quasi_identifiers=["age"])
