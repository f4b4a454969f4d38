"""A record for the Differential Privacy Deployments Registry: what a ledger knows, and what its curator adds.

The registry lists deployments with their privacy unit and parameters, for others to compare. A ledger knows
unit, relation, parameters, how costs are added up and which mechanisms ran, and not what the product is for.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import tomllib
from dataclasses import dataclass, field, fields
from typing import Any, Final, final

from sfumato import _check
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantee import Guarantee
from sfumato.report.registry.checklist_answers import ChecklistAnswers

__all__ = ["Deployment", "registry_record"]

_TYPES: Final = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
_MODELS: Final = ("Local", "Central", "Shuffle", "Federated")
_ACCESS: Final = ("Interactive", "Non-interactive")
_LISTS: Final = ("data_curators", "registry_authors")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What a ledger does not know of a deployment; the names are the registry's.

    Parameters
    ----------
    name, description, intended_use, data_product_region : str
    data_curators, registry_authors : tuple of str
        Who publishes the data, and who wrote the record; at least one each.
    publication_date : datetime.date
        Of the first publication.
    data_product_type : str
        One of the registry's, such as ``"Summary statistics"``.
    model_name : str
        ``"Central"``, ``"Local"``, ``"Shuffle"`` or ``"Federated"``.
    access_type : str
        ``"Interactive"``, where others ask, or ``"Non-interactive"``.
    unprotected_quantities : str
        What is released exactly, such as invariants; "" if nothing.
    checklist : ChecklistAnswers
        Answers for the checklist of a `deployment`; they are not in the record.

    Examples
    --------
    >>> import datetime
    >>> Deployment(
    ...     name="Visits", description="Visits by month.", intended_use="Planning.",
    ...     data_product_region="Tuscany",
    ...     data_curators=("The clinic",), registry_authors=("Ada",),
    ...     publication_date=datetime.date(2026, 1, 1),
    ... ).model_name
    'Central'
    """

    name: str
    description: str
    intended_use: str
    data_product_region: str
    data_curators: tuple[str, ...]
    registry_authors: tuple[str, ...]
    publication_date: dt.date
    data_product_type: str = _TYPES[0]
    model_name: str = "Central"
    access_type: str = "Non-interactive"
    unprotected_quantities: str = ""
    checklist: ChecklistAnswers = field(default_factory=ChecklistAnswers)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in _LISTS:
                if not isinstance(value, tuple) or not value or not all(isinstance(x, str) for x in value):
                    _check.refuse_type(each.name, "be a tuple of one text or more", value, "name somebody")
            elif each.name == "publication_date":
                if type(value) is not dt.date:
                    _check.refuse_type(each.name, "be a date", value, "write datetime.date(2026, 1, 31)")
            elif each.name == "checklist":
                _check.instance(each.name, value, ChecklistAnswers, "pass ChecklistAnswers(...)")
            else:
                _check.instance(each.name, value, str, "pass a text")
        for name, allowed in (
            ("data_product_type", _TYPES),
            ("model_name", _MODELS),
            ("access_type", _ACCESS),
        ):
            if getattr(self, name) not in allowed:
                _check.refuse(
                    name, f"be one of {', '.join(allowed)}", getattr(self, name), "take the nearest"
                )

    @classmethod
    def from_toml(cls, text: str) -> Deployment:
        """Read a deployment from TOML: the parameters by name, lists as arrays, the checklist as a table.

        Parameters
        ----------
        text : str

        Returns
        -------
        Deployment

        Raises
        ------
        ParameterError
            If it is no TOML, or has other names, or a value is refused.
        """
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            _check.refuse_state("deployment", "be TOML", "it is other text", 'write name = "Visits"')
        known = {each.name for each in fields(cls)}
        needed = {"name", "description", "intended_use", "data_product_region", "publication_date", *_LISTS}
        for name in given.keys() - known:
            _check.refuse("deployment", "have the names of Deployment", name, "see its documentation")
        for name in sorted(needed - given.keys()):
            _check.refuse_state("deployment", f"have {name}", "it has not", "the registry asks for it")
        lists = {name: tuple(given[name]) for name in _LISTS if isinstance(given[name], list)}
        answers = {"checklist": ChecklistAnswers.from_table(given.get("checklist", {}))}
        return cls(**(given | lists | answers))


