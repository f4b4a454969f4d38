"""The private Spark cluster that other tests use: it is what it says, and it ends with whoever wanted it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import Cluster

pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parents[1]

_OWNER = """
import sys
from tests.spark import BRIEF, Cluster
with Cluster(options=BRIEF) as cluster:
    print(cluster.folder, cluster._guard.pid, cluster.master, *cluster.workers, flush=True)
    sys.stdin.read()
"""


def test_both_workers_run_what_the_driver_asks(spark_cluster: Cluster) -> None:
    session = spark_cluster.session()
    # a test that kills a worker has started another one
    assert len({spark_cluster.master, *spark_cluster.workers}) >= 3
    assert session.range(1000).selectExpr("sum(id) AS s").toArrow()["s"].to_pylist() == [499500]
    assert session.sparkContext.master == spark_cluster.url


def test_spark_connect_reaches_the_same_cluster(spark_cluster: Cluster) -> None:
    remote = spark_cluster.remote()
    assert not hasattr(remote, "_jvm")
    assert remote.range(1000).selectExpr("sum(id) AS s").toArrow()["s"].to_pylist() == [499500]


def test_a_killed_owner_leaves_nothing_behind(spark_cluster: Cluster) -> None:
    del spark_cluster  # skips or fails where there is no Spark
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    folder, guard, *processes = owner.stdout.readline().split()
    watched = os.pidfd_open(int(guard))
    try:
        assert not any(map(_gone, processes))
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
        ended, _, _ = select.select([watched], [], [], 60)
        assert ended, "the guard outlived its owner"
    finally:
        os.close(watched)
    assert all(map(_gone, processes))
    assert not Path(folder).exists()


def _gone(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    return False
