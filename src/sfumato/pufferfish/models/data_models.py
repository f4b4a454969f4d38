"""Models of whole datasets: explicit joint distributions, chains, independent rows, samplers."""

from __future__ import annotations

import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from sfumato import _check
from sfumato.pufferfish.chains.markov_chain import MarkovChain
from sfumato.pufferfish.models.exact import exact_probabilities

__all__ = ["DataModel", "IndependentRows", "JointDistribution", "MarkovSequence", "Sampler", "enumerable"]

Dataset = tuple[Any, ...]
_MOST: Final = 1 << 18


class DataModel(ABC):
    """A distribution of whole datasets, each a tuple of records.

    Examples
    --------
    >>> issubclass(JointDistribution, DataModel)
    True
    """

    __slots__ = ()

    @abstractmethod
    def datasets(self) -> dict[Dataset, Fraction]:
        """Return each dataset that can be, with its exact probability.

        Returns
        -------
        dict of tuple to Fraction

        Raises
        ------
        ParameterError
            If there are too many, or the model can only be sampled.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the model in words.

        Returns
        -------
        str
        """

    @property
    def digest(self) -> str:
        """A SHA-256 of the datasets and their probabilities, in hexadecimal."""
        content = hashlib.sha256()
        for dataset, weight in sorted(self.datasets().items(), key=lambda item: repr(item[0])):
            content.update(f"{dataset!r}={weight};".encode())
        return content.hexdigest()


@final
@dataclass(frozen=True, slots=True)
class JointDistribution(DataModel):
    """An explicit distribution: datasets with their probabilities.

    Parameters
    ----------
    rows : iterable of sequences
        The datasets that can be.
    probabilities : iterable of numbers
        One for each; a float stands for its shortest decimal.

    Examples
    --------
    >>> twins = JointDistribution([(0, 0), (1, 1)], [0.5, 0.5])
    >>> twins.datasets()[1, 1]
    Fraction(1, 2)
    """

    rows: Any
    probabilities: Any

    def __post_init__(self) -> None:
        rows = tuple(tuple(row) for row in self.rows)
        weights = exact_probabilities("probabilities", self.probabilities)
        if len(rows) != len(weights) or len({len(row) for row in rows}) != 1:
            _check.refuse_state(
                "rows",
                "be datasets of one length, as many as probabilities",
                "they are not",
                "pass one tuple of records for each probability",
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "probabilities", weights)

    def datasets(self) -> dict[Dataset, Fraction]:
        """Return each dataset that can be, with its exact probability.

        Returns
        -------
        dict of tuple to Fraction
        """
        found: dict[Dataset, Fraction] = {}
        for row, weight in zip(self.rows, self.probabilities, strict=True):
            if weight:
                found[row] = found.get(row, Fraction(0)) + weight
        return found

    def describe(self) -> str:
        """Return the model in words.

        Returns
        -------
        str
        """
        return f"a joint distribution on {len(self.rows)} datasets"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovSequence(DataModel):
    """A sequence of records from a Markov chain.

    Parameters
    ----------
    chain : MarkovChain
    length : int

    Examples
    --------
    >>> chain = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[1, 0])
    >>> MarkovSequence(chain=chain, length=3).datasets()[0, 0, 1]
    Fraction(9, 100)
    """

    chain: MarkovChain
    length: int

    def __post_init__(self) -> None:
        _check.instance("chain", self.chain, MarkovChain, "pass a MarkovChain")
        object.__setattr__(self, "length", _check.integer("length", self.length, minimum=1))

    def datasets(self) -> dict[Dataset, Fraction]:
        """Return each sequence that can be, with its exact probability.

        Returns
        -------
        dict of tuple to Fraction
        """
        _few(self.chain.states**self.length)
        start = self.chain.stationary if self.chain.start is None else self.chain.start
        rows = [exact_probabilities("transition", row) for row in self.chain.transition.tolist()]
        found: dict[Dataset, Fraction] = {
            (state,): weight
            for state, weight in enumerate(exact_probabilities("start", start.tolist()))
            if weight
        }
        for _ in range(self.length - 1):
            found = {
                (*dataset, state): weight * step
                for dataset, weight in found.items()
                for state, step in enumerate(rows[dataset[-1]])
                if step
            }
        return found

    def describe(self) -> str:
        """Return the model in words.

        Returns
        -------
        str
        """
        return f"{self.length} records of {self.chain.describe()}"


