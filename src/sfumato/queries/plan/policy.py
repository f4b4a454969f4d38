"""BigQuery's ``privacy_policy`` as configuration: who is protected, the budget, and limits on each query."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from sfumato import _check
from sfumato.errors import OptionError
from sfumato.queries.plan.query import Options

__all__ = ["PrivacyPolicy"]

_OUTER = "differential_privacy_policy"
_FIELDS = {
    "privacy_unit_column": "privacy_unit_column",
    "max_epsilon_per_query": "max_epsilon_per_query",
    "delta_per_query": "delta_per_query",
    "epsilon_budget": "epsilon_budget",
    "delta_budget": "delta_budget",
    "max_groups_contributed": "max_groups_contributed",
}
"""BigQuery's name of each field, and the attribute here."""
_REMEDY = 'write {"privacy_unit_column": "id", "max_epsilon_per_query": 1, "epsilon_budget": 10, ...}'


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyPolicy:
    """A view's differential privacy policy, by the names that BigQuery gives its fields.

    Parameters
    ----------
    privacy_unit_column : str
        The column of every private table that names who is protected.
    max_epsilon_per_query : float, optional
        The largest epsilon of one query.
    delta_per_query : float, optional
        The largest delta of one query, and the delta of a query that states none.
    epsilon_budget, delta_budget : float, optional
        What all queries together may spend. Without ``delta_budget`` it is pure.
    max_groups_contributed : int, optional
        The maximum number of groups of a unit that a query may state, and the number where it states none.

    Notes
    -----
    Unlike BigQuery's, the budget is never given back, not even where a query fails, and it is watched by the
    ledger's filters (see `sfumato.ledger.Budget.approximate`): small Gaussian answers cost less than the sum
    of their epsilons, and half of ``delta_budget`` is for the deltas of queries. BigQuery's
    ``epsilon_budget_remaining`` and ``delta_budget_remaining`` are output there and refused here.
    """

    privacy_unit_column: str
    max_epsilon_per_query: float | None = None
    delta_per_query: float | None = None
    epsilon_budget: float | None = None
    delta_budget: float | None = None
    max_groups_contributed: int | None = None

    def __post_init__(self) -> None:
        unit: object = self.privacy_unit_column
        if not isinstance(unit, str) or not unit:
            _check.refuse("privacy_unit_column", "be a column's name", unit, _REMEDY)
        for name in ("max_epsilon_per_query", "epsilon_budget"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _check.positive(name, getattr(self, name)))
        for name in ("delta_per_query", "delta_budget"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _check.probability(name, getattr(self, name)))
        if self.max_groups_contributed is not None:
            _check.integer("max_groups_contributed", self.max_groups_contributed, minimum=1)
        if self.delta_budget is not None and self.epsilon_budget is None:
            _check.refuse("delta_budget", "come with an epsilon_budget", self.delta_budget, _REMEDY)

    @classmethod
    def read(cls, policy: PrivacyPolicy | Mapping[str, Any] | str | os.PathLike[str]) -> Self | PrivacyPolicy:
        """Read a policy: its JSON, a file that holds it, a mapping, or one that was read before.

        The fields may stand alone or, as in BigQuery, under ``differential_privacy_policy``.

        Raises
        ------
        ParameterError
            It is none of these, or has an unknown field or a wrong value.

        Examples
        --------
        >>> policy = PrivacyPolicy.read('''{"differential_privacy_policy":
        ...     {"privacy_unit_column": "id", "max_epsilon_per_query": 0.5, "epsilon_budget": 2}}''')
        >>> policy.privacy_unit_column, policy.max_epsilon_per_query
        ('id', 0.5)
        """
        if isinstance(policy, PrivacyPolicy):
            return policy
        content = _object(policy if isinstance(policy, Mapping) else _parsed(policy))
        if _OUTER in content:
            others = sorted(map(str, set(content) - {_OUTER}))
            if others:
                found = f"it also has {', '.join(others)}"
                _check.refuse_state("policy", f"hold {_OUTER} alone", found, "leave the others out")
            content = _object(content[_OUTER])
        unknown = sorted(map(str, set(content) - set(_FIELDS)))
        if unknown:
            rule, found = f"have no fields but {', '.join(_FIELDS)}", f"it has {', '.join(unknown)}"
            _check.refuse_state("policy", rule, found, "leave them out")
        if "privacy_unit_column" not in content:
            found = f"its fields are {', '.join(content)}" if content else "it is empty"
            _check.refuse_state("policy", "name the privacy_unit_column", found, _REMEDY)
        return cls(**{_FIELDS[name]: value for name, value in content.items()})

    @property
    def defaults(self) -> dict[str, object]:
        """Values of OPTIONS that a query leaves out."""
        given = {"delta": self.delta_per_query, "max_groups_contributed": self.max_groups_contributed}
        return {name: value for name, value in given.items() if value is not None}

    def check(self, options: Options) -> None:
        """Refuse a query beyond the limits, before anything is charged.

        Raises
        ------
        OptionError
            An option is above the policy's limit.
        """
        rows = options.max_rows_contributed
        # Where a unit is not held to some groups it is in no more groups than it has rows.
        groups = rows if options.max_groups_contributed is None else options.max_groups_contributed
        for name, value, limit in (
            ("epsilon", options.epsilon, self.max_epsilon_per_query),
            ("delta", options.delta, self.delta_per_query),
            ("max_groups_contributed", groups, self.max_groups_contributed),
        ):
            if limit is not None and value is not None and not value <= limit < math.inf:
                raise OptionError(
                    f"{name} must be at most {limit:g}, by the privacy policy, got {value:g}; ask for less"
                )


def _object(content: object) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        _check.refuse_type("policy", "be an object of JSON", content, _REMEDY)
    return content


def _parsed(policy: object) -> object:
    """Return the JSON of a text or a file."""
    if not isinstance(policy, (str, os.PathLike)):
        _check.refuse_type("policy", "be JSON, a path or a mapping", policy, _REMEDY)
    text = os.fspath(policy)
    if not isinstance(policy, str) or not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError):
            _check.refuse("policy", "be JSON or a readable file of it", str(policy), _REMEDY)
    try:
        return json.loads(text, object_pairs_hook=_once)
    except ValueError:
        _check.refuse("policy", "be JSON, with each field once", text[:200], _REMEDY)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a field stands twice")
    return content
