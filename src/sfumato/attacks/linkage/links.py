"""Links of persons to records of a table, and what they count for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.base.target_guesses import TargetGuesses
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Links", "link_findings"]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """For each person the record that fits best, and whether it is claimed to be theirs.

    Parameters
    ----------
    rows : int64 array of shape (people,)
        The record's place in the table; -1 where none fits.
    scores : float64 array of shape (people,)
        Higher is surer.
    claimed : bool array of shape (people,)
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    claimed: NDArray[np.bool_]

    def guesses(self, truth: NDArray[np.int64] | None) -> TargetGuesses:
        """Return them as guesses, which are right where the row is the true one."""
        correct = None if truth is None else (self.rows == truth) & (truth >= 0)
        return TargetGuesses(guesses=self.rows, scores=self.scores, claimed=self.claimed, correct=correct)


def link_findings(
    name: str,
    knowledge: Knowledge,
    targets: Links,
    controls: Links | None,
    *,
    truth: ArrayLike | None,
    loss: PrivacyLoss | None,
    exchangeable: bool,
    confidence: float,
    numbers: Mapping[str, float],
) -> Findings:
    """Return the findings of a linkage attack; a link of a control is wrong, whatever row it is to.

    Parameters
    ----------
    name : str
        Of the attack.
    knowledge : Knowledge
    targets, controls : Links
    truth : int array of shape (targets,), optional
        Each target's row; -1 for who has none.
    loss, exchangeable, confidence
        As in `Attack.run`.
    numbers : mapping of str to float

    Returns
    -------
    Findings

    Raises
    ------
    ParameterError
        If the truth is not one whole number for each target.
    """
    rows: NDArray[Any] | None = None
    if truth is not None:
        rows = np.asarray(truth)
        if rows.shape != targets.rows.shape or rows.dtype.kind not in "iu":
            remedy = "pass -1 for who is in no row"
            _check.refuse_type("truth", "be the row of each target in the release", rows, remedy)
    more = dict(numbers)
    other = None
    if controls is not None:
        other = replace(controls.guesses(None), correct=np.zeros(len(controls.rows), dtype=np.bool_))
        more["controls who are linked"] = float(controls.claimed.mean())
    return Findings(
        attack=name,
        kind="value",
        knowledge=knowledge,
        targets=targets.guesses(rows),
        controls=other,
        loss=loss,
        exchangeable=exchangeable,
        confidence=confidence,
        numbers=more,
        no_bound="a control has no row, so that their rate is not that of a target without theirs",
        notes=("a link is right if its row is the target's own; a control has no row, so any link is wrong",),
    )
