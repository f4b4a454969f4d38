"""Geo-indistinguishability: the guarantee of a report about a position, with its unit and its composition.

A mechanism M satisfies epsilon-geo-indistinguishability for a metric d if
``P(M(x) in S) <= exp(epsilon d(x, y)) P(M(y) in S)`` for all positions x and y and all sets S. Near
positions are hard to tell apart, far ones are not: a report hides where in a street someone is, and shows
the city.

This is no differential privacy of a table. It has no ``privacy_loss`` and no ledger takes it: its epsilon
is a number per metre. n reports about one position, or about positions that move together, cost n epsilon.

References
----------
Andres, Bordenabe, Chatzikokolakis, Palamidessi, Geo-indistinguishability, CCS 2013. Chatzikokolakis,
Andres, Bordenabe, Palamidessi, Broadening the scope of differential privacy using metrics, PETS 2013:
d-privacy and its composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sfumato import _check

__all__ = ["GeoIndistinguishability"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoIndistinguishability:
    """The guarantee ``P(M(x) in S) <= exp(epsilon d(x, y) + slack) P(M(y) in S)`` for all x, y and S.

    Parameters
    ----------
    epsilon : float
        Per unit of the metric, positive.
    metric : str
        What d is: ``"plane"``, ``"geodesic"``, ``"road network"`` or another name.
    unit : str
        Of d: ``"m"``, or ``"1"`` for a metric without unit.
    slack : float
        What rounding positions to machine numbers adds to the log-ratio, at any distance.
    reports : int
        How many reports are covered together.
    places : str
        For a guarantee about finitely many places what identifies them and their distances; empty for one
        about all positions.

    Raises
    ------
    ParameterError
        If a number breaks its rule.

    Notes
    -----
    Guarantee: composition is by addition (Chatzikokolakis et al. 2013, section 3): independent reports with
    epsilon a and b about x satisfy a + b. It needs the same metric; others are refused. Two metrics on places
    are the same if distances and points are, whatever their names: two elastic metrics are two.

    Examples
    --------
    The default of the paper: positions within 200 m differ by a factor of at most 4.

    >>> one = GeoIndistinguishability.from_level(math.log(4), radius=200)
    >>> round(one.epsilon, 6), round(math.exp(one.level(200)), 3)
    (0.006931, 4.0)
    >>> (one * 10).reports, round((one * 10).level(200), 2)
    (10, 13.86)
    """

    epsilon: float
    metric: str = "plane"
    unit: str = "m"
    slack: float = 0.0
    reports: int = 1
    places: str = ""

    def __post_init__(self) -> None:
        _check.positive("epsilon", self.epsilon, "pass a number per metre, such as math.log(4) / 200")
        _check.non_negative("slack", self.slack, "pass what rounding adds to a log-ratio")
        _check.integer("reports", self.reports, minimum=1, remedy="pass how many reports are covered")
        for name in ("metric", "unit", "places"):
            _check.instance(name, getattr(self, name), str, "pass a name, such as 'plane' and 'm'")

    @classmethod
    def from_level(
        cls, level: float, *, radius: float, metric: str = "plane", unit: str = "m"
    ) -> GeoIndistinguishability:
        """Return the guarantee whose log-ratio is ``level`` at distance ``radius``.

        Parameters
        ----------
        level : float
            Log of the largest ratio of probabilities within the radius.
        radius : float
            Distance, in the unit of the metric.
        metric, unit : str
            As in the constructor.

        Returns
        -------
        GeoIndistinguishability
            With ``epsilon = level / radius``.

        Raises
        ------
        ParameterError
            If a number is not positive.
        """
        level = _check.positive("level", level, "pass a log-ratio, such as math.log(4)")
        radius = _check.positive("radius", radius, "pass a distance, such as 200 m")
        return cls(epsilon=level / radius, metric=metric, unit=unit)

    def level(self, distance: float) -> float:
        """Return the largest log-ratio between two positions at a distance, rounded up.

        Parameters
        ----------
        distance : float
            In the unit of the metric.

        Returns
        -------
        float

        Raises
        ------
        ParameterError
            If the distance is negative.
        """
        distance = _check.non_negative("distance", distance, "pass a distance in the unit of the metric")
        exponent = self.epsilon * distance + self.slack
        return math.nextafter(math.nextafter(exponent, math.inf), math.inf) if exponent else 0.0

    def __add__(self, other: GeoIndistinguishability) -> GeoIndistinguishability:
        if not isinstance(other, GeoIndistinguishability):
            _check.refuse_type(
                "the other guarantee",
                "be a GeoIndistinguishability",
                other,
                "an epsilon per metre and one of differential privacy are never added",
            )
        if (self.metric, self.unit) != (other.metric, other.unit):
            _check.refuse(
                "the other guarantee",
                f"have the metric and unit {(self.metric, self.unit)!r}",
                (other.metric, other.unit),
                "state both for one metric",
            )
        if self.places != other.places:
            _check.refuse_state(
                "the other guarantee", "be about the same places", "it is not", "state both for one metric"
            )
        return replace(
            self,
            epsilon=math.nextafter(self.epsilon + other.epsilon, math.inf),
            slack=math.nextafter(self.slack + other.slack, math.inf) if self.slack + other.slack else 0.0,
            reports=self.reports + other.reports,
        )

    def __mul__(self, count: int) -> GeoIndistinguishability:
        count = _check.integer("count", count, minimum=1, remedy="pass how many reports there are")
        return replace(
            self,
            epsilon=math.nextafter(self.epsilon * count, math.inf) if count > 1 else self.epsilon,
            slack=math.nextafter(self.slack * count, math.inf) if self.slack and count > 1 else self.slack,
            reports=self.reports * count,
        )

    __rmul__ = __mul__

    def __str__(self) -> str:
        per = f"{self.epsilon:.6g}" if self.unit == "1" else f"{self.epsilon:.6g}/{self.unit}"
        return f"{per}-geo-indistinguishability for the metric {self.metric!r}, {self.reports} report(s)"
