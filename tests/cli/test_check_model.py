"""``sfumato check-model``: verdicts, exit codes, and errors in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.check_model import UNFIT
from sfumato.cli.commands import app
from tests.cases import cases

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")

MODULE = """
import torch
from torch import nn

def images():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2))

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(30, 4), nn.Linear(4, 30)

    def forward(self, ids, weight):
        return self.head(self.table(ids)) * weight[:, None, None]

rows = nn.Linear(4, 2)

def needs(width):
    return nn.Linear(width, 2)

def fails():
    raise KeyError("nobody")

def nothing():
    return 3

number = 3
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "models_here.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("models_here", None)


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["check-model", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def test_batch_norm_is_refused() -> None:
    code, out, err = run("models_here:images", "--shape", "3,6,6", "--examples", "3")
    assert code == UNFIT
    assert out.startswith(
        "REFUSED: 1 (BatchNorm2d): an example that is drawn anew changes the outputs of others"
    )
    assert not err


def test_batch_norm_is_fixed() -> None:
    code, out, err = run("models_here:images", "--shape", "3,6,6", "--examples", "3", "--fix", "--plan")
    assert code == 0
    assert out.startswith("passed: no leak seen")
    assert "0.weight: " in out
    assert not err


def test_json_tells_what_the_library_tells() -> None:
    names = ("--shape", "ids=5:int64", "--shape", "weight=")
    code, out, _ = run("models_here:Words", *names, "--examples", "3", "--json", "--clip-norm", "0.5")
    facts = json.loads(out)
    assert code == 0
    assert facts["passed"]
    assert (facts["format"], facts["version"]) == ("sfumato.model-check", 1)
    assert facts["faults"] == facts["leaks"] == []
    assert (facts["examples"], facts["reference"]) == (3, "vmap")
    assert facts["norm_error"] < 1e-5
    assert facts["sum_error"] < 1e-5
    assert 0.9 < facts["removal"] <= 1.001
    code, out, _ = run("models_here:images", "--shape", "3,6,6", "--json")
    assert code == UNFIT
    assert json.loads(out)["leaks"][0]["kind"] == "BatchNorm2d"


def test_a_module_may_be_named_as_it_is() -> None:
    assert run("models_here:rows", "--shape", "4", "--examples", "2")[0] == 0


SHAPE = ("--shape", "4")
WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no colon": (("models_here", *SHAPE), "name a module and what is in it"),
    "no such module": (("absent_here:f", *SHAPE), "ModuleNotFoundError"),
    "it needs arguments": (
        ("models_here:needs", *SHAPE),
        "name what needs no arguments; it raised TypeError",
    ),
    "it raises": (("models_here:fails", *SHAPE), "KeyError"),
    "no module": (
        ("models_here:nothing", *SHAPE),
        "name a torch.nn.Module or what returns one, got a value of type int",
    ),
    "a number": (
        ("models_here:number", *SHAPE),
        "name a torch.nn.Module or what returns one, got a value of type int",
    ),
    "a wrong shape": (("models_here:rows", "--shape", "5"), "must run on random inputs of the batch's shape"),
    "no shape": (
        ("models_here:rows", "--shape", "4x4"),
        "shape must name the sizes of one example, got '4x4'",
    ),
    "no type": (("models_here:rows", "--shape", "4:text"), "of type float32"),
    "some names": (("models_here:rows", *SHAPE, "--shape", "x=4"), "a name of its own for each argument"),
    "a mode": (("models_here:rows", *SHAPE, "--mode", "fast"), "mode must be one of"),
    "a clip norm": (("models_here:rows", *SHAPE, "--clip-norm", "0"), "--clip-norm must be positive"),
    "examples": (("models_here:rows", *SHAPE, "--examples", "9"), "examples must be from 2 to 8"),
}


@cases(("arguments", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    code, out, err = run(*arguments)
    assert code in {1, 2}, out
    assert not out
    assert err.startswith("sfumato: ")
    assert err.count("\n") == 1
    assert told in err


def test_a_shape_is_required() -> None:
    assert run("models_here:rows")[0] == 2


def test_the_command_line_loads_no_torch_before_it_is_asked() -> None:
    code = "import sys, sfumato.cli.main; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
