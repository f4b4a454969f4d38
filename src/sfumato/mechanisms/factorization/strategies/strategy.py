"""The base class of strategies for streams: noise is drawn for C x and mapped to answers by B = A C^-1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, IntegerStrategy
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import div_down
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Array", "Draw", "NoiseStream", "Strategy", "check_unfinished"]

Draw: TypeAlias = Callable[[], Array]
"""Draws fresh, independent noise for one row of the strategy, of the shape of one step's input."""


class NoiseStream(ABC):
    """Correlated noise, step by step: what is to be added to each step's input.

    Notes
    -----
    If every step's noise is added to its input, then the sum over the steps so far has the noise of the
    prefix sums: ``B z`` for the strategy's B and the fresh ``z``.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import SquareRoot
    >>> stream = SquareRoot(steps=4).noise()
    >>> generator = np.random.default_rng(7)
    >>> stream.send(lambda: generator.normal(size=3)).shape
    (3,)
    """

    @property
    @abstractmethod
    def memory(self) -> int:
        """The most arrays of the shape of one step's input that are retained."""

    @abstractmethod
    def send(self, draw: Draw) -> Array:
        """Return the next step's noise.

        Parameters
        ----------
        draw : callable
            Called once for each row of the strategy that the step completes; the result is not changed.

        Returns
        -------
        array
            Of the shape that ``draw`` returns.

        Raises
        ------
        ParameterError
            After the last step.
        """


def check_unfinished(sent: int, steps: int) -> None:
    """Refuse a step beyond the last one of a strategy."""
    if sent >= steps:
        _check.refuse_state(
            "stream", f"have at most {steps} steps", "all were sent", "make a strategy of more"
        )


class Strategy(ABC):
    r"""What is measured of a stream of inputs: :math:`C x`, where row by row only inputs so far are needed.

    The answers :math:`A x` are prefix sums, or sums weighted by age. They are estimated by :math:`B (C x + z)
    = A x + B z` with :math:`A = B C`, so that what they cost depends on :math:`C` alone and their error is
    that of :math:`B z`.

    Noise on a grid, with everything around it: see `ContinualSum`. For training, where float noise is
    accepted: `noise` and `loss`.

    Examples
    --------
    >>> from sfumato.mechanisms import BinaryTree, SquareRoot
    >>> [round(strategy.max_error(), 2) for strategy in (SquareRoot(steps=64), BinaryTree(steps=64))]
    [2.39, 5.15]
    """

    __slots__ = ()

    steps: int

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many numbers are measured: the rows of C."""

    @abstractmethod
    def matrix(self) -> Array:
        """Return C, shape (entries, steps); row by row as they are completed.

        Returns
        -------
        array of shape (entries, steps)
        """

    @abstractmethod
    def sensitivity(self, participation: Participation = ONCE) -> Interval:
        """Bound how far one unit moves C x in the L2 norm, if one participation moves an input by 1.

        Parameters
        ----------
        participation : Participation
            In which steps a unit may take part.

        Returns
        -------
        Interval
            Rounded outward; inputs may be vectors, which move by at most 1 in the L2 norm.
        """

    @abstractmethod
    def variances(self, workload: ArrayLike | None = None) -> Array:
        """Return the variance of each answer's noise where that of z is 1: squared norms of the rows of B.

        Parameters
        ----------
        workload : array, optional
            Weights by age, shape (at most ``steps``,); all ones, for prefix sums, unless given.

        Returns
        -------
        ndarray, shape (steps,)
            To float accuracy.
        """

    @abstractmethod
    def noise(self) -> NoiseStream:
        """Return a fresh stream of correlated noise, for training where float noise is accepted.

        Returns
        -------
        NoiseStream
        """

    def loss(
        self,
        noise_multiplier: float,
        *,
        participation: Participation = ONCE,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> Gaussian:
        """Return the loss of all steps together, with continuous normal noise on every row.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of each entry of the fresh noise, over the most by which one participation
            moves a step's input in the L2 norm.
        participation : Participation
        neighboring : Neighboring
            The relation that this most is about. A unit's steps are the same in both datasets.

        Returns
        -------
        Gaussian
            For inputs that may depend on earlier answers; what is computed from the answers costs nothing
            more. Proof: in `sfumato.privacy.matrix_mechanism`, which takes dense strategies.

        Examples
        --------
        >>> from sfumato.mechanisms import SquareRoot
        >>> strategy = SquareRoot(steps=1024)
        >>> round(strategy.loss(5.0).gdp().mu, 4) == round(strategy.sensitivity().upper / 5, 4)
        True
        """
        noise = _check.non_negative("noise_multiplier", noise_multiplier)
        return Gaussian(div_down(noise, self.sensitivity(participation).upper), neighboring=neighboring)

    @abstractmethod
    def in_integers(self, bits: int) -> IntegerStrategy:
        """Return the strategy in whole multiples of ``2**-bits``, as exact noise needs it.

        Parameters
        ----------
        bits : int
            Entries are rounded to multiples of ``2**-bits``.

        Returns
        -------
        IntegerStrategy
        """

    def max_error(self, participation: Participation = ONCE, *, workload: ArrayLike | None = None) -> float:
        """Return the greatest standard error of an answer at a noise multiplier of 1.

        Parameters
        ----------
        participation : Participation
        workload : array, optional
            As in `variances`.

        Returns
        -------
        float
            Root of the greatest expected squared error, over what one participation moves an input.
        """
        return self.sensitivity(participation).upper * float(np.sqrt(self.variances(workload).max()))

    def mean_error(self, participation: Participation = ONCE, *, workload: ArrayLike | None = None) -> float:
        """Return the root of the mean expected squared error of all answers at a noise multiplier of 1.

        Parameters
        ----------
        participation : Participation
            In how many steps one unit takes part, and how far apart.
        workload : array of shape (steps,), optional
            Weights by age, the newest first; of prefix sums unless given.

        Returns
        -------
        float
            In the unit of one step's sensitivity.
        """
        return self.sensitivity(participation).upper * float(np.sqrt(self.variances(workload).mean()))
