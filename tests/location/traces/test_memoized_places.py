from __future__ import annotations

import os
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import ParameterError, SourceError
from sfumato.location import MemoizedPlaces, PlaceMechanism, PlaceMetric, exponential_mechanism
from sfumato.numerics import Rng

MECHANISM = exponential_mechanism(PlaceMetric.grid(4, 4, cell=100.0), epsilon=0.001)


def test_one_report_for_each_place_and_none_beyond_the_cap() -> None:
    device = MemoizedPlaces(MECHANISM, max_places=3)
    first = [device.report(place) for place in (0, 5, 15)]
    assert [device.report(place) for place in (15, 0, 5) * 5] == [first[2], first[0], first[1]] * 5
    assert device.report(7) == -1
    assert device.guarantee.epsilon == pytest.approx(3 * 0.001)
    assert device.guarantee.reports == 3


def test_devices_draw_for_themselves() -> None:
    drawn = {MemoizedPlaces(MECHANISM, max_places=1).report(0) for _ in range(200)}
    # Each report has a probability below .08: that fewer than four are seen has one below 1e-90.
    assert len(drawn) >= 4


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="mechanism must be a PlaceMechanism"):
        MemoizedPlaces(None, max_places=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="max_places must be"):
        MemoizedPlaces(MECHANISM, max_places=0)
    for place in (16, -1, 0.5):
        with pytest.raises(ParameterError, match="place must be"):
            MemoizedPlaces(MECHANISM, max_places=1).report(place)  # type: ignore[arg-type]


def test_the_memory_outlives_the_process(tmp_path: Path) -> None:
    path, key = tmp_path / "places", tmp_path / "key"
    device = MemoizedPlaces.create(path, key, MECHANISM, max_places=6)
    empty = path.stat().st_size
    device.close()
    device = MemoizedPlaces.open(path, key, MECHANISM, max_places=6)
    places = [0, *range(11, 16)]
    first = [device.report(place) for place in places]
    assert -1 not in first
    assert path.stat().st_size == empty
    with pytest.raises(SourceError, match="store must be free"):
        MemoizedPlaces.open(path, key, MECHANISM, max_places=6)
    device.close()
    again = MemoizedPlaces.open(path, key, MECHANISM, max_places=6)
    assert [again.report(place) for place in places] == first
    assert again.report(6) == -1
    again.close()
    with pytest.raises(SourceError, match="path must be new"):
        MemoizedPlaces.create(path, key, MECHANISM, max_places=6)
    other = exponential_mechanism(PlaceMetric.grid(4, 4, cell=100.0), epsilon=0.002)
    for mechanism, cap in ((other, 6), (MECHANISM, 7)):
        with pytest.raises(SourceError, match="this mechanism and max_places"):
            MemoizedPlaces.open(path, key, mechanism, max_places=cap)
    MemoizedPlaces.open(path, key, MECHANISM, max_places=6).close()
    with pytest.raises(SourceError):
        MemoizedPlaces.open(tmp_path / "none", key, MECHANISM, max_places=6)


def test_a_report_that_cannot_be_kept_does_not_leave(tmp_path: Path) -> None:
    device = MemoizedPlaces.create(tmp_path / "places", os.urandom(32), MECHANISM, max_places=1)
    with pytest.raises(ParameterError, match="rng must be None"):
        device.report(3, rng=1)
    device.close()
    for place in (0, 1):
        with pytest.raises(SourceError, match="store must be open"):
            device.report(place)


def test_copies_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    device = MemoizedPlaces(MECHANISM, max_places=1)
    device.report(0)
    with pytest.raises(TypeError):
        pickle.dumps(device)
    # As in a forked child.
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for place in (0, 1):
        with pytest.raises(ParameterError, match="report in the process that made it"):
            device.report(place)


def test_threads_share_one_cap() -> None:
    class Slow(PlaceMechanism):
        def release(self, places: ArrayLike, rng: Rng = None) -> NDArray[np.int64]:
            del places, rng
            time.sleep(0.02)
            return np.array([3])

    device = MemoizedPlaces(Slow(MECHANISM.metric, MECHANISM.weights), max_places=2)
    found: list[int] = []

    def report(place: int) -> None:
        found.append(device.report(place))

    threads = [threading.Thread(target=report, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [-1] * 6 + [3] * 2
