r"""Individual accounting: each record pays for what it contributes, until its budget is used up.

A sum over records with Gaussian noise costs every record the square of the norm that *it* contributes,
not the largest norm that any could. A record whose budget is used up is left out of later sums; the others
go on.

Proof. Two neighbors differ in one record, which is in the one dataset and not in the other. Whether another
record takes part, and with what, depends on that record, on the earlier answers and on public parameters
alone, so given the earlier answers the two sums of a round differ by the contribution of the one record, or
not at all where it is left out. The round's two distributions are then the same noise a distance apart that
is the contribution's norm: :math:`\rho_t`-zCDP with :math:`\rho_t = \|q_t(x)\|_2^2 / (2\sigma_t^2)`, or 0.
This is a function of the earlier answers (and of the record, which is fixed), and the rule holds
:math:`\sum_t \rho_t` within the limit: the theorem of the zCDP filter applies to this pair, and so for every
record.

References
----------
Feldman, Zrnic (2021), "Individual privacy accounting via a Rényi filter".
Canonne, Kamath, Steinke (2020), the zCDP of the discrete Gaussian at an integer distance.
"""

from __future__ import annotations

import threading
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.privacy._outward import UNIT
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.neighboring import Neighboring

__all__ = ["IndividualFilter"]


@final
class IndividualFilter:
    """A zCDP budget for each record of one dataset, for its curator.

    Parameters
    ----------
    records : int
        How many records there are. This number is the curator's too.
    rho : float
        What each record may spend in all.
    neighboring : Neighboring
        Add/remove or zero-out, of one record; replace-one is refused: the two records that are exchanged may
        leave at different times.

    Notes
    -----
    Guarantee: rho-zCDP of all noised sums together, of which the norms and the noise of each may depend on
    the earlier ones. Conditions: `admit` is asked before each sum; the sum is over the admitted records only,
    each with an L2 norm of at most the one stated for it; the norm of a record depends on that record, on
    earlier noised sums and on public parameters only, so that a clipping norm taken from the data is wrong;
    the noise is Gaussian of the stated standard deviation, continuous, or on the integers with integer
    contributions; nothing else about the data is shown; under zero-out, the neutral record contributes
    nothing.

    **Every number that this object returns about records is the curator's alone**: who was admitted, how
    many, what each has spent and has left. They depend on the data and nothing protects them. Only
    `guarantee`, which is fixed beforehand, may be published.

    Examples
    --------
    >>> account = IndividualFilter(records=3, rho=0.51)
    >>> for _ in range(4):
    ...     account.admit([0.0, 1.0, 2.0], stddev=2.0).tolist()
    [True, True, True]
    [True, True, False]
    [True, True, False]
    [True, True, False]
    >>> account.admit([0.0, 1.0, 2.0], stddev=2.0).tolist()
    [True, False, False]
    >>> print(account.guarantee)
    0.51-zCDP, add/remove one unit
    """

    def __init__(
        self, *, records: int, rho: float, neighboring: Neighboring = Neighboring.ADD_REMOVE
    ) -> None:
        self._spent = np.zeros(_check.integer("records", records))
        self._limit = _check.positive("rho", rho)
        if neighboring not in (Neighboring.ADD_REMOVE, Neighboring.ZERO_OUT):
            raise NeighboringMismatch(
                f"neighboring must be add/remove or zero-out, got {neighboring}; two exchanged records "
                "may leave at different times: charge a PrivacyFilter with the worst norm instead"
            )
        self._neighboring = neighboring
        self._lock = threading.Lock()

    @property
    def guarantee(self) -> Guarantee:
        """What all sums together satisfy, for every record; the one number here that is public."""
        return Guarantee(neighboring=self._neighboring, rho=self._limit)

    def admit(self, norms: ArrayLike, *, stddev: float) -> NDArray[np.bool_]:
        """Charge every record that can still pay, and return which may be summed; for the curator only.

        Parameters
        ----------
        norms : array_like of shape (records,)
            The L2 norm of what each record would contribute, or a bound on it.
        stddev : float
            Of the Gaussian noise on each coordinate of the sum, in the same units.

        Returns
        -------
        ndarray of bool
            Whether each record takes part; all others must be left out of the sum.

        Raises
        ------
        ParameterError
            If the norms are not one non-negative number for each record; the message holds no norm.
        """
        stddev = _check.positive("stddev", stddev)
        given = np.asarray(norms, dtype=float)
        if given.shape != self._spent.shape or not (given >= 0).all():
            # Neither a norm nor how many there are is shown: both are the curator's.
            _check.refuse_state(
                "norms",
                "be one non-negative number for each record",
                "they are others, or not as many",
                "pass the norms as one array",
            )
        with np.errstate(over="ignore", under="ignore"):
            ratio = given / stddev
            # Four roundings up, and away from zero where the square vanishes.
            cost = np.where(given > 0, np.nextafter(0.5 * ratio * ratio * (1 + 8 * UNIT), np.inf), 0.0)
            with self._lock:
                total = np.where(cost > 0, np.nextafter(self._spent + cost, np.inf), self._spent)
                admitted = np.asarray(total <= self._limit)
                self._spent = np.where(admitted, total, self._spent)
        return admitted

    def spent_by_record(self) -> NDArray[np.float64]:
        """Return the rho that each record has spent, rounded up; for the curator's eyes only.

        Returns
        -------
        ndarray of shape (records,)
        """
        return self._spent.copy()

    def left_by_record(self) -> NDArray[np.float64]:
        """Return the rho that each record has left, rounded down; for the curator's eyes only.

        Returns
        -------
        ndarray of shape (records,)
        """
        return np.maximum(0.0, np.nextafter(self._limit - self._spent, -np.inf))

    def __repr__(self) -> str:
        # A repr ends up in logs and notebooks, so it holds nothing about the records.
        return f"<IndividualFilter of {self.guarantee}>"
