"""A private PostgreSQL server for tests and benchmarks: a folder, port, user and password of its own.

::

    with Cluster() as cluster:
        url = cluster.database()  # postgresql://... of a new, empty database

The server is kept by a guard, this file run as a program: it stops the server, by the id in the server's own
folder, and removes that folder as soon as the process that wanted it lets go of a pipe, in whatever way that
process ends. Needs the server's programs (Debian: ``apt-get install postgresql``) and no client library.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

HOST = "127.0.0.1"
USER = "sfumato"
SYSTEM_USER = "postgres"
"""Whom root becomes: the server refuses to be run by root."""

ATTEMPTS = 5
"""How often a port is chosen anew that somebody else took in the meantime."""


class NoServer(Exception):
    """No PostgreSQL is installed here."""


def find_programs() -> Path:
    """Return the folder of ``initdb`` and ``pg_ctl``, the newest of several."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0),
        reverse=True,
    )
    config, initdb = shutil.which("pg_config"), shutil.which("initdb")
    if initdb is not None:
        folders.append(Path(os.path.realpath(initdb)).parent)
    if config is not None:
        told = subprocess.run([config, "--bindir"], check=True, capture_output=True, text=True)
        folders.append(Path(told.stdout.strip()))
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    raise NoServer("no PostgreSQL server is installed; on Debian: apt-get install postgresql")


class Cluster:
    """A running server, from ``with`` to the end of its block.

    Parameters
    ----------
    durable : bool
        Sync every commit to the disk, as a server for real data does; a test that cuts no power need not.
    follows : Cluster, optional
        Be a standby of this running server: a copy of it, which goes on with what it writes, and only reads.
    """

    def __init__(self, *, durable: bool = False, follows: Cluster | None = None) -> None:
        self.programs = find_programs()
        self._durable = durable
        self._follows = follows
        self._guard: subprocess.Popen[str] | None = None
        self._numbers = itertools.count(1)
        self.port = 0
        self.process = 0
        self.password = ""

    def __enter__(self) -> Self:
        command = [sys.executable, __file__, str(self.programs), str(int(self._durable))]
        environment = dict(os.environ)
        if self._follows is not None:
            command.append(str(self._follows.port))
            environment["PGPASSWORD"] = self._follows.password
        # A session of its own: an interrupt at the keyboard is for the tests, which then let go of it.
        self._guard = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )
        assert self._guard.stdout is not None
        line = self._guard.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError("the private PostgreSQL server did not start; its log is above")
        told = json.loads(line)
        self.port, self.process, self.password = told["port"], told["process"], told["password"]
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the server and wait until it is gone."""
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.communicate()

    def parameters(self, database: str = "postgres") -> dict[str, Any]:
        """Return what a client library needs to connect, by libpq's names."""
        return {
            "host": HOST,
            "port": self.port,
            "user": USER,
            "password": self.password,
            "dbname": database,
        }

    def url(self, database: str = "postgres", *, user: str = USER, password: str | None = None) -> str:
        """Return the address of one database, for the owner of the server or another user."""
        return f"postgresql://{user}:{password or self.password}@{HOST}:{self.port}/{database}"

    def database(self) -> str:
        """Make a new, empty database and return its address."""
        name = f"fresh_{os.getpid()}_{next(self._numbers)}"
        self.run("CREATE DATABASE " + name)
        return self.url(name)

    def run(self, statement: str, database: str = "postgres") -> str:
        """Run SQL as the server's owner; return what it gives, one line a row, fields split by ``|``."""
        command = [str(self.programs / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        place = ["-h", HOST, "-p", str(self.port), "-U", USER, "-d", database, "-c", statement]
        done = subprocess.run(
            [*command, *place],
            env={**os.environ, "PGPASSWORD": self.password},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """Return one private server for the session (each worker's own); skip without one, but fail in CI."""
    try:
        cluster = Cluster()
    except NoServer as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres: Cluster) -> str:
    """Return the address of a new, empty database."""
    return postgres.database()


def guard(programs: Path, *, durable: bool, follows: str = "") -> None:
    """Start a server, say where it is, and stop it when standard input ends.

    It ``follows`` the server at that port, whose password is PGPASSWORD, or is a new one.
    """
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    data, log = folder / "data", folder / "log"
    try:
        become = _system_user(folder)
        if follows:
            password = os.environ["PGPASSWORD"]
            place = ["-h", HOST, "-p", follows, "-U", USER, "-w"]
            _quiet([programs / "pg_basebackup", "-D", data, *place, "-R", "-c", "fast", "-N"], become)
        else:
            password = secrets.token_hex(16)
            (folder / "password").write_text(password, encoding="ascii")
            if become:
                os.chown(folder / "password", become["user"], become["group"])
            made = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "-E", "UTF8"]
            _quiet([programs / "initdb", "-D", data, *made, "--locale=C", "--no-sync"], become)
        port = _start(programs, data, log, become, durable=durable)
        process = int((data / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
        print(json.dumps({"port": port, "process": process, "password": password}), flush=True)  # noqa: T201
        sys.stdin.read()
    finally:
        if (data / "postmaster.pid").exists():
            _quiet([programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop"], become)
        shutil.rmtree(folder, ignore_errors=True)


def _system_user(folder: Path) -> dict[str, Any]:
    """Return how a program is run as whom the server may be run; the folder becomes theirs."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(SYSTEM_USER)
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _start(programs: Path, data: Path, log: Path, become: dict[str, Any], *, durable: bool) -> int:
    for attempt in range(1, ATTEMPTS + 1):
        with socket.socket() as free:
            free.bind((HOST, 0))
            port: int = free.getsockname()[1]
        settings = {
            "listen_addresses": HOST,
            "port": port,
            "unix_socket_directories": "",
            "max_connections": 300,
            "fsync": "on" if durable else "off",
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        try:
            _quiet([programs / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start"], become)
        except subprocess.CalledProcessError:
            if attempt == ATTEMPTS:
                sys.stderr.write(log.read_text(encoding="utf-8"))
                raise
        else:
            break
    return port


def _quiet(command: list[str | Path], become: dict[str, Any]) -> None:
    # The server keeps what its starter had open: not this program's pipes, whose end is a signal.
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        check=False,
        **become,
    )
    done.check_returncode()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        guard(Path(sys.argv[1]), durable=sys.argv[2] == "1", follows="".join(sys.argv[3:]))
