"""Homogeneity and similarity: a class of equals whose sensitive values agree gives them away."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
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

__all__ = ["HomogeneityAttack"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HomogeneityAttack(ClassAttack):
    """Read a person's sensitive value off the rows of a generalised table that they may be.

    k-anonymity asks that there are k such rows, not that they differ. With ``groups``, it is the similarity
    attack on l-diverse tables: values that differ, but mean the same.

    Parameters
    ----------
    targets : frame
        The quasi-identifiers of each target, not generalised.
    sensitive : str
        The column that is guessed.
    hierarchies : mapping of str to GeneralizationHierarchy, rows or callable, optional
        By column, how the table was generalised; or ``covers(value, label)``. A column without one holds
        values, or ``*``.
    groups : mapping, optional
        From sensitive values to what is claimed in their place, such as from diseases to organs.
    least_share : float
        The claim is made if at least this share of the matching rows has one value; 1 claims certainty.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, tables lack a column.

    References
    ----------
    Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam (2007), l-Diversity: Privacy Beyond k-Anonymity. Li,
    Li, Venkatasubramanian (2007), t-Closeness: Privacy Beyond k-Anonymity and l-Diversity.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> table = pa.table({"zip": ["021**"] * 2 + ["941**"] * 2, "ill": ["flu", "flu", "flu", "ulcer"]})
    >>> attack = attacks.HomogeneityAttack(
    ...     targets=pa.table({"zip": ["02139", "94110"]}), sensitive="ill",
    ...     hierarchies={"zip": lambda value, label: label.startswith(value[:3])})
    >>> found = attack.run(table, truth=["flu", "flu"])
    >>> found.targets.guesses.tolist(), found.targets.claimed.tolist()
    (['flu', 'flu'], [True, False])
    """

    hierarchies: Coverage | None = None
    groups: Mapping[Hashable, Hashable] | None = None
    least_share: float = 1.0

    def __post_init__(self) -> None:
        ClassAttack.__post_init__(self)
        _check.share("least_share", self.least_share, "1 claims only what all rows agree on")
        object.__setattr__(self, "hierarchies", checked_coverage(self.hierarchies))

    @property
    def name(self) -> str:
        """Of the attack, for findings."""
        return "similarity" if self.groups else "homogeneity"

    def _groups(self) -> Mapping[Hashable, Hashable] | None:
        return self.groups

    def _read(self, release: Any, people: pa.Table) -> MatchedValues:
        return matched_values(table_of("release", release), people, self.sensitive, self.hierarchies or {})

    def _decided(self, counts: NDArray[np.float64], overall: NDArray[np.float64]) -> Decided:
        del overall
        rows = counts.sum(axis=1)
        best = counts.argmax(axis=1)
        share = counts.max(axis=1) / np.maximum(rows, 1)
        return best, share, (rows > 0) & (share >= self.least_share)
