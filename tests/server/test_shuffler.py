"""The shuffler without the network: whole batches, in no order, of clients told apart by nonce alone."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import ParameterError, SfumatoError
from sfumato.local import device
from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.shuffle.decoys import Decoys
from sfumato.local.shuffle import Collection, MixedBatch, SecretKey
from sfumato.numerics.randomness.source import random_source
from sfumato.server import Shuffler
from sfumato.server.store import Report, Store
from tests.chance import accepts_only, pearson
from tests.server.setting import ANALYST, SHUFFLER, collection, envelope, memory_folder, values_in


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory where there is one: for what writes often."""
    with memory_folder() as folder:
        yield folder


def opened(made: Collection, folder: Path) -> Shuffler:
    return Shuffler(made.device, SHUFFLER, folder)


def released(made: Collection, shuffler: Shuffler) -> list[Counter[int]]:
    numbers = range(1, shuffler.batches + 1)
    return [values_in(made, shuffler.path(number).read_bytes()) for number in numbers]


def test_batches_have_exactly_their_size_and_what_is_left_waits(tmp_path: Path) -> None:
    made = collection(4)
    with opened(made, tmp_path) as shuffler:
        for client in range(3):
            assert shuffler.take([envelope(made, client)]) == [True]
            assert shuffler.batches == 0
            assert not shuffler.path(1).exists()
        assert shuffler.take([envelope(made, client) for client in range(3, 11)]) == [True] * 8
        assert shuffler.batches == 2
        assert released(made, shuffler) == [Counter(range(4)), Counter(range(4, 8))]
    with opened(made, tmp_path) as shuffler:
        assert shuffler.batches == 2
        shuffler.take([envelope(made, 11)])
        assert released(made, shuffler)[2] == Counter(range(8, 12))
    assert shuffler.path(1).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "waiting.db").stat().st_mode & 0o777 == 0o600


def test_a_client_is_counted_once_and_not_told_so(tmp_path: Path) -> None:
    made = collection(3)
    first = envelope(made, 7)
    with opened(made, tmp_path) as shuffler:
        assert shuffler.take([first]) == [True]
        assert shuffler.take([first, first]) == [True, True]
        other = made.device.envelope(8, (7).to_bytes(16, "big"))  # the same client, another answer
        assert shuffler.take([other]) == [True]
    with opened(made, tmp_path) as shuffler:
        assert shuffler.take([first, envelope(made, 1), envelope(made, 2), first]) == [True] * 4
        assert released(made, shuffler) == [Counter([7, 1, 2])]
        assert shuffler.take([first, envelope(made, 1), envelope(made, 2)]) == [True] * 3  # after its batch
    with opened(made, tmp_path) as shuffler:
        shuffler.take([first, envelope(made, 3), envelope(made, 4), envelope(made, 5)])
        assert released(made, shuffler)[1:] == [Counter([3, 4, 5])]


def test_a_group_of_known_nonces_is_written_too(tmp_path: Path) -> None:
    made = collection(3)
    with opened(made, tmp_path) as shuffler:
        shuffler.take([envelope(made, 1)])
        before = shuffler._store._connection.total_changes
        shuffler.take([envelope(made, 1)])
        assert shuffler._store._connection.total_changes == before + 1


def test_the_same_content_of_two_clients_is_two_reports(tmp_path: Path) -> None:
    made = collection(2)
    report = made.protocol.device.randomize(5)
    twins = [made.device.seal(report, bytes([client]) * 16) for client in (1, 2)]
    with opened(made, tmp_path) as shuffler:
        shuffler.take(twins)
        assert released(made, shuffler) == [Counter({5: 2})]


