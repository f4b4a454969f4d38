"""Published dictionaries of variables: cells as the file describes them, and what describes none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, Ordered, TableDomain
from tests.cases import cases

CSV = """name,value,label,lower,upper,bins,missing,other,universe
SEX,1,Male,,,,,,all
SEX,2,Female,,,,,,all
AGE,,,0,99,,yes,,all
INC,,,-5000,1e6,10,,,all
ZIP,01,North,,,,,true,all
ZIP,22,South,,,,,,all
WORK,,Not in universe,,,,,,15 or older
WORK,a,Private,,,,,,15 or older
OWN,true,Owner,,,,,,all
OWN,False,Tenant,,,,,,all
"""

DOMAIN = TableDomain(
    SEX=[1, 2],
    AGE=Ordered.integers(0, 99, missing=True),
    INC=Ordered(-5000, 1e6, bins=10),
    ZIP=Categorical(["01", "22"], other=True),
    WORK=Categorical(["a"], missing=True),
    OWN=[True, False],
)


def test_csv_and_json_files_describe_the_same_cells(tmp_path: Path) -> None:
    written = tmp_path / "d.csv"
    written.write_text("\ufeff" + CSV, encoding="utf-8")
    assert TableDomain.from_dictionary(written) == DOMAIN
    texts = TableDomain.from_dictionary(written, texts=["SEX", "OWN"])
    assert (texts["SEX"], texts["OWN"]) == (Categorical(["1", "2"]), Categorical(["true", "False"]))
    variables = [
        {"name": "SEX", "values": [{"value": 1, "label": "Male"}, {"value": 2}]},
        {"name": "AGE", "lower": 0, "upper": 99, "missing": True},
        {"name": "INC", "lower": -5000, "upper": 1e6, "bins": 10},
        {"name": "ZIP", "values": ["01", "22"], "other": True},
        {"name": "WORK", "value": "a"},
        {"name": "WORK", "values": [None]},
        {"name": "OWN", "values": [True, False]},
    ]
    for document in (variables, {"variables": variables}):
        path = tmp_path / "d.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        assert TableDomain.from_dictionary(path) == DOMAIN


@cases(
    ("text", "part"),
    [
        ("SEX,1\nAGE,2\n", "path must be a CSV or JSON file"),
        ("value\n1\n", "path must be a CSV or JSON file"),
        ("name,value\nSEX,\n", "SEX must have values, or lower and upper, but it has neither"),
        ("name,value,lower,upper\nSEX,1,0,9\n", "but it has both"),
        ("name,lower\nAGE,1\n", "AGE must have lower and upper"),
        ("name,lower,upper\nAGE,1,x\n", "AGE must have numbers as lower and upper"),
        ("name,lower,upper\nAGE,1,nan\n", "AGE must have numbers"),
        ("name,lower,upper\nAGE,1,9.5\n", "AGE must have bins, or whole numbers"),
        ("name,lower,upper\nAGE,1,9\nAGE,2,9\n", "AGE must have one lower"),
        ("name,value,other\nAGE,1,maybe\n", "AGE must say true or false"),
        ("name,value\nAGE,1\nAGE,1\n", "different values"),
        ("", "attributes must be columns"),
    ],
)
def test_what_describes_no_cells_is_refused(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match=part):
        TableDomain.from_dictionary(path)


def test_files_that_are_none_and_unknown_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    for text in ("[", "{}", "[1]", '{"variables": 3}', '[{"name": "a", "values": 3}]'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ParameterError, match=r"path must be a CSV or JSON|a must have a list as values"):
            TableDomain.from_dictionary(path)
    with pytest.raises(ParameterError, match="path must be a CSV or JSON"):
        TableDomain.from_dictionary(tmp_path / "absent.csv")
    path.write_text('[{"name": "a", "values": [1]}]', encoding="utf-8")
    with pytest.raises(ParameterError, match="texts must be among"):
        TableDomain.from_dictionary(path, texts=["b"])
