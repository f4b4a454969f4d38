"""A private Spark cluster for tests and benchmarks: one master and two workers, each a process of its own.

::

    with Cluster() as cluster:
        session = cluster.session()  # a driver in this process
        remote = cluster.remote()  # the same cluster through Spark Connect

The cluster is kept by a guard, this file run as a program: it stops master and workers with all that they
started, by the ids of their process groups, as soon as the process that wanted them lets go of a pipe, in
whatever way that process ends. Everything listens on loopback, on ports that were free. Needs pyspark, whose
wheel has no start scripts but all of Spark, and Java.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
WORKERS = 2
MEMORY = "1g"

BRIEF = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Java's options for minutes: what its compilers, verifier and threads would take is never won back."""

PATIENCE = 300.0
"""Seconds for a process to say that it is there."""

FOUND = {
    "master": re.compile(r"Starting Spark master at (spark://\S+)"),
    "worker": re.compile(r"Successfully registered with master"),
}
SETTINGS = {
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark Connect is served by the same driver, on a free port
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": HOST,
    "spark.connect.grpc.binding.port": "0",
}
SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$"


_Made = TypeVar("_Made")


class NoSpark(Exception):
    """No Spark is installed here."""


def find_home() -> Path:
    """Return the folder of Spark in pyspark's wheel."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise NoSpark("no pyspark is installed; pip install 'sfumato[spark]'")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else None
    if shutil.which("java") is None and (java is None or not java.exists()):
        raise NoSpark("no Java is installed; on Debian: apt-get install openjdk-17-jre-headless")
    return Path(found.origin).parent


class Driver:
    """Spark's driver in this process, from ``with`` to the end of its block; it starts when it is needed.

    A process can have one at a time: that of another place stops when this one's is asked for.

    Parameters
    ----------
    memory : str
        Of the driver, and of each worker and the executor in it.
    options : str
        Java's.
    """

    _running: ClassVar[Driver | None] = None

    def __init__(self, *, memory: str = MEMORY, options: str = "") -> None:
        self.home = find_home()
        self.folder = Path()
        self.url = ""
        self._memory = memory
        self._options = options
        self._session: SparkSession | None = None
        self._remote: SparkSession | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def session(self) -> SparkSession:
        """Return the driver's session in this process."""
        if self._session is None:
            if Driver._running is not None:
                Driver._running.stop()
            os.environ.update(environment(self.home, self.folder))
            Driver._running = self
            self._session = self._driver()
        return self._session

    def _driver(self) -> SparkSession:
        library = importlib.import_module("pyspark.sql")
        builder = library.SparkSession.builder.master(self.url).appName("sfumato")
        settings = {
            **SETTINGS,
            "spark.driver.memory": self._memory,
            "spark.executor.memory": self._memory,
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }
        if self._options:
            settings |= {f"spark.{where}.extraJavaOptions": self._options for where in ("driver", "executor")}
        for name, value in settings.items():
            builder = builder.config(name, value)
        session: SparkSession = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        return session

    def remote(self) -> SparkSession:
        """Return a session of the same driver through Spark Connect."""
        if self._remote is None:
            self._remote = self.new_remote()
        return self._remote

    def new_remote(self) -> SparkSession:
        """Return another such session, for its caller to stop."""
        library = importlib.import_module("pyspark.sql.connect.session")
        java: Any = self.session().sparkContext._jvm
        service = java.java.lang.Class.forName(SERVICE).getField("MODULE$").get(None)
        builder = library.SparkSession.builder.remote(f"sc://{HOST}:{service.localPort()}")
        made: SparkSession = builder.create()
        return made

    def stop(self) -> None:
        """End the sessions; one that is asked for again starts anew."""
        try:
            for session in (self._remote, self._session):
                if session is not None:
                    session.stop()
        finally:
            self._remote = self._session = None
            if Driver._running is self:
                Driver._running = None

    def close(self) -> None:
        """End what runs here."""
        self.stop()


