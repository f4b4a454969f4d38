"""Inversion of an anonymising algorithm: the tables that it would have turned into the release."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.attacks.inference.record_matrix import table_of
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["AlgorithmInversion", "Worlds"]


class Worlds(NamedTuple):
    """The tables that fit a release by its labels alone.

    Attributes
    ----------
    fitting : int
        How many.
    tables : iterator of (tuple, pyarrow.Table)
        The hidden value of each target, and the table that they make.
    """

    fitting: int
    tables: Iterator[tuple[tuple[Any, ...], pa.Table]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlgorithmInversion(Attack):
    """An attack that tries all tables that fit the labels, and keeps those that the algorithm fits too."""

    anonymize: Callable[[pa.Table], Any]
    least_share: float = 1.0
    most_worlds: int = 20_000

    def __post_init__(self) -> None:
        if not callable(self.anonymize):
            _check.refuse_type("anonymize", "be callable", self.anonymize, "pass what made the release")
        _check.share("least_share", self.least_share, "1 claims only what all tables agree on")
        _check.integer("most_worlds", self.most_worlds, minimum=1)

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the attack, for findings."""

    @abstractmethod
    def _worlds(self, release: pa.Table) -> Worlds:
        """Return the tables that fit the labels."""

    def run(
        self,
        release: Any,
        *,
        truth: Any = None,
        controls: Any = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Attack a generalised table.

        Parameters
        ----------
        release : frame
            What the algorithm returned.
        truth : sequence, optional
            What is hidden of each target.
        controls : None
            There are none: what the labels alone give away, in ``numbers``, is the baseline.
        exchangeable : bool
            Not used.
        loss : PrivacyLoss, optional
            Of the release, if it has one: a generalised table has none.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings

        Raises
        ------
        ParameterError
            If there are controls, more than ``most_worlds`` tables fit the labels, or none the algorithm.
        """
        del exchangeable
        if controls is not None:
            remedy = "compare with what the labels alone give away, in numbers"
            _check.refuse_type("controls", "be left out", controls, remedy)
        table = table_of("release", release)
        worlds = self._worlds(table)
        if worlds.fitting > self.most_worlds:
            remedy = "attack fewer rows, or raise most_worlds"
            found = f"{worlds.fitting:,} tables fit the labels"
            _check.refuse_state("release", f"fit at most {self.most_worlds:,} tables", found, remedy)
        published = _rows(table)
        by_labels, by_algorithm = [], []
        for hidden, world in worlds.tables:
            by_labels.append(hidden)
            if _rows(table_of("anonymize", self.anonymize(world)), table.schema.names) == published:
                by_algorithm.append(hidden)
        if not by_algorithm:
            rule, remedy = "give the release for some table", "pass the algorithm and parameters that made it"
            _check.refuse_state("anonymize", rule, "it gives it for none", remedy)
        before, _ = _posterior(by_labels)
        share, guessed = _posterior(by_algorithm)
        return Findings(
            attack=self.name,
            kind="value",
            knowledge=self.knowledge,
            targets=self._guesses(share, guessed, truth),
            loss=loss,
            confidence=confidence,
            numbers={
                "tables that fit the labels": len(by_labels),
                "tables that fit the algorithm too": len(by_algorithm),
                "claims from the labels alone": int((before >= self.least_share).sum()),
            },
        )

    def _guesses(self, share: NDArray[np.float64], guessed: list[Any], truth: Any) -> TargetGuesses:
        right = None
        if truth is not None:
            true = truth.to_pylist() if hasattr(truth, "to_pylist") else list(truth)
            if len(true) != len(guessed):
                found, remedy = f"it has {len(true)}", "pass what is hidden of each target"
                _check.refuse_state("truth", f"have {len(guessed)} values", found, remedy)
            right = np.array([guess == value for guess, value in zip(guessed, true, strict=True)])
        guesses = np.empty(len(guessed), dtype=object)
        guesses[:] = guessed
        return TargetGuesses(
            guesses=guesses, scores=share, claimed=share >= self.least_share - 1e-12, correct=right
        )


def _posterior(worlds: list[tuple[Any, ...]]) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the commonest hidden value of each target over the tables, and its share of them."""
    best = [Counter(values).most_common(1)[0] for values in zip(*worlds, strict=True)]
    return np.array([count / len(worlds) for _, count in best]), [value for value, _ in best]


def _rows(table: pa.Table, names: list[str] | None = None) -> Counter[tuple[str, ...]]:
    """Return the rows as texts, in any order."""
    if names is not None:
        for name in names:
            if table.schema.names.count(name) != 1:
                remedy = "return a table with the release's columns"
                _check.refuse("anonymize", "return each column of the release once", name, remedy)
        table = table.select(names)
    columns = [[str(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True))
