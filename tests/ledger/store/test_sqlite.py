"""Files that are no ledgers, damaged, moved, locked or cannot be written: one clear error, nothing lost."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, LedgerCorrupt, LedgerError, LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.ledger.store.sqlite import create_file
from sfumato.privacy import PureDP
from tests.ledger.tampering import execute

Open = Callable[..., Ledger]


@pytest.fixture
def path(open_ledger: Open, tmp_path: Path) -> Path:
    """A ledger of 0.3 spent, with releases, one of them of several pages."""
    with open_ledger(tmp_path / "l") as ledger:
        for number, request in enumerate("abc"):
            ledger.commit(ledger.charge(PureDP(0.1), delta=0.0, request=request), b"x" * 9000 * number)
    return tmp_path / "l"


def test_the_file_is_for_its_owner_only(path: Path, open_ledger: Open) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    modes: list[int] = []

    def see(statement: str) -> None:
        del statement
        modes.extend(stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir())

    ledger = open_ledger(path)
    assert ledger._store._connection is not None
    ledger._store._connection.set_trace_callback(see)
    ledger.charge(PureDP(0.1), delta=0.0)
    assert set(modes) == {0o600}
    assert [*path.parent.iterdir()] == [path]


def test_a_refused_charge_leaves_no_byte_changed(open_ledger: Open, tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger = open_ledger(path)
    ledger.charge(PureDP(0.9), delta=0.0)
    before, head = path.read_bytes(), ledger.head()
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            ledger.charge(PureDP(0.2), delta=0.0, request="r", description="d")
    assert path.read_bytes() == before
    assert ledger.head() == head
    assert [*tmp_path.iterdir()] == [path]


def test_requests_are_stored_as_keyed_hashes(open_ledger: Open, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0, request="SELECT secret"), b"answer")
    assert b"SELECT secret" not in (tmp_path / "l").read_bytes()


DAMAGE = {
    "empty": lambda data: b"",
    "text": lambda data: b"id,age\n1,30\n" * 100,
    "zeros": lambda data: bytes(len(data)),
    "half": lambda data: data[: len(data) // 2],
    "header": lambda data: data[:100],
    "first page": lambda data: data[:4096],
    "all but the last page": lambda data: data[:-4096],
    "odd length": lambda data: data[:-1000],
    "one byte": lambda data: data[:1],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_refused(path: Path, open_ledger: Open, damage: Callable[[bytes], bytes]) -> None:
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(LedgerCorrupt, match=r"restore|another path"):
        open_ledger(path).verify()
    assert path.read_bytes() == damaged


def test_a_database_that_is_no_ledger_is_refused(tmp_path: Path, open_ledger: Open) -> None:
    execute(tmp_path / "other", "CREATE TABLE t (x)")
    with pytest.raises(LedgerCorrupt, match="a file that sfumato made"):
        open_ledger(tmp_path / "other")


def test_a_format_of_a_later_version_is_named(path: Path, open_ledger: Open) -> None:
    execute(path, "PRAGMA user_version = 2")
    with pytest.raises(LedgerUnavailable, match=r"got 2 in .*; upgrade sfumato"):
        open_ledger(path)


def test_a_folder_or_a_place_that_is_not_there_is_refused(tmp_path: Path, open_ledger: Open) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "none" / "l", tmp_path / "file" / "l", tmp_path / ("x" * 300)):
        with pytest.raises(LedgerUnavailable, match="nothing was charged"):
            open_ledger(place)
    with pytest.raises(LedgerUnavailable):
        Ledger.read(tmp_path / "none")
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_journal_without_its_file_is_not_covered_up(path: Path, open_ledger: Open) -> None:
    path.rename(path.with_name("l-journal"))
    with pytest.raises(LedgerCorrupt, match="journal without its file"):
        open_ledger(path)


def test_paths_of_every_kind_open(tmp_path: Path, open_ledger: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["plain", ":memory:", "with space?mode=memory&x=%20#y", "[ab]*", "é"]
    for name in names:
        open_ledger(name).charge(PureDP(0.1), delta=0.0)
        assert len(open_ledger(tmp_path / name).entries()) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)


def test_links_lead_to_the_one_ledger(path: Path, open_ledger: Open) -> None:
    path.with_name("link").symlink_to(path)
    ledger = open_ledger(path.with_name("link"))
    ledger.charge(PureDP(0.1), delta=0.0)
    assert len(open_ledger(path).entries()) == 4
    path.with_name("dangling").symlink_to(path.with_name("new"))
    open_ledger(path.with_name("dangling"))
    assert path.with_name("new").exists()


def test_a_second_name_left_by_a_crash_is_removed(path: Path, open_ledger: Open) -> None:
    draft, other = path.with_name(".l.00ff.new"), path.with_name(".l.11ff.new")
    os.link(path, draft)
    other.write_bytes(b"another process is making this")
    assert open_ledger(path).verify().sound
    assert not draft.exists()
    assert other.exists()


@pytest.mark.parametrize("how", ["moved", "replaced", "deleted"])
def test_a_ledger_whose_file_goes_away_takes_no_more_charges(path: Path, open_ledger: Open, how: str) -> None:
    ledger = open_ledger(path)
    shutil.copy(path, path.with_name("copy"))
    if how == "moved":
        path.rename(path.with_name("elsewhere"))
    elif how == "replaced":
        path.with_name("copy").replace(path)
    else:
        path.unlink()
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="moved or replaced"):
            ledger.charge(PureDP(0.1), delta=0.0)


def test_a_file_rolled_back_under_an_open_ledger_is_found(path: Path, open_ledger: Open) -> None:
    shutil.copy(path, path.with_name("old"))
    ledger = open_ledger(path)
    receipt = ledger.charge(PureDP(0.5), delta=0.0)
    shutil.copyfile(path.with_name("old"), path)
    for action in (
        lambda: ledger.charge(PureDP(0.5), delta=0.0),
        lambda: ledger.commit(receipt, b"x"),
        ledger.remaining,
    ):
        with pytest.raises(LedgerCorrupt):
            action()
    with pytest.raises(LedgerCorrupt, match="receipt"):
        open_ledger(path).commit(receipt, b"x")


def test_a_lock_that_stays_is_an_error_and_then_all_is_well(path: Path, open_ledger: Open) -> None:
    ledger = open_ledger(path, lock_timeout=0.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="lock held by another process"):
            ledger.charge(PureDP(0.1), delta=0.0)
    other.execute("ROLLBACK")
    other.execute("BEGIN")
    other.execute("SELECT * FROM event").fetchone()
    with pytest.raises(LedgerUnavailable, match="lock"):
        ledger.charge(PureDP(0.1), delta=0.0)
    other.close()
    assert ledger.charge(PureDP(0.1), delta=0.0).sequence == 4
    assert ledger.verify().sound


def content(ledger: Ledger) -> object:
    return (
        ledger.entries(),
        [ledger.find(request) for request in "abcd"],
        ledger.remaining(),
        ledger.verify(),
    )


def test_flipped_bits_are_found_or_change_nothing(path: Path, open_ledger: Open) -> None:
    """Random damage anywhere: an error of the tree, or a ledger that says exactly what it said before."""
    data = path.read_bytes()
    with open_ledger(path) as ledger:
        truth = content(ledger)
    rng = random.Random(20240608)
    found = 0
    for _ in range(400):
        damaged = bytearray(data)
        for offset in rng.sample(range(len(data)), rng.choice([1, 1, 1, 8])):
            damaged[offset] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            with Ledger.read(path) as ledger:
                assert content(ledger) == truth
        except LedgerError:
            found += 1
    assert found > 100


def test_every_flip_in_the_header_and_the_first_event_is_found_or_harmless(
    path: Path, open_ledger: Open
) -> None:
    data = path.read_bytes()
    with open_ledger(path) as ledger:
        truth = content(ledger)
    for offset in [*range(100), *range(data.index(b"add-remove"), data.index(b"add-remove") + 10)]:
        damaged = bytearray(data)
        damaged[offset] ^= 0x41
        path.write_bytes(damaged)
        with contextlib.suppress(LedgerError), Ledger.read(path) as ledger:
            assert content(ledger) == truth


def test_threads_share_one_ledger_and_its_budget(path: Path, open_ledger: Open) -> None:
    ledger = open_ledger(path)
    receipts, refused = [], []

    def ask() -> None:
        for _ in range(8):
            try:
                receipts.append(ledger.charge(PureDP(0.0625), delta=0.0).sequence)
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(receipts) == list(range(4, 4 + 11))
    assert len(refused) == 32 - 11
    assert ledger.verify().sound


def test_a_very_long_wait_is_not_none(path: Path, open_ledger: Open) -> None:
    ledger = open_ledger(path, lock_timeout=1e9)
    assert ledger._store._connection is not None
    assert ledger._store._connection.execute("PRAGMA busy_timeout").fetchone()[0] >= 1e9 - 1


def test_a_charge_reads_the_totals_with_the_write_lock_in_its_hand(path: Path, open_ledger: Open) -> None:
    ledger, other = open_ledger(path), open_ledger(path, lock_timeout=0.0)
    with ledger._store.transaction(write=True):
        with pytest.raises(LedgerUnavailable, match="lock"):
            other.charge(PureDP(0.1), delta=0.0)
        assert other.remaining() == other.remaining(), "reading goes on"
    assert other.charge(PureDP(0.1), delta=0.0).sequence == 4


def test_making_a_ledger_never_replaces_one(path: Path) -> None:
    before = path.read_bytes()
    assert create_file(path, lambda connection: None) is False
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


def test_a_file_of_another_kind_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no ledger\n" * 500)
    with pytest.raises(LedgerCorrupt, match="got another kind of file") as caught:
        Ledger.read(path)
    assert "damaged" not in str(caught.value)
