"""Mutants that are planted in a tiny package: each must end as it was planted to."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.forks import Forks
from tools.measures.source import Module
from tools.measures.source import modules as modules_of
from tools.mutation.drawing import drawn
from tools.mutation.equivalents import listed
from tools.mutation.kernels import kernel_mutants
from tools.mutation.mutants import Mutant
from tools.mutation.mutants import mutants as mutants_of
from tools.mutation.operators import changes

ROOT = Path(__file__).parents[2]

DEMO = {
    "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['exhaustive: takes long']\n",
    "src/demo/__init__.py": '"""A package."""\n',
    "src/demo/plain.py": """
import dataclasses
from functools import cache

LIMIT = 3

def area(width, height):
    return width * height

def twice(x):
    return x + x

def larger(a, b):
    return a if a > b else b

def unused(x):
    return -x

def below(x):
    return x < LIMIT

@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    size: int = 2

    @property
    def inner(self):
        return self.size - 1

    @classmethod
    def of(cls, *sizes):
        return [cls(size) for size in sizes if size > 0]

def adder(n):
    def add(x):
        return x + n
    return add

add_two = adder(2)

@cache
def cube(x):
    return x**3

def square(x):
    return x * x

SQUARES = tuple(map(square, (1, 2, 3)))

def signed(x):
    '''Return the opposite.

    >>> signed(3)
    -3
    '''
    return -x
""",
    "tests/test_plain.py": """
import pytest
from demo.plain import *

WARM = cube(2)

def test_area():
    assert area(2, 3) == 6

def test_twice():
    assert twice(0) == 0

def test_larger():
    assert [larger(*pair) for pair in ((1, 2), (2, 1), (2, 2))] == [2, 2, 2]

def test_below():
    assert [below(x) for x in (1, 2, 3, 4)] == [True, True, False, False]

def test_box():
    assert Box().size == 2
    assert Box().inner == 1
    assert Box.of(0, 1, 2) == [Box(1), Box(2)]

def test_closure():
    assert add_two(1) == 3

def test_cube():
    assert cube(2) == WARM == 8

def test_squares():
    assert SQUARES == (1, 4, 9)

def test_that_fails_without_a_mutant():
    assert twice(1) == 3

@pytest.mark.exhaustive
def test_twice_slowly():
    assert twice(1) == 2
""",
    "src/demo/loops.py": """
def steps(n):
    count = 0
    while count < n:
        count += 1
    return count

def hungry(n):
    return len(bytearray(b"1") * int(2**34 / n))
""",
    "tests/test_loops.py": """
from demo.loops import hungry, steps

def test_steps():
    assert [steps(n) for n in (0, 1, 5)] == [0, 1, 5]

def test_hungry():
    assert hungry(2**24) == 1024
""",
    "equivalents.toml": """