def registry_record(ledger: Ledger, deployment: Deployment) -> str:
    """Return a draft of tier 3 for the registry, of a whole ledger.

    Parameters
    ----------
    ledger : Ledger
    deployment : Deployment
        What the ledger does not know.

    Returns
    -------
    str
        JSON, which is YAML, too, as the registry reads it.

    Raises
    ------
    ParameterError
        If a charge of the ledger was simulated: it protected nobody.

    Notes
    -----
    Guarantee: the stated parameters are those of the ledger's budget, which no sum of its charges exceeds
    (what is spent stands beside them); where a budget renews they are of one period. All of it is public.

    Examples
    --------
    >>> import datetime
    >>> import json
    >>> from sfumato.ledger import Budget, Dataset, Ledger
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None, budget=Budget.pure(epsilon=1.0), privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> about = Deployment(
    ...     name="Visits", description="Visits by month.", intended_use="Planning.",
    ...     data_product_region="Tuscany",
    ...     data_curators=("The clinic",), registry_authors=("Ada",),
    ...     publication_date=datetime.date(2026, 1, 1),
    ... )
    >>> record = json.loads(registry_record(ledger, about))
    >>> record["url_slug"], record["deployment"]["dp_variant"]["variant_name"]
    ('visits-the-clinic-2026', 'Pure DP')
    >>> ledger.close()
    """
    _check.instance("ledger", ledger, Ledger, "pass session.ledger, or Ledger.read(file)")
    _check.instance("deployment", deployment, Deployment, "pass a Deployment")
    entries = ledger.entries()
    if any(entry.simulated for entry in entries):
        _check.refuse_state("ledger", "hold no simulated charge", "it holds one", "register another ledger")
    words = f"{deployment.name} {deployment.data_curators[0]} {deployment.publication_date.year}".lower()
    whole = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", words).strip("-"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(deployment),
            **_guarantee(ledger, deployment),
            "deployment_model": _model(ledger, deployment),
            **_accounting(ledger),
            "administrative": {"registry_authors": list(deployment.registry_authors)},
        },
    }
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _basic(deployment: Deployment) -> dict[str, Any]:
    return {
        "name": deployment.name,
        "data_curators": list(deployment.data_curators),
        "intended_use": deployment.intended_use,
        "data_product_type": deployment.data_product_type,
        "data_product_region": deployment.data_product_region,
        "description": deployment.description,
        "publication_date": deployment.publication_date.isoformat(),
    }


def _guarantee(ledger: Ledger, deployment: Deployment) -> dict[str, Any]:
    """Return variant, unit and parameters: those of the budget."""
    promised = ledger.budget.guarantee(ledger.neighboring)
    parameters = {
        name: value
        for name in ("epsilon", "delta", "rho")
        if (value := getattr(promised, name)) is not None and math.isfinite(value)
    }
    renewal = (
        "" if ledger.renewal is None else f" It renews ({ledger.renewal}); the numbers are of one period."
    )
    details = f"The budget of the ledger is {ledger.budget}.{renewal} Spent so far: {ledger.spent()}."
    unprotected = deployment.unprotected_quantities
    return {
        "dp_variant": {
            "variant_name": _variant(promised),
            "unprotected_quantities": unprotected or "None that the ledger knows of.",
        },
        "privacy_loss": {
            "privacy_unit": ledger.privacy_unit,
            "privacy_unit_details": f"Neighboring datasets: {ledger.neighboring}, of {ledger.privacy_unit}.",
            "privacy_parameters": parameters,
            "privacy_parameters_details": details,
        },
    }


def _variant(promised: Guarantee) -> str:
    if promised.rho is not None:
        return "Zero-concentrated DP"
    if promised.epsilon is None:
        return "Custom"
    return "Approximate DP" if promised.delta else "Pure DP"


def _model(ledger: Ledger, deployment: Deployment) -> dict[str, Any]:
    entries = ledger.entries()
    released = sum(entry.committed for entry in entries)
    return {
        "model_name": deployment.model_name,
        "release_type": "One release" if released == 1 else "Many releases",
        "release_type_details": f"{released} releases of {len(entries)} charges are stored.",
        "data_source_type": "Dynamic" if any(entry.version > 1 for entry in entries) else "Static",
        "access_type": deployment.access_type,
    }


def _accounting(ledger: Ledger) -> dict[str, Any]:
    """Return how costs are added up, and the mechanisms that ran, by the losses of the entries."""
    ran = sorted({type(term).__name__ for entry in ledger.entries() for term, _ in entry.loss.terms})
    filters = ", ".join(member.name for member in ledger.budget.filters.members)
    composition = f"A privacy filter ({filters}) refuses what does not fit before data are read."
    mechanisms = "\n".join(f"- {name}" for name in ran) or "- none yet"
    return {
        "accounting": {"composition": composition},
        "implementation": {
            "mechanisms": f"{mechanisms}\n\nBy sfumato; noise for tables is drawn exactly, on a grid.\n"
        },
    }
