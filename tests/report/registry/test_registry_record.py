"""Registry records: valid by the registry's own schema, for every kind of budget, and true to the ledger."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Gaussian, Laplace, Neighboring
from sfumato.report import ChecklistAnswers, Deployment, registry_record
from tests.cases import cases

SCHEMA = json.loads((Path(__file__).parent / "deployments-schema.json").read_text(encoding="utf-8"))


def deployment(**given: Any) -> Deployment:
    known: dict[str, Any] = {
        "name": "Visits: 2026",
        "description": "Visits by month.",
        "intended_use": "Planning.",
        "data_product_region": "Tuscany",
        "data_curators": ("The <clinic>",),
        "registry_authors": ("Ada",),
        "publication_date": dt.date(2026, 1, 31),
    }
    return Deployment(**(known | given))


def opened(budget: Budget) -> Ledger:
    return Ledger.open(
        None,
        budget=budget,
        privacy_unit="person",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    )


def checked(text: str) -> Any:
    import jsonschema  # noqa: PLC0415

    record = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(record)
    return record["deployment"]


@cases(
    "budget, variant, parameters",
    lambda: [
        (Budget.pure(epsilon=1.0), "Pure DP", {"epsilon": 1.0}),
        (Budget.approximate(epsilon=1.0, delta=1e-6), "Approximate DP", {"epsilon": 1.0, "delta": 1e-6}),
        (Budget.zcdp(rho=0.5, delta=1e-6), "Zero-concentrated DP", {"rho": 0.5}),
        (Budget.gaussian(mu=1.0, delta=1e-6), "Custom", {}),
        (Budget.rdp(epsilon=1.0, delta=1e-6), "Approximate DP", {"epsilon": 1.0, "delta": 1e-6}),
    ],
)
def test_each_kind_of_budget_has_a_valid_record(
    budget: Budget, variant: str, parameters: dict[str, float]
) -> None:
    with opened(budget) as ledger:
        record = checked(registry_record(ledger, deployment()))
    assert record["dp_variant"]["variant_name"] == variant
    assert parameters.items() <= record["privacy_loss"]["privacy_parameters"].items()
    assert str(budget) in record["privacy_loss"]["privacy_parameters_details"]


def test_releases_and_mechanisms_are_those_of_the_ledger() -> None:
    with opened(Budget.approximate(epsilon=5.0, delta=1e-6)) as ledger:
        ledger.commit(ledger.charge(Laplace(2.0), delta=0.0), b"1")
        record = checked(registry_record(ledger, deployment(unprotected_quantities="the total")))
        assert record["deployment_model"]["release_type"] == "One release"
        assert record["dp_variant"]["unprotected_quantities"] == "the total"
        ledger.commit(ledger.charge(Gaussian(9.0), delta=1e-7), b"2")
        record = checked(registry_record(ledger, deployment()))
    assert record["deployment_model"]["release_type"] == "Many releases"
    assert record["implementation"]["mechanisms"].startswith("- Gaussian\n- Laplace\n")
    assert record["privacy_loss"]["privacy_unit"] == "person"


def test_the_schema_refuses_what_is_no_record() -> None:
    import jsonschema  # noqa: PLC0415

    with opened(Budget.pure(epsilon=1.0)) as ledger:
        text = registry_record(ledger, deployment())
    for wrong in (text.replace("Pure DP", "Strong DP"), text.replace("2026-01-31", "soon")):
        with pytest.raises(jsonschema.ValidationError):
            checked(wrong)


TOML = """
name = "Visits: 2026"
description = "Visits by month."
intended_use = "Planning."
data_product_region = "Tuscany"
data_curators = ["The <clinic>"]
registry_authors = ["Ada"]
publication_date = 2026-01-31
"""


def test_a_deployment_is_read_from_toml() -> None:
    assert Deployment.from_toml(TOML) == deployment()
    answered = Deployment.from_toml(TOML + '[checklist]\ntrust = "The clinic <alone>."')
    assert answered == deployment(checklist=ChecklistAnswers(trust="The clinic <alone>."))
    with opened(Budget.pure(epsilon=1.0)) as ledger:
        assert registry_record(ledger, answered) == registry_record(ledger, deployment())


@cases(
    "text, message",
    [
        ("x = ", "deployment must be TOML, but it is other text"),
        (TOML + 'colour = "red"', "deployment must have the names of Deployment, got 'colour'"),
        (TOML.replace("registry_authors", "#"), "deployment must have registry_authors, but it has not"),
        (TOML.replace('["Ada"]', '"Ada"'), "registry_authors must be a tuple of one text or more"),
        (TOML.replace('["Ada"]', "[]"), "registry_authors must be a tuple of one text or more"),
        (TOML.replace("2026-01-31", '"soon"'), "publication_date must be"),
        (TOML.replace("01-31", "01-31T10:00:00"), "publication_date must be a date"),
        (TOML + "checklist = 1", "checklist must be a table"),
        (TOML + "[checklist]\ncolour = 1", "checklist must have the names of ChecklistAnswers, got 'colour'"),
        (TOML + "[checklist]\ntrust = 1", "trust must be"),
        (TOML + 'model_name = "Cloud"', "model_name must be one of Local, Central, Shuffle, Federated"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        Deployment.from_toml(text)
    assert message in str(refused.value)
