"""Run the tests that stand near what has changed, in seconds.

Run ``python tools/near.py FILE...`` at the project's root, with files of the package or of the tests; without
files it takes what differs from the last commit. Tests that are named after a changed module come first, then
those that import it, then those that are one import farther, as far as ``--distance``. Of a test with many
cases only the first runs. When the seconds are over, the files that are left are named and left out.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tools.mutation.graph import Graph, Near

__all__ = ["main", "near"]


def near(graph: Graph, changed: Iterable[Path]) -> list[Near]:
    """Return the tests from which imports lead to changed files, each with its least distance, nearest first.

    Parameters
    ----------
    graph : Graph
        The imports of the package and its tests.
    changed : iterable of pathlib.Path
        Files of the package or of the tests; a file of tests is its own nearest test, and stands for those
        that use it as a helper.
    """
    least: dict[str, Near] = {}
    for path in changed:
        module = graph.module_of(path)
        for found in graph.nearest(module) if module else ():
            least[found.tests] = min(found, least.get(found.tests, found))
    return sorted(least.values())


class _FirstCases:
    """A pytest plugin: the first case of each test, until the time is over.

    Parameters
    ----------
    seconds : float
        How long to go on.
    """

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self.left: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the first case of each test."""
        kept: dict[tuple[str, str], pytest.Item] = {}
        for item in items:
            kept.setdefault((item.path.as_posix(), item.nodeid.partition("[")[0]), item)
        first = set(kept.values())
        config.hook.pytest_deselected(items=[item for item in items if item not in first])
        items[:] = kept.values()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Leave a test out when the time is over."""
        if time.monotonic() < self.deadline:
            return None
        self.left[item.nodeid.partition("::")[0]] += 1
        return True


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests near what has changed; return pytest's exit status."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    graphs: Any = importlib.import_module("tools.mutation.graph")
    collecting: Any = importlib.import_module("tools.mutation.collecting")
    parser = argparse.ArgumentParser(prog="tools/near.py", description="Run the tests near what has changed.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--package", type=Path, default=Path("src/sfumato"))
    parser.add_argument("--tests", type=Path, default=Path("tests"))
    parser.add_argument("--distance", type=int, default=2, help="imports from a test to what changed (2)")
    parser.add_argument("--most", type=int, default=12, help="files of tests (12)")
    parser.add_argument("--seconds", type=float, default=30.0, help="when to leave out the rest (30)")
    arguments = parser.parse_args(argv)
    graph = graphs.Graph(arguments.package, arguments.tests, graphs.CACHE)
    changed = arguments.files or _changed(arguments.package, arguments.tests)
    for path in changed:
        if graph.module_of(path) is None:
            print(f"{path.as_posix()} is no module of {arguments.package} or {arguments.tests}")
    found = near(graph, changed)
    within = [each for each in found if each.distance <= arguments.distance]
    chosen, rest = within[: arguments.most], within[arguments.most :]
    farther = Counter(each.distance for each in found[len(within) :])
    limit = _FirstCases(arguments.seconds)
    targets = [collecting.file_of(each.tests) for each in chosen]
    status = (
        pytest.main([*targets, "-q", *collecting.options(collecting.markers_for())], [limit])
        if targets
        else 0
    )
    if rest:
        names = ", ".join(each.tests for each in rest[:10])
        print(f"left out, over --most: {len(rest)} files, the nearest {names}")
    for name, number in limit.left.items():
        print(f"left out, over --seconds: {number} tests of {name}")
    for distance, number in sorted(farther.items()):
        print(f"left out, over --distance: {number} files at distance {distance}")
    if not chosen:
        print("no tests are near")
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else int(status)


def _changed(*folders: Path) -> list[Path]:
    """Return the files of the folders that differ from the last commit."""
    command = ["git", "status", "--porcelain", "-z", "--untracked-files=all", "--", *map(str, folders)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    paths = [Path(entry[3:]) for entry in run.stdout.split("\0") if len(entry) > 3 and entry[2] == " "]
    return [path for path in paths if path.suffix in {".py", ".pyi"} and path.exists()]


if __name__ == "__main__":
    sys.exit(main())
