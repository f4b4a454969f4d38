"""The private PostgreSQL server of the tests: whole while it is wanted, gone when nobody holds it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import Cluster

ROOT = Path(__file__).parents[1]

HOLDER = """
import sys
from tests.postgres import Cluster
with Cluster() as cluster:
    print(cluster.process, cluster._guard.pid, flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.postgres


def test_every_database_is_new_and_empty(postgres: Cluster) -> None:
    urls = {postgres.database() for _ in range(2)}
    assert len(urls) == 2
    for url in urls:
        name = url.rpartition("/")[2]
        assert postgres.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", name) == "0"


def test_a_failing_statement_is_told(postgres: Cluster) -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        postgres.run("SELECT * FROM nowhere")


def test_a_killed_holder_leaves_no_server_behind(postgres: Cluster) -> None:
    del postgres  # skips or fails where there is no server
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    server, guard = map(int, holder.stdout.readline().split())
    watched = os.pidfd_open(guard)
    try:
        os.kill(server, 0)
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
        ended, _, _ = select.select([watched], [], [], 60)
        assert ended, "the guard outlived its holder"
    finally:
        os.close(watched)
    assert not _runs(server)


def _runs(process: int) -> bool:
    """Whether a process still runs; one that has ended and was not yet buried does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"
