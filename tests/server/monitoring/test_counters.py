"""Counters in a file: what a killed process counted is there, and a file of something else is refused."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.server.monitoring.counters import COUNTED, Counters

KILLED = """
import os, signal, sys
from pathlib import Path
from sfumato.server.monitoring.counters import Counters
counters = Counters(Path(sys.argv[1]))
for _ in range(1000):
    counters.add("late")
counters.add("nanoseconds", 2**40)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_counted_is_there(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    for turn in (1, 2):
        found = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert found.returncode == -signal.SIGKILL
        with Counters(path) as counters:
            expected = {"late": 1000 * turn, "nanoseconds": turn << 40}
            assert {name: counters[name] for name in COUNTED} == dict.fromkeys(COUNTED, 0) | expected
    assert path.stat().st_mode & 0o777 == 0o600


def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    with Counters(path) as counters:
        counters.add("seal")
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole + b"\x00", b"x" + whole[1:], whole[:8] + b"\x02" + whole[9:]):
        path.write_bytes(content)
        with pytest.raises(ParameterError, match="'counters' must hold a collector's counters"):
            Counters(path)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    with Counters(path) as again:
        assert again["seal"] == 1


def test_threads_count_together() -> None:
    counters = Counters()

    def many(times: int) -> None:
        for _ in range(times):
            counters.add("seal")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(many, [500] * 8))
    assert counters["seal"] == 4000
    with pytest.raises(KeyError):
        counters.add("other")
