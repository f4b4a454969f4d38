"""What the tests promise: which cases run when, what they draw, and what it takes to collect them."""

from __future__ import annotations

import ast
import os
import re
import shlex
from pathlib import Path

import pytest

from tests.cases import cases, named
from tests.forks import Forks
from tests.golden.write import completed, in_lines
from tests.run_time import loaded_while_collecting
from tests.tiers import TIERS

ROOT = Path(__file__).parents[1]
HEAVY = {"lightning", "matplotlib", "pandas", "peft", "polars", "pyspark", "sklearn", "torch", "transformers"}
DEFAULT = " and ".join(f"not {tier}" for tier in TIERS)


class Pytest:
    """Runs pytest with our plugins in a folder."""

    def __init__(self, forks: Forks, folder: Path) -> None:
        self.forks, self.folder = forks, folder

    def __call__(self, *arguments: str, seed: str | None = None, costs: str | None = None) -> str:
        """Return what it prints."""
        (self.folder / "pytest.ini").write_text(
            "[pytest]\naddopts = --import-mode=importlib --doctest-modules\n"
        )
        ours = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-q"]
        ours += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what a fork has imported already
        variables = dict(os.environ)
        variables.pop("SFUMATO_TEST_SEED", None)
        variables.pop("SFUMATO_TEST_COSTS", None)
        if costs is not None:
            variables["SFUMATO_TEST_COSTS"] = costs
        if seed is not None:
            variables["SFUMATO_TEST_SEED"] = seed
        code = "import sys, pytest; sys.exit(pytest.main())"
        done = self.forks.start(
            code, "pytest", *ours, *arguments, folder=self.folder, environment=variables, path=[self.folder]
        ).ended()
        return f"{done.stdout}{done.stderr}exit code {done.returncode}\n"


@pytest.fixture
def pytest_in(runner_forks: Forks, tmp_path: Path) -> Pytest:
    return Pytest(runner_forks, tmp_path)


TIERED = """
import pytest

def test_alone(): pass

@pytest.mark.parametrize("b", ["x", "y"])
@pytest.mark.parametrize("a", [1, 2])
def test_grid(a, b): pass

@pytest.mark.sharpest("2-x", "1-y")
@pytest.mark.parametrize("b", ["x", "y"])
@pytest.mark.parametrize("a", [1, 2])
def test_named(a, b): pass

@pytest.mark.exhaustive
def test_long(): pass

@pytest.mark.parametrize("size", [pytest.param(9, marks=pytest.mark.exhaustive), 3, 4])
def test_first_is_long(size): pass

@pytest.fixture(params=[pytest.param("far", marks=pytest.mark.postgres), "near"])
def place(request): pass

@pytest.mark.parametrize("size", [1, 2])
def test_anywhere(place, size): pass

class TestMethods:
    @pytest.mark.parametrize("size", [1, 2])
    def test_method(self, size): pass
"""

BY_DEFAULT = {
    "test_alone",
    "test_grid[1-x]",
    "test_named[1-y]",
    "test_named[2-x]",
    "test_first_is_long[3]",
    "test_anywhere[near-1]",
    "TestMethods::test_method[1]",
}
OTHERS = {
    "test_grid[1-y]",
    "test_grid[2-x]",
    "test_grid[2-y]",
    "test_named[1-x]",
    "test_named[2-y]",
    "test_long",
    "test_first_is_long[9]",
    "test_first_is_long[4]",
    "test_anywhere[near-2]",
    "TestMethods::test_method[2]",
}
ON_POSTGRES = {"test_anywhere[far-1]", "test_anywhere[far-2]"}


def test_each_case_is_in_one_tier(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TIERED)
    chosen = {}
    for expression in (DEFAULT, "exhaustive", "postgres"):
        told = pytest_in("--collect-only", "-m", expression)
        chosen[expression] = set(re.findall(r"^test_it.py::(\S+)$", told, re.MULTILINE))
    assert chosen == {DEFAULT: BY_DEFAULT, "exhaustive": OTHERS, "postgres": ON_POSTGRES}


def test_pytest_and_the_reader_know_every_tier(pytestconfig: pytest.Config) -> None:
    known = {re.split("[(:]", line)[0] for line in pytestconfig.getini("markers")}
    assert {*TIERS, "sharpest"} <= known
    assert DEFAULT in pytestconfig.getini("addopts")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [tier for tier in ("default", *TIERS) if f"| {tier} |" not in page] == []


WRONG = """
import pytest

@pytest.mark.sharpest("7")
@pytest.mark.parametrize("a", [1, 2])
def test_it(a): pass
"""

