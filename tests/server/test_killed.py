"""A collector that is killed loses nothing that it acknowledged, and releases nothing early or twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.setting import memory_folder

ROOT = Path(__file__).parents[2]


def crash(mode: str, rounds: int, seed: int, kind: str = "shuffler") -> list[int]:
    """Run `crashing.py`; return how many reports, answers, batches and undisturbed ends there were."""
    with memory_folder() as folder:
        command = [
            sys.executable,
            str(ROOT / "tests" / "server" / "crashing.py"),
            str(folder / "store"),
            mode,
        ]
        space = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        run = subprocess.run(
            [*command, str(rounds), str(seed), kind], capture_output=True, text=True, env=space, check=False
        )
    assert run.returncode == 0, run.stderr
    word, *figures = run.stdout.split()
    assert word == "whole"
    return list(map(int, figures))


def test_at_its_first_steps() -> None:
    reports, acknowledged, batches, ended = crash("calls", 90, seed=1)
    assert reports == 5 * batches
    assert acknowledged > 0
    assert ended == 0


@pytest.mark.exhaustive
def test_at_every_step() -> None:
    # Opening takes some 70 steps, and a group that ends a batch 60: so these are the first three of them.
    reports, acknowledged, batches, ended = crash("calls", 240, seed=2)
    assert reports == 5 * batches
    assert acknowledged > 100
    assert ended < 120


@pytest.mark.exhaustive
def test_a_collector_of_plain_reports_at_every_step() -> None:
    reports, acknowledged, batches, ended = crash("calls", 240, seed=4, kind="local")
    assert reports == 5 * batches
    assert acknowledged > 100
    assert ended < 120


def test_a_collector_of_plain_reports_at_random_times() -> None:
    reports, acknowledged, batches, ended = crash("times", 24, seed=5, kind="local")
    assert reports == 5 * batches
    assert acknowledged > 15
    assert ended < 23


def test_at_random_times() -> None:
    reports, acknowledged, batches, ended = crash("times", 120, seed=3)
    assert reports == 5 * batches
    assert acknowledged > 100
    assert ended < 110
