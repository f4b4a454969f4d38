"""``sfumato audit``: verdicts, exit codes, and errors in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.auditing import VIOLATED
from sfumato.cli.commands import app
from tests.cases import cases
from tests.chance import accepts_only, unrefuted

MODULE = """
import numpy as np
from sfumato.mechanisms import Laplace

noise = np.random.default_rng(1)
ours = Laplace.calibrated(sensitivity=1, epsilon=1.0)

def many(data, size):
    return len(data) + noise.laplace(0.0, 1.0, size)

def one(data):
    return sum(data) + noise.laplace()

def holds(data):
    return 0.0 * len(bytes(100_000 * len(data))) + noise.laplace()

def fails(data):
    raise KeyError("nobody")

class Counts:
    pairs = [([1], [1, 1])]

    def __call__(self, data, size):
        return many(data, size)

class Needs:
    def __init__(self, scale):
        pass

nothing = 3
"""


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "audited_here.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_here.py").write_text("import no_such_module_at_all\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield
    assert sys.path == path
    sys.modules.pop("audited_here", None)


PAIR = ("--pair", "[[1, 1], [1, 1, 1]]")
FEW = ("--trials", "20000")


@pytest.mark.parametrize(("epsilon", "expected"), [("2", 0), ("0.5", VIOLATED)])
def test_the_exit_code_is_the_verdict(epsilon: str, expected: int) -> None:
    for name in ("many", "one"):
        code, out, err = run(f"audited_here:{name}", "--epsilon", epsilon, *PAIR, *FEW)
        assert code == expected
        assert ("VIOLATED" in out) == (expected == VIOLATED)
        assert "[1, 1]" in out
        assert not err


def test_json_tells_what_the_library_tells() -> None:
    code, out, _ = run("audited_here:many", "--epsilon", "0.5", *PAIR, *FEW, "--json", "--precision")
    facts: dict[str, Any] = json.loads(out)
    assert code == VIOLATED
    accepts_only(unrefuted(facts["epsilon_lower"]), 1.0, part=0.8)
    assert facts["violated"]
    assert facts["hits"][0] > facts["hits"][1]
    assert facts["trials"] == 20_000
    assert facts["epsilon_if_gaussian"] is None
    assert {"impossible", "violated", "pair", "tested", "epsilon_lower"} == set(facts["floating_point"])
    assert (facts["format"], facts["version"]) == ("sfumato.audit-report", 1)


def test_low_bits_alone_make_a_violation() -> None:
    pair = ("--pair", "[[], [1]]")
    assert run("audited_here:many", "--epsilon", "1.2", *pair, *FEW)[0] == 0
    code, out, _ = run("audited_here:many", "--epsilon", "1.2", *pair, *FEW, "--precision")
    assert code == VIOLATED
    assert "impossible" in out


def test_pairs_may_come_with_what_is_audited() -> None:
    assert run("audited_here:Counts", "--epsilon", "0.5", *FEW)[0] == VIOLATED
    assert run("audited_here:ours", "--epsilon", "1", *FEW, "--confidence", "0.999999999999")[0] == 0
    assert run("sfumato.audit.specimens:StoddardSparseVector", "--epsilon", "1", *FEW)[0] == VIOLATED


def test_what_a_run_shows_besides_its_output_is_observed_if_asked_for() -> None:
    few = ("--trials", "400", "--epsilon", "1", "--pair", "[[], [1]]")
    code, out, _ = run("audited_here:holds", *few)
    assert code == 0
    assert out.endswith("; not observed: time, memory, random state\n")
    code, out, _ = run("audited_here:holds", *few, "--observe", "memory", "--observe", "random state")
    assert code == VIOLATED
    assert out.endswith("; observed: memory, random state; not observed: time\n")


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no colon": (("audited_here", "--epsilon", "1", *PAIR), "name a module and what is in it"),
    "no such module": (("absent_here:f", "--epsilon", "1", *PAIR), "ModuleNotFoundError"),
    "a module that fails": (("broken_here:f", "--epsilon", "1", *PAIR), "no_such_module_at_all"),
    "no such name": (("audited_here:absent", "--epsilon", "1", *PAIR), "absent"),
    "not callable": (("audited_here:nothing", "--epsilon", "1", *PAIR), "be a Mechanism or a callable"),
    "a class with arguments": (("audited_here:Needs", "--epsilon", "1", *PAIR), "needs no arguments"),
    "it raises": (("audited_here:fails", "--epsilon", "1", *PAIR, *FEW), "KeyError: 'nobody'"),
    "the wrong form": (("audited_here:one", "--epsilon", "1", *PAIR, "--batch"), "pass batch=False"),
    "no pair": (("audited_here:many", "--epsilon", "1"), "pairs must be given"),
    "no JSON": (("audited_here:many", "--epsilon", "1", "--pair", "[1"), "JSON list of two inputs"),
    "three inputs": (("audited_here:many", "--epsilon", "1", "--pair", "[1, 2, 3]"), "list of two inputs"),
    "a negative epsilon": (("audited_here:many", "--epsilon", "-1", *PAIR), "epsilon must be"),
    "a delta of 1": (("audited_here:many", "--epsilon", "1", "--delta", "1", *PAIR), "delta must be"),
    "too few trials": (("audited_here:many", "--epsilon", "1", *PAIR, "--trials", "5"), "trials must be"),
    "what nobody observes": (
        ("audited_here:many", "--epsilon", "1", *PAIR, "--observe", "clock"),
        "observe must hold some of 'time', 'memory', 'random state'",
    ),
    "a confidence of 1": (
        ("audited_here:many", "--epsilon", "1", *PAIR, "--confidence", "1"),
        "confidence must be",
    ),
}


@cases(("arguments", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    code, out, err = run(*arguments)
    assert code in {1, 2}
    assert not out
    assert err.startswith("sfumato: ")
    assert err.count("\n") == 1
    assert told in err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("audited_here:many",),
        ("audited_here:many", "--epsilon", "x"),
        ("audited_here:many", "--epsilon"),
    ],
)
def test_a_wrong_command_line_is_usage(arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2
