"""Tests are found by imports, the nearest first."""

from __future__ import annotations

from pathlib import Path

from tests.forks import Forks
from tests.tools.test_mutate import project, run
from tools.mutation.graph import Graph
from tools.near import near

FILES = {
    "src/demo/__init__.py": """
from demo._lazy import attach
__getattr__, __dir__ = attach(__name__, {"Deep": "demo.room.deep", "room": ""})
""",
    "src/demo/_lazy.py": "def attach(name, homes):\n    return None, None\n",
    "src/demo/room/__init__.py": "",
    "src/demo/room/deep.py": "class Deep:\n    '''>>> 1\n    1\n    '''\n",
    "src/demo/room/user.py": "from demo.room.deep import Deep\n",
    "src/demo/lone.py": "def f():\n    return 1\n",
    "tests/__init__.py": "",
    "tests/helper.py": "from demo.room.user import Deep\n",
    "tests/room/test_deep.py": "from demo.room.deep import Deep\n",
    "tests/room/test_by_face.py": "import demo as d\n\ndef test_it():\n    d.Deep()\n",
    "tests/test_helped.py": "from tests.helper import Deep\n",
    "tests/test_lone.py": """
import pytest
from demo.lone import f

@pytest.mark.parametrize("x", [1, 2, 3])
def test_first(x):
    assert f() == x
""",
}


def graph(folder: Path) -> Graph:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Graph(folder / "src/demo", folder / "tests", folder / ".mutation")


def order(tree: Graph, folder: Path, *changed: str) -> list[tuple[str, int]]:
    found = near(tree, [folder / name for name in changed])
    return [(each.tests.removeprefix(f"{folder.as_posix()}/"), each.distance) for each in found]


def test_the_nearest_tests_come_first(tmp_path: Path) -> None:
    tree = graph(tmp_path)
    assert order(tree, tmp_path, "src/demo/room/deep.py") == [
        ("tests/room/test_deep.py", 0),
        ("demo.room.deep", 0),
        ("tests/room/test_by_face.py", 1),
        ("tests/test_helped.py", 2),
    ]


def test_tests_that_changed_are_near_and_so_are_users_of_a_helper(tmp_path: Path) -> None:
    tree = graph(tmp_path)
    assert order(tree, tmp_path, "tests/helper.py", "tests/test_lone.py") == [
        ("tests/test_lone.py", 0),
        ("tests/test_helped.py", 1),
    ]


def test_what_is_remembered_follows_the_files(tmp_path: Path) -> None:
    assert order(graph(tmp_path), tmp_path, "src/demo/lone.py") == [("tests/test_lone.py", 0)]
    (tmp_path / "tests/room/test_deep.py").write_text("from demo.lone import f  # now\n", encoding="utf-8")
    again = Graph(tmp_path / "src/demo", tmp_path / "tests", tmp_path / ".mutation")
    assert ("tests/room/test_deep.py", 1) in order(again, tmp_path, "src/demo/lone.py")
    assert ("tests/room/test_deep.py", 0) not in order(again, tmp_path, "src/demo/room/deep.py")


def test_first_cases_run_and_what_is_left_out_is_said(runner_forks: Forks, tmp_path: Path) -> None:
    folder = project(tmp_path)
    graph(folder)
    done = run(runner_forks, folder, "near.py", "src/demo/lone.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 2 deselected" in done.stdout
    (folder / "src/demo/lone.py").write_text("def f():\n    return 2\n", encoding="utf-8")
    assert run(runner_forks, folder, "near.py", "src/demo/lone.py").returncode == 1
    late = run(runner_forks, folder, "near.py", "src/demo/lone.py", "--seconds", "0")
    assert "left out, over --seconds: 1 tests of tests/test_lone.py" in late.stdout
    few = run(runner_forks, folder, "near.py", "src/demo/room/deep.py", "--distance", "1", "--most", "2")
    assert "left out, over --most: 1 files, the nearest tests/room/test_by_face.py" in few.stdout
    assert "left out, over --distance: 1 files at distance 2" in few.stdout