def test_hostile_envelopes_are_refused_and_counted(tmp_path: Path) -> None:
    made, other = collection(2), collection(2, name="another")
    good = envelope(made, 1)
    stranger = SecretKey.generate("shuffler").public
    hostile = [
        b"",
        good[:-1],
        good + b"\x00",
        bytes(len(good)),
        os.urandom(len(good)),
        bytes([good[0] ^ 1]) + good[1:],
        good[:-1] + bytes([good[-1] ^ 1]),
        envelope(other, 1),
        stranger.seal(os.urandom(len(good) - 48), made.device.envelope_context),
        SHUFFLER.public.seal(os.urandom(len(good) - 48), b"another context"),
    ]
    with opened(made, tmp_path) as shuffler:
        assert shuffler.take([*hostile, good]) == [False] * len(hostile) + [True]
        assert shuffler.refused == {"shape": 3, "seal": 7}
        assert shuffler.batches == 0
        # What is sealed well but holds nonsense cannot be seen here: it is the analyst's to refuse.
        nonsense = SHUFFLER.public.seal(os.urandom(len(good) - 48), made.device.envelope_context)
        assert shuffler.take([nonsense]) == [True]
        opening = made.opening(ANALYST)
        opening.add(shuffler.path(1).read_bytes())
        assert opening.refused["seal"] == 1
        assert opening.aggregator.accepted == 1
        assert opening.exposed == (1,)


def test_the_order_of_arrival_is_destroyed(quick: Path) -> None:
    """The analyst sees what the clients sealed, in an order that says nothing: one of 24, in 480 batches.

    The system's own randomness draws it, not a seed: the wrong laws are those that no such draws pass for.
    """
    made = collection(4)
    orders: Counter[tuple[int, ...]] = Counter()
    with opened(made, quick) as shuffler:
        shuffler.take([envelope(made, client) for client in range(1920)])
        for number in range(1, 481):
            batch = MixedBatch.from_bytes(shuffler.path(number).read_bytes())
            told = [ANALYST.opened(row.tobytes(), made.device.report_context) or b"" for row in batch.sealed]
            orders[tuple(int.from_bytes(one[1:3], "little") % 4 for one in told)] += 1
    every = list(itertools.permutations(range(4)))
    accepts_only(
        pearson(orders),
        dict.fromkeys(every, 1 / 24),
        first_stays=dict.fromkeys([order for order in every if order[0] == 0], 1 / 6),
        last_is_moved=dict.fromkeys([order for order in every if order[-1] != 3], 1 / 18),
        half_stay={order: 1 / 48 + (order == (0, 1, 2, 3)) / 2 for order in every},
    )


def test_messages_of_one_client_come_apart(quick: Path) -> None:
    """Where the 2 messages of the first of 2 clients lie among the 4, in 300 batches: 6 ways, all alike."""
    decoys = Decoys(1, Coin(1 << 62))
    randomizer = device.ShuffledHistogramRandomizer(
        epsilon=16.0, domain=local.Domain(range(2)), decoys=decoys
    )
    known = device.PublicCollection(
        randomizer=randomizer, batch_size=2, analyst=ANALYST.public, shuffler=SHUFFLER.public
    )
    envelopes = [known.envelope(1, client.to_bytes(16, "big")) for client in range(600)]
    ways: Counter[tuple[int, ...]] = Counter()
    with Shuffler(known, SHUFFLER, quick) as shuffler:
        shuffler.take(envelopes)
        for number in range(1, 301):
            first = SHUFFLER.opened(envelopes[2 * number - 2], known.envelope_context)
            assert first is not None
            batch = MixedBatch.from_bytes(shuffler.path(number).read_bytes())
            ways[tuple(place for place, row in enumerate(batch.sealed) if row.tobytes() in first)] += 1
    every = list(itertools.combinations(range(4), 2))
    accepts_only(
        pearson(ways),
        dict.fromkeys(every, 1 / 6),
        clients_are_moved={(0, 1): 1 / 2, (2, 3): 1 / 2},
        never_apart={(0, 1): 1 / 3, (1, 2): 1 / 3, (2, 3): 1 / 3},
    )


def store_of(folder: Path, mixed: list[int]) -> Store:
    def content(number: int, _clients: object) -> bytes:
        mixed.append(number)
        return b"mixed"

    source = random_source(3)
    return Store(folder / "w.db", collection=bytes(32), size=8, width=300, mixed=content, source=source)


