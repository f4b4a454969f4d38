"""Attribute inference from a table: the secret of the records that look most like the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.target_guesses import TargetGuesses, inference_risk
from sfumato.attacks.inference.record_matrix import (
    RecordMatrix,
    columns_of,
    nearest_records,
    record_matrices,
    table_of,
)
from sfumato.attacks.inference.released_rows import released_rows
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["AttributeInference"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttributeInference(Attack):
    """Guess a secret attribute of people from the rows of a table that are nearest to them.

    Works on a synthetic table, on a released model of `sfumato.synthetic`, and on raw rows.

    Parameters
    ----------
    targets : frame
        What is known of each target: columns of the released table, without the secret.
    secret : str
        The column that is guessed.
    neighbors : int
        How many nearest rows vote; a secret number is their median.
    tolerance : float
        A guessed number is right within this share of the true one.
    rng : int
        Orders the rows of the release, which decides between equally near ones.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, tables lack a column.

    Notes
    -----
    What the attack gets right about controls, who are not in the release, it has learned of the population.
    The inference risk of Giomi and others is ``(success - baseline) / (1 - baseline)``, in ``numbers``.

    References
    ----------
    Giomi, Boenisch, Wehmeyer, Tasnádi (2023), A Unified Framework for Quantifying Privacy Risk in Synthetic
    Data.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> released = pa.table({"age": [30, 40], "city": ["Lyon", "Bonn"], "ill": ["no", "yes"]})
    >>> attack = attacks.AttributeInference(targets=pa.table({"age": [41], "city": ["Bonn"]}), secret="ill")
    >>> found = attack.run(released, truth=["yes"])
    >>> found.targets.guesses.tolist(), found.targets.hits
    (['yes'], 1)
    """

    targets: Any
    secret: str
    neighbors: int = 1
    tolerance: float = 0.05
    rng: int = 0

    def __post_init__(self) -> None:
        _check.instance("secret", self.secret, str, "name the column that is guessed")
        _check.integer("neighbors", self.neighbors, minimum=1)
        _check.non_negative("tolerance", self.tolerance)
        _check.integer("rng", self.rng)
        table = table_of("targets", self.targets)
        if self.secret in table.schema.names:
            _check.refuse("targets", "lack the secret column", self.secret, "pass it as truth to run")
        object.__setattr__(self, "targets", table)

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release."""
        known = ", ".join(self.targets.schema.names)
        return Knowledge((f"of each target: {known}",), {"targets": self.targets})

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
        truth : sequence, optional
            The secret of each target.
        controls : frame, optional
            People who are not in the release, with the secret column.
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
        known = columns_of("targets", self.targets.schema.names, rows)
        columns_of("secret", [self.secret], rows)
        others = None if controls is None else table_of("controls", controls)
        if others is not None:
            columns_of("controls", [*known, self.secret], others)
        secrets = _as_column("truth", truth, rows.column(self.secret).type, self.targets.num_rows)
        targets = self._guessed(rows, self.targets, known, secrets)
        numbers: dict[str, float] = {}
        against = None
        if others is not None:
            against = self._guessed(rows, others, known, others.column(self.secret))
            risk = inference_risk(targets, against)
            numbers = {} if risk is None else {"inference risk": risk}
        return Findings(
            attack="attribute inference",
            kind="value",
            knowledge=self.knowledge,
            targets=targets,
            controls=against,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers=numbers,
        )

    def _guessed(
        self, rows: pa.Table, people: pa.Table, known: tuple[str, ...], truth: pa.ChunkedArray | None
    ) -> TargetGuesses:
        seen, among = record_matrices({"people": people, "release": rows}, known)
        nearest = nearest_records(seen, among, self.neighbors)
        secrets = rows.select([self.secret])
        sides = {"release": secrets}
        if truth is not None:
            sides["truth"] = pa.table({self.secret: truth})
        values, *true = record_matrices(sides, [self.secret])
        voted, agreement = _vote(values, nearest)
        guesses = np.array(secrets.column(0).take(pa.array(voted)).to_pylist())
        right = None
        if true:
            guessed = values.values[voted, 0]
            right = _right(guessed, true[0].values[:, 0], self.tolerance if values.numeric[0] else 0.0)
        return TargetGuesses(
            guesses=guesses, scores=agreement, claimed=np.ones(len(guesses), dtype=np.bool_), correct=right
        )


def _vote(values: RecordMatrix, nearest: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the row that has each target's guess, and the share of neighbors who have the same value."""
    found = np.nan_to_num(values.values[nearest, 0], nan=-np.inf)
    if values.numeric[0]:
        order = np.argsort(found, axis=1, kind="stable")
        best = order[:, (found.shape[1] - 1) // 2]
    else:
        votes = (found[:, :, None] == found[:, None, :]).sum(axis=2)
        best = votes.argmax(axis=1)
    people = np.arange(len(nearest))
    agreement = (found == found[people, best][:, None]).mean(axis=1)
    return nearest[people, best], agreement


def _right(guessed: NDArray[np.float64], true: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
    both = np.isnan(guessed) & np.isnan(true)
    return np.asarray((np.abs(guessed - true) <= tolerance * np.abs(true)) | both, dtype=np.bool_)


def _as_column(name: str, values: Any, kind: pa.DataType, rows: int) -> pa.ChunkedArray | None:
    if values is None:
        return None
    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        column = column.cast(kind.value_type if pa.types.is_dictionary(kind) else kind)
    except (pa.ArrowException, TypeError, ValueError):
        column = None
    if column is None or len(column) != rows:
        _check.refuse_type(
            name, f"hold the secrets of {rows} targets, as {kind}", values, "pass one for each"
        )
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
