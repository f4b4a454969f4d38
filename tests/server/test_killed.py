"""A collector that is killed loses nothing that it acknowledged, and releases nothing early or twice."""

from __future__ import annotations

import pytest

from tests.forks import server_fork
from tests.server.setting import memory_folder

SCRIPT = "import sys; from tests.server.crashing import main; main(*sys.argv[1:])"


def crash(mode: str, rounds: int, seed: int, kind: str = "shuffler", stride: int = 1) -> list[int]:
    """Run `crashing.py`; return how many reports, answers, batches and undisturbed ends there were."""
    with memory_folder() as folder:
        words = str(folder / "store"), mode, kind, str(rounds), str(seed), str(stride)
        run = server_fork(SCRIPT, *words, imports="import pyarrow.parquet, tests.server.crashing")
        out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    word, *figures = out.split()
    assert word == "whole"
    return list(map(int, figures))


def test_at_some_of_its_first_steps() -> None:
    reports, acknowledged, batches, ended = crash("calls", 180, seed=1, stride=4)
    assert reports == 5 * batches
    assert acknowledged > 0
    assert ended < 45


@pytest.mark.exhaustive
def test_at_every_step() -> None:
    # Opening takes some 70 steps, and a group that ends a batch 60: so these are the first three. Each
    # is seen when it begins and when it ends; between one's end and the next one's begin nothing is done.
    reports, acknowledged, batches, ended = crash("calls", 240, seed=2, stride=2)
    assert reports == 5 * batches
    assert acknowledged > 50
    assert ended < 60


@pytest.mark.exhaustive
def test_a_collector_of_plain_reports_at_every_step() -> None:
    reports, acknowledged, batches, ended = crash("calls", 240, seed=4, kind="local", stride=2)
    assert reports == 5 * batches
    assert acknowledged > 50
    assert ended < 60


def test_a_collector_of_plain_reports_at_random_times() -> None:
    reports, acknowledged, batches, ended = crash("times", 12, seed=5, kind="local")
    assert reports == 5 * batches
    assert acknowledged > 5
    assert ended < 12


def test_at_random_times() -> None:
    reports, acknowledged, batches, ended = crash("times", 40, seed=3)
    assert reports == 5 * batches
    assert acknowledged > 30
    assert ended < 37