def test_the_file_is_the_same_in_whatever_order_reports_came(tmp_path: Path) -> None:
    # Each report has its place by chance. Given the places, the bytes do not tell what was written first.
    generator = np.random.default_rng(1)
    reports = [bytes([65 + client]) * 299 + b"." for client in range(6)]
    files = []
    for turn in range(4):
        (tmp_path / str(turn)).mkdir()
        store = store_of(tmp_path / str(turn), [])
        order = generator.permutation(6).tolist()
        free = store._free[0].copy()
        store._free[0] = free[:2] + [free[7 - client] for client in reversed(order)]
        for step, client in enumerate(order):
            # Nonces in one order: they lie in another table.
            store.take([Report(bytes([step]) * 16, reports[client])])
        store.close()
        files.append((tmp_path / str(turn) / "w.db").read_bytes())
        assert (tmp_path / str(turn) / "w.db-journal").stat().st_size == 0
        assert all(files[-1].count(report) == 1 for report in reports)
    assert len(set(files)) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are not told here")
def test_nothing_is_written_outside_the_folder(quick: Path) -> None:
    store = Store(
        quick / "w.db",
        collection=bytes(32),
        size=600,
        width=500,
        mixed=lambda _number, clients: clients.tobytes(),
        source=random_source(1),
    )
    nameless: set[str] = set()

    def look() -> int:
        for descriptor in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                name = str(descriptor.readlink())
                if "etilqs" in name or "sqlite" in name:  # as SQLite names what it puts aside
                    nameless.add(name)
        return 0

    store._connection.set_progress_handler(look, 200)
    store.take([Report(client.to_bytes(16, "big"), os.urandom(500)) for client in range(600)])
    assert store.ready() == [1]
    store.close()
    assert nameless == set()


def test_places_are_drawn_by_chance(quick: Path) -> None:
    """The place of the next of 8 reports, 400 times."""
    counts: Counter[int] = Counter()
    store = store_of(quick, [])
    for _ in range(400):
        store._look()
        counts[store._free[0][-1]] += 1
    store.close()
    accepts_only(
        pearson(counts),
        dict.fromkeys(range(8), 1 / 8),
        never_the_last=dict.fromkeys(range(7), 1 / 7),
        first_half_twice=dict.fromkeys(range(4), 1 / 6) | dict.fromkeys(range(4, 8), 1 / 12),
    )


def test_nothing_of_a_report_stays_behind_after_its_batch(tmp_path: Path) -> None:
    made = collection(4)
    with opened(made, tmp_path) as shuffler:
        shuffler.take([envelope(made, client) for client in range(4)])
        batch = MixedBatch.from_bytes(shuffler.path(1).read_bytes())
        shuffler.take([envelope(made, 4)])
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("waiting.db*"))
    assert not any(row.tobytes()[:32] in kept for row in batch.sealed)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "batch-000001.mixed",
        "batches",
        "waiting.db",
        "waiting.db-journal",
    ]


def test_nonces_are_not_beside_reports(tmp_path: Path) -> None:
    made = collection(4)
    with opened(made, tmp_path) as shuffler:
        shuffler.take([envelope(made, client) for client in range(3)])
    with sqlite3.connect(tmp_path / "waiting.db") as base:
        held = [bytes(row[0]) for row in base.execute("SELECT content FROM slot")]
        seen = {bytes(row[0]) for row in base.execute("SELECT value FROM nonce")}
    base.close()
    assert seen == {made.device.nonce(client.to_bytes(16, "big")) for client in range(3)}
    assert not any(nonce in row for nonce in seen for row in held)
    assert sorted(row[0] for row in held) == [0, 1, 1, 1]
    assert {len(row) for row in held} == {1 + made.device.sealed_width}


