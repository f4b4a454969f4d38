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
    from sfumato.location.guarantee.geo_indistinguishability import GeoIndistinguishability
    from sfumato.location.metrics.place_metric import PlaceMetric
    from sfumato.location.metrics.projection import Projection
    from sfumato.location.metrics.spanner import Spanner, spanner
    from sfumato.location.places.cell_reports import planar_laplace_on_places
    from sfumato.location.places.exponential import exponential_mechanism
    from sfumato.location.places.optimal import OptimalMechanism, optimal_mechanism
    from sfumato.location.places.place_mechanism import PlaceMechanism
    from sfumato.location.planar.planar_laplace import PlanarLaplace

__all__ = [
    "GeoIndistinguishability",
    "OptimalMechanism",
    "PlaceMechanism",
    "PlaceMetric",
    "PlanarLaplace",
    "Projection",
    "Spanner",
    "exponential_mechanism",
    "optimal_mechanism",
    "planar_laplace_on_places",
    "spanner",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "GeoIndistinguishability": "sfumato.location.guarantee.geo_indistinguishability",
        "OptimalMechanism": "sfumato.location.places.optimal",
        "PlaceMechanism": "sfumato.location.places.place_mechanism",
        "PlaceMetric": "sfumato.location.metrics.place_metric",
        "PlanarLaplace": "sfumato.location.planar.planar_laplace",
        "Projection": "sfumato.location.metrics.projection",
        "Spanner": "sfumato.location.metrics.spanner",
        "exponential_mechanism": "sfumato.location.places.exponential",
        "optimal_mechanism": "sfumato.location.places.optimal",
        "planar_laplace_on_places": "sfumato.location.places.cell_reports",
        "spanner": "sfumato.location.metrics.spanner",
    },
)
