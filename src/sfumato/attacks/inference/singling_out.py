"""Singling out: predicates, found in a released table, that exactly one real person satisfies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.target_guesses import TargetGuesses, inference_risk
from sfumato.attacks.inference.predicates import (
    Predicates,
    matches,
    random_predicates,
    surprise,
    unique_predicates,
)
from sfumato.attacks.inference.record_matrix import RecordMatrix, columns_of, record_matrices, table_of
from sfumato.attacks.inference.released_rows import released_rows
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["SinglingOut"]

_PREDICATE: Final = "each guess is a predicate that isolates one released row, and no person"
_LUCK: Final = "a predicate that one in n people satisfies isolates one of n by luck with chance 1/e or more"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SinglingOut(Attack):
    """Guess that conditions which one row of a released table satisfies also isolate a real person.

    Parameters
    ----------
    predicates : int
        How many are tried, if the release yields as many.
    columns_per_predicate : int
        In how many columns a predicate states a condition: 1 for the univariate attack.
    rng : int
        For the choice of rows and columns.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule; in `run`, if tables lack a column, or no predicate isolates a row.

    Notes
    -----
    A condition is an equation for a category, and for a number that it is at most or at least that of the
    row, whichever is farther from the median. With truth and controls, predicates are counted on equally many
    real people and controls, drawn by lot: how many are isolated depends on how many there are. The
    singling-out risk of Giomi and others, ``(success - baseline) / (1 - baseline)``, and the share of random
    predicates that isolate someone are in ``numbers``. No bound is printed: that differential privacy
    prevents singling out is a theorem about predicates of small weight under independent rows (Cohen,
    Nissim 2020), and no statement about one table.

    References
    ----------
    Giomi, Boenisch, Wehmeyer, Tasnádi (2023), A Unified Framework for Quantifying Privacy Risk in Synthetic
    Data. Cohen, Nissim (2020), Towards Formalizing the GDPR's Notion of Singling Out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> people = pa.table({"age": [30, 40, 50, 60], "city": ["Lyon", "Bonn", "Rome", "Bonn"]})
    >>> found = attacks.SinglingOut(predicates=20, columns_per_predicate=1).run(people, truth=people)
    >>> found.targets.hits == found.targets.people
    True
    """

    predicates: int = 1000
    columns_per_predicate: int = 3
    rng: int = 0

    def __post_init__(self) -> None:
        _check.integer("predicates", self.predicates, minimum=1)
        _check.integer("columns_per_predicate", self.columns_per_predicate, minimum=1)
        _check.integer("rng", self.rng)

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release: nothing."""
        return Knowledge(("nothing beside the released table",))

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
        """Attack a table.

        Parameters
        ----------
        release : frame or released model
            The synthetic table, or the model that makes one.
        truth : frame, optional
            The real table, with the same columns.
        controls : frame, optional
            People who are not in it.
        exchangeable : bool
            Whether real people and controls were drawn alike; no bound follows here.
        loss : PrivacyLoss, optional
            Of the release, where it does not bring its own.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """
        del exchangeable
        generator = np.random.default_rng(self.rng)
        rows = released_rows(release, self.rng)
        loss = read_release(release, loss).loss
        tables = {"release": rows}
        for name, frame in (("truth", truth), ("controls", controls)):
            if frame is not None:
                tables[name] = table_of(name, frame)
                columns_of(name, rows.schema.names, tables[name])
        names = columns_of("release", rows.schema.names, rows)
        matrices = dict(zip(tables, record_matrices(tables, names), strict=True))
        seen = matrices.pop("release")
        found = self._predicates(seen, generator)
        scores = surprise(found, seen)
        counted = _equally_many(matrices, generator)
        sides = {name: _isolated(found, scores, matrix) for name, matrix in counted.items()}
        numbers = {}
        if "truth" in counted:
            by_lot = random_predicates(seen, self.predicates, self._width(seen), generator)
            numbers["random predicates that isolate a person"] = float(
                (matches(by_lot, counted["truth"]) == 1).mean()
            )
            risk = inference_risk(sides["truth"], sides.get("controls"))
            numbers |= {} if risk is None else {"singling-out risk": risk}
        return Findings(
            attack="singling out",
            kind="value",
            knowledge=self.knowledge,
            targets=sides.get("truth", _unknown(found, scores)),
            controls=sides.get("controls"),
            loss=loss,
            confidence=confidence,
            numbers=numbers,
            notes=(_PREDICATE, _LUCK),
            no_bound="a privacy loss bounds no rate of predicates on one table",
        )

    def _width(self, seen: RecordMatrix) -> int:
        return min(self.columns_per_predicate, len(seen.numeric))

    def _predicates(self, seen: RecordMatrix, generator: np.random.Generator) -> Predicates:
        found = unique_predicates(seen, self.predicates, self._width(seen), generator)
        if not len(found.columns):
            remedy = "pass more columns_per_predicate, or a table whose rows differ"
            _check.refuse_state("release", "have rows that few conditions isolate", "none was found", remedy)
        return found


def _equally_many(
    matrices: dict[str, RecordMatrix], generator: np.random.Generator
) -> dict[str, RecordMatrix]:
    if not matrices:
        return {}
    most = min(len(matrix.values) for matrix in matrices.values())
    return {
        name: RecordMatrix(matrix.values[generator.permutation(len(matrix.values))[:most]], matrix.numeric)
        for name, matrix in matrices.items()
    }


def _isolated(found: Predicates, scores: Any, people: RecordMatrix) -> TargetGuesses:
    right = matches(found, people) == 1
    every = np.ones(len(right), dtype=np.bool_)
    return TargetGuesses(guesses=np.arange(len(right)), scores=scores, claimed=every, correct=right)


def _unknown(found: Predicates, scores: Any) -> TargetGuesses:
    every = np.ones(len(found.columns), dtype=np.bool_)
    return TargetGuesses(guesses=np.arange(len(every)), scores=scores, claimed=every)