def test_a_batch_that_was_not_written_out_is_so_at_the_next_start(tmp_path: Path) -> None:
    made = collection(2)
    with opened(made, tmp_path) as shuffler:
        shuffler.take([envelope(made, client) for client in range(2)])
        data = shuffler.path(1).read_bytes()
    with sqlite3.connect(tmp_path / "waiting.db") as base:
        base.execute("INSERT INTO batch VALUES (1, ?)", (data,))
    base.close()
    (tmp_path / "batches" / "batch-000001.mixed").unlink()
    (tmp_path / "batches" / "batch-000001.part").write_bytes(b"half")
    with opened(made, tmp_path) as shuffler:
        assert shuffler.path(1).read_bytes() == data
        assert shuffler.batches == 1
        assert not list((tmp_path / "batches").glob("*.part"))


def test_an_older_store_releases_nothing_again(tmp_path: Path) -> None:
    made = collection(2)
    with opened(made, tmp_path) as shuffler:
        shuffler.take([envelope(made, client) for client in range(3)])
    older = (tmp_path / "waiting.db").read_bytes()
    with opened(made, tmp_path) as shuffler:
        shuffler.take([envelope(made, 3)])
        data = shuffler.path(2).read_bytes()
    (tmp_path / "waiting.db").write_bytes(older)
    with pytest.raises(ParameterError, match=r"got batch 2 and 1 that it knows: it is an older copy"):
        opened(made, tmp_path)
    (tmp_path / "waiting.db").unlink()
    with pytest.raises(ParameterError, match="got batch 2 and 0"):
        opened(made, tmp_path)
    assert (tmp_path / "batches" / "batch-000002.mixed").read_bytes() == data
    (tmp_path / "batches" / "batch-000002.mixed").unlink()
    (tmp_path / "batches" / "batch-000001.mixed").unlink()
    (tmp_path / "batches" / "notes.mixed").touch()
    opened(made, tmp_path).close()


def test_the_names_of_new_folders_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synchronised: set[int] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synchronised.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    made, folder = collection(2), tmp_path / "new" / "store"
    with opened(made, folder) as shuffler:
        assert {tmp_path.stat().st_ino, folder.parent.stat().st_ino} <= synchronised
        shuffler.take([envelope(made, client) for client in range(2)])
    assert {folder.stat().st_ino, (folder / "batches").stat().st_ino} <= synchronised


def test_batches_that_cannot_be_written_at_the_start_are_no_crash(tmp_path: Path) -> None:
    made = collection(2)
    (tmp_path / "batches").write_bytes(b"in the way")
    with opened(made, tmp_path) as shuffler, pytest.raises(OSError, match="batch"):
        shuffler.take([envelope(made, client) for client in range(2)])
    for _ in range(2):  # the store is let go of each time
        with pytest.raises(ParameterError, match="folder must be one that can be written to"):
            opened(made, tmp_path)
    (tmp_path / "batches").unlink()
    with opened(made, tmp_path) as shuffler:
        assert released(made, shuffler) == [Counter(range(2))]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_leaves_the_store_alone(tmp_path: Path) -> None:
    made = collection(2)
    with opened(made, tmp_path) as shuffler:
        child = os.fork()
        if not child:
            code = 1
            try:
                shuffler.take([envelope(made, 1)])
            except SfumatoError:
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert shuffler.take([envelope(made, client) for client in range(2)]) == [True, True]
        assert released(made, shuffler) == [Counter(range(2))]


def test_threads_take_turns(quick: Path) -> None:
    made = collection(5)
    envelopes = [envelope(made, client) for client in range(400)]
    with opened(made, quick) as shuffler:
        with ThreadPoolExecutor(8) as pool:
            groups = [envelopes[start : start + 4] for start in range(0, 400, 4)]
            assert list(pool.map(shuffler.take, groups)) == [[True] * 4] * 100
        assert sum(released(made, shuffler), Counter[int]()) == Counter(range(400))


def fill(shuffler: Shuffler, made: Collection) -> None:
    for client in range(1, 2000):
        shuffler.take([envelope(made, client)])


