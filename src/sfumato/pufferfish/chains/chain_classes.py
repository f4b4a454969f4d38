"""Classes of Markov chains that are known only by bounds: pi_min and the eigengap, or intervals."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.pufferfish.chains.markov_chain import MarkovChain

__all__ = ["MarkovChainClass", "MarkovChainInterval"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovChainClass:
    """All irreducible, aperiodic chains whose stationary probabilities and eigengap have lower bounds.

    Parameters
    ----------
    pi_min : float
        No chain of the class gives a state a smaller stationary probability.
    eigengap : float
        At most ``1 - lambda`` for the second largest eigenvalue lambda of ``P P*`` of every chain P, where
        P* is its time reversal; for reversible chains at most twice ``1 - |lambda|`` of P itself.

    Raises
    ------
    ParameterError
        If a bound breaks its rule.

    Notes
    -----
    Any start is in the class. In the mean square of the stationary distribution pi, P shrinks what has mean
    zero by ``sqrt(1 - g)`` or more, so that ``|P^a(x, y) / pi(y) - 1| <= exp(-g a / 2) / pi_min``.

    References
    ----------
    Song, Wang, Chaudhuri, "Pufferfish privacy mechanisms for correlated data" (SIGMOD 2017), Section 4.4.2.

    Examples
    --------
    >>> MarkovChainClass.covering(MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])).eigengap
    0.74...
    """

    pi_min: float
    eigengap: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "pi_min", _check.unit_interval("pi_min", self.pi_min))
        gap = _check.positive("eigengap", self.eigengap, "a class without a gap forgets nothing")
        if gap > 2:
            _check.refuse("eigengap", "be at most 2", gap, "pass the gap of P times its time reversal")
        object.__setattr__(self, "eigengap", gap)

    @classmethod
    def covering(cls, *chains: MarkovChain) -> MarkovChainClass:
        """Return the class of all chains that mix at least as fast as these.

        Parameters
        ----------
        *chains : MarkovChain
            Chosen without the protected data.

        Returns
        -------
        MarkovChainClass
            With the smallest pi_min and the smallest gap of ``P P*``, rounded down.

        Raises
        ------
        ParameterError
            If there is no chain, or one is reducible or its ``P P*`` has no gap.
        """
        if not chains:
            _check.refuse_state("chains", "be given", "the class is empty", "pass a chain")
        lowest, gap = 1.0, 2.0
        for chain in chains:
            pi = chain.stationary
            root = np.sqrt(pi)
            # P P* is similar to S S^T, S = diag(root) P diag(1 / root): symmetric, so eigvalsh is backward
            # stable and errs by a small multiple of states * 2^-52 of the largest eigenvalue, which is 1.
            similar = root[:, None] * chain.transition / root[None, :]
            eigenvalues = np.linalg.eigvalsh(similar @ similar.T)
            second = float(eigenvalues[-2]) if chain.states > 1 else 0.0
            margin = 64 * chain.states**2 * 2.0**-52 / float(pi.min())
            lowest = min(lowest, float(pi.min()) * (1 - 1e-9))
            gap = min(gap, 1 - second - margin)
        if gap <= 0:
            _check.refuse_state(
                "chains", "have an eigengap", "one of them has none", "use the chains themselves: MarkovQuilt"
            )
        return cls(pi_min=min(lowest, 1 - 1e-9), eigengap=gap)

    @property
    def digest(self) -> str:
        """A SHA-256 of the two bounds, in hexadecimal."""
        return _digest("markov-chain-class", np.array([self.pi_min, self.eigengap]))

    def deviation(self, steps: int) -> float:
        """Return ``exp(-g steps / 2) / pi_min``, rounded up by more than its rounding.

        Parameters
        ----------
        steps : int

        Returns
        -------
        float
        """
        return math.exp(-self.eigengap * steps / 2) / self.pi_min * (1 + 1e-12)

    def describe(self) -> str:
        """Return the class in words.

        Returns
        -------
        str
        """
        return f"all Markov chains with pi_min >= {self.pi_min:.6g} and eigengap >= {self.eigengap:.6g}"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkovChainInterval:
    """All chains, with any start, whose transition probabilities lie between two matrices.

    Parameters
    ----------
    lower, upper : array of shape (states, states)
        Bounds on each transition probability; the lower ones are positive.

    Raises
    ------
    ParameterError
        If no chain lies between the bounds, or a lower bound is zero.

    Notes
    -----
    Guarantee: the transition may also change from step to step within the bounds. Each step contracts the
    Hilbert projective distance of two distributions by ``tanh(D / 4)``, where D is the largest
    ``log(P(x, v) P(y, w) / (P(y, v) P(x, w)))`` within the bounds (Birkhoff 1957), so that two rows of a
    product of a steps are at most ``D tanh(D / 4)^(a - 1)`` apart, which bounds the log-ratio of any entries.

    Examples
    --------
    >>> between = MarkovChainInterval(lower=[[0.4, 0.4], [0.4, 0.4]], upper=[[0.6, 0.6], [0.6, 0.6]])
    >>> round(between.diameter, 3), round(between.contraction, 3)
    (0.811, 0.2)
    """

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        bounds = []
        for name in ("lower", "upper"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
                _check.refuse_type(name, "be a square matrix", getattr(self, name), "one row for each state")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
            bounds.append(array)
        lower, upper = bounds
        if lower.shape != upper.shape or not bool(np.all((lower <= upper) & (upper <= 1))):
            _check.refuse_state("lower", "be at most upper, and upper at most 1", "it is not", "swap them")
        if not bool(np.all(lower > 0)):
            remedy = "pass positive lower bounds, or the chains themselves"
            _check.refuse_state("lower", "be positive", "some entry is not", remedy)
        if bool(np.any(lower.sum(axis=1) > 1 + 1e-12)) or bool(np.any(upper.sum(axis=1) < 1 - 1e-12)):
            remedy = "widen the bounds"
            _check.refuse_state("lower and upper", "hold a chain", "no row of sum one fits: empty", remedy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MarkovChainInterval) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def diameter(self) -> float:
        """The projective diameter D of the class's transitions, rounded up."""
        up, low = np.log(self.upper), np.log(self.lower)
        # log U(x, v) - log L(y, v), its largest entry for each pair of states (x, y).
        gaps = (up[:, None, :] - low[None, :, :]).max(axis=2)
        np.fill_diagonal(gaps, 0.0)  # a row is one distribution: it is at distance 0 of itself
        return float((gaps + gaps.T).max()) * (1 + 1e-12)

    @property
    def contraction(self) -> float:
        """The factor ``tanh(D / 4)`` of one step, rounded up."""
        return min(1.0, math.tanh(self.diameter / 4) * (1 + 1e-12))

    def distance(self, steps: int) -> float:
        """Return a bound on the projective distance of two rows of a product of that many steps.

        Parameters
        ----------
        steps : int

        Returns
        -------
        float
        """
        return self.diameter * self.contraction ** (steps - 1) * (1 + 1e-12)

    @property
    def digest(self) -> str:
        """A SHA-256 of the bounds, in hexadecimal."""
        return _digest("markov-chain-interval", np.stack([self.lower, self.upper]))

    def describe(self) -> str:
        """Return the class in words.

        Returns
        -------
        str
        """
        return f"all Markov chains of {self.lower.shape[0]} states with transitions between two bounds"


def _digest(kind: str, numbers: NDArray[np.float64]) -> str:
    return hashlib.sha256(kind.encode() + numbers.astype("<f8").tobytes()).hexdigest()
