"""A device's budget: caps in exact units, days, pins, memos, races, kills, and files that are not whole."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.crypto import SecretKey
from sfumato.errors import DeviceBudgetExceeded, ParameterError, SimulatedCharge, SourceError
from sfumato.local import shuffle
from sfumato.local.device import (
    DeviceBudget,
    Domain,
    LongitudinalRandomizedResponseRandomizer,
    MemoStore,
    PublicCollection,
    RandomizedResponseRandomizer,
    ShuffledHistogramRandomizer,
)
from sfumato.local.device.budget.budget_file import UNIT

YES_NO = Domain(["no", "yes"])
HALF = RandomizedResponseRandomizer(epsilon=0.5, domain=YES_NO)
OTHER = RandomizedResponseRandomizer(epsilon=0.25, domain=YES_NO)
MEMOS = LongitudinalRandomizedResponseRandomizer(
    epsilon=0.5, permanent_epsilon=1.0, domain=Domain(["a", "b", "c"]), max_memos=2
)
MORE = LongitudinalRandomizedResponseRandomizer(
    epsilon=1.0, permanent_epsilon=2.0, domain=Domain(["a", "b", "c"]), max_memos=2
)
DAY = 86_400.0


class Clock:
    """A clock that a test sets."""

    def __init__(self, day: float) -> None:
        self.day = day

    def __call__(self) -> float:
        return self.day * DAY


NOON = Clock(20_000.5)


def made(path: Path, clock: Callable[[], float] = NOON, **caps: Any) -> DeviceBudget:
    given = {"lifetime_epsilon": 3.0, "daily_epsilon": 1.0, "max_epsilon": 2.0} | caps
    DeviceBudget.create(path, **given)
    return DeviceBudget.open(path, clock=clock)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "budget"


def left(budget: DeviceBudget) -> tuple[float, float]:
    found = budget.remaining()
    return found.today, found.lifetime


def test_reports_are_paid_for_until_the_day_and_the_lifetime_are_used_up(place: Path) -> None:
    clock = Clock(20_000.5)
    budget = made(place, clock)
    assert left(budget) == (1.0, 3.0)
    for used in (1, 2):
        assert HALF.well_formed(HALF.randomize_batch(["no"]).records).all()
        assert len(budget.randomize(HALF, "yes")) == HALF.width
        assert left(budget) == (1.0 - used / 2, 3.0 - used / 2)
    before = budget.generation
    for randomizer in (HALF, OTHER):
        with pytest.raises(
            DeviceBudgetExceeded, match=r"at most the epsilon 0 that is left today, got 0\.\d+"
        ):
            budget.randomize(randomizer, "yes")
    assert (left(budget), budget.generation) == ((0.0, 2.0), before)
    # Another process sees the same, and a new day gives the day's cap again, but not the lifetime's.
    for day in (20_001, 20_002):
        clock.day = day
        budget = DeviceBudget.open(place, clock=clock)
        assert left(budget)[0] == 1.0
        assert len(budget.randomize_batch(HALF, ["yes", "no"])) == 2
    clock.day = 20_003
    assert left(budget) == (0.0, 0.0)
    with pytest.raises(DeviceBudgetExceeded, match=r"left in its lifetime, got 0\.25"):
        budget.randomize(OTHER, "no")


def test_a_clock_that_is_set_back_returns_nothing(place: Path) -> None:
    clock = Clock(20_000)
    budget = made(place, clock)
    budget.randomize_batch(HALF, ["no", "no"])
    for day in (19_999, 0, -5, 20_000.999):
        clock.day = day
        assert left(budget) == (0.0, 2.0)
        with pytest.raises(DeviceBudgetExceeded, match="left today"):
            budget.randomize(OTHER, "no")
    clock.day = 20_002  # ahead, and back: that day's cap is used up until it comes
    budget.randomize_batch(HALF, ["no", "no"])
    clock.day = 20_001
    assert left(budget) == (0.0, 1.0)


def test_a_batch_is_paid_for_as_a_whole_or_not_at_all(place: Path) -> None:
    budget = made(place)
    with pytest.raises(DeviceBudgetExceeded, match=r"epsilon 1 that is left today, got 1\.5"):
        budget.randomize_batch(HALF, ["no"] * 3)
    assert left(budget) == (1.0, 3.0)
    assert len(budget.randomize_batch(HALF, [])) == 0
    assert left(budget) == (1.0, 3.0)


def test_ten_floats_of_a_tenth_are_more_than_one(place: Path) -> None:
    budget = made(place, daily_epsilon=1.0)
    tenth = RandomizedResponseRandomizer(epsilon=0.1, domain=YES_NO)
    for _ in range(9):
        budget.randomize(tenth, "no")
    with pytest.raises(DeviceBudgetExceeded, match=r"got 0\.1;"):
        budget.randomize(tenth, "no")


def test_pins_are_not_raised_by_a_server(place: Path, tmp_path: Path) -> None:
    budget = made(place, digests=[HALF.digest], collection_epsilon=0.5)
    with pytest.raises(DeviceBudgetExceeded, match="of a specification that it pins"):
        budget.randomize(OTHER, "no")
    budget.randomize(HALF, "no")
    with pytest.raises(DeviceBudgetExceeded, match=r"epsilon 0 that is left of this collection, got 0\.5"):
        budget.randomize(HALF, "no")
    small = made(tmp_path / "small", max_epsilon=0.25)
    with pytest.raises(DeviceBudgetExceeded, match=r"of an epsilon of at most 0\.25, got 0\.5"):
        small.randomize(HALF, "no")
    assert len(small.randomize(OTHER, "no")) == OTHER.width
    with pytest.raises(SourceError, match="budget must be new"):
        made(place, lifetime_epsilon=100.0)


def test_refusals_do_not_depend_on_values_and_bad_values_cost_nothing(place: Path, tmp_path: Path) -> None:
    told = set()
    for at, value in enumerate(YES_NO.values):
        budget = made(tmp_path / str(at), daily_epsilon=0.4)
        with pytest.raises(DeviceBudgetExceeded) as caught:
            budget.randomize(HALF, value)
        told.add(str(caught.value))
    assert len(told) == 1
    budget = made(place)
    with pytest.raises(ParameterError, match="values must be categories") as bad:
        budget.randomize(HALF, "perhaps")
    assert "perhaps" not in str(bad.value)
    with pytest.raises(SimulatedCharge, match="rng must be None for a real budget"):
        budget.randomize(HALF, "no", rng=1)
    with pytest.raises(ParameterError, match="randomizer must be"):
        budget.randomize("x", "no")  # type: ignore[arg-type]
    assert left(budget) == (1.0, 3.0)
    practice = made(tmp_path / "practice", simulated=True)
    assert practice.randomize(HALF, "no", rng=1) == HALF.randomize("no", 1)
    assert practice.randomize_batch(HALF, ["no"], rng=1).simulated


def test_memos_are_paid_for_once_and_again_when_they_are_lost(place: Path, tmp_path: Path) -> None:
    budget = made(place, lifetime_epsilon=8.0, daily_epsilon=8.0)
    key, path = bytes(32), tmp_path / "memos"
    with MemoStore.create(path, key) as store:
        client = store.client(MEMOS)
        assert MEMOS.memo_limit * (MEMOS.permanent_epsilon or 0) == 2.0
        budget.report(client, "a")
        assert left(budget)[1] == 6.0
        backup = path.read_bytes()
        for value in "abca":  # one new memo, and none beyond the cap: paid for all
            assert len(budget.report(client, value)) == MEMOS.width
        assert left(budget)[1] == 6.0
        with pytest.raises(ParameterError):
            budget.report(client, "x")
    with MemoStore.open(path, key) as store:
        budget.report(store.client(MEMOS), "b")
    assert left(budget)[1] == 6.0
    path.write_bytes(backup)  # forgets the second memo, which would be drawn anew
    with MemoStore.open(path, key) as store:
        budget.report(store.client(MEMOS), "b")
        assert left(budget)[1] == 4.0
    with MemoStore.create(tmp_path / "new", key) as store:
        budget.report(store.client(MEMOS), "b")
    assert left(budget)[1] == 2.0
    poor = made(tmp_path / "poor", lifetime_epsilon=1.5, daily_epsilon=1.5)
    with MemoStore.create(tmp_path / "third", key) as store:
        with pytest.raises(DeviceBudgetExceeded, match=r"1\.5 that is left in its lifetime, got 2"):
            poor.report(store.client(MEMOS), "b")
        assert store.client(MEMOS).memos == 0
        with pytest.raises(DeviceBudgetExceeded, match="of an epsilon of at most"):
            made(tmp_path / "low", max_epsilon=0.5).report(store.client(MEMOS), "b")


def test_as_many_are_drawn_as_are_paid_for(place: Path) -> None:
    class Growing(list[str]):
        """Longer at each reading."""

        def __iter__(self) -> Any:
            self.append("no")
            return list.__iter__(self)

    budget = made(place)
    assert len(budget.randomize_batch(OTHER, (value for value in YES_NO.values))) == 2
    assert left(budget)[0] == 0.5
    assert len(budget.randomize_batch(OTHER, Growing())) == 1
    assert left(budget)[0] == 0.25


def test_memos_of_a_seed_are_not_for_a_real_budget(place: Path, tmp_path: Path) -> None:
    budget = made(place, lifetime_epsilon=8.0, daily_epsilon=8.0)
    with MemoStore.create(tmp_path / "memos", bytes(32), simulated=True) as store:
        client = store.client(MEMOS)
        client.report("a", rng=1)
        with pytest.raises(SimulatedCharge, match="rng must be None"):
            budget.report(client, "a")
    assert left(budget)[1] == 8.0


def test_threads_that_report_of_one_memo_store_pay_once(place: Path, tmp_path: Path) -> None:
    budget = made(place, lifetime_epsilon=8.0, daily_epsilon=8.0)
    with MemoStore.create(tmp_path / "memos", bytes(32)) as store:
        client = store.client(MEMOS)
        both = threading.Barrier(4)

        def ask() -> None:
            both.wait()
            for _ in range(5):
                budget.report(client, "a")

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.generation == 21
    assert left(budget)[1] == 6.0


def test_memos_of_any_older_store_are_paid_for_again(place: Path, tmp_path: Path) -> None:
    budget = made(place, lifetime_epsilon=20.0, daily_epsilon=20.0)
    key, path = bytes(32), tmp_path / "memos"
    spent = 20.0 - left(budget)[1]
    with MemoStore.create(path, key) as store:
        for asked in (MEMOS, MORE):
            budget.report(store.client(asked), "a")
        spent += 2.0 + 4.0
        before = path.read_bytes()
        budget.report(store.client(MEMOS), "b")
    assert left(budget)[1] == 20.0 - spent
    path.write_bytes(before)  # a single report older: the memo of b is lost
    with MemoStore.open(path, key) as store:
        # What another question writes does not hide it.
        budget.report(store.client(MORE), "a")
        assert left(budget)[1] == 20.0 - spent - 4.0
        for _ in range(2):
            budget.report(store.client(MEMOS), "b")
            budget.report(store.client(MORE), "b")
        assert left(budget)[1] == 20.0 - spent - 6.0


def test_envelopes_cost_what_their_messages_lose_without_the_shuffler(place: Path) -> None:
    analyst, shuffler = (SecretKey.generate(role).public for role in ("analyst", "shuffler"))
    budget = made(place, collection_epsilon=0.5)

    def asked(randomizer: Any, name: str = "") -> PublicCollection:
        return PublicCollection(
            randomizer=randomizer, batch_size=9, analyst=analyst, shuffler=shuffler, name=name
        )

    for used, name in enumerate(("monday", "tuesday"), 1):
        collection = asked(HALF, name)
        assert len(budget.envelope(collection, "no", bytes(16))) == collection.envelope_width
        assert left(budget)[0] == 1.0 - used / 2
    with pytest.raises(ParameterError, match="secret must be"):
        budget.envelope(asked(OTHER), "no", b"")
    shares = shuffle.ShuffledSum(epsilon=1.0, delta=1e-3, clients=1000, bounds=(0.0, 1.0), steps=4)
    with pytest.raises(DeviceBudgetExceeded, match="reports that protect by themselves"):
        budget.envelope(asked(shares.device), 0.5, bytes(16))
    mixed = shuffle.ShuffledHistogram(epsilon=1.0, delta=1e-3, clients=1000, domain=YES_NO).device
    assert isinstance(mixed, ShuffledHistogramRandomizer)
    with pytest.raises(DeviceBudgetExceeded, match=f"at most 2, got {mixed.epsilon:g}"):
        budget.envelope(asked(mixed), "no", bytes(16))
    rich = made(place.with_name("rich"), lifetime_epsilon=99.0, daily_epsilon=99.0, max_epsilon=40.0)
    assert mixed.messages > 1
    assert len(rich.randomize_batch(mixed, ["no", "yes"])) == 2 * mixed.messages
    assert left(rich)[1] == pytest.approx(99.0 - 2 * mixed.epsilon)


def test_threads_and_processes_never_overspend(place: Path) -> None:
    budget = made(place, lifetime_epsilon=2.0, daily_epsilon=2.0)
    DeviceBudget.open(place)
    code = f"""
