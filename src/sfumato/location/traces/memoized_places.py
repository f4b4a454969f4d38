"""Memoised places: a device that comes back to a place repeats what it reported there."""

from __future__ import annotations

from sfumato import _check
from sfumato.location.guarantee.geo_indistinguishability import GeoIndistinguishability
from sfumato.location.places.place_mechanism import PlaceMechanism
from sfumato.numerics import Rng

__all__ = ["MemoizedPlaces"]


class MemoizedPlaces:
    """The memory of one device: one report for each declared place, drawn once.

    Parameters
    ----------
    mechanism : PlaceMechanism
        How a place is reported for the first time.
    max_places : int
        Most places that are ever reported; later ones are answered by -1.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: `guarantee`, for two traces that come back to places at the same times (``x_i = x_j`` where
    ``y_i = y_j``) and the distance ``max_i d(x_i, y_i)``. However long the traces are, at most
    ``max_places`` reports are drawn. That a device is at a place again, and how many it visits, is not
    hidden. Memos are keyed by declared place, and never by coordinates: two coordinates of one place have
    one report.

    Examples
    --------
    >>> from sfumato.location import PlaceMetric, exponential_mechanism
    >>> mechanism = exponential_mechanism(PlaceMetric.grid(3, 3, cell=100.0), epsilon=0.01)
    >>> device = MemoizedPlaces(mechanism, max_places=2)
    >>> device.report(4) == device.report(4), round(device.guarantee.epsilon, 3)
    (True, 0.02)
    """

    def __init__(self, mechanism: PlaceMechanism, *, max_places: int) -> None:
        _check.instance("mechanism", mechanism, PlaceMechanism, "pass exponential_mechanism(...)")
        self._mechanism = mechanism
        self._max_places = _check.integer("max_places", max_places, minimum=1, remedy="pass how many")
        self._memos: dict[int, int] = {}

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What all reports of this device satisfy together."""
        return self._mechanism.guarantee * self._max_places

    def report(self, place: int, rng: Rng = None) -> int:
        """Return the report of a place, the same one each time.

        Parameters
        ----------
        place : int
            Index of a place.
        rng : None, int, numpy Generator or RandomSource
            None for noise that protects; anything else simulates.

        Returns
        -------
        int
            Index of a report; -1 if ``max_places`` others were reported before.

        Raises
        ------
        ParameterError
            If the index is none of a place.
        """
        if _check.integer("place", place, remedy="pass an index") >= self._mechanism.metric.size:
            rule = f"be an index below {self._mechanism.metric.size}"
            _check.refuse_type("place", rule, place, "pass PlaceMetric.nearest(points)")
        if place not in self._memos:
            if len(self._memos) == self._max_places:
                return -1
            self._memos[place] = int(self._mechanism.release([place], rng)[0])
        return self._memos[place]
