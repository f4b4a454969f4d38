from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerMismatch,
    LedgerUnavailable,
    NeighboringMismatch,
    ParameterError,
)
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Gaussian, Neighboring
from sfumato.pufferfish import MarkovChain, MarkovQuilt, PufferfishAccountant

CHAIN = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
HALF = MarkovQuilt(chain=CHAIN, length=100, lipschitz=1, epsilon=0.5)


def test_the_budget_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    budget = PufferfishAccountant(path, notion=HALF, epsilon=1.2)
    assert budget.spent == 0
    assert isinstance(budget.release(HALF, 31).value, int)
    again = PufferfishAccountant(path, notion=HALF.guarantee, epsilon=1.2)
    assert again.spent == 0.5
    assert again.remaining == pytest.approx(0.7, rel=1e-15)
    assert again.charge(HALF).releases == 2
    with pytest.raises(LedgerError, match=r"fit into epsilon=1\.2, but all releases would cost 1\.5"):
        again.charge(HALF)
    assert budget.spent == 1.0
    assert "spent=1.0" in repr(budget)


def test_what_does_not_compose_is_refused_within_the_budget(tmp_path: Path) -> None:
    budget = PufferfishAccountant(tmp_path / "b.db", notion=HALF, epsilon=100.0)
    budget.charge(HALF)
    with pytest.raises(NeighboringMismatch, match="the active quilts differ"):
        budget.charge(MarkovQuilt(chain=CHAIN, length=100, lipschitz=1, epsilon=2.0))
    with pytest.raises(ParameterError, match="about another notion"):
        budget.charge(MarkovQuilt(chain=CHAIN, length=99, lipschitz=1, epsilon=0.5))
    with pytest.raises(ParameterError, match="never converted"):
        budget.charge(Gaussian(1.0))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="PufferfishMechanism"):
        budget.release(HALF.guarantee, 3)  # type: ignore[arg-type]
    assert budget.spent == 0.5


def test_a_file_holds_one_notion_and_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    PufferfishAccountant(path, notion=HALF, epsilon=1.0)
    with pytest.raises(LedgerMismatch, match=r"it holds epsilon=1\.0"):
        PufferfishAccountant(path, notion=HALF, epsilon=2.0)
    with pytest.raises(LedgerMismatch, match="another notion"):
        PufferfishAccountant(path, notion=MarkovQuilt(chain=CHAIN, length=9, epsilon=1.0), epsilon=1.0)


def test_broken_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    budget = PufferfishAccountant(path, notion=HALF, epsilon=1.0)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO charges (guarantee) VALUES ('nothing')")
        connection.commit()
    with pytest.raises(LedgerCorrupt):
        budget.charge(HALF)
    (tmp_path / "text.db").write_text("no database, but long enough to be taken for a file of one" * 9)
    with pytest.raises(LedgerCorrupt):
        PufferfishAccountant(tmp_path / "text.db", notion=HALF, epsilon=1.0)
    with pytest.raises(LedgerUnavailable):
        PufferfishAccountant(tmp_path / "missing" / "b.db", notion=HALF, epsilon=1.0)


def test_the_file_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE budget (year INTEGER)")
    with pytest.raises(LedgerCorrupt, match="that can be written"):
        PufferfishAccountant(path, notion=HALF, epsilon=1.0)


def test_a_ledger_of_differential_privacy_takes_none(tmp_path: Path) -> None:
    ledger = Ledger.open(
        tmp_path / "ledger.db",
        budget=Budget.pure(epsilon=1.0),
        privacy_unit="name",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="s", fingerprint=lambda key: key.hex()),
    )
    with ledger, pytest.raises((ParameterError, TypeError, AttributeError)):
        ledger.charge(HALF.guarantee, delta=0.0)  # type: ignore[arg-type]
    with Ledger.read(tmp_path / "ledger.db") as view:
        assert not list(view.entries())
