"""The store of memos: on disk before a report leaves, closed to others' eyes, refused if it is not whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.local.device import (
    Domain,
    LongitudinalLocalHashingRandomizer,
    LongitudinalRandomizedResponseRandomizer,
    LongitudinalUnaryEncodingRandomizer,
    MemoizedBitFlipRandomizer,
    MemoizedOneBitMeanRandomizer,
    MemoStore,
    RandomizedResponseRandomizer,
)
from sfumato.numerics.randomness.source import SimulatedSource
from tests.chance import accepts_only, rate

KEY = bytes(range(32))
CITIES = Domain([f"city {place}" for place in range(20)])
BITS = MemoizedBitFlipRandomizer(epsilon=1.0, domain=CITIES, asked=20, max_memos=5)
QUESTIONS: list[Any] = [
    BITS,
    LongitudinalRandomizedResponseRandomizer(epsilon=1.0, domain=CITIES),
    LongitudinalUnaryEncodingRandomizer(epsilon=1.0, domain=CITIES),
    LongitudinalLocalHashingRandomizer(epsilon=1.0, domain=CITIES),
    MemoizedOneBitMeanRandomizer(epsilon=1.0, bounds=(0.0, 20.0), steps=20),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "memos"


def test_memos_outlive_the_process_and_belong_to_their_value(place: Path) -> None:
    with MemoStore.create(place, KEY) as store:
        sent = {city: store.client(BITS).report(city) for city in CITIES.values[:5]}
        assert store.client(BITS).memos == 5
        assert store.client(BITS).report("city 9") == sent["city 4"]  # beyond the cap: the last one
    with MemoStore.open(place, KEY) as store:
        client = store.client(BITS)
        assert client.memos == 5
        for city, record in sent.items():
            assert client.report(city) == record
        assert client.report("city 19") == sent["city 4"]
        assert store.client(BITS) is client
        assert len(set(sent.values())) > 1


@pytest.mark.parametrize("protocol", QUESTIONS, ids=lambda protocol: str(type(protocol).__name__))
def test_every_protocol_keeps_its_memory(place: Path, protocol: Any) -> None:
    value: Any = 7.5 if isinstance(protocol, MemoizedOneBitMeanRandomizer) else "city 7"
    with MemoStore.create(place, KEY) as store:
        first = store.client(protocol)
        assert len(first.report(value)) == protocol.width
        kept = first.memory
        assert kept is not None
    with MemoStore.open(place, KEY) as store:
        again = store.client(protocol)
        again.report(value)
        assert again.memory is not None
        for part in ("fixed", "keys", "memos", "used"):
            assert (getattr(again.memory, part) == getattr(kept, part)).all()
        assert again.memory.memos.flags.writeable
        assert again.memos == 1


def test_size_and_bytes_do_not_tell_what_was_memoized(place: Path) -> None:
    sizes, contents = set(), []
    with MemoStore.create(place, KEY) as store:
        for protocol in QUESTIONS[:4]:
            store.client(protocol).report("city 3")
        for city in ("city 3", "city 3", "city 4", "city 5", "city 6"):
            for protocol in QUESTIONS[:4]:
                before = store.generation
                store.client(protocol).report(city)
                assert store.generation == before + 1  # each report writes, whether it has to or not
            contents.append(place.read_bytes())
            sizes.add(len(contents[-1]))
        keys = store.client(BITS).memory.keys.tobytes()  # type: ignore[union-attr]
    assert len(sizes) == 1
    assert len({content[-200:] for content in contents}) == 5
    for content in contents:
        assert b"city" not in content
        assert keys[:8] not in content
        for protocol in QUESTIONS[:4]:
            assert content.count(protocol.digest) == 1
    # A file of the same questions with no more than one memo is as long.
    other = place.with_name("other")
    with MemoStore.create(other, KEY) as store:
        for protocol in QUESTIONS[:4]:
            store.client(protocol).report("city 3")
    assert len(other.read_bytes()) in sizes


def test_questions_that_are_not_asked_stay(place: Path) -> None:
    with MemoStore.create(place, KEY) as store:
        sent = store.client(BITS).report("city 1")
        store.client(QUESTIONS[1]).report("city 1")
    with MemoStore.open(place, KEY) as store:
        store.client(QUESTIONS[2]).report("city 1")
        assert store.questions == tuple(protocol.digest for protocol in QUESTIONS[:3])
    with MemoStore.open(place, KEY) as store:
        assert store.client(BITS).report("city 1") == sent


def test_whatever_is_altered_is_refused(place: Path) -> None:
    with MemoStore.create(place, KEY) as store:
        store.client(QUESTIONS[1]).report("city 1")
    whole = place.read_bytes()
    for at in range(len(whole)):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(SourceError, match="store must be"):
            MemoStore.open(place, KEY)
    for cut in (0, 5, 26, 27, len(whole) - 1):
        place.write_bytes(whole[:cut])
        with pytest.raises(SourceError, match="store must be"):
            MemoStore.open(place, KEY)
    place.write_bytes(whole + b"x")
    with pytest.raises(SourceError, match="store must be whole"):
        MemoStore.open(place, KEY)
    place.write_bytes(whole)
    with pytest.raises(SourceError, match="of this key"):
        MemoStore.open(place, b"k" * 32)
    MemoStore.open(place, KEY).close()


def test_an_older_copy_is_refused_where_the_generation_is_known(place: Path) -> None:
    with MemoStore.create(place, KEY) as store:
        store.client(BITS).report("city 1")
        older = place.read_bytes()
        store.client(BITS).report("city 2")
        known = store.generation
    MemoStore.open(place, KEY, at_least=known).close()
    place.write_bytes(older)
    with pytest.raises(SourceError, match="an older copy; pass at_least=0"):
        MemoStore.open(place, KEY, at_least=known)
    with MemoStore.open(place, KEY) as store:
        assert store.generation == known - 1


def test_a_lost_store_is_never_made_again_in_silence(place: Path) -> None:
    with pytest.raises(SourceError, match=r"create\(\) makes one"):
        MemoStore.open(place, KEY)
    MemoStore.create(place, KEY).close()
    with pytest.raises(SourceError, match=r"use MemoStore\.open"):
        MemoStore.create(place, KEY)
    MemoStore.open(place, KEY).close()


def test_nothing_is_reported_that_cannot_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with MemoStore.create(folder / "memos", KEY) as store:
        client = store.client(BITS)
        sent = client.report("city 1")
        folder.rename(tmp_path / "away")
        with pytest.raises(SourceError, match="written before a report leaves"):
            client.report("city 2")
        (tmp_path / "away").rename(folder)
        assert client.report("city 1") == sent
        with pytest.raises(ParameterError, match="values must be categories") as told:
            client.report("city 987")
        assert "987" not in str(told.value)
        written = store.generation
        assert client.report("city 1") == sent
        assert store.generation == written + 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_one_process_at_a_time(place: Path) -> None:
    store = MemoStore.create(place, KEY)
    with pytest.raises(SourceError, match="store must be free"):
        MemoStore.open(place, KEY)
    client = store.client(BITS)
    child = os.fork()
    if child == 0:
        try:
            client.report("city 1")
        except SourceError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    store.close()
    store.close()
    with pytest.raises(SourceError, match="store must be open"):
        client.report("city 1")
    MemoStore.open(place, KEY).close()


CHILD = """
import sys
from sfumato.local.device import Domain, MemoizedBitFlipRandomizer, MemoStore
asked = MemoizedBitFlipRandomizer(
    epsilon=1.0, domain=Domain([f"city {place}" for place in range(20)]), asked=20, max_memos=20
)
store = MemoStore.open(sys.argv[1], sys.argv[2])
client = store.client(asked)
for place in [*range(20)] * 1000:
    record = client.report(f"city {place}")
    sys.stdout.write(f"{place} {record.hex()}\\n")
    sys.stdout.flush()
