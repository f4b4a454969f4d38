"""A task from its files to its sum, by the command line alone and in real processes."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.federated.dap.task import base64url
from sfumato.server.dap.party import DapParty
from tests.forks import COMMAND, Forks


def run(*arguments: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, ["dap", *map(str, arguments)], input=stdin)


def answered(*arguments: object, stdin: str | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code in (1, 2), result.output
    return str(result.stderr)


@contextmanager
def serving(forks: Forks, folder: Path, role: str) -> Iterator[None]:
    words = ("dap", "serve", str(folder / f"{role}.json"), "--folder", str(folder / role))
    with forks.start(COMMAND, "sfumato", *words) as process:
        assert process.line().startswith(f"{role} of task ")
        yield
        process.send_signal(signal.SIGTERM)
        done = process.ended()
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def test_a_histogram_from_its_files_to_its_sum(command_forks: Forks, tmp_path: Path) -> None:
    leader, helper = free_ports(2)
    folder = tmp_path / "task"
    urls = ["--leader", f"http://127.0.0.1:{leader}", "--helper", f"http://127.0.0.1:{helper}/dap"]
    sizes = ["--parameter", "length=3", "--parameter", "chunk_length=2", "--min-batch-size", 6]
    price = "epsilon 60 at delta 0 for one report replaced, if one aggregator is honest"
    # At epsilon 60 some noise is not zero with a probability below 1e-11.
    units = ["--time-precision", 10**8]
    told = answered("task", "Prio3Histogram", folder, *sizes, "--epsilon", 60, *urls, *units)
    assert told.splitlines()[1] == price
    assert {path.name: path.stat().st_mode & 0o77 for path in folder.iterdir()} == {
        "task.json": 0o44,
        "leader.json": 0,
        "helper.json": 0,
        "collector.json": 0,
    }
    with serving(command_forks, folder, "leader"), serving(command_forks, folder, "helper"):
        assert answered("upload", folder / "task.json", 0, 1, 1, 2) == "4 taken, 0 refused\n"
        waiting = refused("collect", folder / "collector.json", "--wait", 0.2)
        job = re.search(r"the same job, (\S+)", waiting)
        assert job is not None, waiting
        assert answered("upload", folder / "task.json", "-", stdin="2\n2\n2\n") == "3 taken, 0 refused\n"
        told = answered("collect", folder / "collector.json")
        result, noise, cost = told.splitlines()
        assert (result, cost) == ("[1, 2, 4] of 7 reports", price)
        assert noise.startswith("noise of both aggregators: standard deviation ")
        again = json.loads(answered("collect", folder / "collector.json", "--json", "--job", job[1]))
        assert (again["result"], again["reports"], again["epsilon"]) == ([1, 2, 4], 7, 60.0)
        assert "batchOverlap" in refused("collect", folder / "collector.json", "--job", "A" * 22)
        assert "must" in refused("upload", folder / "task.json", 3)


def test_parties_make_their_own_secrets(tmp_path: Path) -> None:
    for role in ("leader", "helper", "collector"):
        (tmp_path / f"{role}.part").write_text(answered("keygen", role, tmp_path / f"{role}.secret"))
        assert (tmp_path / f"{role}.secret").stat().st_mode & 0o77 == 0
    make = ["task", "Prio3Count", tmp_path / "task", "--min-batch-size", 5, "--collector"]
    answered(*make, tmp_path / "collector.part")
    assert [path.name for path in (tmp_path / "task").iterdir()] == ["task.json"]
    assert "--collector must be the collector's public part" in refused(*make, tmp_path / "helper.part")
    task, told = tmp_path / "task" / "task.json", {}
    for role, others in (("leader", ("collector", "helper")), ("helper", ("leader",)), ("collector", ())):
        join = ["join", task, tmp_path / f"{role}.secret", *(tmp_path / f"{one}.part" for one in others)]
        told[role] = answered(*join, "--output", tmp_path / f"{role}.json").splitlines()
    number = json.loads(task.read_text())["task_id"]
    parties = {role: DapParty.from_file(tmp_path / f"{role}.json") for role in told}
    for role, party in parties.items():
        assert base64url(party.task.task_id) == number
        assert told[role][0] == f"{role} of task {party.task.task_id.hex()}"
    assert told["leader"][1:] == told["helper"][1:]
    assert told["collector"][1:] == []
    assert told["leader"][1].startswith("the other aggregator must see the same number: ")
    assert parties["leader"].verify_key == parties["helper"].verify_key is not None
    assert parties["leader"].accepts(parties["collector"].sends)
    assert parties["helper"].accepts(parties["leader"].sends)
    assert "role must be one of leader, helper, collector" in refused("keygen", "client", tmp_path / "c")
    assert "be a new one" in refused("keygen", "leader", tmp_path / "leader.secret")
    join = ["join", task, tmp_path / "leader.secret", tmp_path / "helper.part"]
    assert "must be those of helper and collector" in refused(*join, "--output", tmp_path / "x")


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    make = ["task", "Prio3Count", tmp_path / "t", "--min-batch-size", 5]
    assert "--batch-mode must be one of" in refused(*make, "--batch-mode", "all")
    assert "vdaf must have the parameters []" in refused(*make, "--parameter", "length=3")
    assert "NAME=NUMBER" in refused(*make, "--parameter", "length=x")
    assert "sums are exact, and not differentially private" in answered(
        *make, "--batch-mode", "leader-selected"
    )
    assert "be a new one" in refused(*make)
    collector, task = tmp_path / "t" / "collector.json", tmp_path / "t" / "task.json"
    assert "be left out" in refused("collect", collector, "--start", 0)
    assert "be 16 bytes" in refused("collect", collector, "--job", "x")
    assert "leader or a helper" in refused("serve", collector, "--folder", tmp_path / "store")
    assert "--certificate must come" in refused(
        "serve", collector, "--folder", tmp_path, "--certificate", collector
    )
    serve = ["serve", tmp_path / "t" / "leader.json", "--folder", tmp_path / "store"]
    for option, name in (("--reports", "reports"), ("--waiting", "waiting"), ("--per-address", "address")):
        assert f"{name} must be an integer of at least 1" in refused(*serve, option, 0)
    assert "be a collector" in refused("collect", tmp_path / "t" / "leader.json")
    assert "must be readable" in refused("collect", tmp_path / "none.json")
    assert "measurements must be numbers" in refused("upload", task, "yes")
    collector.chmod(0o644)
    assert "its owner alone" in refused("collect", collector)
    by_time = tmp_path / "by_time"
    answered("task", "Prio3Count", by_time, "--min-batch-size", 5)
    assert "whole multiples of 3600" in refused("collect", by_time / "collector.json", "--start", 7)
