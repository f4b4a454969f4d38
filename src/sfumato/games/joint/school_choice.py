"""Private school choice: cutoffs that fall with noisy counts of enrollment, and no justified envy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_array
from sfumato.games.joint.action_counter import ActionCounter
from sfumato.games.joint.turns import TurnDynamics
from sfumato.mechanisms.base.release import read_only

__all__ = ["SchoolChoice"]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchoolChoice(TurnDynamics):
    r"""A matching of students, whose preferences are private, to schools, whose priorities are public.

    In each round every school whose announced enrollment leaves enough seats admits the next ``batch``
    students of its order; then each student moves to the school that it likes best of those that admit it.

    Parameters
    ----------
    priorities : int array of shape (schools, students)
        Each school's order of all students, the first one first; public.
    seats : sequence of int
        Of each school.
    epsilon, delta : float
        Of the whole run, jointly.
    batch : int
        How many further students a school admits at a time.
    choices : int, optional
        The most schools that a student lists; all of them unless given.
    rounds : int
        0, the default, stands for twice as many as it takes to admit everybody everywhere.
    beta : float
        The chance with which the bounds on seats may fail.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or a school is too small for the noise.

    Notes
    -----
    A report lists schools, the best first, filled up with -1; an absent student lists none. A student's part
    is its school, or -1.

    Guarantee: (epsilon, delta)-joint differential privacy under replacing one student's list, by
    `TurnDynamics`: as cutoffs only fall, a student only moves to schools that it likes better, so it moves at
    most ``choices`` times, each time out of at most one count and into another.

    *Stable.* There is no justified envy, whatever the noise: a student is at the best school that admits it,
    so a school that it likes better has admitted only students of higher priority. With probability at least
    ``1 - beta`` all noise is at most E = ``counter.error(beta)``. Then no school has more students than
    seats, as it admits only if its count is at most the seats less the ``reserve`` of E and a batch. And a
    school which `unfinished` does not name has admitted everybody who would come, or has fewer than E and
    ``reserve`` empty seats.

    References
    ----------
    Kannan, Morgenstern, Roth, Wu (2015), "Approximately stable, school optimal, and student-truthful
    many-to-one matchings (via differential privacy)" (SODA).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> orders = np.array([rng.permutation(3000) for _ in range(3)])
    >>> choice = SchoolChoice(priorities=orders, seats=(900, 900, 900), batch=100, epsilon=4.0, delta=1e-6)
    >>> lists = np.array([rng.permutation(3) for _ in range(3000)])
    >>> release = choice.release(lists, rng=1)
    >>> schools = release.parts(lists)
    >>> bool((np.bincount(schools[schools >= 0]) <= 900).all()), choice.justified_envy(schools, lists)
    (True, 0)
    """

    priorities: Any
    seats: Any
    epsilon: float
    delta: float
    batch: int
    choices: int | None = None
    rounds: int = 0
    beta: float = 0.05
    blocks: int = field(init=False, default=1)
    agents: int = field(init=False)
    _ranks: _Integers = field(init=False, repr=False)
    _counter: ActionCounter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        orders = as_array("priorities", self.priorities, "pass an order of students for each school")
        if orders.ndim != 2 or not orders.size or orders.dtype.kind not in "iu":
            _check.refuse_type(
                "priorities",
                "be whole numbers with two axes",
                orders,
                "pass an order of students for each school",
            )
        remedy = "list each student once in each row, counting from 0"
        if not (np.sort(orders, axis=1) == np.arange(orders.shape[1])).all():
            _check.refuse_state("priorities", "be orders of all students", "one of them is none", remedy)
        object.__setattr__(self, "priorities", read_only(orders.astype(np.int64)))
        object.__setattr__(self, "agents", orders.shape[1])
        seats = np.asarray(self.seats)
        if seats.shape != orders.shape[:1] or seats.dtype.kind not in "iu" or not (seats > 0).all():
            _check.refuse_type("seats", "be positive whole numbers", seats, "pass one for each school")
        object.__setattr__(self, "seats", tuple(seats.tolist()))
        _check.integer("batch", self.batch, minimum=1)
        _check.unit_interval("beta", self.beta)
        object.__setattr__(self, "_ranks", np.argsort(self.priorities, axis=1))
        if self.rounds == 0:
            object.__setattr__(self, "rounds", 2 * math.ceil(self.agents / self.batch))
        self._check_turns()
        schools = len(orders)
        choices = schools if self.choices is None else _check.integer("choices", self.choices, minimum=1)
        if choices > schools:
            _check.refuse(
                "choices", f"be at most {schools}", choices, "no student can list more schools than there are"
            )
        object.__setattr__(self, "choices", choices)
        object.__setattr__(self, "_counter", self._count())
        if self.reserve > min(self.seats):
            rule = f"be at least the reserve of {math.ceil(self.reserve)} in each school"
            remedy = "raise epsilon, pass smaller batches, or let students list fewer schools"
            _check.refuse("seats", rule, min(self.seats), remedy)

    @property
    def counter(self) -> ActionCounter:
        """What counts the students of each school."""
        return self._counter

    @property
    def reserve(self) -> float:
        """How many announced empty seats a school must have to admit more students."""
        return self.counter.error(self.beta) + self.batch

    def cutoffs(self, signal: Any) -> _Integers:
        """Return how many students of its order each school admits after a run.

        Parameters
        ----------
        signal : array of shape (rounds, schools)
            The value of a release.

        Returns
        -------
        int64 array of shape (schools,)
        """
        admitted = np.zeros(len(self.seats), np.int64)
        for before in [self._opening(), *np.asarray(signal)[:-1]]:
            admitted = self.admitted(admitted, before)
        return admitted

    def admitted(self, admitted: _Integers, before: _Floats) -> _Integers:
        """Return how many students each school admits next.

        Parameters
        ----------
        admitted : int64 array of shape (schools,)
            How many it admits now.
        before : float64 array of shape (schools,)
            The announced enrollment.

        Returns
        -------
        int64 array of shape (schools,)
        """
        room = before <= np.asarray(self.seats) - self.reserve
        return np.minimum(admitted + np.where(room, self.batch, 0), self.agents)

    def unfinished(self, signal: Any) -> _Integers:
        """Return the schools that would admit more students in a further round.

        Parameters
        ----------
        signal : array of shape (rounds, schools)
            The value of a release.

        Returns
        -------
        int64 array
            Empty where the run was long enough.
        """
        admitted = self.cutoffs(signal)
        more = self.admitted(admitted, np.asarray(signal)[-1])
        return np.flatnonzero(more > admitted).astype(np.int64)

    def justified_envy(self, schools: Any, reports: Any) -> int:
        """Count the pairs of a student and a better school that has taken someone of lower priority.

        Parameters
        ----------
        schools : int array of shape (students,)
            The parts.
        reports : int array of shape (students, at most choices)

        Returns
        -------
        int
            0 for every run: for tests, and for other matchings. Private.
        """
        matched, lists = np.asarray(schools), self._checked(reports, self.agents)
        last = np.full(len(self.seats), -1)
        placed = np.flatnonzero(matched >= 0)
        np.maximum.at(last, matched[placed], self._ranks[matched[placed], placed])
        found = 0
        better = np.ones(self.agents, np.bool_)
        for column in lists.T:
            better &= (column >= 0) & (column != matched)
            students = np.flatnonzero(better)
            ranks = self._ranks[column[students], students]
            found += int(np.count_nonzero(ranks < last[column[students]]))
        return found

    def _count(self) -> ActionCounter:
        return ActionCounter(
            steps=self.rounds,
            columns=len(self.seats),
            turns=min(self.choices or 1, self.rounds),
            separation=1,
            step_squared=2,
            state_squared=2,
            epsilon=self.epsilon,
            delta=self.delta,
        )

    def _checked(self, reports: Any, count: int) -> _Integers:
        schools = len(self.seats)
        remedy = f"pass rows of at most {self.choices} schools from 0 to {schools - 1}, filled up with -1"
        lists = as_array("reports", reports, remedy)
        fits = lists.ndim == 2 and len(lists) == count and 0 < lists.shape[1] <= (self.choices or 1)
        if not fits or lists.dtype.kind not in "iu":
            _check.refuse_type("reports", "be lists of schools, one for each student", lists, remedy)
        ordered = np.sort(lists, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        gap = (lists[:, :-1] < 0) & (lists[:, 1:] >= 0)
        if lists.min() < -1 or lists.max() >= schools or twice.any() or gap.any():
            _check.refuse_state("reports", "list distinct schools, then -1", "one of them does not", remedy)
        return lists.astype(np.int64)

    def _opening(self) -> _Floats:
        return np.zeros(len(self.seats))

    def _players(self, agents: _Integers, reports: Any) -> _Students:
        return _Students(self, agents, reports)

    def _final(self, players: _Students, signal: _Floats) -> _Integers:
        return players.schools


class _Students:
    """Students with their lists, and the schools that they are at."""

    def __init__(self, choice: SchoolChoice, agents: _Integers, lists: _Integers) -> None:
        self.choice, self.lists = choice, lists
        self.ranks = choice._ranks[:, agents]  # noqa: SLF001
        self.admitted = np.zeros(len(choice.seats), np.int64)
        self.schools = np.full(len(lists), -1)

    def act(self, who: _Integers, before: _Floats) -> _Integers:
        """Move to the best school that admits."""
        self.admitted = self.choice.admitted(self.admitted, before)
        open_to = (self.ranks < self.admitted[:, None]).T
        rows = np.arange(len(self.lists))[:, None]
        allowed = (self.lists >= 0) & open_to[rows, self.lists]
        first = allowed.argmax(axis=1)
        best = np.where(allowed.any(axis=1), self.lists[rows[:, 0], first], -1)
        change = self._counts(best) - self._counts(self.schools)
        self.schools = best
        return change

    def observe(self, who: _Integers, after: _Floats) -> None:
        """Need nothing of the counts after the step."""

    def _counts(self, schools: _Integers) -> _Integers:
        return np.bincount(schools + 1, minlength=len(self.admitted) + 1)[1:].astype(np.int64)
