"""The base of attacks on classes of equals: from the values that a generalised table leaves, to findings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from sfumato import _check
from sfumato.attacks.base.attack import Attack
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.attacks.inference.record_matrix import columns_of, table_of
from sfumato.attacks.syntactic.matched_values import MatchedValues
from sfumato.privacy.loss import PrivacyLoss
from sfumato.synthetic.domain.column_types import plain_column

__all__ = ["ClassAttack", "Decided"]

_CELLS: Final = 4_000_000
"""Pairs of a person and a sensitive value at once."""

Groups: TypeAlias = Mapping[Hashable, Hashable] | None

Decided: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]
"""For each person, the index of the guessed value, a score, and whether the guess is claimed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassAttack(Attack):
    """An attack that reads the sensitive values of the rows that a person may be."""

    targets: Any
    sensitive: str

    def __post_init__(self) -> None:
        _check.instance("sensitive", self.sensitive, str, "name the column that is guessed")
        object.__setattr__(self, "targets", table_of("targets", self.targets))

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release."""
        known = ", ".join(self.targets.schema.names)
        statements = (f"of each target: {known}", "how values were generalised")
        return Knowledge(statements, {"targets": self.targets})

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the attack, for findings."""

    @abstractmethod
    def _read(self, release: Any, people: pa.Table) -> MatchedValues:
        """Return the sensitive values that the release leaves for people."""

    @abstractmethod
    def _decided(self, counts: NDArray[np.float64], overall: NDArray[np.float64]) -> Decided:
        """Return the guesses, from counts of values for each person, and those of the whole table."""

    def _groups(self) -> Groups:
        return None

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
            With the targets' columns, generalised, and the sensitive one; a list of two or more for an
            intersection.
        truth : sequence, optional
            The sensitive value of each target.
        controls : frame, optional
            People who are not in the table, with the sensitive column.
        exchangeable : bool
            Whether targets and controls were drawn alike, by lot.
        loss : PrivacyLoss, optional
            Of the release, if it has one: a generalised table has none.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """
        secrets = None if truth is None else _listed(truth, self.targets.num_rows)
        against = None
        if controls is not None:
            people = table_of("controls", controls)
            columns_of("controls", [*self.targets.schema.names, self.sensitive], people)
            known = plain_column(people.column(self.sensitive)).to_pylist()
            against = self._guesses(release, people.select(self.targets.schema.names), known)
        return Findings(
            attack=self.name,
            kind="value",
            knowledge=self.knowledge,
            targets=self._guesses(release, self.targets, secrets),
            controls=against,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
        )

    def _guesses(self, release: Any, people: pa.Table, truth: list[Any] | None) -> TargetGuesses:
        groups = self._groups()
        values, counts, overall = _grouped(self._read(release, people), groups)
        rows = max(1, _CELLS // len(values))
        blocks = [
            self._decided(counts[start : start + rows].toarray(), overall)
            for start in range(0, people.num_rows, rows)
        ]
        best, scores, claimed = (np.concatenate(part) for part in zip(*blocks, strict=True))
        guessed = [values[place] for place in best.tolist()]
        right = None
        if truth is not None:
            meant = truth if groups is None else [groups.get(value, value) for value in truth]
            right = np.array([guess == true for guess, true in zip(guessed, meant, strict=True)])
        guesses = np.empty(len(guessed), dtype=object)
        guesses[:] = guessed
        return TargetGuesses(guesses=guesses, scores=scores, claimed=claimed, correct=right)


def _grouped(matched: MatchedValues, groups: Groups) -> MatchedValues:
    if groups is None:
        return matched
    meant = [groups.get(value, value) for value in matched.values]
    names = list(dict.fromkeys(meant))
    place = {name: at for at, name in enumerate(names)}
    where = (np.arange(len(meant)), [place[name] for name in meant])
    sums = sparse.csr_array((np.ones(len(meant)), where), shape=(len(meant), len(names)))
    return MatchedValues(names, sparse.csr_array(matched.counts @ sums), np.asarray(matched.overall @ sums))


def _listed(truth: Any, people: int) -> list[Any]:
    found: list[Any] = truth.to_pylist() if hasattr(truth, "to_pylist") else np.asarray(truth).tolist()
    if len(found) != people:
        remedy = "pass the sensitive value of each target"
        _check.refuse_state("truth", f"have {people} values", f"it has {len(found)}", remedy)
    return found
