"""Crashes, races, forks, full and read-only disks: each experiment in processes of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

LABS = Path(__file__).parents[1]
Run = Callable[..., object]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: a killed process does not care, and syncs are quick.

    Another user may pass through to it, which is not so for the folders of pytest.
    """
    memory = Path("/dev/shm")
    place = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
    Path(place).chmod(0o755)
    yield Path(place) / "work"
    shutil.rmtree(place)


@pytest.fixture
def run(folder: Path) -> Run:
    """Run one experiment of a laboratory in a fresh process and return what it reports."""

    def run(laboratory: str, experiment: str, more: Mapping[str, str] | None = None) -> object:
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, str(LABS / f"{laboratory}.py"), experiment, str(folder)],
            env={**os.environ, **(more or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outcome = json.loads(done.stdout.splitlines()[-1])
        if "skipped" in outcome:
            pytest.skip(outcome["skipped"])
        return next(iter(outcome.values()))

    return run


@pytest.fixture(scope="session")
def faulty_calls(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment in which system calls can be made to fail; Linux only, and needs the C compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if sys.platform != "linux" or compiler is None:
        pytest.skip("system calls can be replaced on Linux with a C compiler only")
    library = tmp_path_factory.mktemp("faulty") / "faulty_calls.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(LABS / "faulty_calls.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return {"LD_PRELOAD": str(library)}


@pytest.mark.parametrize(
    ("experiment", "points"), [("kill_at_statements", 60), ("kill_at_lines", 30), ("kill_at_random", 10)]
)
def test_killed_processes_lose_no_charge_and_release_nothing_uncharged(
    run: Run, experiment: str, points: int
) -> None:
    killed = run("crash_lab", experiment)
    assert isinstance(killed, int)
    assert killed >= points


@pytest.mark.parametrize(
    ("experiment", "points"),
    [("kill_at_calls", 30), ("kill_at_calls_creating", 5), ("full_disk", 30), ("broken_disk", 30)],
)
def test_a_crash_or_failure_at_any_system_call_leaves_a_whole_ledger(
    run: Run, faulty_calls: Mapping[str, str], experiment: str, points: int
) -> None:
    survived = run("crash_lab", experiment, faulty_calls)
    assert isinstance(survived, int)
    assert survived >= points


@pytest.mark.sharpest("race", "small_disk")
@pytest.mark.parametrize(
    "experiment",
    [
        "race",
        "last_of_the_budget",
        "making",
        "inherited",
        "forks_amid_threads",
        "memory_after_fork",
        "limited_size",
        "small_disk",
        "read_only",
    ],
)
def test_processes_and_disks(run: Run, experiment: str) -> None:
    assert run("process_lab", experiment)
