from __future__ import annotations

import math

import pytest

from sfumato.errors import ParameterError
from sfumato.location import (
    GeoIndistinguishability,
    PlaceMetric,
    elastic_metric,
    exponential_mechanism,
)
from sfumato.privacy import Gaussian


def test_reports_add_up() -> None:
    one = GeoIndistinguishability(epsilon=0.01, slack=1e-9)
    five = one * 5
    assert five.reports == 5
    assert 0.05 <= five.epsilon <= 0.05 + 1e-16
    assert 5e-9 <= five.slack < 5.1e-9
    both = one + five
    assert both.reports == 6
    assert both.level(100) == pytest.approx(6.0 + 6e-9)
    assert one.level(0) >= 1e-9
    assert GeoIndistinguishability(epsilon=1).level(0) == 0
    assert 3 * one == one * 3
    assert (one * 1) == one


def test_it_is_not_mixed_up_with_anything_else() -> None:
    one = GeoIndistinguishability(epsilon=0.01)
    with pytest.raises(ParameterError, match="never added"):
        one + Gaussian(noise_multiplier=1.0)  # type: ignore[operator]
    with pytest.raises(ParameterError, match="have the metric and unit"):
        one + GeoIndistinguishability(epsilon=0.01, metric="geodesic")
    with pytest.raises(ParameterError, match="have the metric and unit"):
        one + GeoIndistinguishability(epsilon=0.01, unit="1")


def test_reports_for_two_metrics_on_places_are_not_added() -> None:
    cells = PlaceMetric.grid(1, 4, cell=100.0)
    shares = ([0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7])
    one, other = (
        exponential_mechanism(elastic_metric(cells, mass=mass, required=0.3), epsilon=1.0) for mass in shares
    )
    # Their sum would be 2 for a metric in which both together show more: here, between the outer places.
    assert (one.guarantee + one.remap().guarantee).reports == 2
    with pytest.raises(ParameterError, match="be about the same places"):
        one.guarantee + other.guarantee
    moved = PlaceMetric.from_points(cells.points + 50.0)  # type: ignore[operator]
    with pytest.raises(ParameterError, match="be about the same places"):
        exponential_mechanism(moved, epsilon=0.01).guarantee + GeoIndistinguishability(epsilon=0.01)


def test_what_is_refused() -> None:
    for given in (
        {"epsilon": 0.0},
        {"epsilon": 1, "slack": -1.0},
        {"epsilon": 1, "reports": 0},
        {"epsilon": 1, "unit": 3},
    ):
        with pytest.raises(ParameterError):
            GeoIndistinguishability(**given)
    with pytest.raises(ParameterError):
        GeoIndistinguishability(epsilon=1.0) * 0
    with pytest.raises(ParameterError):
        GeoIndistinguishability(epsilon=1.0).level(-1)
    for level, radius in ((0.0, 1.0), (1.0, 0.0)):
        with pytest.raises(ParameterError):
            GeoIndistinguishability.from_level(level, radius=radius)


def test_it_says_its_unit() -> None:
    assert str(GeoIndistinguishability.from_level(math.log(4), radius=200)).startswith("0.00693147/m-geo")
    assert str(GeoIndistinguishability(epsilon=2.0, unit="1")).startswith("2-geo")
