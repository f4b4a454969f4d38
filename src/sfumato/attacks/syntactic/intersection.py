"""Intersection: two releases of one population, each anonymous, leave one value that fits both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from sfumato import _check
from sfumato.attacks.inference.record_matrix import table_of
from sfumato.attacks.syntactic.class_attack import ClassAttack, Decided
from sfumato.attacks.syntactic.label_coverage import Coverage, checked_coverage
from sfumato.attacks.syntactic.matched_values import MatchedValues, matched_values

__all__ = ["IntersectionAttack"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntersectionAttack(ClassAttack):
    """Intersect the sensitive values that several generalised tables leave for a person.

    Two hospitals that a patient went to may each publish a k-anonymous, l-diverse table; the patient's
    disease is in both classes, and often nothing else is. Syntactic notions say nothing of two releases;
    losses of differential privacy add up.

    Parameters
    ----------
    targets : frame
        The quasi-identifiers of each target, not generalised: people who are in all the tables.
    sensitive : str
        The column that is guessed.
    hierarchies : sequence of mappings, optional
        For each table, by column, how it was generalised; or ``covers(value, label)``.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or, in `run`, tables lack a column.

    References
    ----------
    Ganta, Kasiviswanathan, Smith (2008), Composition Attacks and Auxiliary Information in Data Privacy.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> first = pa.table({"age": ["2*"] * 3, "ill": ["flu", "ulcer", "asthma"]})
    >>> second = pa.table({"age": ["<30"] * 2, "ill": ["gout", "ulcer"]})
    >>> attack = attacks.IntersectionAttack(
    ...     targets=pa.table({"age": [28]}), sensitive="ill",
    ...     hierarchies=[{"age": lambda value, label: True}, {"age": lambda value, label: int(value) < 30}])
    >>> attack.run([first, second], truth=["ulcer"]).targets.hits
    1
    """

    hierarchies: Sequence[Coverage | None] | None = None

    def __post_init__(self) -> None:
        ClassAttack.__post_init__(self)
        given = self.hierarchies
        if given is not None:
            object.__setattr__(self, "hierarchies", tuple(checked_coverage(one) for one in given))

    @property
    def name(self) -> str:
        """Of the attack, for findings."""
        return "intersection"

    def _read(self, release: Any, people: pa.Table) -> MatchedValues:
        """Return what is left by all tables: products of the shares, zero where one excludes a value."""
        if not isinstance(release, Sequence) or len(release) < 2:
            _check.refuse_type("release", "be two or more tables", release, "pass a list of frames")
        if self.hierarchies is not None and len(self.hierarchies) != len(release):
            rule = f"have a mapping for each of {len(release)} tables"
            _check.refuse("hierarchies", rule, len(self.hierarchies), "pass None for one without")
        releases = [table_of("release", one) for one in release]
        coverage = self.hierarchies or [None] * len(releases)
        found = [
            matched_values(table, people, self.sensitive, covers or {})
            for table, covers in zip(releases, coverage, strict=True)
        ]
        values = list(dict.fromkeys(value for one in found for value in one.values))
        place = {value: at for at, value in enumerate(values)}
        left, overall = [], np.zeros(len(values))
        for one in found:
            at = [place[value] for value in one.values]
            overall[at] += one.overall
            rows = np.asarray(one.counts.sum(axis=1))
            shares = sparse.diags_array(1 / np.maximum(rows, 1)) @ one.counts
            where = (np.arange(len(at)), at)
            moved = sparse.csr_array((np.ones(len(at)), where), shape=(len(at), len(values)))
            left.append(sparse.csr_array(shares @ moved))
        return MatchedValues(values, reduce(_times, left), overall)

    def _decided(self, counts: NDArray[np.float64], overall: NDArray[np.float64]) -> Decided:
        del overall
        total = counts.sum(axis=1)
        share = counts.max(axis=1) / np.where(total > 0, total, 1)
        return counts.argmax(axis=1), share, (counts > 0).sum(axis=1) == 1


def _times(one: sparse.csr_array, other: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array(one.multiply(other))
