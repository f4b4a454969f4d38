"""A Pufferfish specification: which secrets look alike in pairs, under which data models.

>>> from sfumato import pufferfish
>>> twins = pufferfish.JointDistribution([(0, 0), (1, 1)], [0.5, 0.5])
>>> specification = pufferfish.Specification.of_records(models=twins)
>>> specification.distance(sum)
Fraction(2, 1)

One record moves the sum by 1, but a secret of one twin is a secret of both.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

from sfumato import _check
from sfumato.pufferfish.models.data_models import DataModel, IndependentRows, enumerable
from sfumato.pufferfish.models.distance import NumberDistribution, wasserstein_infinity
from sfumato.pufferfish.models.exact import exact_number

__all__ = ["ConditionalPair", "Secret", "Specification"]

Dataset = tuple[Any, ...]
_SHOWN = 4


@final
@dataclass(frozen=True, slots=True)
class Secret:
    """A statement about the dataset that is true or false.

    Parameters
    ----------
    name : str
        The statement in words.
    holds : callable
        Takes a dataset, a tuple of records; whether the statement is true.

    Examples
    --------
    >>> Secret("Bob has the flu", lambda people: people[1] == 1).holds((0, 1))
    True
    """

    name: str
    holds: Callable[[Dataset], bool]


class ConditionalPair(NamedTuple):
    """What must look alike: the datasets under one secret and under another, in one model.

    Attributes
    ----------
    first, second : dict of tuple to Fraction
        Datasets under each secret, with weights that need not sum to one.
    words : str
        The pair and its model.

    Examples
    --------
    >>> ConditionalPair({(0,): Fraction(1)}, {(1,): Fraction(1)}, "0 against 1").words
    '0 against 1'
    """

    first: dict[Dataset, Fraction]
    second: dict[Dataset, Fraction]
    words: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """Secrets, the pairs of them that must look alike, and the class of data models.

    Parameters
    ----------
    pairs : iterable of pairs of Secret
    models : DataModel or iterable of DataModel
        Chosen without the protected data; the guarantee is void outside of them.
    between : iterable of pairs of DataModel, optional
        Pairs of models that must look alike themselves: the secret is which of the two made the data.
    words : str
        The secrets in words; made from their names unless given.

    Raises
    ------
    ParameterError
        If there is no pair, the class is empty, or no model allows both secrets of any pair.

    References
    ----------
    Kifer, Machanavajjhala, "Pufferfish" (TODS 39, 2014), Definition 3.1.

    Examples
    --------
    >>> from sfumato.pufferfish import JointDistribution
    >>> flu = JointDistribution([(0, 0), (1, 1), (0, 1)], [0.4, 0.4, 0.2])
    >>> sick, well = Secret("Bob is sick", lambda d: d[1] == 1), Secret("Bob is well", lambda d: d[1] == 0)
    >>> len(list(Specification(pairs=[(sick, well)], models=flu).compiled()))
    1
    """

    pairs: Any
    models: Any
    between: Any = ()
    words: str = ""

    def __post_init__(self) -> None:
        pairs = tuple(tuple(pair) for pair in self.pairs)
        between = tuple(tuple(pair) for pair in self.between)
        for pair, kind in [(p, Secret) for p in pairs] + [(p, DataModel) for p in between]:
            if len(pair) != 2 or not all(isinstance(one, kind) for one in pair):
                name = "pairs" if kind is Secret else "between"
                _check.refuse_state(name, f"be pairs of {kind.__name__}", "one is not", "pass two in each")
        if not pairs and not between:
            _check.refuse_state("pairs", "hold a pair", "there is none", "say what must look alike")
        models = enumerable(self.models) if pairs else ()
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "between", between)
        object.__setattr__(self, "models", models)
        if not self.words:
            object.__setattr__(self, "words", _words(pairs, between))

    @classmethod
    def of_records(cls, *, models: DataModel | Iterable[DataModel]) -> Specification:
        """Return the specification that hides each record's value, against each other value.

        Parameters
        ----------
        models : DataModel or iterable of DataModel

        Returns
        -------
        Specification
        """
        found = enumerable(models)
        datasets = [dataset for model in found for dataset in model.datasets()]
        pairs = []
        for record in range(max(len(dataset) for dataset in datasets)):
            values = sorted({dataset[record] for dataset in datasets if len(dataset) > record}, key=repr)
            secrets = [_record_secret(record, value) for value in values]
            pairs += list(itertools.combinations(secrets, 2))
        words = "the value of each record, against each other value"
        return cls(pairs=pairs, models=found, words=words)

    @classmethod
    def differential_privacy(cls, *, values: Iterable[Any], records: int) -> Specification:
        """Return differential privacy under replace-one, as the instance that it is of Pufferfish.

        Parameters
        ----------
        values : iterable
            The values of a record.
        records : int

        Returns
        -------
        Specification
            The secrets are the values of each record; the class has, for each record, each choice of all
            others as known: for independent records, any mixture of these is hidden with them.
        """
        known = tuple(values)
        count = _check.integer("records", records, minimum=1)
        if len(known) < 2:
            _check.refuse_state("values", "be at least two", "they are not", "pass the domain of a record")
        free = [Fraction(1, len(known))] * len(known)
        models = []
        for record in range(count):
            for others in itertools.product(range(len(known)), repeat=count - 1):
                fixed = iter(others)
                marginals = [
                    free if row == record else _point(next(fixed), len(known)) for row in range(count)
                ]
                models.append(IndependentRows(known, marginals))
        return cls.of_records(models=models)

    @classmethod
    def dataset_attribute(
        cls,
        *,
        models: DataModel | Iterable[DataModel],
        attribute: Callable[[Dataset], Any],
        name: str = "attribute",
    ) -> Specification:
        """Return the specification that hides a property of the whole dataset, such as a column's mean.

        Parameters
        ----------
        models : DataModel or iterable of DataModel
        attribute : callable
            Takes a dataset and returns the property's value.
        name : str
            The property in words.

        Returns
        -------
        Specification
            Each value of the property against each other value.

        References
        ----------
        Zhang, Ohrimenko, Cummings, "Attribute privacy: framework and mechanisms" (FAccT 2022), Definition 3.
        """
        found = enumerable(models)
        values = sorted({attribute(d) for model in found for d in model.datasets()}, key=repr)
        secrets = [Secret(f"{name} is {v!r}", lambda d, v=v: attribute(d) == v) for v in values]  # type: ignore[misc]
        words = f"the {name} of the dataset, each value against each other"
        return cls(pairs=itertools.combinations(secrets, 2), models=found, words=words)

    @classmethod
    def distributional_attribute(cls, models: Mapping[str, DataModel]) -> Specification:
        """Return the specification that hides which distribution the data came from.

        Parameters
        ----------
        models : mapping of str to DataModel
            By name, for each value of the sensitive parameter, the distribution of the data.

        Returns
        -------
        Specification

        References
        ----------
        Zhang, Ohrimenko, Cummings, "Attribute privacy: framework and mechanisms" (FAccT 2022), Definition 4.
        """
        names = " or ".join(models)
        between = list(itertools.combinations(models.values(), 2))
        return cls(pairs=(), models=(), between=between, words=f"which distribution made the data: {names}")

    def compiled(self) -> Iterator[ConditionalPair]:
        """Return what must look alike: for each pair and model, the datasets under either secret.

        Returns
        -------
        iterator of ConditionalPair
            Pairs of which a model rules one secret out are left out for it, as the definition has it.

        Raises
        ------
        ParameterError
            If nothing is left: then there is nothing to hide.
        """
        some = False
        for model in self.models:
            datasets = model.datasets()
            parts: dict[int, dict[Dataset, Fraction]] = {}
            for pair in self.pairs:
                for secret in pair:
                    if id(secret) not in parts:
                        parts[id(secret)] = {d: w for d, w in datasets.items() if secret.holds(d)}
                first, second = (parts[id(secret)] for secret in pair)
                if first and second:
                    some = True
                    words = f"{pair[0].name!r} against {pair[1].name!r} under {model.describe()}"
                    yield ConditionalPair(first, second, words)
        for one, other in self.between:
            some = True
            yield ConditionalPair(
                one.datasets(), other.datasets(), f"{one.describe()} against {other.describe()}"
            )
        if not some:
            rule = "allow both secrets of some pair"
            _check.refuse_state("models", rule, "none does", "check secrets and models: nothing is hidden")

    def distance(self, query: Callable[[Dataset], Any]) -> Fraction:
        """Return the largest Wasserstein distance of a query's distributions under two secrets of a pair.

        Parameters
        ----------
        query : callable
            Takes a dataset and returns a number.

        Returns
        -------
        Fraction
            W-infinity, exact.
        """
        distance = Fraction(0)
        for pair in self.compiled():
            first, second = (_distribution(query, weights) for weights in (pair.first, pair.second))
            distance = max(distance, wasserstein_infinity(first, second))
        return distance

    @property
    def digest(self) -> str:
        """A SHA-256 of everything that must look alike, in hexadecimal."""
        content = hashlib.sha256()
        for pair in self.compiled():
            for weights in (pair.first, pair.second):
                for dataset, weight in sorted(weights.items(), key=lambda item: repr(item[0])):
                    content.update(f"{dataset!r}={weight};".encode())
                content.update(b"|")
        return content.hexdigest()

    def describe_models(self) -> str:
        """Return the class of models in words.

        Returns
        -------
        str
        """
        names: list[str] = [model.describe() for model in self.models]
        names += [model.describe() for pair in self.between for model in pair]
        distinct: list[str] = list(dict.fromkeys(names))
        if len(names) == 1:
            return names[0]
        return f"{len(names)} models: {', '.join(distinct[:_SHOWN])}" + (
            ", ..." if len(distinct) > _SHOWN else ""
        )


def _record_secret(record: int, value: Any) -> Secret:
    return Secret(f"record {record} is {value!r}", lambda d: len(d) > record and d[record] == value)


def _point(at: int, count: int) -> list[int]:
    return [int(index == at) for index in range(count)]


def _distribution(query: Callable[[Dataset], Any], weights: dict[Dataset, Fraction]) -> NumberDistribution:
    answers: dict[Fraction, Fraction] = {}
    for dataset, weight in weights.items():
        answer = exact_number("the query's answer", query(dataset))
        answers[answer] = answers.get(answer, Fraction(0)) + weight
    return NumberDistribution.of(answers)


def _words(pairs: tuple[Any, ...], between: tuple[Any, ...]) -> str:
    found = [f"{first.name} against {second.name}" for first, second in pairs[:_SHOWN]]
    found += [f"{first.describe()} against {second.describe()}" for first, second in between[:_SHOWN]]
    more = len(pairs) + len(between) > len(found)
    return "; ".join(found) + ("; ..." if more else "")