[[equivalent]]
name = "demo.plain.larger"
original = "a > b"
mutated = "a >= b"
reason = "equal numbers are alike"
""",
}


def project(folder: Path, **changed: str) -> Path:
    for name, text in (DEMO | changed).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


TOOL = """
import runpy, sys
sys.dont_write_bytecode = True  # files are changed within the second
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(forks: Forks, folder: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = (str(ROOT / "tools" / tool), "--package", "src/demo", *arguments)
    return forks.start(TOOL, *words, folder=folder, path=[folder / "src"]).ended()


def mutate(
    forks: Forks, folder: Path, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    given = ["--equivalents", "equivalents.toml", "--report", "report.json", "--limit", "1"]
    done = run(forks, folder, "mutate.py", *given, *arguments)
    report = folder / "report.json"
    assert report.exists(), done.stdout + done.stderr
    return done, json.loads(report.read_text(encoding="utf-8"))["mutants"]


def identity(folder: Path, change: str) -> str:
    module = Module("demo.plain", folder / "src/demo/plain.py")
    return next(m.identity for m in mutants_of(module) if f"{m.original} -> {m.mutated}" == change)


def verdicts(mutants: list[dict[str, Any]]) -> dict[str, str]:
    return {f"{m['original']} -> {m['mutated']}": m["verdict"] for m in mutants}


@pytest.mark.exhaustive  # some forty mutants
def test_each_planted_mutant_ends_as_planted(runner_forks: Forks, tmp_path: Path) -> None:
    done, mutants = mutate(runner_forks, project(tmp_path), "--files", "src/demo/plain.py", "--count", "100")
    found = {f"{m['name'].removeprefix('demo.plain')} {m['original']} -> {m['mutated']}": m for m in mutants}
    assert {name for name, m in found.items() if m["verdict"] != "killed"} == {
        ".twice x + x -> x - x",
        ".unused return -x -> return x",
    }
    assert found[".twice x + x -> x - x"]["verdict"] == "survived"
    assert found[".unused return -x -> return x"]["verdict"] == "unreached"
    for name in (
        ".area width * height -> width",
        " LIMIT = 3 -> LIMIT = 4",
        ".Box size: int = 2 -> size: int = 1",
        ".Box.inner self.size - 1 -> self.size + 1",
        ".Box.of size > 0 -> size >= 0",
        ".adder.add x + n -> x - n",
        " adder(2) -> adder(3)",
        ".cube x ** 3 -> x ** 4",
        ".square x * x -> x",
        ".signed return -x -> return x",
    ):
        assert name in found
    assert found[".adder.add x + n -> x - n"]["by"] == "tests/test_plain.py::test_closure"
    assert found[".signed return -x -> return x"]["by"] == "src/demo/plain.py::demo.plain.signed"
    assert not any("larger" in name for name in found), "a listed mutant is not drawn"
    assert done.returncode == 1
    again = f"--only {found['.twice x + x -> x - x']['id']}"
    assert f"try again: python tools/mutate.py {again}" in done.stdout
    assert "test_that_fails_without_a_mutant is not used" in done.stdout


@pytest.mark.exhaustive  # they take their time
def test_a_mutant_without_end_or_measure_is_killed(runner_forks: Forks, tmp_path: Path) -> None:
    done, mutants = mutate(
        runner_forks, project(tmp_path), "--files", "src/demo/loops.py", "--count", "100", "--memory", "1024"
    )
    found = verdicts(mutants)
    assert found["count += 1 -> count -= 1"] == "timeout"
    assert found["count < n -> count <= n"] == "killed"
    assert set(found.values()) == {"killed", "timeout"}
    assert [m["why"] for m in mutants if m["mutated"] == "2 ** 34"] == ["MemoryError"]
    assert done.returncode == 0, done.stdout


def test_a_mutant_is_tried_again_by_its_name(runner_forks: Forks, tmp_path: Path) -> None:
    folder = project(tmp_path)
    _, mutants = mutate(runner_forks, folder, "--files", "src/demo/plain.py", "--count", "1", "--seed", "5")
    _, again = mutate(runner_forks, folder, "--only", mutants[0]["id"])
    assert [(m["id"], m["verdict"]) for m in again] == [(m["id"], m["verdict"]) for m in mutants]
    unknown = run(runner_forks, folder, "mutate.py", "--only", "demo.plain:00000000")
    assert unknown.returncode == 1
    assert "--only must name a mutant, got demo.plain:00000000" in unknown.stderr


SLOW = """
import pytest
from demo.plain import twice

@pytest.mark.exhaustive
def test_twice():
    assert twice(1) == 2
"""


def test_a_tier_adds_its_tests(runner_forks: Forks, tmp_path: Path) -> None:
    twice = "def twice(x):\n    return x + x\n"
    more = {"src/demo/plain.py": twice, "tests/test_plain.py": SLOW, "equivalents.toml": ""}
    folder = project(tmp_path, **more)
    assert verdicts(mutate(runner_forks, folder, "--files", "src/demo/plain.py")[1]) == {
        "x + x -> x - x": "unreached"
    }
    slowly = mutate(runner_forks, folder, "--files", "src/demo/plain.py", "--tier", "exhaustive")[1]
    assert verdicts(slowly) == {"x + x -> x - x": "killed"}


def test_the_list_of_equivalents_is_held_true(runner_forks: Forks, tmp_path: Path) -> None:
    wrong = (
        DEMO["equivalents.toml"]
        + """
[[equivalent]]
name = "demo.plain.area"
original = "width * height"
mutated = "width"
reason = "said without proof"

[[equivalent]]
name = "demo.plain.area"
original = "width + height"
mutated = "width"
reason = "from an older function"
"""
    )
    folder = project(tmp_path, **{"equivalents.toml": wrong})
    area, larger = identity(folder, "width * height -> width"), identity(folder, "a > b -> a >= b")
    done, mutants = mutate(runner_forks, folder, "--only", area, larger)
    assert verdicts(mutants) == {"width * height -> width": "killed", "a > b -> a >= b": "survived"}
    assert done.returncode == 1
    assert "stale: demo.plain.area: width + height -> width is no mutant; remove the entry" in done.stdout
    assert "it is listed as equivalent: remove the entry" in done.stdout
    assert "survived, as listed" in done.stdout
    (folder / "equivalents.toml").write_text(DEMO["equivalents.toml"], encoding="utf-8")
    assert mutate(runner_forks, folder, "--only", larger)[0].returncode == 0


def test_an_entry_without_a_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text(DEMO["equivalents.toml"].replace("equal numbers are alike", " "), encoding="utf-8")
    with pytest.raises(ValueError, match="an entry must have name, original, mutated and reason"):
        listed(path)


def test_a_change_of_one_file_leaves_the_draw_of_the_others(tmp_path: Path) -> None:
    folder = project(tmp_path) / "src"

    def found(seed: str, count: int = 1000) -> list[Mutant]:
        modules = modules_of(folder / "demo")
        return drawn([m for module in modules.values() for m in mutants_of(module)], count, seed)

    before = found("7")
    assert found("7", 5) == before[:5]
    assert found("8") != before
    (folder / "demo/loops.py").write_text("def one(x):\n    return x + 1\n", encoding="utf-8")
    after = found("7")
    left, right = ([m.identity for m in some if "loops" not in m.module] for some in (before, after))
    assert left == right
    assert len(left) > 20


def test_only_what_changed_since_a_commit_is_drawn(runner_forks: Forks, tmp_path: Path) -> None:
    folder = project(tmp_path)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "first"]
    for command in (["init", "-q"], ["add", "."], commit):
        subprocess.run(["git", *command], cwd=folder, check=True)
    source = folder / "src/demo/plain.py"
    text = source.read_text(encoding="utf-8")
    assert mutate(runner_forks, folder, "--since", "HEAD")[1] == []
    source.write_text(text.replace("x**3", "x*x*x").replace("LIMIT = 3", "LIMIT = 2 + 1"), encoding="utf-8")
    (folder / "src/demo/new.py").write_text("def half(x):\n    return x / 2\n", encoding="utf-8")
    _, mutants = mutate(runner_forks, folder, "--since", "HEAD", "--count", "100")
    assert {m["name"] for m in mutants} == {"demo.plain.cube", "demo.plain", "demo.new.half"}
    assert {m["verdict"] for m in mutants if m["name"] == "demo.new.half"} == {"unreached"}


def test_time_that_runs_out_is_said(runner_forks: Forks, tmp_path: Path) -> None:
    done, mutants = mutate(
        runner_forks, project(tmp_path), "--files", "src/demo/plain.py", "--count", "7", "--seconds", "0"
    )
    assert mutants == []
    assert "0 of 7 mutants run" in done.stdout
    assert "time ran out" in done.stdout


def test_another_package_than_the_source_is_refused(runner_forks: Forks, tmp_path: Path) -> None:
    folder = project(tmp_path)
    shutil.copytree(folder / "src", folder / "copy")
    (folder / "copy/demo/plain.py").write_text("def area(a, b):\n    return a * b\n", encoding="utf-8")
    done = run(runner_forks, folder, "mutate.py", "--package", "copy/demo", "--files", "copy/demo/plain.py")
    assert done.returncode == 1
    assert "src/demo/plain.py differs from copy/demo/plain.py; install again" in done.stderr


def test_a_traced_run_leaves_out_what_does_not_reach(runner_forks: Forks, tmp_path: Path) -> None:
    folder = project(tmp_path)
    traced = run(runner_forks, folder, "mutate.py", "--trace")
    assert traced.stdout == "10 of 11 tests traced in 2 files\n", traced.stderr
    _, (survivor,) = mutate(runner_forks, folder, "--only", identity(folder, "x + x -> x - x"))
    assert survivor["verdict"] == "survived"
    assert survivor["passed"] == ["src/demo/plain.py::demo.plain.signed", "tests/test_plain.py::test_twice"]
    (folder / "tests/test_plain.py").write_text(DEMO["tests/test_plain.py"] + "\n", encoding="utf-8")
    _, (again,) = mutate(runner_forks, folder, "--only", survivor["id"])
    assert "tests/test_plain.py::test_area" in again["passed"], "what has changed is not taken from the store"


@cases(
    ("source", "mutated"),
    [
        ("a < b <= c", {"a <= b <= c", "a < b < c"}),
        ("a is None", {"a is not None"}),
        ("3", {"4", "2"}),
        ("0", {"1"}),
        ("2.0", {"3.0"}),
        ("range(n)", {"range(n + 1)", "range(n - 1)"}),
        ("range(a, b)", {"range(a, b + 1)", "range(a, b - 1)", "range(b, a)"}),
        ("a // b", {"-(-a // b)"}),
        ("-(-a // b)", {"a // b", "-a // b"}),
        ("a * b", {"a", "b"}),
        ("a / b", {"a"}),
        ("[a] * b", set()),
        ("a + b", {"a - b"}),
        ("'a' + b", set()),
        ("-a", {"a"}),
        ("min(a, b)", {"a", "b"}),
        ("np.clip(a, b, c)", {"a", "np.clip(b, a, c)", "np.clip(a, c, b)"}),
        ("f(a, b)", {"f(b, a)"}),
        ("f(a, a)", set()),
        ("f(*a, b)", set()),
        ("isinstance(a, b)", set()),
        ("True", {"False"}),
        ("a and b", {"a or b"}),
        ("not a", {"a"}),
        ("max", {"min"}),
        ("np.minimum", {"np.maximum"}),
        ("a.max", {"a.min"}),
        ("math.ceil", {"math.floor"}),
        ("mul_up", {"mul_down"}),
        ("add_up", set()),
    ],
)
def test_what_each_operator_changes(source: str, mutated: set[str]) -> None:
    node = ast.parse(source, mode="eval").body
    bound = {"mul_up", "mul_down", "add_up"}
    found = {ast.unparse(ast.fix_missing_locations(n)) for _, n in changes(node, bound, decides=False)}
    assert found == mutated


def test_a_condition_is_turned() -> None:
    node = ast.parse("f(a)", mode="eval").body
    assert [ast.unparse(n) for _, n in changes(node, (), decides=True)] == ["not f(a)"]


FAST = """
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
/* Twice a number, if it is > 0. */
static PyObject *twice(PyObject *self, PyObject *number) {
    long x = PyLong_AsLong(number);
    return PyLong_FromLong(x << 1);
}
static PyMethodDef methods[] = {{"twice", twice, METH_O, "a > b"}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""

EXTENSION = """
[[tool.setuptools.ext-modules]]
name = "demo._fast"
sources = ["src/demo/_fast.c"]
extra-compile-args = ["-O1"]
"""


@pytest.mark.skipif(
    not shutil.which(str(sysconfig.get_config_var("CC") or "cc").split()[0]), reason="needs a C compiler"
)
def test_kernels_are_mutated_and_compiled(
    runner_forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = "from demo._fast import twice\n\ndef test_twice():\n    assert twice(3) == 6\n"
    more = {
        "pyproject.toml": DEMO["pyproject.toml"] + EXTENSION,
        "src/demo/_fast.c": FAST,
        "src/demo/_fast.pyi": "def twice(number: int) -> int: ...\n",
        "tests/test_fast.py": tests,
        "equivalents.toml": "",
    }
    folder = project(tmp_path, **more)
    monkeypatch.chdir(folder)
    pool = kernel_mutants()
    shifts = {mutant.mutated for mutant in pool if mutant.kind == "shift"}
    assert shifts == {"return PyLong_FromLong(x << 2);", "return PyLong_FromLong(x << 0);"}
    assert not any(
        "/*" in mutant.original or '"a > b"' not in mutant.mutated for mutant in pool if ">" in mutant.kind
    )
    same = next(mutant for mutant in pool if mutant.kind == "shift")
    built = type(same)(**{f: getattr(same, f) for f in same.__slots__} | {"text": FAST}).importer(tmp_path)
    assert isinstance(built.change, Path)
    shutil.copy(built.change, folder / "src/demo/_fast.abi3.so")
    done, mutants = mutate(runner_forks, folder, "--only", *(m.identity for m in pool if m.kind == "shift"))
    assert {m["verdict"] for m in mutants} == {"killed"}, done.stdout + done.stderr
    assert done.returncode == 0