"""


def test_one_store_by_whatever_name(place: Path) -> None:
    link = place.with_name("link")
    link.symlink_to(place)
    with MemoStore.create(place, KEY) as store:
        with pytest.raises(SourceError, match="store must be free"):
            MemoStore.open(link, KEY)
        store.client(BITS).report("city 1")
    with MemoStore.open(link, KEY) as store:
        store.client(BITS).report("city 2")
    assert link.is_symlink()
    with MemoStore.open(place, KEY) as store:
        assert store.client(BITS).memos == 2


def test_a_killed_device_remembers_all_that_it_sent(place: Path) -> None:
    key = place.with_name("key")
    MemoStore.create(place, key).close()
    asked = MemoizedBitFlipRandomizer(epsilon=1.0, domain=CITIES, asked=20, max_memos=20)
    heard: dict[str, str] = {}
    for lines in (1, 5, 14):
        command = [sys.executable, "-c", CHILD, str(place), str(key)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None
            told = [run.stdout.readline() for _ in range(lines)]
            run.send_signal(signal.SIGKILL)
            told += run.stdout.readlines()
        assert run.returncode == -signal.SIGKILL
        for line in (line for line in told if line.endswith("\n")):
            city, record = line.split()
            assert heard.setdefault(city, record) == record
        with MemoStore.open(place, key) as store:
            for city, record in heard.items():
                assert store.client(asked).report(f"city {city}").hex() == record
    assert len(heard) >= 14


def test_keys_are_kept_where_nobody_else_reads_them(tmp_path: Path, place: Path) -> None:
    key = tmp_path / "key"
    with pytest.raises(SourceError, match="key must be a file that can be read"):
        MemoStore.open(place, key)
    MemoStore.create(place, key).close()
    assert key.stat().st_mode & 0o777 == 0o600
    assert place.stat().st_mode & 0o777 == 0o600
    assert len(key.read_bytes()) == 32
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "memos", "memos.lock"]
    MemoStore.open(place, str(key)).close()
    MemoStore.open(place, key.read_bytes()).close()
    for mode in (0o640, 0o604, 0o660):
        key.chmod(mode)
        with pytest.raises(SourceError, match="this user alone can read"):
            MemoStore.open(place, key)
    key.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(key)
    with pytest.raises(SourceError, match="no link"):
        MemoStore.open(place, link)
    short = tmp_path / "short"
    short.write_bytes(b"k" * 31)
    short.chmod(0o600)
    with pytest.raises(SourceError, match="key must be a file of 32 bytes"):
        MemoStore.open(place, short)
    for odd, message in (
        (b"short", "key must be 32 secret bytes"),
        (7, "key must be 32 secret bytes or a file"),
    ):
        with pytest.raises(ParameterError, match=message):
            MemoStore.open(place, odd)  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="folder that can be written"):
        MemoStore.create(tmp_path / "no" / "memos", KEY)
    with pytest.raises(SourceError, match="key must be in a folder"):
        MemoStore.create(place, tmp_path / "no" / "key")


def test_one_key_is_not_used_for_ever(place: Path) -> None:
    with MemoStore.create(place, KEY) as store:
        client = store.client(BITS)
        client.report("city 1")
        store._generation = 2**32
        with pytest.raises(SourceError, match="use a new key"):
            client.report("city 1")


def test_seeds_are_for_simulated_stores(place: Path) -> None:
    with MemoStore.create(place, KEY) as store, pytest.raises(ParameterError, match="rng must be None"):
        store.client(BITS).report("city 1", 3)
    other = place.with_name("simulated")
    with MemoStore.create(other, KEY, simulated=True) as store:
        assert store.client(BITS).report("city 1", 3)
    with MemoStore.open(other, KEY) as store:
        assert store.simulated


def test_stores_take_what_memoizes_and_fits(place: Path) -> None:
    with MemoStore.create(place, KEY) as store:
        with pytest.raises(ParameterError, match="protocol must be one that memoizes"):
            store.client(RandomizedResponseRandomizer(epsilon=1.0, domain=CITIES))  # type: ignore[arg-type]
        wide = LongitudinalUnaryEncodingRandomizer(
            epsilon=1.0, domain=Domain(range(1 << 16)), max_memos=1 << 14
        )
        with pytest.raises(ParameterError, match="allow fewer with max_memos"):
            store.client(wide)
        half = LongitudinalUnaryEncodingRandomizer(
            epsilon=1.0, domain=Domain(range(1 << 13)), max_memos=1 << 13
        )
        store.client(half)
        with pytest.raises(ParameterError, match="as each report writes it anew"):
            store.client(
                LongitudinalUnaryEncodingRandomizer(epsilon=2.0, domain=half.domain, max_memos=1 << 13)
            )
        changed = MemoizedBitFlipRandomizer(epsilon=2.0, domain=CITIES, asked=20)
        assert store.client(changed) is not store.client(BITS)


def test_a_client_reports_as_a_simulated_device_does(place: Path) -> None:
    for at, protocol in enumerate(QUESTIONS):
        history: list[Any] = [3.5, 4.5, 3.5, 19.0] if at == 4 else ["city 1", "city 7", "city 1", "city 9"]
        with MemoStore.create(place.with_name(f"memos {at}"), KEY, simulated=True) as store:
            source = SimulatedSource(5)
            sent = [store.client(protocol).report(value, source) for value in history]
        assert sent == [batch[0] for batch in protocol.randomize_rounds([[value] for value in history], 5)]


def test_memos_of_many_devices_have_the_law_of_one_report(tmp_path: Path) -> None:
    asked = LongitudinalRandomizedResponseRandomizer(
        epsilon=1.0, permanent_epsilon=2.0, domain=Domain(range(2))
    )
    with MemoStore.create(tmp_path / "memos", KEY, simulated=True) as store:
        client = store.client(asked)
        reports = [client.report(1, np.random.default_rng(seed)) for seed in range(80)]
        assert client.memory is not None
        memoized = int(asked.permanent.layout.unpack(client.memory.memos[0, :1])[0])
    told = asked.layout.pack(np.array([memoized], np.uint64)).tobytes()
    chance = asked.again.chance
    accepts_only(rate(reports.count(told), 80), chance, memos_told=1.0, of_the_other=1 - chance)
