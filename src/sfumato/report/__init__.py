"""Reports: what a release says of itself, for those who read it and for those who are in the data.

`release` makes a page of one released table: the numbers with their intervals, who is protected, the odds in
words, what was limited, clamped and hidden, what is not promised, and the receipt with the commands that
check it. The page is one file of HTML without scripts, in English or German. `stored_release` makes the same
page from a ledger alone, and pages of synthetic tables and evaluations; `model_card` one of a trained model,
`deployment` one of a whole ledger, and `compare` places a guarantee among public records of the same unit.
`local_estimate` and `shuffled_estimate` make pages of surveys without a trusted curator. `statement` is the
guarantee of a release for machines: it travels in a table's metadata, and is verified against the ledger.

>>> import pyarrow as pa
>>> import sfumato as sf
>>> from sfumato import report
>>> with sf.connect(pa.table({"n": range(1000)}), privacy_unit=sf.ROW, epsilon=1.0, rng=1) as session:
...     answer = session.sql(
...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS people FROM data"
...     )
...     page = report.release(answer, ledger=session.ledger)
>>> page.html.startswith("<!DOCTYPE html>")
True

Guarantee: pages are post-processing of releases and of public parameters; they cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.report.comparison.compare import Comparison, Placed, Standing, compare
    from sfumato.report.comparison.comparison_page import comparison_page, comparison_text
    from sfumato.report.comparison.deployment_records import DeploymentRecord
    from sfumato.report.deployments.checklist import ChecklistLine, Known, checklist
    from sfumato.report.deployments.deployment_page import deployment
    from sfumato.report.pages.collection_page import local_estimate, shuffled_estimate
    from sfumato.report.pages.document import ReleasePage
    from sfumato.report.pages.model_page import model_card
    from sfumato.report.pages.odds import Belief, Event, Odds, odds
    from sfumato.report.pages.release_page import release, stored_release
    from sfumato.report.registry.checklist_answers import ChecklistAnswers
    from sfumato.report.registry.registry_record import Deployment, registry_record
    from sfumato.report.statements.guarantee_statement import GuaranteeStatement, read_statement, statement
    from sfumato.report.statements.json_ld import json_ld, with_json_ld

__all__ = [
    "Belief",
    "ChecklistAnswers",
    "ChecklistLine",
    "Comparison",
    "Deployment",
    "DeploymentRecord",
    "Event",
    "GuaranteeStatement",
    "Known",
    "Odds",
    "Placed",
    "ReleasePage",
    "Standing",
    "checklist",
    "compare",
    "comparison_page",
    "comparison_text",
    "deployment",
    "json_ld",
    "local_estimate",
    "model_card",
    "odds",
    "read_statement",
    "registry_record",
    "release",
    "shuffled_estimate",
    "statement",
    "stored_release",
    "with_json_ld",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Belief": "sfumato.report.pages.odds",
        "ChecklistAnswers": "sfumato.report.registry.checklist_answers",
        "ChecklistLine": "sfumato.report.deployments.checklist",
        "Comparison": "sfumato.report.comparison.compare",
        "Deployment": "sfumato.report.registry.registry_record",
        "DeploymentRecord": "sfumato.report.comparison.deployment_records",
        "Event": "sfumato.report.pages.odds",
        "GuaranteeStatement": "sfumato.report.statements.guarantee_statement",
        "Known": "sfumato.report.deployments.checklist",
        "Odds": "sfumato.report.pages.odds",
        "Placed": "sfumato.report.comparison.compare",
        "ReleasePage": "sfumato.report.pages.document",
        "Standing": "sfumato.report.comparison.compare",
        "checklist": "sfumato.report.deployments.checklist",
        "compare": "sfumato.report.comparison.compare",
        "comparison_page": "sfumato.report.comparison.comparison_page",
        "comparison_text": "sfumato.report.comparison.comparison_page",
        "deployment": "sfumato.report.deployments.deployment_page",
        "json_ld": "sfumato.report.statements.json_ld",
        "local_estimate": "sfumato.report.pages.collection_page",
        "model_card": "sfumato.report.pages.model_page",
        "odds": "sfumato.report.pages.odds",
        "read_statement": "sfumato.report.statements.guarantee_statement",
        "registry_record": "sfumato.report.registry.registry_record",
        "release": "sfumato.report.pages.release_page",
        "shuffled_estimate": "sfumato.report.pages.collection_page",
        "statement": "sfumato.report.statements.guarantee_statement",
        "stored_release": "sfumato.report.pages.release_page",
        "with_json_ld": "sfumato.report.statements.json_ld",
    },
)
