"""How alike two values are, in a few levels, from different to equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from sfumato import _check

__all__ = ["ComparisonLevels"]

Kind = Literal["exact", "jaro_winkler", "edit_distance", "within"]
_SQL = {
    "jaro_winkler": "jaro_winkler_similarity({a}, {b}) >= {limit!r}",
    "edit_distance": "levenshtein({a}, {b}) <= {limit!r}",
    "within": "abs({a} - {b}) <= {limit!r}",
}


@final
@dataclass(frozen=True, slots=True)
class ComparisonLevels:
    """Levels of likeness of two values of a column.

    Parameters
    ----------
    kind : {"exact", "jaro_winkler", "edit_distance", "within"}
        Equal or not; similar texts; texts few edits apart; numbers or dates that differ by little (dates by
        days).
    limits : sequence of float
        From the strictest: a level for each, between equal and different. At most six.

    Raises
    ------
    ParameterError
        If limits are not from strict to loose, or do not fit the kind.

    Examples
    --------
    >>> ComparisonLevels("jaro_winkler", (0.92, 0.8)).count
    4
    >>> ComparisonLevels("exact").count
    2
    """

    kind: Kind
    limits: Sequence[float] = ()

    def __post_init__(self) -> None:
        if self.kind != "exact" and self.kind not in _SQL:
            _check.refuse("kind", f"be one of exact, {', '.join(_SQL)}", self.kind, "see ComparisonLevels")
        limits = tuple(_check.non_negative("limits", limit) for limit in self.limits)
        ordered = sorted(set(limits), reverse=self.kind == "jaro_winkler")
        if list(limits) != ordered or len(limits) > 6 or (self.kind == "exact") != (not limits):
            rule = "be none for exact, and else one to six, from strict to loose"
            _check.refuse("limits", rule, tuple(self.limits), "see ComparisonLevels")
        object.__setattr__(self, "limits", limits)

    @property
    def count(self) -> int:
        """How many levels there are: equal, one for each limit, different."""
        return len(self.limits) + 2

    def sql(self, a: str, b: str) -> str:
        """Return SQL for the level of two columns: 0 for equal, up to different, and -1 if one is NULL.

        Parameters
        ----------
        a, b : str
            Quoted names of columns.

        Returns
        -------
        str
        """
        cases = [f"WHEN {a} IS NULL OR {b} IS NULL THEN -1", f"WHEN {a} = {b} THEN 0"]
        for level, limit in enumerate(self.limits, 1):
            cases.append(f"WHEN {_SQL[self.kind].format(a=a, b=b, limit=float(limit))} THEN {level}")
        return f"CASE {' '.join(cases)} ELSE {self.count - 1} END"