TWICE = """
import pytest

@pytest.mark.exhaustive
@pytest.mark.spark
def test_it(): pass
"""


def test_what_is_marked_wrong_is_an_error(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text(WRONG)
    (tmp_path / "test_twice.py").write_text(TWICE)
    told = pytest_in("--collect-only")
    assert "sharpest must name cases of test_wrong.py::test_it, got ['7']; choose from 1, 2" in told
    assert "test_twice.py::test_it must be in one tier, got exhaustive and spark" in told


def test_a_loop_runs_all_cases_and_reports_each_that_fails() -> None:
    seen: list[tuple[int, str, str]] = []

    @cases("a", lambda: [1, 2])
    @cases("b, c", lambda: named({"one": ("x", "y"), "two": ("z", "z")}))
    def loop(a: int, b: str, c: str) -> None:
        seen.append((a, b, c))
        assert b != c
        assert a != 2, "even"

    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases failed") as told:
        loop()
    assert seen == [(1, "x", "y"), (1, "z", "z"), (2, "x", "y"), (2, "z", "z")]
    groups: list[BaseExceptionGroup[AssertionError]] = told.value.exceptions  # type: ignore[assignment]
    notes = [[failure.__notes__ for failure in group.exceptions] for group in groups]
    assert notes == [[["case: two"]], [["case: one"], ["case: two"]]]


LOOPS = """
import pytest
from tests.cases import cases, named

@cases("a", [pytest.param(1, id="first"), 2, 3], ids=lambda a: "last" if a == 3 else None)
def test_it(a, tmp_path):
    if a == 2: pytest.skip("without it")
    assert not tmp_path.exists()

@cases("a", [1, 2])
def test_skipped(a): pytest.skip("without it")

@cases("a", [])
def test_empty(a): pass
"""


def test_a_loop_names_its_cases_and_leaves_fixtures_to_pytest(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(LOOPS)
    told = pytest_in("-rA")
    assert "2 of 3 cases failed" in told
    assert re.findall(r"case: (\w+)", told)[:2] == ["first", "last"]
    assert "2 failed, 1 skipped" in told
    assert "a test must have cases" in told


DEFERRED = {
    "heavy.py": "with open('imported', 'a') as file: file.write('once ')\nclass Base: size = 3\n",
    "helper.py": """
from tests.run_time import run_time
if run_time(__name__):
    from heavy import Base as Again
""",
    "conftest.py": """
import pytest
from tests.run_time import run_time
if run_time(__name__):
    from heavy import Base

@pytest.fixture
def base(): return Base()
""",
    "test_it.py": """
from __future__ import annotations
import helper
from tests.run_time import run_time
if run_time(__name__):
    from heavy import Base
    class Derived(Base):
        def twice(self) -> NotDefined: return 2 * self.size

def test_it(base): assert (Derived().twice(), type(base), helper.Again) == (6, Base, Base)
""",
    "test_other.py": """
from tests.run_time import run_time
if run_time(__name__):
    import no_such_library

def test_one(): pass
def test_two(): pass
""",
}


def test_heavy_imports_wait_until_a_test_runs(pytest_in: Pytest, tmp_path: Path) -> None:
    for name, text in DEFERRED.items():
        (tmp_path / name).write_text(text)
    assert "3 tests collected" in pytest_in("--collect-only")
    assert not (tmp_path / "imported").exists()
    assert "1 passed, 2 errors" in pytest_in()
    assert (tmp_path / "imported").read_text() == "once "


def test_no_test_hides_where_pytest_does_not_look() -> None:
    for file in (ROOT / "tests").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "if run_time(__name__):" not in text:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "run_time(__name__)":
                named = [inner for inner in node.body if isinstance(inner, ast.FunctionDef | ast.ClassDef)]
                assert not [inner.name for inner in named if inner.name.lower().startswith("test")], file


def test_collecting_loads_no_library_that_takes_seconds() -> None:
    assert __name__ in loaded_while_collecting()
    assert loaded_while_collecting() & HEAVY == set()


def imports_from(text: str, module: str) -> bool:
    """Whether a file imports something from a module."""
    return any(
        isinstance(node, ast.ImportFrom) and node.module == module for node in ast.walk(ast.parse(text))
    )


def test_every_test_of_chance_names_a_law_that_it_rejects() -> None:
    """What says how often it fails by chance uses `accepts_only`, or is what that is made of."""
    exempt = {"tests/chance.py", "tests/test_chance.py", "tests/test_suite.py"}
    missing = []
    for file in (ROOT / "tests").rglob("*.py"):
        text, name = file.read_text(encoding="utf-8"), file.relative_to(ROOT).as_posix()
        of_chance = re.search(r"false[\s_-]+alarm", text, re.IGNORECASE)
        if of_chance and name not in exempt and not imports_from(text, "tests.chance"):
            missing.append(name)
    assert sorted(missing) == []


def test_a_golden_table_gets_what_it_lacks_and_keeps_what_it_has() -> None:
    known, whole = in_lines({"b": 1.5, "old": 3}), in_lines({"a": [2], "b": 7})
    assert completed(known, whole) == in_lines({"a": [2], "b": 1.5, "old": 3})
    for there in (b"\xff", b"[1]", b'{"b": 1}', in_lines({"a": 0, "b": 0, "c": 0})):
        assert completed(there, whole) == there


PACKAGE = '''
"""One.

>>> 1 + 1
3
"""
open("imported", "a").close()

class Outer:
    """No example."""

    @property
    def inner(self):
        """Two.

        >>> Outer().inner
        2
        """
        return 2

def undocumented():
    def nested():
        """
        >>> 1 / 0
        """
'''


def test_examples_are_found_without_an_import_and_run_with_one(pytest_in: Pytest, tmp_path: Path) -> None:
    package = tmp_path / "package" / "part"
    package.mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "file.py").write_text(PACKAGE)
    told = pytest_in("--collect-only")
    found = re.findall(r"^package/part/file.py::(\S+)$", told, re.MULTILINE)
    assert found == ["package.part.file", "package.part.file.Outer.inner"]
    assert not (tmp_path / "imported").exists()
    told = pytest_in(costs="list")
    assert "1 failed, 1 passed" in told
    assert re.search(r"0\.\d  all doctests, of at most 60", told)
    assert "004 >>> 1 + 1\nExpected:\n    3\nGot:\n    2\n" in told
    assert "file.py:4: DocTestFailure" in told
    assert (tmp_path / "imported").exists()


DEAR = """
import tests.cost

def test_cheap(): pass

def test_dear():
    tests.cost.LIMIT = 0.01
    sum(range(2_000_000))
"""


def test_a_dear_test_fails_the_run_and_is_named(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_dear.py").write_text(DEAR)
    told = pytest_in(costs="check")
    line = r"^FAILED test_dear\.py::test_dear - costs \d\.\d CPU seconds, of at most 0\.02$"
    assert re.search(line, told, re.MULTILINE)
    assert "test_cheap" not in told
    assert "2 passed" in told
    assert told.endswith("exit code 1\n")
    listed = pytest_in(costs="list")
    assert "FAILED" not in listed
    assert listed.endswith("exit code 0\n")


DRAWS = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=40)
@given(st.lists(st.integers(), min_size=20))
def test_draws(drawn):
    with open("drawn", "a") as file: print(drawn, file=file)

@settings(max_examples=200)
@given(st.integers(0, 2**64))
def test_fails(drawn):
    with open("failed", "a") as file: print(drawn, file=file)
    assert drawn < 2**63
"""


def drawn(pytest_in: Pytest, *arguments: str, seed: str | None = None) -> tuple[str, str, str]:
    """What the two tests draw, and what pytest prints."""
    folder = pytest_in.folder
    for name in ("drawn", "failed"):
        (folder / name).write_text("")
    told = pytest_in(*arguments, seed=seed)
    return (folder / "drawn").read_text(), (folder / "failed").read_text(), told


def test_everyone_draws_the_same_examples(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(DRAWS)
    alone, *_ = drawn(pytest_in, "-k", "test_draws")
    # Newer versions of hypothesis would draw these, because they stand in a module that is loaded.
    (tmp_path / "numbers_beside.py").write_text(f"MANY = {list(range(10_001, 10_101))}\n")
    (tmp_path / "test_beside.py").write_text("import numbers_beside\ndef test_it(): pass\n")
    beside, _, told = drawn(pytest_in)
    assert beside == alone
    assert alone.count("\n") > 10
    assert "to replay" not in told


def test_a_seed_draws_others_and_is_replayed(pytest_in: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(DRAWS)
    node = "test_it.py::test_fails"
    seeded, failed, told = drawn(pytest_in, seed="c22c525")
    others = [drawn(pytest_in, "-k", "test_draws", seed=seed)[0] for seed in (None, "another")]
    assert len({seeded, *others}) == 3
    (command,) = re.findall(r"^SFUMATO_TEST_SEED=.*$", told, re.MULTILINE)
    replay = ["SFUMATO_TEST_SEED=c22c525", "python", "-m", "pytest", "-n", "0", "-m", "", node]
    assert shlex.split(command) == replay
    _, again, _ = drawn(pytest_in, "-m", "", node, seed="c22c525")
    assert again == failed != ""
