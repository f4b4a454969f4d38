"""Linkability: whether two halves of a person's record meet in the released table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.attacks.base.accusations import as_truth
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.attacks.inference.record_matrix import (
    columns_of,
    nearest_records,
    record_matrices,
    table_of,
)
from sfumato.attacks.inference.released_rows import released_rows
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Linkability"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linkability(Attack):
    """Link two sets of attributes of one person, such as of two sources, through a released table.

    Both halves of a target's record are looked up in the table. The attack claims that they belong together
    if one row is among the nearest to both.

    Parameters
    ----------
    targets : frame
        With the columns of both halves, which the attacker has from two sources.
    first, second : sequence of str
        The columns of each half.
    neighbors : int
        How many nearest rows of each half are compared.
    rng : int
        Orders the rows of the release, which decides between equally near ones.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, tables lack a column.

    Notes
    -----
    By chance two lists of k of n rows meet for a share of about ``k * k / n``; ``numbers`` has the exact one.

    References
    ----------
    Giomi, Boenisch, Wehmeyer, Tasnádi (2023), A Unified Framework for Quantifying Privacy Risk in Synthetic
    Data.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> people = pa.table({"age": [30, 40, 50], "pay": [1.0, 2.0, 3.0], "city": ["Lyon", "Bonn", "Rome"]})
    >>> attack = attacks.Linkability(targets=people, first=["age"], second=["pay", "city"])
    >>> attack.run(people, truth=[True] * 3).targets.claimed.tolist()
    [True, True, True]
    """

    targets: Any
    first: Sequence[str]
    second: Sequence[str]
    neighbors: int = 1
    rng: int = 0

    def __post_init__(self) -> None:
        _check.integer("neighbors", self.neighbors, minimum=1)
        _check.integer("rng", self.rng)
        table = table_of("targets", self.targets)
        first = columns_of("first", self.first, table)
        second = columns_of("second", self.second, table)
        columns_of("second", [*first, *second], table)
        for name, value in (("targets", table), ("first", first), ("second", second)):
            object.__setattr__(self, name, value)

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release."""
        halves = (f"of each target: {', '.join(self.first)}", f"from elsewhere: {', '.join(self.second)}")
        return Knowledge(halves, {"targets": self.targets})

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
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
        truth : bool array, optional
            Who of the targets is in the release's data; the others become controls.
        controls : frame, optional
            People who are not, with the same columns.
        exchangeable : bool
            Whether targets and controls were drawn alike, by lot.
        loss : PrivacyLoss, optional
            Of the release, where it does not bring its own.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """
        rows = released_rows(release, self.rng)
        loss = read_release(release, loss).loss
        columns_of("targets", [*self.first, *self.second], rows)
        inside = as_truth(truth, self.targets.num_rows)
        linked = self._linked(rows, self.targets)
        outside = [] if inside is None else [linked[~inside]]
        if controls is not None:
            others = table_of("controls", controls)
            columns_of("controls", [*self.first, *self.second], others)
            outside.append(self._linked(rows, others))
        baseline = np.concatenate(outside) if outside else np.zeros(0, dtype=np.bool_)
        numbers = {"links by chance": _by_chance(rows.num_rows, self.neighbors)}
        members = linked if inside is None else linked[inside]
        if not len(members):
            _check.refuse_state("truth", "be True for one target at least", "it is for none", "pass members")
        return Findings(
            attack="linkability",
            kind="presence",
            knowledge=self.knowledge,
            targets=_claims(members, known=inside is not None),
            controls=_claims(baseline, known=True) if len(baseline) else None,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers=numbers,
            notes=("a claim is that both halves of a record belong to one person",),
        )

    def _linked(self, rows: pa.Table, people: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for whom a row is among the nearest to both halves."""
        halves = []
        for columns in (self.first, self.second):
            seen, among = record_matrices({"people": people, "release": rows}, columns)
            halves.append(nearest_records(seen, among, self.neighbors))
        return np.asarray((halves[0][:, :, None] == halves[1][:, None, :]).any(axis=(1, 2)))


def _claims(linked: np.ndarray[Any, np.dtype[np.bool_]], *, known: bool) -> TargetGuesses:
    right = np.ones(len(linked), dtype=np.bool_) if known else None
    return TargetGuesses(guesses=linked, scores=linked.astype(np.float64), claimed=linked, correct=right)


def _by_chance(rows: int, neighbors: int) -> float:
    """Return how likely two drawn sets of ``neighbors`` rows have one in common."""
    taken = np.arange(min(neighbors, rows), dtype=np.float64)
    return float(1 - np.prod(np.maximum(rows - len(taken) - taken, 0) / (rows - taken)))
