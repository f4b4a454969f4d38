"""Many blocks: the same in one process and in several, resumed after a kill, one bad block alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sfumato.attacks import PersonTypes, PublishedCounts, PublishedTable, reconstruct_blocks
from sfumato.errors import ParameterError

TYPES = PersonTypes({"age": range(5), "sex": ("F", "M")})


def blocks(count: int = 4) -> dict[str, list[PublishedTable]]:
    rng = np.random.default_rng(2)
    found: dict[str, list[PublishedTable]] = {}
    for number in range(count):
        persons = [(int(rng.integers(5)), "FM"[rng.integers(2)]) for _ in range(6)]
        found[f"10{number}"] = [
            PublishedCounts.of(persons, TYPES, name="age", by=("age",)),
            PublishedCounts.of(persons, TYPES, name="sex", by=("sex",)),
        ]
    return found


KILLED = """
import os, signal, sys
from tests.attacks.census.test_blocks import TYPES, blocks
from sfumato.attacks import reconstruct_blocks

def progress(done, total):
    assert total == 4
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

reconstruct_blocks(TYPES, blocks(), folder=sys.argv[1], progress=progress)
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], check=False, cwd=root, env=environment
    )
    assert ended.returncode == -signal.SIGKILL
    resumed = reconstruct_blocks(TYPES, blocks(), folder=tmp_path)
    fresh = reconstruct_blocks(TYPES, blocks())
    assert [found.resumed for found in resumed.values()] == [True, True, False, False]
    for block, found in fresh.items():
        first, second = found.reconstruction, resumed[block].reconstruction
        assert first is not None
        assert second is not None
        assert first.counts.tolist() == second.counts.tolist()
        assert first.certain.tolist() == second.certain.tolist()
        assert (first.shared, first.proven) == (second.shared, second.proven)


def test_files_of_other_tables_and_damaged_ones_are_solved_anew(tmp_path: Path) -> None:
    reconstruct_blocks(TYPES, blocks(2), folder=tmp_path)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    changed = blocks(2)
    changed["100"] = [*changed["100"], PublishedCounts(name="all", by=(), counts=6)]
    again = reconstruct_blocks(TYPES, changed, folder=tmp_path)
    assert [found.resumed for found in again.values()] == [False, True]
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-9])
    assert not any(found.resumed for found in reconstruct_blocks(TYPES, changed, folder=tmp_path).values())


def test_one_contradictory_block_does_not_stop_the_others(tmp_path: Path) -> None:
    wrong = blocks(3)
    wrong["101"] = [*wrong["101"], PublishedCounts(name="all", by=(), counts=9)]
    for resumed in (False, True):
        found = reconstruct_blocks(TYPES, wrong, folder=tmp_path)
        assert found["101"].reconstruction is None
        assert set(found["101"].contradictory) == {"all", "age"} or set(found["101"].contradictory) == {
            "all",
            "sex",
        }
        assert found["102"].reconstruction is not None
        assert found["101"].resumed is resumed


def test_progress_is_reported_for_each_block() -> None:
    seen: list[tuple[int, int]] = []
    reconstruct_blocks(TYPES, blocks(3), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.exhaustive
def test_several_processes_find_the_same(tmp_path: Path) -> None:
    one = reconstruct_blocks(TYPES, blocks())
    two = reconstruct_blocks(TYPES, blocks(), processes=2, folder=tmp_path)
    assert list(one) == list(two)
    for first, second in zip(one.values(), two.values(), strict=True):
        assert first.reconstruction is not None
        assert second.reconstruction is not None
        assert first.reconstruction.counts.tolist() == second.reconstruction.counts.tolist()


def test_bad_parameters_are_refused_before_any_work() -> None:
    with pytest.raises(ParameterError, match="processes must be an integer"):
        reconstruct_blocks(TYPES, blocks(), processes=0)
    with pytest.raises(ParameterError, match="progress must be a function"):
        reconstruct_blocks(TYPES, blocks(), progress=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="tables must be a PublishedTable"):
        reconstruct_blocks(TYPES, {"1": [3]})  # type: ignore[list-item]
