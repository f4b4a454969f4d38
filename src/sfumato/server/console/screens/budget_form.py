"""The fields of a form that state a budget, of the kind that the dataset's budget has."""

from __future__ import annotations

from sfumato.ledger import Budget
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.services.stated_budget import REMEDY, budget_fields, stated_budget

__all__ = ["read_budget"]


def read_budget(visit: Visit, whole: Budget) -> Budget:
    """Return the budget that a form states.

    Parameters
    ----------
    visit : Visit
    whole : Budget
        The dataset's.

    Raises
    ------
    ParameterError
        If a field is missing or no number, or there is no such budget.
    """
    return stated_budget(
        {field.name: visit.amount(field.name, REMEDY) for field in budget_fields(whole)}, whole
    )
