"""Any design: the probability of each answer for each truth, given as a matrix."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, final

import numpy as np

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.privacy_loss import Transition
from sfumato.local.surveys.designs.probabilities import Chance, chance
from sfumato.local.surveys.designs.tasks import Task
from sfumato.local.surveys.estimates.matrix_shares import MatrixShares

__all__ = ["MatrixDesign"]

_MAX = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixDesign(Design):
    r"""A design by the matrix of its chances; there may be more answers than categories.

    Parameters
    ----------
    names : sequence of hashables
        The categories, from 2 to 32.
    said : sequence of hashables
        The answers, from as many to 32.
    matrix : sequence of sequences of Chance
        The chance of each answer, a row for each category; rows add up to 1. A chance may be 0 or 1.

    Notes
    -----
    Guarantee: the loss of one answer under replace-one, exact: its epsilon is the log of the largest ratio in
    a column. Where a column has a zero beside another entry, the answer rules a truth out, and the epsilon is
    infinite.

    References
    ----------
    van den Hout, van der Heijden (2002), "Randomized response, statistical disclosure control and
    misclassification".

    Examples
    --------
    >>> design = MatrixDesign(
    ...     names=("never", "once", "often"),
    ...     said=("never", "once", "often"),
    ...     matrix=[["0.8", "0.1", "0.1"], ["0.2", "0.6", "0.2"], ["0.1", "0.2", "0.7"]],
    ... )
    >>> design.estimate({"never": 560, "once": 250, "often": 190}).shares.round(3).tolist()
    [0.617, 0.279, 0.103]
    >>> round(design.epsilon, 4)
    2.0794
    """

    names: Sequence[Hashable]
    said: Sequence[Hashable]
    matrix: Sequence[Sequence[Chance]]

    def __post_init__(self) -> None:
        names, said = _labels("names", self.names), _labels("said", self.said)
        rows = self.matrix if isinstance(self.matrix, list | tuple) else ()
        if len(rows) != len(names) or any(
            not isinstance(row, list | tuple) or len(row) != len(said) for row in rows
        ):
            rule = "have a row for each category, with a chance for each answer"
            _check.refuse_type("matrix", rule, self.matrix, "pass a list of lists")
        exact = tuple(tuple(_chance(entry) for entry in row) for row in rows)
        if any(sum(row) != 1 for row in exact):
            remedy = 'pass fractions or texts such as "1/3"'
            _check.refuse_state("matrix", "have rows that add up to 1", "one of them does not", remedy)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "said", said)
        object.__setattr__(self, "matrix", exact)
        self._check_transition("matrix", certain=True)
        numbers = np.array(exact, dtype=np.float64)
        if np.linalg.matrix_rank(numbers) < len(names):
            remedy = "leave no truth with the answers of a mixture of others"
            _check.refuse_state(
                "matrix", "have rows that tell the categories apart", "they cannot be estimated", remedy
            )

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """The categories."""
        return tuple(self.names)

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The answers."""
        return tuple(self.said)

    @property
    def transition(self) -> Transition:
        """The matrix."""
        return tuple(tuple(Fraction(entry) for entry in row) for row in self.matrix)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """None: a matrix does not say how chance is used."""
        return ()

    @property
    def slope(self) -> Fraction:
        """Refused: the answers of a matrix have none in common."""
        self._without_slope()

    @property
    def floor(self) -> tuple[Fraction, ...]:
        """Refused: the answers of a matrix have none."""
        self._without_slope()

    def _without_slope(self) -> NoReturn:
        remedy = "estimate, test independence, or write it as a ForcedCategory"
        _check.refuse_state("design", "have one slope for all answers", "it is any matrix", remedy)

    def estimate(self, answers: Any) -> MatrixShares:
        """Return the estimated shares of the categories.

        Parameters
        ----------
        answers : array, list, column of a frame, or mapping
            As in `counts`.

        Returns
        -------
        MatrixShares
            Raw and of the maximum likelihood, with errors.
        """
        return MatrixShares(design=self, counts=self.counts(answers))


def _labels(name: str, given: object) -> tuple[Hashable, ...]:
    listed = isinstance(given, list | tuple) and all(isinstance(one, Hashable) for one in given)
    labels = tuple(given) if isinstance(given, list | tuple) and listed else ()
    if not 2 <= len(labels) <= _MAX or any(label in labels[:index] for index, label in enumerate(labels)):
        _check.refuse(
            name, f"be from 2 to {_MAX} of them, none twice", given, "use an oracle of sfumato.local"
        )
    return labels


def _chance(entry: Chance) -> Fraction:
    """Return a probability, 0 and 1 included."""
    if isinstance(entry, int | float | Fraction) and not isinstance(entry, bool) and entry in {0, 1}:
        return Fraction(int(entry))
    if isinstance(entry, str) and entry.strip() in {"0", "1"}:
        return Fraction(entry.strip())
    return chance("matrix", entry)
