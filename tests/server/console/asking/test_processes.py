"""Real processes on one folder and one ledger: races and kills cost nobody a charge that is not said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.ledger import Ledger
from tests.postgres import Cluster
from tests.server.console.asking.lab import STAGES

LAB = Path(__file__).with_name("lab.py")
DRAWN = ("after the draw was written", "after the noise")


def begun(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(LAB), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def result(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate("go\n", timeout=300)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


def raced(folders: list[Path], ledger: str, count: int) -> list[int]:
    """Run a race for the last epsilon; return how many questions each process was refused."""
    processes = [begun("race", str(folder), ledger, str(count), f"{n}-") for n, folder in enumerate(folders)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        return [result(process)["refused"] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def checked_race(folders: list[Path], ledger: str) -> None:
    refused = raced(folders, ledger, 12)
    with Ledger.read(ledger) as book:
        entries = book.entries()
        assert book.verify().sound
        left = book.remaining(analyst="ada").epsilon
        assert (book.spent().epsilon or 0.0) <= 1.0
    assert sum(entry.epsilon for entry in entries) <= 1.0
    assert left is not None
    assert left < 0.112, "what was refused did not fit"
    assert all(refused), "some of the twelve did not fit, for nobody"
    assert len({entry.epsilon for entry in entries}) == len(entries), "nobody paid for one question twice"


@pytest.mark.exhaustive
def test_a_race_for_the_last_epsilon_overspends_nothing(tmp_path: Path) -> None:
    checked_race([tmp_path] * 4, str(tmp_path / "ledger"))


@pytest.mark.postgres
def test_two_servers_with_folders_of_their_own_share_the_budget(postgres: Cluster, tmp_path: Path) -> None:
    checked_race([tmp_path / "a", tmp_path / "a", tmp_path / "b"], postgres.database())


@pytest.mark.exhaustive
def test_a_server_that_is_killed_answers_again_or_says_its_charge(
    tmp_path: Path,
) -> None:
    process = begun("kill", str(tmp_path), *STAGES)
    expected = {
        "first": "done",
        "said": [1],
        "free": True,
        "second": "done",
        "charges": 1,
        "same": True,
    }
    drawn = {"first": "failed", "free": False, "charges": 2}
    found = result(process)
    assert found == {stage: expected | (drawn if stage in DRAWN else {}) for stage in STAGES}
