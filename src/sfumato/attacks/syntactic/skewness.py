"""Skewness: a class where a sensitive value is far more common than in the table says much of its members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.attacks.inference.record_matrix import table_of
from sfumato.attacks.syntactic.class_attack import ClassAttack, Decided
from sfumato.attacks.syntactic.label_coverage import Coverage, checked_coverage
from sfumato.attacks.syntactic.matched_values import MatchedValues, matched_values

__all__ = ["SkewnessAttack"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkewnessAttack(ClassAttack):
    """Claim the sensitive value that is more common among the rows a person may be than in the whole table.

    l-diversity asks for several values in each class of equals, not for their usual shares: where one in a
    hundred has a disease, a class in which half have it says much.

    Parameters
    ----------
    targets : frame
        The quasi-identifiers of each target, not generalised.
    sensitive : str
        The column that is guessed.
    hierarchies : mapping of str to GeneralizationHierarchy, rows or callable, optional
        By column, how the table was generalised; or ``covers(value, label)``.
    gain : float
        The claim is made where a value is at least so many times as common as in the table; above 1.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, tables lack a column.

    References
    ----------
    Li, Li, Venkatasubramanian (2007), t-Closeness: Privacy Beyond k-Anonymity and l-Diversity.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> table = pa.table({"town": ["A"] * 2 + ["B"] * 8, "ill": ["hiv", "no"] + ["no"] * 8})
    >>> attack = attacks.SkewnessAttack(targets=pa.table({"town": ["A", "B"]}), sensitive="ill", gain=3)
    >>> found = attack.run(table)
    >>> found.targets.guesses.tolist(), found.targets.scores.round(2).tolist(), found.targets.claims
    (['hiv', 'no'], [5.0, 1.11], 1)
    """

    hierarchies: Coverage | None = None
    gain: float = 2.0

    def __post_init__(self) -> None:
        ClassAttack.__post_init__(self)
        if _check.positive("gain", self.gain) <= 1:
            _check.refuse("gain", "be above 1", self.gain, "say how many times as common a value must be")
        object.__setattr__(self, "hierarchies", checked_coverage(self.hierarchies))

    @property
    def name(self) -> str:
        """Of the attack, for findings."""
        return "skewness"

    def _read(self, release: Any, people: pa.Table) -> MatchedValues:
        return matched_values(table_of("release", release), people, self.sensitive, self.hierarchies or {})

    def _decided(self, counts: NDArray[np.float64], overall: NDArray[np.float64]) -> Decided:
        rows = counts.sum(axis=1, keepdims=True)
        usual = overall / overall.sum()
        gains = np.where(rows > 0, counts / np.maximum(rows, 1) / usual, 0.0)
        best = gains.argmax(axis=1)
        found = gains.max(axis=1)
        return best, found, found >= self.gain
