"""Games of reports: who may be of which type, what can be chosen, and what it is worth to whom.

>>> import numpy as np
>>> game = Game(types=(1, 2, 3), alternatives=(1, 2, 3), agents=5, utility_range=(0, 2),
...             utilities=lambda value, price: np.maximum(value - price, 0))
>>> game.utilities.shape, game.anonymous
((3, 3, 1), True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_numbers
from sfumato.mechanisms.base.release import read_only

__all__ = ["Game", "as_labels", "as_range"]

_Floats = NDArray[np.float64]
_MOST: Final = 1 << 26


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Game:
    r"""Agents with private types, alternatives that a mechanism chooses among, and utilities.

    Parameters
    ----------
    types : sequence
        What an agent may be, and may report; public, distinct.
    alternatives : sequence
        What may be chosen for all; public, distinct.
    utilities : array or callable
        Of shape (types, alternatives), or (types, alternatives, actions) if there are actions; one such array
        for each agent, along a first axis, if the game is not anonymous. A callable is called once with
        arrays that broadcast to that shape: the agent's position if the game is not anonymous, the type, the
        alternative, and the action if there are actions; labels that are numbers as such, others by their
        position.
    agents : int
        How many; public.
    utility_range : (float, float)
        What every utility lies in.
    actions : sequence, optional
        What an agent does once the alternative is known, such as to buy or not; nothing unless given.
    anonymous : bool
        Whether all agents have the same utilities.

    Attributes
    ----------
    neighboring : Neighboring
        Neighbors are two profiles of reports in which one agent's report is replaced.

    Raises
    ------
    ParameterError
        If a list is empty or repeats an entry, the shape does not fit, or a utility is not a number in the
        range.

    Notes
    -----
    Utilities are public; what is private is who has which type. Of several best actions an agent takes the
    first.

    References
    ----------
    Nissim, Smorodinsky, Tennenholtz (2012), "Approximately optimal mechanism design via differential
    privacy", for types, alternatives and reactions.

    Examples
    --------
    >>> import numpy as np
    >>> places = (0.0, 0.5, 1.0)
    >>> visits = Game(types=places, alternatives=places, agents=12,
    ...               utilities=lambda home, site: 1 - np.abs(home - site))
    >>> visits.free_utilities.tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """

    types: Sequence[Any]
    alternatives: Sequence[Any]
    utilities: Any
    agents: int
    utility_range: tuple[float, float] = (0.0, 1.0)
    actions: Sequence[Any] | None = None
    anonymous: bool = True
    _best: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("types", "alternatives", "actions"):
            if name != "actions" or self.actions is not None:
                object.__setattr__(self, name, as_labels(name, getattr(self, name)))
        _check.integer("agents", self.agents, minimum=1)
        if not isinstance(self.anonymous, bool):
            _check.refuse("anonymous", "be True or False", self.anonymous, "pass True if agents are alike")
        object.__setattr__(self, "utility_range", as_range("utility_range", self.utility_range))
        object.__setattr__(self, "utilities", read_only(self._table()))
        object.__setattr__(self, "_best", read_only(self.utilities.argmax(axis=-1)))

    @property
    def best_actions(self) -> NDArray[np.int64]:
        """The position of the best action: of shape (types, alternatives), after agents if they differ."""
        return self._best

    @property
    def free_utilities(self) -> _Floats:
        """The utility of each type for each alternative, with the best action."""
        return np.take_along_axis(self.utilities, self._best[..., None], axis=-1)[..., 0]

    @property
    def imposed_utilities(self) -> _Floats:
        """The same where the best action of the reported type is imposed: (..., type, report, alternative).

        The largest entry over reports is on the diagonal, as that is the type's own best action.
        """
        reports = np.moveaxis(self._best[..., None, :, :], -1, -2)  # (..., 1, alternatives, reports)
        return np.moveaxis(np.take_along_axis(self.utilities, reports, axis=-1), -1, -2)

    @property
    def range_length(self) -> float:
        """The length of the utility range."""
        return self.utility_range[1] - self.utility_range[0]

    def positions(self, reports: Any) -> NDArray[np.int64]:
        """Return reported types as positions in ``types``.

        Parameters
        ----------
        reports : sequence of shape (agents,)
            One type for each agent.

        Returns
        -------
        int64 array of shape (agents,)

        Raises
        ------
        ParameterError
            If there is not one report for each agent, or one is no type; the message does not show it.

        Examples
        --------
        >>> game = Game(types="ab", alternatives=(0, 1), utilities=[[0, 1], [1, 0]], agents=3)
        >>> game.positions("aba").tolist()
        [0, 1, 0]
        """
        if not hasattr(reports, "__iter__"):
            _check.refuse_type("reports", "be a sequence", reports, "pass one report for each agent")
        listed = reports.tolist() if isinstance(reports, np.ndarray) else list(reports)
        if len(listed) != self.agents:
            remedy = "an agent that is absent reports a type that is set aside for it"
            _check.refuse_state("reports", "be one for each agent", "there are more or fewer", remedy)
        place = {label: at for at, label in enumerate(self.types)}
        try:
            return np.array([place[report] for report in listed], np.int64)
        except (KeyError, TypeError):
            remedy = "report one of the game's types"
            _check.refuse_state("reports", "be types of the game", "one of them is none", remedy)

    def position(self, report: Any) -> int:
        """Return one type's position in ``types``.

        Parameters
        ----------
        report : hashable

        Returns
        -------
        int

        Raises
        ------
        ParameterError
            If it is no type of the game.
        """
        try:
            return self.types.index(report)
        except ValueError:
            _check.refuse_state("report", "be a type of the game", "it is none", "take one of its types")

    def _table(self) -> _Floats:
        labels = [self.types, self.alternatives]
        if self.actions is not None:
            labels.append(self.actions)
        shape = tuple(len(part) for part in labels)
        shape = shape if self.anonymous else (self.agents, *shape)
        given, remedy = self.utilities, "pass numbers for each type and alternative, or a function of both"
        if callable(given):
            axes = [_axis(part) for part in labels]
            if not self.anonymous:
                axes.insert(0, np.arange(self.agents))
            given = _broadcast(as_numbers("utilities", given(*np.ix_(*axes)), remedy), shape)
        table = as_numbers("utilities", given, remedy)
        if table.shape != shape:
            _check.refuse_state("utilities", f"have the shape {shape}", f"it is {table.shape}", remedy)
        low, high = self.utility_range
        if not ((low <= table) & (table <= high)).all():  # NaN is not within
            remedy = "state a wider utility_range, or clip them to it"
            _check.refuse_state("utilities", f"lie from {low!r} to {high!r}", "some do not", remedy)
        return table if self.actions is not None else table[..., None]


def as_agent(agent: object, agents: int) -> int:
    """Return an agent's position, or refuse what is none."""
    place = _check.integer("agent", agent)
    if place >= agents:
        _check.refuse("agent", f"be less than {agents}", place, "agents count from 0")
    return place


