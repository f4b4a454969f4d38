"""No message of the command line speaks Python to those who write a shell."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato
from sfumato.cli.commands import app
from sfumato.cli.process.wording import PHRASES
from tests.cases import cases

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
UNIT = ("--privacy-unit", "id", "--epsilon", "2")
TORCH = importlib.util.find_spec("torch") is not None
PYTHON = re.compile(r"Ledger\.|Budget\.|\w+=(True|None|\{|\[)|connect\(|\w+\(\)|public_groups=|\bparams=")


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def named(tmp_path: Path) -> dict[str, Path]:
    """Two tables, and the ledger of an answer of the first; a refusal changes none of them."""
    if TORCH:  # what "train" imports as it runs
        importlib.import_module("sfumato.cli.train")
        importlib.import_module("sfumato.learning.training.table_training")
    paths = {"SOURCE": tmp_path / "source.parquet", "OTHER": tmp_path / "other.parquet"}
    for index, path in enumerate(paths.values(), 1):
        pq.write_table(pa.table({"id": range(10 * index), "v": [0, 1] * 5 * index}), path)
    ledger = tmp_path / "ledger"
    assert run("sql", paths["SOURCE"], *UNIT, "--ledger", ledger, COUNT).exit_code == 0
    return paths | {"LEDGER": ledger}


@cases(
    ("words", "part"),
    [
        (("sql", "SOURCE", "UNIT", "--ledger", "LEDGER", "--analyst", "eve", COUNT), "sfumato ledger grant"),
        (("sql", "SOURCE", "UNIT", COUNT.replace("data", "data WHERE id > @n")), "--param n=VALUE"),
        (("sql", "SOURCE", "UNIT", "--type", "id=INT64", COUNT), "type"),
        (("sql", "SOURCE", "UNIT", "--columns", "id", COUNT), "columns"),
        (("sql", "SOURCE", "UNIT", "--head", "{}", COUNT), "head"),
        (("sql", "OTHER", "UNIT", "--ledger", "LEDGER", COUNT), "--new-version"),
        (("sql", "SOURCE", "--privacy-unit", "who", "--epsilon", "2", COUNT), "ROW"),
        (("sql", "SOURCE", "UNIT", COUNT.replace("COUNT(*)", "v, COUNT(*)") + " GROUP BY v"), "delta=1e-8"),
        (("ledger", "release", "LEDGER", "9"), "sfumato ledger show"),
        (("ledger", "grant", "LEDGER", "ada", "--rho", "1"), "--epsilon"),
        (("train", "SOURCE", "--target", "v=0,1", "--output", "m", "--epsilon", "1", "--delta", "0",
          "--number", "id=0:9", "--batch-size", "0"), "--batch-size must" if TORCH else "sfumato[torch]"),
    ],
)  # fmt: skip
def test_messages_name_options(named: dict[str, Path], words: tuple[str, ...], part: str) -> None:
    given = [each for word in words for each in (UNIT if word == "UNIT" else (named.get(word, word),))]
    done = run(*given)
    assert done.exit_code in {1, 2}
    (line,) = done.stderr.splitlines()
    assert part in line
    assert not PYTHON.search(line), line


def test_what_is_replaced_is_still_said() -> None:
    """Each phrase begins with words that stand in the library."""
    texts = [path.read_text(encoding="utf-8") for path in Path(sfumato.__file__).parent.rglob("*.py")]
    everything = re.sub(r'"\s*f?"', "", "".join(texts))
    for pattern in PHRASES:
        words = max(re.split(r"[\\(\[{|^]", pattern), key=len).strip(" .'")
        assert words in everything, pattern
