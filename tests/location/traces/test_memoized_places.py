from __future__ import annotations

import pytest

from sfumato.errors import ParameterError
from sfumato.location import MemoizedPlaces, PlaceMetric, exponential_mechanism

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