class Cluster(Driver):
    """A running cluster, from ``with`` to the end of its block; at most one session of a process uses it."""

    def __init__(self, *, memory: str = MEMORY, options: str = "") -> None:
        super().__init__(memory=memory, options=options)
        self._guard: subprocess.Popen[str] | None = None
        self.master = 0
        self.workers: list[int] = []

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        # A session of its own: an interrupt at the keyboard is for the tests, which then let go of it.
        command = [sys.executable, __file__, str(self.home), self._memory, self._options]
        self._guard = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        try:
            self._listen()
        except BaseException:
            self.close()
            raise
        return self

    def _listen(self) -> None:
        assert self._guard is not None
        assert self._guard.stdout is not None
        line = self._guard.stdout.readline()
        if not line:
            raise RuntimeError("the private Spark cluster did not start; its log is above")
        told = json.loads(line)
        self.folder, self.url, self.master = Path(told["folder"]), told["url"], told["master"]
        self.workers = told["workers"]

    def start_worker(self) -> int:
        """Start one worker more, in the place of one that is gone; return its process."""
        assert self._guard is not None
        assert self._guard.stdin is not None
        self._guard.stdin.write("worker\n")
        self._guard.stdin.flush()
        self._listen()
        return self.workers[-1]

    def close(self) -> None:
        """End the sessions, let go of the cluster and wait until it is gone."""
        try:
            self.stop()
        finally:
            guard, self._guard = self._guard, None
            if guard is not None:
                guard.communicate()


def _found(make: Callable[[], _Made]) -> _Made:
    """Return what a fixture makes; without Spark skip the test, but in CI fail."""
    try:
        return make()
    except NoSpark as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[Cluster]:
    """Return one private cluster for the session (each worker's own); skip without Spark, but fail in CI."""
    with _found(lambda: Cluster(options=BRIEF)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark(spark_cluster: Cluster) -> Driver:
    """Return the same, for what is not about its workers."""
    return spark_cluster


def environment(home: Path, folder: Path) -> dict[str, str]:
    """Return what master, workers and driver must find around them."""
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder),  # nobody's defaults
        "SPARK_LOCAL_DIRS": str(folder / "spill"),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_MEMORY": "512m",
    }


def guard(home: Path, memory: str, options: str) -> None:
    """Start a cluster, say where it is, add a worker for each line read, stop it when input ends."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-spark-"))
    around = {**os.environ, **environment(home, folder), "SPARK_DAEMON_JAVA_OPTS": options}
    started: list[subprocess.Popen[bytes]] = []

    def start(role: str, *arguments: str) -> Path:
        log = folder / f"{role}-{len(started)}.log"
        name = f"org.apache.spark.deploy.{role}.{role.capitalize()}"
        command = [
            str(home / "bin" / "spark-class"),
            name,
            "--host",
            HOST,
            "--port",
            "0",
            "--webui-port",
            "0",
        ]
        with log.open("wb") as output:
            started.append(
                subprocess.Popen(
                    [*command, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=folder,
                    env=around,
                    start_new_session=True,  # a group of its own, with the executors that it starts
                )
            )
        return log

    try:
        url = _said(start("master"), FOUND["master"], started[0])
        worker = "worker", "--cores", "1", "--memory", memory, url
        logs = [start(*worker) for _ in range(WORKERS)]  # side by side
        while True:
            for log, process in zip(logs, started[-len(logs) :], strict=True):
                _said(log, FOUND["worker"], process)
            processes = [process.pid for process in started]
            told = {"folder": str(folder), "url": url, "master": processes[0], "workers": processes[1:]}
            print(json.dumps(told), flush=True)  # noqa: T201
            if not sys.stdin.readline():
                break
            logs = [start(*worker)]
    finally:
        for process in reversed(started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _said(log: Path, words: re.Pattern[str], process: subprocess.Popen[bytes]) -> str:
    """Wait until a log has the words; return their group."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        found = words.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[found.lastindex or 0]
        time.sleep(0.1)
    sys.stderr.write(log.read_text(encoding="utf-8", errors="replace"))
    raise RuntimeError("a process of the private Spark cluster did not start")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        guard(Path(sys.argv[1]), *sys.argv[2:])
