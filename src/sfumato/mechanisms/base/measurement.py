"""A measurement: a query and a mechanism joined, from data to release."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import AdditiveMechanism
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Measurement", "MeasuringMechanism"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Mechanism):
    """A mechanism whose value is a query's answer on the data.

    Parameters
    ----------
    query : Query
        What is asked, exact in its own steps.
    mechanism : AdditiveMechanism
        Noise on whole numbers, in the query's steps; its parameters must cover the query's sensitivity.

    Raises
    ------
    ParameterError
        If the mechanism's sensitivity is below the query's, or it works on real values.

    Notes
    -----
    Guarantee: the mechanism's, with the query's sensitivity proved rather than claimed.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Count, Laplace
    >>> count = Laplace.for_query(Count(), epsilon=0.5)
    >>> count.privacy_loss.epsilon(), count.release(np.zeros(1000), rng=3).neighboring.value
    (0.5, 'add-remove')
    """

    query: Query
    mechanism: AdditiveMechanism

    def __post_init__(self) -> None:
        if not self.mechanism.integral:
            _check.refuse(
                "mechanism", "work on whole numbers", self.mechanism, "pass an int sensitivity, in steps"
            )
        shift = self.query.shift(self.mechanism.neighboring)
        if not self.mechanism.covers(shift):
            _check.refuse(
                "mechanism", f"cover {shift} in steps of the query", self.mechanism, "use for_query"
            )

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The mechanism's loss."""
        return self.mechanism.privacy_loss

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected."""
        return self.mechanism.neighboring

    def release(self, value: Any, rng: Rng = None) -> LatticeRelease:
        """Answer the query on data, with noise.

        Parameters
        ----------
        value : array
            The data.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        LatticeRelease
            In the unit of the answer, with the query; ``query.estimate`` reads off what that is after.
        """
        source = random_source(rng)
        release = self.mechanism.release(self.query.drawn_steps(value, source), source)
        simulated = release.simulated or self.query.simulated
        return replace(release, step=self.query.step, query=self.query, simulated=simulated)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw the values of many releases at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array of shape (size, ...)
            A value in each entry of the first axis.
        """
        if self.query.draws:
            return Mechanism.outputs(self, value, size, rng)
        size = _check.integer("size", size, minimum=1)
        copies = np.repeat(np.asarray(self.query.steps(value), np.int64)[None], size, axis=0)
        return replace(self.mechanism.release(copies, rng), step=self.query.step).value


class MeasuringMechanism(AdditiveMechanism):
    """An additive mechanism that chooses its noise for a query."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def _for_shift(cls, shift: Shift, **request: Any) -> Self:
        """Return the mechanism with the smallest noise for a whole number, or an array, that moves so far.

        ``request`` holds ``epsilon``, ``delta`` and ``neighboring``.
        """

    @classmethod
    def for_query(
        cls,
        query: Query,
        *,
        epsilon: float,
        delta: float = 0.0,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> Measurement:
        """Return the measurement of a query with the smallest noise of this kind that meets (epsilon, delta).

        Parameters
        ----------
        query : Query
        epsilon, delta : float
            The guarantee; Gaussian noise needs a positive delta.
        neighboring : Neighboring
            Whose relation the query's sensitivity is taken under.

        Returns
        -------
        Measurement
            With the entries and their sensitivity, or with the norm over all entries (L1 for Laplace, L2 for
            Gaussian noise) where it is less.

        Raises
        ------
        UnboundedSensitivity
            If the query has no sensitivity under that relation.

        Examples
        --------
        >>> from sfumato.mechanisms import Count, Gaussian, Histogram, Laplace
        >>> Laplace.for_query(Histogram(categories=("a", "b")), epsilon=1.0).mechanism.scale
        1
        >>> round(float(Gaussian.for_query(Count(), epsilon=1.0, delta=1e-6).mechanism.stddev), 2)
        4.23
        """
        mechanism = cls._for_shift(
            query.shift(neighboring), epsilon=epsilon, delta=delta, neighboring=neighboring
        )
        return Measurement(query=query, mechanism=mechanism)