def as_labels(name: str, given: object) -> tuple[Any, ...]:
    """Return distinct labels in a known order, or refuse them."""
    if isinstance(given, Mapping | Set | bytes) or not hasattr(given, "__iter__"):
        _check.refuse_type(name, "be a sequence", given, "pass a list")
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    labels = tuple(tuple(label) if isinstance(label, list) else label for label in listed)
    try:
        nan = any(isinstance(label, float) and math.isnan(label) for label in labels)
        distinct = len(set(labels)) == len(labels) and not nan
    except TypeError:
        _check.refuse_state(name, "be hashable", "one of them is not", "pass strings, numbers or tuples")
    if not labels or not distinct:
        found = "one of them is there twice, or is NaN" if labels else "there is none"
        _check.refuse_state(name, "be distinct, at least one", found, "list each of them once")
    if len(labels) > _MOST:
        _check.refuse_state(name, f"be at most {_MOST:,}", "there are more", "use a coarser list")
    return labels


def _broadcast(table: _Floats, shape: tuple[int, ...]) -> _Floats:
    """Return a table of a shape that it broadcasts to, else as it is."""
    try:
        return np.broadcast_to(table, shape)
    except ValueError:
        return table


def _axis(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels that are numbers as an array, else their positions."""
    numeric = all(isinstance(label, Real) and not isinstance(label, bool) for label in labels)
    return np.asarray(labels, np.float64) if numeric else np.arange(len(labels))


def as_range(name: str, given: object) -> tuple[float, float]:
    """Return the two ends of a range of utilities, or refuse what is none."""
    remedy = "pass the lowest and the highest utility"
    if not isinstance(given, Sequence) or len(given) != 2:
        _check.refuse_type(name, "be two numbers", given, remedy)
    low, high = (_check.finite(name, end, remedy) for end in given)
    if not low < high:
        _check.refuse(name, "end above where it begins", given, remedy)
    if not math.isfinite(high - low):
        _check.refuse(name, "be of finite length", given, "state utilities in another unit")
    return low, high
