"""A query and a mechanism joined: exact answer, noise, release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from sfumato import _check
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.query import Query
from sfumato.mechanisms.release import Release
from sfumato.numerics.source import Rng
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Measurement"]


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

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Answer the query on data, with noise.

        Parameters
        ----------
        value : array
            The data.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            In the unit of the query's answer; ``query.estimate`` reads off what the query is after.
        """
        return replace(self.mechanism.release(self.query.steps(value), rng), step=self.query.step)