@final
@dataclass(frozen=True, slots=True)
class IndependentRows(DataModel):
    """Records that are independent, each with its own distribution over values.

    Parameters
    ----------
    values : sequence
        The values of a record.
    marginals : iterable of iterables of numbers
        For each record the probability of each value.

    Examples
    --------
    >>> IndependentRows([0, 1], [[0.5, 0.5], [0.25, 0.75]]).datasets()[0, 1]
    Fraction(3, 8)
    """

    values: Any
    marginals: Any

    def __post_init__(self) -> None:
        values = tuple(self.values)
        marginals = tuple(exact_probabilities("marginals", row) for row in self.marginals)
        if not marginals or any(len(row) != len(values) for row in marginals):
            remedy = "pass one list of probabilities for each record"
            _check.refuse_state("marginals", "have one entry for each value", "they have not", remedy)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "marginals", marginals)

    def datasets(self) -> dict[Dataset, Fraction]:
        """Return each dataset that can be, with its exact probability.

        Returns
        -------
        dict of tuple to Fraction
        """
        _few(math.prod(sum(1 for weight in row if weight) for row in self.marginals))
        rows = [
            [(value, weight) for value, weight in zip(self.values, row, strict=True) if weight]
            for row in self.marginals
        ]
        return {
            tuple(value for value, _ in picked): math.prod(
                (weight for _, weight in picked), start=Fraction(1)
            )
            for picked in itertools.product(*rows)
        }

    def describe(self) -> str:
        """Return the model in words.

        Returns
        -------
        str
        """
        return f"{len(self.marginals)} independent records"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler(DataModel):
    """A model that can be sampled only, to simulate data; no mechanism prices by it.

    Parameters
    ----------
    draw : callable
        Takes a numpy Generator and returns a dataset.
    words : str
        The model in words.

    Examples
    --------
    >>> import numpy as np
    >>> coin = Sampler(draw=lambda generator: tuple(generator.integers(0, 2, 3)), words="three coins")
    >>> len(coin.draw(np.random.default_rng(1)))
    3
    """

    draw: Callable[[Any], Sequence[Any]]
    words: str

    def datasets(self) -> dict[Dataset, Fraction]:
        """Refuse: samples say nothing certain of a distribution.

        Returns
        -------
        dict of tuple to Fraction
            Never.

        Raises
        ------
        ParameterError
            Always.
        """
        _check.refuse_type(
            "models",
            "be enumerable: a distance from samples bounds nothing",
            self,
            "state the distribution, a Markov chain, a Bayesian network or a ProbabilityBox",
        )

    def describe(self) -> str:
        """Return the model in words.

        Returns
        -------
        str
        """
        return self.words


def enumerable(models: DataModel | Iterable[DataModel]) -> tuple[DataModel, ...]:
    """Return a class of models as a tuple, or refuse an empty one."""
    found = (models,) if isinstance(models, DataModel) else tuple(models)
    if not found:
        _check.refuse_state("models", "hold a model", "the class is empty", "pass at least one DataModel")
    for model in found:
        _check.instance("models", model, DataModel, "pass a DataModel, or several")
    return found


def _few(count: int) -> None:
    if count > _MOST:
        remedy = "shorten it, or use MarkovQuilt or NetworkQuilt, which enumerate nothing"
        _check.refuse_state("the model", f"have at most {_MOST} datasets", "it has more", remedy)