def test_a_store_that_fails_promises_nothing_and_goes_on(quick: Path) -> None:
    made = collection(3)
    with opened(made, quick) as shuffler:
        shuffler.take([envelope(made, 0)])
        connection = shuffler._store._connection
        connection.execute("PRAGMA max_page_count = 1")  # as on a full disk
        with pytest.raises(sqlite3.OperationalError, match="full"):
            fill(shuffler, made)
        connection.execute("PRAGMA max_page_count = 1000000")
        before = shuffler.batches
        shuffler.take([envelope(made, client) for client in range(3 * before + 9)])
        found = sum(released(made, shuffler), Counter[int]())
        assert found == Counter(range(3 * before + 9))


class FailingDisk:
    """A connection whose statements fail that begin with some words."""

    def __init__(self, real: Any, *words: str) -> None:
        self.real, self.words = real, words

    def execute(self, text: str, *more: Any) -> Any:
        if text.startswith(self.words):
            raise sqlite3.OperationalError("disk I/O error")
        return self.real.execute(text, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@pytest.mark.parametrize("also", ["SELECT batches", "SELECT number", "ROLLBACK", "nothing"])
@pytest.mark.parametrize(
    "first", ["BEGIN", "UPDATE collection", "INSERT OR", "SELECT content", "INSERT INTO batch", "COMMIT"]
)
def test_a_failure_while_it_looks_what_a_failure_left(quick: Path, first: str, also: str) -> None:
    made = collection(3)
    with opened(made, quick) as shuffler:
        shuffler.take([envelope(made, client) for client in range(2)])
        real = shuffler._store._connection
        shuffler._store._connection = FailingDisk(real, first, also)  # type: ignore[assignment]
        with pytest.raises(sqlite3.OperationalError):
            shuffler.take([envelope(made, 2)])
        shuffler._store._connection = real
        for client in range(2, 9):
            assert shuffler.take([envelope(made, client)]) == [True]
        assert shuffler.batches == 3
        assert sum(released(made, shuffler), Counter[int]()) == Counter(range(9))


def test_one_process_has_it_and_one_collection(tmp_path: Path) -> None:
    made = collection(2)
    with opened(made, tmp_path), pytest.raises(ParameterError, match="in one shuffler only"):
        opened(made, tmp_path)
    with pytest.raises(ParameterError, match="store of this collection"):
        opened(collection(2, name="another"), tmp_path)
    with pytest.raises(ParameterError, match="must be that of the collection's shuffler"):
        Shuffler(made.device, SecretKey.generate("shuffler"), tmp_path)
    (tmp_path / "waiting.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(ParameterError, match="a shuffler's store"):
        opened(made, tmp_path)
    (tmp_path / "waiting.db").unlink()
    with sqlite3.connect(tmp_path / "waiting.db") as base:
        base.execute("CREATE TABLE theirs (x)")
    base.close()
    with pytest.raises(ParameterError, match="a shuffler's store, got 'no such table"):
        opened(made, tmp_path)
    with pytest.raises(ParameterError, match="folder must be one that can be written to"):
        opened(made, tmp_path / "waiting.db" / "below")
    with pytest.raises(ParameterError, match="at most 900000000 bytes"):
        opened(collection(100_000_000), tmp_path / "large")


@pytest.mark.parametrize("given", [None, b"123", "x", [None], [b"1", 2], 5])
def test_what_is_no_list_of_bytes_is_refused(tmp_path: Path, given: Any) -> None:
    with Shuffler(collection(5).device, SHUFFLER, tmp_path) as shuffler:
        with pytest.raises(ParameterError, match=r"envelopes must be a list of bytes, got .*; pass"):
            shuffler.take(given)
        assert shuffler.refused == {"shape": 0, "seal": 0}


@pytest.mark.parametrize("data", [None, "x", 5, [b"1"]])
def test_what_is_no_bytes_is_no_batch(data: Any) -> None:
    with pytest.raises(ParameterError, match="a batch must be one that a shuffler released, got other bytes"):
        MixedBatch.from_bytes(data)


def test_a_closed_one_takes_nothing(quick: Path) -> None:
    made = collection(4)
    with opened(made, quick) as shuffler:
        pass
    shuffler.close()
    with pytest.raises(ParameterError, match="shuffler must be open"):
        shuffler.take([envelope(made, 1)])
