"""The base class of queries: exact functions of the data with a proven sensitivity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Norm, Shift, Stability
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Query", "TransformedQuery"]


class Query(ABC):
    """A function of the data with a proven sensitivity; it adds no noise.

    A query's answer is a whole number of steps (or an array of them): each record is turned into integers by
    a function of that record alone, and integers are added. Float addition, whose result depends on the order
    and whose error no sensitivity counts, never happens. The sensitivity is that of exactly this integer
    function, and a mechanism adds its integer noise to it; only then is the result multiplied by the step.

    Data is a numpy array with one record per entry of its first axis, each the record of one privacy unit
    (see ``after`` for units with several records); or a list, a column of pandas, Polars or Arrow, or a frame
    where a record has several numbers. A null counts as NaN does: as the number 0, and in no cell.

    Notes
    -----
    Under ``ZERO_OUT`` the neutral record contributes nothing, to the count neither.

    Examples
    --------
    >>> from sfumato.mechanisms import Count
    >>> isinstance(Count(), Query), Count().sensitivity(Neighboring.ADD_REMOVE, Norm.L1)
    (True, 1.0)
    """

    __slots__ = ()

    @property
    @abstractmethod
    def step(self) -> int | Fraction:
        """What one step is worth; the int 1 where answers are whole numbers."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many numbers the answer holds."""

    @abstractmethod
    def steps(self, data: Any) -> int | NDArray[np.int64]:
        """Return the exact answer in steps: private, to be given to a mechanism only.

        Parameters
        ----------
        data : array
            One record in each entry of the first axis.

        Returns
        -------
        int, or array of int64 of shape (entries,)
            In steps of `step`; private.
        """

    def drawn_steps(self, data: Any, source: RandomSource) -> int | NDArray[np.int64]:
        """Return the exact answer in steps, with what it draws by lot taken from a source.

        Parameters
        ----------
        data : array
            As for `steps`.
        source : RandomSource
            That of the release, so that one with a seed can be made again. Most queries draw nothing.

        Returns
        -------
        int, or array of int64 of shape (entries,)
            In steps of `step`; private.
        """
        del source
        return self.steps(data)

    @abstractmethod
    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the exact bound on the answer's move, in steps.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.

        Raises
        ------
        UnboundedSensitivity
            If none is proved under that relation.
        """

    @property
    def draws(self) -> bool:
        """Whether two answers to one dataset may differ, as a transformation may draw a lot."""
        return False

    @property
    def simulated(self) -> bool:
        """Whether the answer follows a seed, as a lot may; a release of it protects nobody."""
        return False

    @final
    def sensitivity(self, neighboring: Neighboring, norm: Norm) -> float:
        """Return the most that one unit moves the answer, in the unit of the answer.

        Parameters
        ----------
        neighboring : Neighboring
        norm : Norm

        Returns
        -------
        float
            Rounded up.

        Raises
        ------
        UnboundedSensitivity
            If none is proved under that relation.
        """
        step = 1 if norm is Norm.L0 else self.step
        return fraction_up(self.shift(neighboring).norm(norm) * step)

    @final
    def __call__(self, data: Any) -> Any:
        """Return the exact answer: private, for tests and for the data's owner."""
        steps = self.steps(data)
        if isinstance(self.step, int):
            return steps
        if isinstance(steps, int):
            return float(steps * self.step)
        return np.asarray(steps * float(self.step), dtype=np.float64)

    def estimate(self, release: LatticeRelease) -> Any:
        """Return what the query is after, from a release of it; post-processing, free of charge.

        Parameters
        ----------
        release : Release
            Of this query.

        Returns
        -------
        float or array
            In the unit of the data.
        """
        return self.check_release(release).value

    @final
    def check_release(self, release: object) -> LatticeRelease:
        """Return a release of this query, or refuse what is none.

        Parameters
        ----------
        release : LatticeRelease
            Of a measurement of this query, before or after a transformation; or of noise on as many entries
            with the same step, which names no query.

        Returns
        -------
        LatticeRelease

        Raises
        ------
        ParameterError
            If another query was released: its numbers would be read with the wrong bounds.

        Examples
        --------
        >>> import numpy as np
        >>> from sfumato.mechanisms import Laplace, Variance
        >>> ages = Laplace.for_query(Variance(bounds=(0.0, 100.0)), epsilon=1.0).release(np.ones(50))
        >>> Variance(bounds=(0.0, 1.0)).mean_interval(ages)
        Traceback (most recent call last):
        ...
        sfumato.errors.ParameterError: release must be of this query, Variance(bounds=(0.0, 1.0)), but it is \
        of Variance(bounds=(0.0, 100.0)); use the query that was released, release.query
        """
        asked, rule = self.before_transformations(), f"be of this query, {_shown(self)}"
        if not isinstance(release, LatticeRelease):
            _check.refuse_type("release", rule, release, "pass what a measurement of it released")
        if not isinstance(release.query, Query):
            if np.size(release.steps) != asked.entries or release.step != asked.step:
                found = "it has other entries, or another step"
                _check.refuse_state("release", rule, found, "pass what a measurement of it released")
        elif not _alike(asked, release.query.before_transformations()):
            remedy = "use the query that was released, release.query"
            _check.refuse_state("release", rule, f"it is of {_shown(release.query)}", remedy)
        return release

    def before_transformations(self) -> Query:
        """Return the query that transformations were put before, or this one.

        Returns
        -------
        Query
        """
        return self

    @property
    def counts_records(self) -> bool:
        """Whether each entry is a number of records, none of which is counted by two entries."""
        return False

    def after(
        self, transformation: Callable[[Any], Any] | None = None, *, stability: Stability | int
    ) -> TransformedQuery:
        """Return this query after a stable transformation of the data.

        Parameters
        ----------
        transformation : callable, optional
            Data to data; the data as it is unless given.
        stability : Stability or int
            How many records of the result one unit moves. An int is the add/remove stability alone.

        Returns
        -------
        TransformedQuery

        Examples
        --------
        >>> from sfumato.mechanisms import Count
        >>> visits = Count().after(stability=Stability.rows(3))
        >>> visits.sensitivity(Neighboring.ADD_REMOVE, Norm.L1)
        3.0
        """
        stated = stability if isinstance(stability, Stability) else Stability(add_remove=stability)
        return TransformedQuery(query=self, transformation=transformation, stability=stated)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TransformedQuery(Query):
    """A query after a stable transformation.

    Parameters
    ----------
    query : Query
    transformation : callable or None
        Data to data; trusted to have the stated stability (``check_sensitivity`` can search for a violation).
    stability : Stability
        The rule for each relation stands there.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Count
    >>> from sfumato.mechanisms import Stability
    >>> visits = Count().after(stability=Stability.rows(3))
    >>> visits.sensitivity(Neighboring.ADD_REMOVE, Norm.L1), visits(np.ones(4))
    (3.0, 4)
    """

    query: Query
    transformation: Callable[[Any], Any] | None
    stability: Stability

    @property
    def step(self) -> int | Fraction:
        """What one step is worth."""
        return self.query.step

    @property
    def entries(self) -> int:
        """How many numbers the answer holds."""
        return self.query.entries

    @property
    def draws(self) -> bool:
        """Whether there is a transformation, which may draw."""
        return self.transformation is not None or self.query.draws

    @property
    def simulated(self) -> bool:
        """Whether query or transformation follows a seed."""
        return self.query.simulated or getattr(self.transformation, "simulated", False) is True

    def before_transformations(self) -> Query:
        """Return the query that all transformations were put before.

        Returns
        -------
        Query
        """
        return self.query.before_transformations()

    @property
    def counts_records(self) -> bool:
        """Whether the query counts records of the transformed data."""
        return self.query.counts_records

    def steps(self, data: Any) -> int | NDArray[np.int64]:
        """Return the exact answer in steps.

        Parameters
        ----------
        data
            What the transformation takes.

        Returns
        -------
        int, or array of int64 of shape (entries,)
            In steps of `step`; private.
        """
        return self.query.steps(data if self.transformation is None else self.transformation(data))

    def drawn_steps(self, data: Any, source: RandomSource) -> int | NDArray[np.int64]:
        """Return the exact answer in steps, with what the query draws by lot taken from a source.

        Parameters
        ----------
        data
            What the transformation takes.
        source : RandomSource
            Not the transformation's, which has its own.

        Returns
        -------
        int, or array of int64 of shape (entries,)
            In steps of `step`; private.
        """
        changed = data if self.transformation is None else self.transformation(data)
        return self.query.drawn_steps(changed, source)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the query's own bound times the stability.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        bounds = [
            self.query.shift(relation).times(count, self.entries)
            for count, relation in self.stability.factors(neighboring)
        ]
        tightest = bounds[0]
        for bound in bounds[1:]:
            tightest = tightest.tightest(bound)
        return tightest

    def estimate(self, release: LatticeRelease) -> Any:
        """Return what the query is after, from a release of it.

        Parameters
        ----------
        release : Release
            Of this query.

        Returns
        -------
        float or array
            In the unit of the data.
        """
        return self.query.estimate(release)


_LONGEST = 200


def _shown(query: Query) -> str:
    """Return a query as text, by its class alone where it has functions or is long."""
    text = repr(query)
    return text if len(text) <= _LONGEST and " at 0x" not in text else f"a {type(query).__name__}"


def _alike(one: Any, other: Any) -> bool:
    """Whether two queries, or two parameters of theirs, are the same; arrays entry by entry."""
    if is_dataclass(one) and type(one) is type(other):
        return all(_alike(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    return bool(one == other)
