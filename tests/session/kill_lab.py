"""Kills processes that answer a query, at each stage of it, and asks the same question again.

`main` takes STAGE=LOCATION, of `STAGES`, each with a new ledger's location, in a process of its own, because
it forks. Prints JSON: for each stage how many charges there are at the end, the number of
the charge that was answered (None for an answer that had been stored), and how many answers are stored.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import duckdb  # noqa: F401 - before the forks, so that they need not import it
import pyarrow as pa

import sfumato as sf
import sfumato.session.connection
from sfumato.ledger import LedgerView
from tests.ledger.crash_lab import trial

QUERY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1, delta=0) COUNT(*) AS n FROM data"
ANSWER = "sfumato.session.answer"
STAGES: dict[str, tuple[Any, str, bool]] = {
    "before the charge": (LedgerView, "charge_all", False),
    "after the charge": (LedgerView, "charge_all", True),
    "after reading": (LedgerView, "claim_draw", False),
    "after the draw was written": (LedgerView, "claim_draw", True),
    "after the noise": (LedgerView, "commit", False),
    "after the commit": (LedgerView, "commit", True),
}


def session(location: str) -> sf.Session:
    people = pa.table({"person": range(100)})
    return sf.connect(people, privacy_unit="person", epsilon=1.0, ledger=location)


def killed(location: str, stage: str) -> Callable[[Callable[[object], None]], None]:
    """Return work that ends by a kill at a stage."""
    owner, name, after = STAGES[stage]
    method = getattr(owner, name)

    def last(self: Any, *given: Any, **named: Any) -> Any:
        if after:
            method(self, *given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    def work(report: Callable[[object], None]) -> None:
        with session(location) as opened, patch.object(owner, name, last):
            report(opened.sql(QUERY).to_arrow()["n"][0].as_py())

    return work


def again(location: str) -> Callable[[Callable[[object], None]], None]:
    def work(report: Callable[[object], None]) -> None:
        with session(location) as opened:
            release = opened.sql(QUERY)
            assert opened.sql(QUERY).to_arrow() == release.to_arrow()
            assert opened.ledger.verify().sound
            entries = opened.ledger.entries()
            number = None if release.receipt is None else release.receipt.sequence
            report([len(entries), number, sum(entry.committed for entry in entries)])

    return work


def main(locations: list[str]) -> None:
    found = {}
    for stage, _, location in (each.partition("=") for each in locations):
        reports, ended = trial(killed(location, stage))
        assert (reports, ended) == ([], signal.SIGKILL), (stage, reports, ended)
        reports, ended = trial(again(location))
        assert ended == 0, (stage, reports)
        (found[stage],) = reports
    sys.stdout.write(json.dumps(found))