from sfumato.errors import DeviceBudgetExceeded
from sfumato.local.device import DeviceBudget, Domain, RandomizedResponseRandomizer
budget = DeviceBudget.open({str(place)!r}, clock=lambda: {20_000 * DAY})
asked = RandomizedResponseRandomizer(epsilon=0.25, domain=Domain(["no", "yes"]))
for _ in range(6):
    try:
        print(len(budget.randomize(asked, "no")))
    except DeviceBudgetExceeded:
        print("refused")
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    sent: list[bytes] = []

    def ask() -> None:
        for _ in range(3):
            try:
                sent.append(budget.randomize(OTHER, "no"))
            except DeviceBudgetExceeded:
                return

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = other.communicate(timeout=60)[0].split()
    assert other.returncode == 0
    # 15 ask for a quarter each of 2: eight are answered, whoever they are.
    assert len(sent) + len(lines) - lines.count("refused") == 8
    assert left(budget) == (0.0, 0.0)


def test_a_device_that_is_killed_before_it_draws_has_paid(place: Path) -> None:
    budget = made(place)
    code = f"""
import os, signal
from sfumato.local.device import DeviceBudget, Domain, RandomizedResponseRandomizer
budget = DeviceBudget.open({str(place)!r}, clock=lambda: {20_000 * DAY})
asked = RandomizedResponseRandomizer(epsilon=0.5, domain=Domain(["no", "yes"]))
RandomizedResponseRandomizer.randomize_batch = (
    lambda self, values, rng=None, draw=RandomizedResponseRandomizer.randomize_batch:
    draw(self, values, rng) if rng == 0 else os.kill(os.getpid(), signal.SIGKILL)
)
budget.randomize(asked, "no")
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert left(budget) == (0.5, 2.5)
    # A write that was cut off leaves the old file.
    place.with_name("budget.new").write_bytes(b"{")
    assert len(budget.randomize(HALF, "no")) == HALF.width
    assert left(budget) == (0.0, 2.0)


def test_files_that_are_not_whole_or_too_old_are_refused(place: Path) -> None:
    budget = made(place)
    old = place.read_bytes()
    budget.randomize(HALF, "no")
    known, content = budget.generation, place.read_bytes()
    assert known == 2
    assert DeviceBudget.open(place, at_least=known).generation == known
    half = str(UNIT // 2).encode()
    for damaged in (
        b"",
        b"{}",
        content[:-9],
        content.replace(half, b"0"),
        content.replace(b'"version":1', b'"version":2'),
        b"\xff" * 20,
    ):
        assert damaged != content
        place.write_bytes(damaged)
        for act in (DeviceBudget.open, lambda _: budget.randomize(HALF, "no")):
            with pytest.raises(SourceError, match="budget must be a device's budget, whole and unaltered"):
                act(place)
    place.write_bytes(old)
    with pytest.raises(SourceError, match="budget must be of generation 2 or later, got 1"):
        DeviceBudget.open(place, at_least=known)
    place.unlink()
    with pytest.raises(SourceError, match="budget must be a file that can be read"):
        budget.randomize(HALF, "no")
    with pytest.raises(SourceError, match="budget must be in a folder that can be written"):
        made(place / "none" / "budget")
    place.mkdir()
    with pytest.raises(SourceError, match="budget must be a file that can be read"):
        DeviceBudget.open(place)


def test_a_payment_that_cannot_be_written_stops_the_draw(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = made(place)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.local.device.budget.budget_file.replace_file", full)
    with pytest.raises(SourceError, match="budget must be written before a report is drawn"):
        budget.randomize(HALF, "no")
    monkeypatch.undo()
    assert left(budget) == (1.0, 3.0)


def test_caps_that_break_a_rule(place: Path) -> None:
    for name in ("lifetime_epsilon", "daily_epsilon", "max_epsilon", "collection_epsilon"):
        for value, rule in (
            (0.0, "be positive"),
            (5000.0, "be at most 4096"),
            (1e-300, r"be at least 2\*\*-40"),
        ):
            with pytest.raises(ParameterError, match=f"{name} must {rule}"):
                made(place, NOON, **{name: value})
    for digest in (b"x", "00" * 32):
        with pytest.raises(ParameterError, match="digests must be 32 bytes each"):
            made(place, digests=[digest])
    assert not place.exists()
