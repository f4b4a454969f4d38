"""A mechanism checked against a specification, over every dataset that can be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.pufferfish.chains.markov_chain import MarkovChain
from sfumato.pufferfish.models.data_models import MarkovSequence
from sfumato.pufferfish.secrets.specification import Specification

__all__ = ["Verification", "protects"]

_MOST: Final = 1 << 22
_ERROR: Final = 1e-11


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a check by enumeration found.

    Parameters
    ----------
    epsilon : float
        The largest log-ratio of output probabilities under two secrets of a pair, to about 1e-11.
    claimed : float
        The epsilon that was claimed.
    datasets, pairs, outputs : int
        How many datasets, pairs of conditional distributions and outputs were gone through.
    worst : str
        The pair and the model with the largest ratio.

    Examples
    --------
    >>> bool(Verification(epsilon=0.5, claimed=1.0, datasets=4, pairs=2, outputs=3, worst="a against b"))
    True
    """

    epsilon: float
    claimed: float
    datasets: int
    pairs: int
    outputs: int
    worst: str

    @property
    def holds(self) -> bool:
        """Whether no ratio is above the claim."""
        return self.epsilon <= self.claimed + _ERROR

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        found = "holds" if self.holds else "is broken"
        return (
            f"epsilon={self.claimed:.6g} {found}: the largest log-ratio is {self.epsilon:.6g}, for "
            f"{self.worst}; checked {self.datasets} datasets, {self.pairs} pairs of conditional "
            "distributions and all outputs"
        )


def protects(
    mechanism: Any,
    *,
    query: Callable[[tuple[Any, ...]], Any] | None = None,
    specification: Specification | None = None,
    epsilon: float | None = None,
) -> Verification:
    """Check a mechanism with Laplace noise over all datasets of all models, where these are few.

    Parameters
    ----------
    mechanism : PufferfishMechanism, or any with Laplace noise
        One of `sfumato.mechanisms.Laplace` shows what noise for independent records leaves open.
    query : callable, optional
        Takes a dataset and returns the exact answer, a number or a sequence of them; the mechanism's own
        unless given.
    specification : Specification, optional
        The mechanism's own unless given: for `MarkovQuilt` of one or several chains, the sequences.
    epsilon : float, optional
        The claim; the mechanism's own unless given.

    Returns
    -------
    Verification
        Whether the claim holds for this query, and what was checked.

    Raises
    ------
    ParameterError
        If the datasets are too many, or something is neither given nor known.

    Notes
    -----
    An output's probability is a mixture of the noise around the answers. Between two neighboring answers the
    ratio of two such mixtures is a ratio of linear functions of ``exp(2 w / scale)``, which is monotone, and
    beyond the last answer it is constant: the extremes lie at the answers, on the grid, so that all outputs
    are covered. It says nothing of other queries.

    Examples
    --------
    >>> from sfumato import pufferfish
    >>> chain = pufferfish.MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[0.8, 0.2])
    >>> quilt = pufferfish.MarkovQuilt(chain=chain, length=8, lipschitz=1, epsilon=1.0)
    >>> pufferfish.protects(quilt, query=sum).holds
    True
    >>> from sfumato.mechanisms import Laplace
    >>> naive = Laplace(sensitivity=1, scale=1)
    >>> twins = pufferfish.JointDistribution([(0, 0), (1, 1)], [0.5, 0.5])
    >>> secret = pufferfish.Specification.of_records(models=twins)
    >>> round(pufferfish.protects(naive, query=sum, specification=secret, epsilon=1.0).epsilon, 6)
    2.0
    """
    query = getattr(mechanism, "query", None) if query is None else query
    if query is None:
        _check.refuse_state("query", "be given", "the mechanism has none", "pass the query that is asked")
    if specification is None:
        specification = getattr(mechanism, "specification", None) or _of_chain(mechanism)
    claimed = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    claimed = _check.positive("epsilon", claimed, "pass the epsilon that is claimed")
    distribution, lattice = getattr(mechanism, "distribution", None), getattr(mechanism, "_lattice", None)
    if not isinstance(distribution, DiscreteLaplaceDistribution) or lattice is None:
        _check.refuse_type(
            "mechanism", "have Laplace noise", mechanism, "pass a mechanism with Laplace noise"
        )
    worst, words, pairs, outputs = -math.inf, "", 0, 0
    seen: set[tuple[Any, ...]] = set()
    for pair in specification.compiled():
        answers = [_answers(query, lattice, weights) for weights in (pair.first, pair.second)]
        points = _outputs(set(answers[0]) | set(answers[1]))
        first, second = (_densities(points, part, float(distribution.scale)) for part in answers)
        found = float(np.abs(first - second).max())
        seen |= pair.first.keys() | pair.second.keys()
        pairs, outputs = pairs + 1, max(outputs, len(points))
        if found > worst:
            worst, words = found, pair.words
    return Verification(
        epsilon=worst, claimed=claimed, datasets=len(seen), pairs=pairs, outputs=outputs, worst=words
    )


def _of_chain(mechanism: Any) -> Specification:
    chain = getattr(mechanism, "chain", None)
    chains = (chain,) if isinstance(chain, MarkovChain) else chain
    if not isinstance(chains, tuple) or not all(isinstance(one, MarkovChain) for one in chains):
        remedy = "pass the specification; a class known by bounds has infinitely many models"
        _check.refuse_state("specification", "be given", "the mechanism has none that is finite", remedy)
    return Specification.of_records(
        models=[MarkovSequence(chain=one, length=mechanism.length) for one in chains]
    )


def _answers(
    query: Callable[[tuple[Any, ...]], Any], lattice: Any, weights: dict[tuple[Any, ...], Fraction]
) -> dict[tuple[int, ...], float]:
    found: dict[tuple[int, ...], Fraction] = {}
    for dataset, weight in weights.items():
        steps = np.atleast_1d(lattice.steps(_numbers(query(dataset))))
        key = tuple(int(step) for step in steps)
        found[key] = found.get(key, Fraction(0)) + weight
    total = sum(found.values())
    return {key: float(weight / total) for key, weight in found.items()}


def _numbers(answer: Any) -> Any:
    return np.asarray(answer) if isinstance(answer, list | tuple) else answer


def _outputs(answers: set[tuple[int, ...]]) -> NDArray[np.int64]:
    axes = [sorted(set(column)) for column in zip(*answers, strict=True)]
    if math.prod(len(axis) for axis in axes) * len(answers) > _MOST:
        remedy = "check a shorter dataset, or a query with fewer answers"
        _check.refuse_state("the query", "have few answers", "there are too many outputs", remedy)
    return np.array(list(itertools.product(*axes)), dtype=np.int64)


def _densities(
    points: NDArray[np.int64], answers: dict[tuple[int, ...], float], scale: float
) -> NDArray[np.float64]:
    """Return the logarithm of each output's probability, up to the noise's normaliser."""
    centres = np.array(list(answers), dtype=np.int64)
    exponents = -np.abs(points[:, None, :] - centres[None, :, :]).sum(axis=2) / scale
    logs = exponents + np.log(np.array(list(answers.values())))[None, :]
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)), dtype=np.float64)
