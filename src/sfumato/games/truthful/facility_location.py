"""Games in which actions tell types apart: which facility one uses, and whether one buys at a price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_numbers
from sfumato.games.game import Game, as_labels

__all__ = ["facility_location", "price_list", "price_scores", "tree_distances"]

_MOST: Final = 1 << 16
_ROUNDING: Final = 1e-9


def facility_location(points: Any, distances: Any, *, agents: int, facilities: int = 2) -> Game:
    """Return the game of building facilities among points of a finite metric space.

    Parameters
    ----------
    points : sequence
        Where agents may be, which is their type, and where facilities may be built.
    distances : array of shape (points, points)
        A metric: for points on a line ``abs(x[:, None] - x)``, for a tree `tree_distances`.
    agents : int
    facilities : int
        How many are built, at different points. With one alone no action can be imposed, and types are not
        separated.

    Returns
    -------
    Game
        Its alternatives are tuples of points, its actions which of them an agent uses, by position. Utility
        is 1 less the distance over the largest distance.

    Raises
    ------
    ParameterError
        If the distances are no metric, or there are too many alternatives.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([0.0, 1.0, 3.0])
    >>> game = facility_location(points, np.abs(points[:, None] - points), agents=10)
    >>> game.alternatives
    ((0.0, 1.0), (0.0, 3.0), (1.0, 3.0))
    >>> game.free_utilities[0].round(3).tolist()
    [1.0, 1.0, 0.667]
    """
    labels = as_labels("points", points)
    facilities = _check.integer("facilities", facilities, minimum=1)
    metric = _metric(distances, len(labels))
    if facilities > len(labels) or comb(len(labels), facilities) > _MOST:
        remedy = "take fewer facilities, or fewer points"
        _check.refuse("facilities", f"leave from 1 to {_MOST:,} alternatives", facilities, remedy)
    sites = np.array(list(combinations(range(len(labels)), facilities)))
    return Game(
        types=labels,
        alternatives=tuple(tuple(labels[at] for at in row) for row in sites.tolist()),
        actions=range(facilities),
        utilities=1 - metric[:, sites] / metric.max(),
        agents=agents,
    )


def tree_distances(points: Any, edges: Iterable[tuple[Any, Any, float]]) -> NDArray[np.float64]:
    """Return the distances between the points of a tree.

    Parameters
    ----------
    points : sequence
        Distinct.
    edges : iterable of (point, point, float)
        One fewer than there are points, with positive lengths; they join all points.

    Returns
    -------
    float64 array of shape (points, points)

    Raises
    ------
    ParameterError
        If the edges form no tree on the points.

    Examples
    --------
    >>> tree_distances("abcd", [("a", "b", 1), ("b", "c", 2), ("b", "d", 5)]).tolist()
    [[0.0, 1.0, 3.0, 6.0], [1.0, 0.0, 2.0, 5.0], [3.0, 2.0, 0.0, 7.0], [6.0, 5.0, 7.0, 0.0]]
    """
    labels = as_labels("points", points)
    place = {label: at for at, label in enumerate(labels)}
    links: list[list[tuple[int, float]]] = [[] for _ in labels]
    count = 0
    for first, second, length in edges:
        if first not in place or second not in place:
            _check.refuse_state(
                "edges", "be between the points", "one ends at another point", "list all points"
            )
        number = _check.positive("edges", length, "give each edge its length")
        links[place[first]].append((place[second], number))
        links[place[second]].append((place[first], number))
        count += 1
    found = np.full((len(labels), len(labels)), np.inf)
    for start in range(len(labels)):
        found[start, start], todo = 0.0, [start]
        while todo:
            here = todo.pop()
            for there, length in links[here]:
                if np.isinf(found[start, there]):
                    found[start, there] = found[start, here] + length
                    todo.append(there)
    if count != len(labels) - 1 or np.isinf(found).any():
        remedy = "pass one edge fewer than points, so that all are joined"
        _check.refuse_state("edges", "be those of a tree", "they do not", remedy)
    return np.asarray((found + found.T) / 2)


def price_list(values: Sequence[float], prices: Sequence[float], *, agents: int) -> Game:
    """Return the game of selling a digital good at one price from a list.

    Parameters
    ----------
    values : sequence of float
        What a unit may be worth to an agent, which is its type.
    prices : sequence of float
        Types are separated where a price lies strictly between any two neighboring values.
    agents : int

    Returns
    -------
    Game
        Its actions are "buy" and "leave"; utility is value less price, or 0. Who is indifferent buys.

    Examples
    --------
    >>> game = price_list((1, 2, 3), (0.5, 1.5, 2.5), agents=4)
    >>> game.free_utilities.tolist()
    [[0.5, 0.0, 0.0], [1.5, 0.5, 0.0], [2.5, 1.5, 0.5]]
    """
    worth = [_check.finite("values", value) for value in as_labels("values", values)]
    costs = [_check.positive("prices", price) for price in as_labels("prices", prices)]
    surplus = np.subtract.outer(worth, costs)
    return Game(
        types=worth,
        alternatives=costs,
        actions=("buy", "leave"),
        utilities=np.stack([surplus, np.zeros_like(surplus)], axis=2),
        agents=agents,
        utility_range=(min(0.0, float(surplus.min())), max(_ROUNDING, float(surplus.max()))),
    )


def price_scores(game: Game) -> NDArray[np.float64]:
    """Return the revenue that a reported value brings at each price.

    Parameters
    ----------
    game : Game
        Of `price_list`.

    Returns
    -------
    float64 array of shape (types, alternatives)

    Examples
    --------
    >>> price_scores(price_list((1, 2, 3), (0.5, 1.5, 2.5), agents=4)).tolist()
    [[0.5, 0.0, 0.0], [0.5, 1.5, 0.0], [0.5, 1.5, 2.5]]
    """
    _check.instance("game", game, Game, "pass what price_list returns")
    if game.actions != ("buy", "leave"):
        _check.refuse_state("game", "be a price list", "it has other actions", "pass what price_list returns")
    return np.where(game.best_actions == 0, np.asarray(game.alternatives, np.float64), 0.0)


def _metric(distances: Any, size: int) -> NDArray[np.float64]:
    remedy = "pass abs(x[:, None] - x) for points on a line, or tree_distances"
    found = as_numbers("distances", distances, remedy)
    if found.shape != (size, size):
        _check.refuse_state("distances", f"have the shape {(size, size)}", f"it is {found.shape}", remedy)
    off = found[~np.eye(size, dtype=bool)]
    if (
        not np.isfinite(found).all()
        or (off <= 0).any()
        or np.diagonal(found).any()
        or (found != found.T).any()
    ):
        rule = "be symmetric, 0 on the diagonal and positive elsewhere"
        _check.refuse_state("distances", rule, "they are not", remedy)
    if size < 2:
        _check.refuse_state("points", "be two or more", "there is one", "list where facilities may be")
    for middle in range(size):
        if (found > (found[:, middle, None] + found[middle]) * (1 + _ROUNDING)).any():
            _check.refuse_state("distances", "be a metric", "the triangle inequality does not hold", remedy)
    return found
