"""The collector of plain reports without the network: checked, once for each nonce, in whole batches."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.server import LocalCollector
from tests.server.setting import memory_folder

# A report is false with probability 1e-13, so that each says which device it is of.
ORACLE = local.RandomizedResponse(epsilon=40.0, domain=local.Domain(range(1 << 14)))
ASKED = device.PublicQuestion(randomizer=ORACLE.device, name="week 7")


@pytest.fixture
def quick() -> Iterator[Path]:
    with memory_folder() as folder:
        yield folder


def sent(number: int) -> bytes:
    return ASKED.submission(number, number.to_bytes(16, "big"))


def values(path: Path) -> Counter[int]:
    """What the reports of a released file say."""
    counted = local.aggregate_parquet(ORACLE, [path], "report", processes=1)
    assert sum(counted.refused.values()) == 0
    shares = counted.estimate().raw * counted.accepted
    return Counter({int(at): round(float(shares[at])) for at in np.flatnonzero(shares > 0.5)})


def test_batches_are_whole_and_each_device_is_in_one(quick: Path) -> None:
    with LocalCollector(ASKED, quick, 4) as collector:
        assert collector.take([sent(number) for number in range(3)]) == [True] * 3
        assert collector.batches == 0
        assert not collector.path(1).exists()
        assert collector.take([sent(0), sent(1), sent(3), sent(4)]) == [True] * 4
        assert collector.progress == (1, 1)
    with LocalCollector(ASKED, quick, 4) as collector:
        assert collector.take([sent(number) for number in range(8)]) == [True] * 8
        assert [values(collector.path(number)) for number in (1, 2)] == [
            Counter(range(4)), Counter(range(4, 8)),
        ]  # fmt: skip
        assert collector.path(1).stat().st_mode & 0o777 == 0o600


def test_equal_reports_of_two_devices_count_twice(quick: Path) -> None:
    report = ORACLE.device.randomize(7)
    with LocalCollector(ASKED, quick, 2) as collector:
        assert collector.take([ASKED.packed(report, bytes([one]) * 16) for one in range(2)]) == [True, True]
        assert values(collector.path(1)) == Counter({7: 2})


def test_what_no_device_sends_is_not_stored(quick: Path) -> None:
    narrow = local.RandomizedResponse(epsilon=40.0, domain=local.Domain(range(9_000)))
    asked = device.PublicQuestion(randomizer=narrow.device)
    width = asked.submission_width
    beyond = np.frombuffer(narrow.device.randomize(1), np.uint8).copy().reshape(1, -1)
    beyond[0, 0], beyond[0, 1] = 255, beyond[0, 1] | 63  # index 16,383 of 9,000
    with LocalCollector(asked, quick, 2) as collector:
        refused = [b"", bytes(width - 1), bytes(width + 1), bytes(width), os.urandom(width)]
        refused += [sent(1), bytes(16) + beyond.tobytes()]
        assert collector.take(refused) == [False] * 7
        assert collector.refused == {"shape": 3, "tag": 3, "encoding": 1}
        assert collector.progress == (0, 0)
        good = asked.submission(1, bytes(16))
        assert collector.take([good]) == [True]  # the nonce of a refused report is not used up
        assert collector.progress == (0, 1)


def test_a_file_says_nothing_of_the_order_in_which_reports_came(quick: Path) -> None:
    orders = set()
    for attempt in range(4):
        with LocalCollector(ASKED, quick / str(attempt), 16) as collector:
            collector.take([sent(number) for number in range(16)])
            content = collector.path(1).read_bytes()
            assert collector.path(1).name == "batch-000001.parquet"
            assert not any(ASKED.nonce(number.to_bytes(16, "big")) in content for number in range(16))
            column = read(content)
            assert len(column) == 16
            orders.add(tuple(column))
    assert len(orders) == 4  # two of four are alike with probability below 3e-13


def read(content: bytes) -> list[bytes]:
    return list(pq.read_table(io.BytesIO(content)).column("report").to_pylist())


def test_what_is_refused_when_it_is_opened(quick: Path) -> None:
    with LocalCollector(ASKED, quick, 4) as collector:
        with pytest.raises(ParameterError, match="must be open in one collector only"):
            LocalCollector(ASKED, quick, 4)
        collector.take([sent(number) for number in range(4)])
    with pytest.raises(ParameterError, match="must be open, but it is closed"):
        collector.take([sent(9)])
    for asked, size, told in (
        (device.PublicQuestion(randomizer=ORACLE.device), 4, "must be the store of this collection"),
        (ASKED, 5, "must be the store of this collection"),
        (ASKED, 1, "batch_size must be an integer of at least 2, got 1"),
        (ORACLE.device, 4, "question must be a PublicQuestion"),
    ):
        with pytest.raises(ParameterError, match=told):
            LocalCollector(asked, quick, size)  # type: ignore[arg-type]
    (quick / "waiting.db").unlink()
    with pytest.raises(ParameterError, match="it is an older copy"):
        LocalCollector(ASKED, quick, 4)
