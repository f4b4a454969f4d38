"""Geo-indistinguishability: reports of positions, with a guarantee per metre.

A device reports a point near its true position. The guarantee is `GeoIndistinguishability`: positions at
distance d differ by a factor of at most ``exp(epsilon d)`` in the probability of every report. This is no
differential privacy of a table: nothing here has a ``privacy_loss``, no ledger takes it, and n reports cost
n epsilon.

>>> import math
>>> from sfumato import location
>>> berlin = location.Projection(latitude=52.52, longitude=13.405, radius=30_000)
>>> report = location.PlanarLaplace.from_level(math.log(4), radius=200, projection=berlin)
>>> latitude, longitude = report.release_degrees([52.5163], [13.3777])
>>> print(report.guarantee)
0.00693147/m-geo-indistinguishability for the metric 'geodesic', 1 report(s)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.location.adversaries.bayes_adversary import (
        AdversaryResult,
        MechanismComparison,
        bayes_adversary,
        compare_mechanisms,
    )
    from sfumato.location.adversaries.trace_inference import HomeAndWork, infer_home_and_work, match_trace
    from sfumato.location.guarantee.geo_indistinguishability import GeoIndistinguishability
    from sfumato.location.heat_maps.heat_map import HeatMap, heat_map
    from sfumato.location.metrics.elastic import elastic_metric
    from sfumato.location.metrics.place_metric import PlaceMetric
    from sfumato.location.metrics.projection import Projection
    from sfumato.location.metrics.spanner import Spanner, greedy_spanner
    from sfumato.location.places.cell_reports import planar_laplace_on_places
    from sfumato.location.places.exponential import exponential_mechanism
    from sfumato.location.places.optimal import OptimalMechanism, optimal_mechanism
    from sfumato.location.places.place_mechanism import PlaceMechanism
    from sfumato.location.planar.planar_laplace import PlanarLaplace
    from sfumato.location.readers.geojson import read_geojson
    from sfumato.location.readers.geoparquet import from_geopandas, read_geoparquet
    from sfumato.location.readers.gpx import read_gpx
    from sfumato.location.readers.positions import Positions
    from sfumato.location.traces.memoized_places import MemoizedPlaces
    from sfumato.location.traces.predictive_mechanism import PredictiveMechanism

__all__ = [
    "AdversaryResult",
    "GeoIndistinguishability",
    "HeatMap",
    "HomeAndWork",
    "MechanismComparison",
    "MemoizedPlaces",
    "OptimalMechanism",
    "PlaceMechanism",
    "PlaceMetric",
    "PlanarLaplace",
    "Positions",
    "PredictiveMechanism",
    "Projection",
    "Spanner",
    "bayes_adversary",
    "compare_mechanisms",
    "elastic_metric",
    "exponential_mechanism",
    "from_geopandas",
    "greedy_spanner",
    "heat_map",
    "infer_home_and_work",
    "match_trace",
    "optimal_mechanism",
    "planar_laplace_on_places",
    "read_geojson",
    "read_geoparquet",
    "read_gpx",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AdversaryResult": "sfumato.location.adversaries.bayes_adversary",
        "GeoIndistinguishability": "sfumato.location.guarantee.geo_indistinguishability",
        "HeatMap": "sfumato.location.heat_maps.heat_map",
        "HomeAndWork": "sfumato.location.adversaries.trace_inference",
        "MechanismComparison": "sfumato.location.adversaries.bayes_adversary",
        "MemoizedPlaces": "sfumato.location.traces.memoized_places",
        "OptimalMechanism": "sfumato.location.places.optimal",
        "PlaceMechanism": "sfumato.location.places.place_mechanism",
        "PlaceMetric": "sfumato.location.metrics.place_metric",
        "PlanarLaplace": "sfumato.location.planar.planar_laplace",
        "Positions": "sfumato.location.readers.positions",
        "PredictiveMechanism": "sfumato.location.traces.predictive_mechanism",
        "Projection": "sfumato.location.metrics.projection",
        "Spanner": "sfumato.location.metrics.spanner",
        "bayes_adversary": "sfumato.location.adversaries.bayes_adversary",
        "compare_mechanisms": "sfumato.location.adversaries.bayes_adversary",
        "elastic_metric": "sfumato.location.metrics.elastic",
        "exponential_mechanism": "sfumato.location.places.exponential",
        "from_geopandas": "sfumato.location.readers.geoparquet",
        "greedy_spanner": "sfumato.location.metrics.spanner",
        "heat_map": "sfumato.location.heat_maps.heat_map",
        "infer_home_and_work": "sfumato.location.adversaries.trace_inference",
        "match_trace": "sfumato.location.adversaries.trace_inference",
        "optimal_mechanism": "sfumato.location.places.optimal",
        "planar_laplace_on_places": "sfumato.location.places.cell_reports",
        "read_geojson": "sfumato.location.readers.geojson",
        "read_geoparquet": "sfumato.location.readers.geoparquet",
        "read_gpx": "sfumato.location.readers.gpx",
    },
)
