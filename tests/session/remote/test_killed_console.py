"""A console that is killed between charge and answer, and started again: the answer comes, once paid."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.ledger import Budget, Ledger, Role
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.access.token_store import TokenStore
from tests.server.console.office import COUNT
from tests.server.console.processes import running

SETTINGS = """
ledger = "people.ledger"
[dataset]
source = "people.parquet"
privacy-unit = "id"
epsilon = 2.0
[answers]
step = 0.25
first = 8
"""


@pytest.mark.exhaustive
def test_an_answer_comes_after_a_new_start(tmp_path: Path) -> None:
    people = pa.table({"id": range(1000), "age": [18 + number % 60 for number in range(1000)]})
    pq.write_table(people, tmp_path / "people.parquet")
    about: dict[str, Any] = {"privacy_unit": "id", "epsilon": 2.0, "ledger": tmp_path / "people.ledger"}
    with sf.connect(tmp_path / "people.parquet", **about) as curator:
        curator.ledger.members.set_roles("carl", {Role.CURATOR})
        curator.ledger.members.set_roles("ada", {Role.ANALYST}, by="carl")
        curator.ledger.grant("ada", Budget.pure(epsilon=0.5), by="carl")
    (tmp_path / "console").mkdir(mode=0o700)
    (tmp_path / "console.toml").write_text(SETTINGS)
    secret, _ = TokenStore(tmp_path / "console" / "tokens").create("ada", tuple(Scope), days=1)
    config, found = tmp_path / "console.toml", list[object]()
    with running(config) as console:
        session = sf.connect(f"http://localhost:{console.port}", token=secret)
        job = session.submit(COUNT.replace("0.25", "0.125"), request="one id")
        assert session.job(job)["state"] in ("queued", "running")
    waiting = threading.Thread(target=lambda: found.append(session.wait(job)))
    waiting.start()
    with running(config, port=console.port):
        waiting.join(60)
        assert session.submit(COUNT.replace("0.25", "0.125"), request="one id") == job
        session.close()
    (answer,) = found
    assert answer.receipts == (1,)  # type: ignore[attr-defined]
    with Ledger.read(tmp_path / "people.ledger") as ledger:
        assert len(ledger.entries()) == 1
        assert ledger.entry(1).committed
