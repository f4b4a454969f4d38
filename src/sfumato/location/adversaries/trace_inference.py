"""What many reports of one device show: its home and work, and the way it took."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.location.metrics.coordinates import as_prior
from sfumato.location.places.place_mechanism import PlaceMechanism

__all__ = ["HomeAndWork", "infer_home_and_work", "match_trace"]

_NIGHT = (21, 6)
_OFFICE = (9, 17)


class HomeAndWork(NamedTuple):
    """Estimates of two places of one device.

    Attributes
    ----------
    home, work : int
        Most probable places; -1 where there is no report in the hours.
    home_probability, work_probability : float
        What the adversary believes of them.

    Examples
    --------
    >>> HomeAndWork(3, 8, 0.9, 0.8).home
    3
    """

    home: int
    work: int
    home_probability: float
    work_probability: float


def _reports(reports: ArrayLike, mechanism: PlaceMechanism) -> NDArray[np.int64]:
    _check.instance("mechanism", mechanism, PlaceMechanism, "pass exponential_mechanism(...)")
    given = np.asarray(reports)
    count = mechanism.weights.shape[1]
    if given.ndim != 1 or given.dtype.kind not in "iu" or not bool(((given >= 0) & (given < count)).all()):
        _check.refuse_type("reports", f"be indices below {count}", given, "pass what release returned")
    return given.astype(np.int64)


def _posterior(
    reports: NDArray[np.int64], mechanism: PlaceMechanism, prior: NDArray[np.float64]
) -> tuple[int, float]:
    if not reports.size:
        return -1, 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(prior) + np.log(mechanism.probabilities)[:, reports].sum(axis=1)
    belief = np.exp(logs - logs.max())
    best = int(belief.argmax())
    return best, float(belief[best] / belief.sum())


def infer_home_and_work(
    reports: ArrayLike, hours: ArrayLike, mechanism: PlaceMechanism, prior: ArrayLike | None = None
) -> HomeAndWork:
    """Return where a device most probably is at night, and where in office hours.

    Parameters
    ----------
    reports : array_like of int, shape (n,)
        Indices of independent reports.
    hours : array_like of shape (n,)
        Local hours of the reports, 0 to 24.
    mechanism : PlaceMechanism
        What drew each.
    prior : array_like or None
        Probability of each place; None is uniform.

    Returns
    -------
    HomeAndWork
        The place with the largest posterior probability, from 21 to 6 o'clock and from 9 to 17.

    Raises
    ------
    ParameterError
        If a report is no index, or an hour out of range.

    Notes
    -----
    n independent reports of one place have n epsilon: this attack shows why they need a memo.

    Examples
    --------
    >>> from sfumato.location import PlaceMetric, exponential_mechanism
    >>> mechanism = exponential_mechanism(PlaceMetric.grid(3, 3), epsilon=1.0)
    >>> nights = mechanism.release([4] * 200, rng=1)
    >>> infer_home_and_work(nights, [23] * 200, mechanism)[:2]
    (4, -1)
    """
    given = _reports(reports, mechanism)
    clock = np.asarray(hours, dtype=float)
    if clock.shape != given.shape or not bool(((clock >= 0) & (clock <= 24)).all()):
        _check.refuse_state(
            "hours", "be from 0 to 24, one for each report", "they are not", "pass local hours"
        )
    weights = as_prior(prior, mechanism.metric.size)
    night = given[(clock >= _NIGHT[0]) | (clock < _NIGHT[1])]
    office = given[(clock >= _OFFICE[0]) & (clock < _OFFICE[1])]
    home, at_home = _posterior(night, mechanism, weights)
    work, at_work = _posterior(office, mechanism, weights)
    return HomeAndWork(home, work, at_home, at_work)


def match_trace(
    reports: ArrayLike, mechanism: PlaceMechanism, *, step: float, prior: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Return the most probable way through the places, given a trace of independent reports.

    Parameters
    ----------
    reports : array_like of int, shape (n,)
        Indices of reports, in the order of time.
    mechanism : PlaceMechanism
        What drew each; its metric says how places are joined, such as by roads.
    step : float
        Typical distance between two positions: a move of d has probability ``~ exp(-d / step)``.
    prior : array_like or None
        Probability of each place at first; None is uniform.

    Returns
    -------
    ndarray of int64, shape (n,)
        Indices of places.

    Raises
    ------
    ParameterError
        If a report is no index, or the step is not positive.

    Notes
    -----
    Newson and Krumm, Hidden Markov map matching through noise and sparseness, ACM GIS 2009, with the
    mechanism's probabilities for the noise; the way is found by Viterbi's algorithm.

    Examples
    --------
    >>> from sfumato.location import PlaceMetric, exponential_mechanism
    >>> road = PlaceMetric.road_network([[0, 1], [1, 2], [2, 3]], [1.0, 1.0, 1.0])
    >>> match_trace([0, 0, 1, 2, 3], exponential_mechanism(road, epsilon=3.0), step=1.0).tolist()
    [0, 0, 1, 2, 3]
    """
    given = _reports(reports, mechanism)
    scale = _check.positive("step", step, "pass a distance in the unit of the metric")
    if not given.size:
        return given
    moves = -mechanism.metric.distances / scale
    moves = moves - np.log(np.exp(moves).sum(axis=1, keepdims=True))
    with np.errstate(divide="ignore"):
        seen = np.log(mechanism.probabilities)
        score = np.log(as_prior(prior, mechanism.metric.size)) + seen[:, given[0]]
    came = []
    for report in given[1:]:
        reached = score[:, None] + moves
        came.append(reached.argmax(axis=0))
        score = reached.max(axis=0) + seen[:, report]
    way = [int(score.argmax())]
    for back in reversed(came):
        way.append(int(back[way[-1]]))
    return np.array(way[::-1], np.int64)
