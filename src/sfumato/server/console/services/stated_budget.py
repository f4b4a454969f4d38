"""A budget that somebody states, of the kind that the dataset's budget has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sfumato import _check
from sfumato.ledger import Budget
from sfumato.ledger.budget.filters import RDPFilter

__all__ = ["REMEDY", "BudgetField", "budget_fields", "stated_budget"]

REMEDY: Final = "write a number such as 0.5"


class BudgetField(NamedTuple):
    """One field: its name, what it is called, what is said below it, and whether it must be filled in."""

    name: str
    label: str
    hint: str
    required: bool = True


_FIELDS: Final[Mapping[str, tuple[BudgetField, ...]]] = {
    "pure": (BudgetField("epsilon", "Epsilon", "The sum of the epsilons of all answers."),),
    "approximate": (
        BudgetField("epsilon", "Epsilon", "Of all answers together."),
        BudgetField("delta", "Delta", "Such as 1e-7; half of it is for the deltas of questions."),
    ),
    "rdp": (
        BudgetField("epsilon", "Epsilon", "Of all answers together."),
        BudgetField("delta", "Delta", "Such as 1e-7."),
    ),
    "zcdp": (
        BudgetField("rho", "Rho", "The sum of the rhos of all answers."),
        BudgetField("delta", "Delta", "Left empty it is 0: no thresholds.", required=False),
    ),
    "gaussian": (
        BudgetField("mu", "Mu", "The root of the sum of the squares of all answers' mu."),
        BudgetField("delta", "Delta", "Left empty it is 0: no thresholds.", required=False),
    ),
}


def budget_fields(whole: Budget) -> tuple[BudgetField, ...]:
    """Return the fields of a budget of the dataset's kind.

    Parameters
    ----------
    whole : Budget
        The dataset's.
    """
    return _FIELDS[whole.kind]


def stated_budget(amounts: Mapping[str, float | None], whole: Budget) -> Budget:
    """Return the budget of these amounts.

    Parameters
    ----------
    amounts : mapping of str to float or None
        By name of the field; None where it was left empty.
    whole : Budget
        The dataset's.

    Raises
    ------
    ParameterError
        If one is missing, or there is no such budget.
    """
    stated: dict[str, Any] = {}
    for field in budget_fields(whole):
        value = amounts.get(field.name)
        if value is not None:
            stated[field.name] = value
        elif field.required:
            _check.refuse_state(field.name, "be filled in", "it is empty", REMEDY)
    if whole.kind == "rdp":
        stated["orders"] = [member.order for member in whole.filters.members if isinstance(member, RDPFilter)]
    make: Any = getattr(Budget, whole.kind)
    made: Budget = make(**stated)
    return made
