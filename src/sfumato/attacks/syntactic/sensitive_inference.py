"""Sensitive values in generalised tables: homogeneity, skewness, similarity and intersection attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.attacks.linkage.equality_join import check_columns, matching_classes
from sfumato.frames.arrow import as_arrow
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["SensitiveInference"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensitiveInference(Attack):
    """Guess persons' sensitive value from the rows of released tables that may be theirs.

    Parameters
    ----------
    auxiliary : frame
        The targets, with their exact values of the quasi-identifiers.
    on : sequence of str
        The quasi-identifiers.
    sensitive : str
        The released column that is guessed.
    hierarchies : mapping of str to rows, optional
        As for `EqualityLinkage`.
    groups : mapping of value to group, optional
        Guess the group of the value, such as the kind of an illness; a value that is not named is its own.
    share : float
        A guess is claimed if at least this share of the rows that may be the person's has it: 1 is the
        homogeneity attack.
    gain : float
        And if this share is at least so many times that in the whole table: above 1 it is the skewness
        attack.

    Raises
    ------
    ParameterError
        If a column is missing, or a number is out of its range.

    Notes
    -----
    - Homogeneity breaks k-anonymity: k rows that are alike may have one sensitive value.
    - Skewness breaks l-diversity: a class may have a rare value far more often than the table.
    - Similarity breaks l-diversity: a class may have l different values of one group.
    - Intersection breaks all of them: run on several releases about the same persons, a value counts as often
      as in the release that has it least often, and so it must be possible in each.

    References
    ----------
    Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam (2007), "l-diversity", TKDD 1(1). Li, Li,
    Venkatasubramanian (2007), "t-closeness", ICDE. Ganta, Kasiviswanathan, Smith (2008), "Composition attacks
    and auxiliary information in data privacy", KDD.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> ages = [(n, "20-29" if n < 30 else "30-39") for n in range(20, 40)]
    >>> released = pa.table({"age": ["20-29"] * 3 + ["30-39"] * 3,
    ...                      "ill": ["flu"] * 3 + ["flu", "cold", "flu"]})
    >>> attack = attacks.SensitiveInference(auxiliary=pa.table({"age": [23, 37]}), on=("age",),
    ...                                     sensitive="ill", hierarchies={"age": ages})
    >>> found = attack.run(released, truth=["flu", "cold"])
    >>> found.targets.guesses.tolist(), found.targets.claimed.tolist()
    (['flu', 'flu'], [True, False])
    """

    auxiliary: Any
    on: Sequence[str]
    sensitive: str
    hierarchies: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    groups: Mapping[Any, Any] = field(default_factory=dict)
    share: float = 1.0
    gain: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "auxiliary", as_arrow("auxiliary", self.auxiliary))
        check_columns("auxiliary", self.auxiliary, self.on)
        _check.share("share", self.share)
        _check.non_negative("gain", self.gain)
        if self.sensitive in self.on:
            _check.refuse("sensitive", "be no quasi-identifier", self.sensitive, "leave it out of on")

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the tables."""
        known = f"of each target, {', '.join(self.on)}, who they are, and that they are in the table"
        return Knowledge((known,), {"auxiliary": self.auxiliary})

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
        """Guess the targets' sensitive values.

        Parameters
        ----------
        release : frame, or list or tuple of frames
            The released table, or several about the same persons.
        truth : sequence of values, optional
            Each target's sensitive value.
        controls : frame, optional
            Persons who are not in the table, with the quasi-identifiers and the sensitive column.
        exchangeable : bool
            Whether targets and controls were drawn alike, by lot.
        loss : PrivacyLoss, optional
            Of all releases together.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
            Its guesses are values or groups, its scores their share of the rows.
        """
        value, loss = read_release(release, loss)
        several = value if isinstance(value, list | tuple) else (value,)
        if not several:
            _check.refuse("release", "be a table, or several", value, "pass one with the sensitive column")
        tables = [as_arrow("release", table) for table in several]
        for table in tables:
            check_columns("release", table, [*self.on, self.sensitive])
        other = None
        if controls is not None:
            frame = as_arrow("controls", controls)
            check_columns("controls", frame, [*self.on, self.sensitive])
            other = self._guesses(frame, tables, frame.column(self.sensitive).to_pylist())
        return Findings(
            attack="inference of a sensitive value",
            kind="value",
            knowledge=self.knowledge,
            targets=self._guesses(self.auxiliary, tables, truth),
            controls=other,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            notes=() if len(tables) == 1 else (f"{len(tables)} releases were intersected",),
        )

    def _guesses(self, people: pa.Table, tables: Sequence[pa.Table], truth: Any) -> TargetGuesses:
        columns = [self._grouped(table.column(self.sensitive).to_pylist()) for table in tables]
        values = list(dict.fromkeys(value for column in columns for value in column))
        codes = {value: code for code, value in enumerate(values)}
        counts = np.full((people.num_rows, len(values)), np.iinfo(np.int64).max)
        base = np.ones(len(values))
        for table, column in zip(tables, columns, strict=True):
            coded = np.array([codes[value] for value in column], dtype=np.int64)
            counts = np.minimum(counts, self._counts(people, table, coded, len(values)))
            base = np.minimum(base, np.bincount(coded, minlength=len(values)) / len(coded))
        total = counts.sum(axis=1)
        best = counts.argmax(axis=1)
        share = np.where(total > 0, counts.max(axis=1) / np.maximum(total, 1), 0.0)
        claimed = (total > 0) & (share >= self.share) & (share >= self.gain * base[best])
        guesses = np.empty(people.num_rows, dtype=object)
        guesses[:] = [values[code] for code in best]
        correct = None if truth is None else self._right(guesses, truth)
        return TargetGuesses(guesses=guesses, scores=share, claimed=claimed, correct=correct)

    def _counts(
        self, people: pa.Table, table: pa.Table, coded: NDArray[np.int64], size: int
    ) -> NDArray[np.int64]:
        """Return for each person how many of the rows that may be theirs have each value."""
        counts = np.zeros((people.num_rows, size), dtype=np.int64)
        for found in matching_classes(people, table, self.on, self.hierarchies):
            cells = found.row_class * size + coded[found.rows]
            by_class = np.bincount(cells, minlength=found.classes * size).reshape(found.classes, size)
            counts[found.persons] += by_class[found.person_class]
        return counts

    def _grouped(self, values: Sequence[Any]) -> list[Any]:
        return [self.groups.get(value, value) for value in values]

    def _right(self, guesses: NDArray[Any], truth: Any) -> NDArray[np.bool_]:
        values = list(truth)
        if len(values) != len(guesses):
            _check.refuse_type(
                "truth", "be a value for each target", truth, "pass them in the order of the targets"
            )
        expected = self._grouped(values)
        return np.array(
            [one == other for one, other in zip(guesses.tolist(), expected, strict=True)], dtype=bool
        )
