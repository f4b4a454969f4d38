"""A ledger that the first version wrote: it opens, reads, verifies, and takes charges as it always did.

``first_format.sql`` is a dump of it: three charges, one of them answered, and two versions of the data.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.ledger import Budget, ChainHead, Dataset, Ledger, LedgerExport, LedgerView
from sfumato.privacy import ApproximateDP, Gaussian, Laplace
from tests.ledger.tampering import execute

DUMP = Path(__file__).with_name("first_format.sql")
BUDGET = Budget.approximate(epsilon=2.0, delta=1e-7)
HEAD = ChainHead(
    ledger="b6ac3221087aae4b36c157e56a15f524",
    position=6,
    charges=3,
    digest="d3f10e39f3f946a4fd1af0aaf48fe08095cb2e170f00e567cc34bc6a0200935b",
    mac="f0b2154f992aea978a17297cd06dea2aefc7a3cf5af51a8d6f670372bfb6a750",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with contextlib.closing(sqlite3.connect(tmp_path / "first.ledger")) as connection:
        connection.executescript(DUMP.read_text(encoding="ascii"))
    return tmp_path / "first.ledger"


def dataset(content: str) -> Dataset:
    return Dataset(schema="people(id BIGINT)", fingerprint=lambda key: content * 64)


def test_it_reads_as_it_was_written(path: Path) -> None:
    with Ledger.read(path) as ledger:
        assert ledger.head() == HEAD
        found = ledger.verify(HEAD)
        assert found.sound
        assert (found.events, found.charges, found.releases) == (6, 3, 1)
        losses = [entry.loss for entry in ledger.entries()]
        assert losses == [Laplace(4.0), Gaussian(20.0), ApproximateDP(0.125, 1e-9)]
        assert [entry.description for entry in ledger.entries()] == ["how many?", "never answered", ""]
        assert [entry.version for entry in ledger.entries()] == [1, 1, 2]
        assert [entry.committed for entry in ledger.entries()] == [True, False, False]
        assert {(entry.analyst, entry.period) for entry in ledger.entries()} == {("", "")}
        assert (ledger.renewal, ledger.accounts(), ledger.budget) == (None, (), BUDGET)
        assert LedgerExport.parse(ledger.export()).verify() == found


def test_it_goes_on_as_a_plain_ledger_that_its_version_would_read(
    path: Path, open_ledger: Callable[..., Ledger]
) -> None:
    ledger = open_ledger(path, budget=BUDGET, dataset=dataset("a"))
    assert ledger.find("q") == b"\x00the answer"
    assert ledger.charge(Laplace(4.0), delta=1e-8, request="q").sequence == 4
    assert ledger.verify(HEAD).sound
    assert execute(path, "PRAGMA user_version") == [(1,)]
    ((body,),) = execute(path, "SELECT body FROM event WHERE position = 7")
    for later in ("accounts", "analyst", "period"):
        assert f'"{later}"' not in body


def test_it_takes_accounts_on_which_mark_it_as_later(path: Path, open_ledger: Callable[..., Ledger]) -> None:
    ledger = open_ledger(path, budget=BUDGET, dataset=dataset("b"))
    ledger.grant("ada", Budget.approximate(epsilon=0.5, delta=1e-7))
    LedgerView(ledger, "ada").charge(Laplace(4.0), delta=1e-8)
    assert ledger.verify(HEAD).sound
    assert execute(path, "PRAGMA user_version") == [(2,)]
