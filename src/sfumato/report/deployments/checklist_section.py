"""The checklist as a section of a page: a table for each part of the pyramid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sfumato.report.deployments.checklist import PARTS, ChecklistLine, Known
from sfumato.report.markup.elements import Markup, element, user_text
from sfumato.report.pages.sections import definitions, paragraph, section, small_table
from sfumato.report.pages.subject import Subject
from sfumato.report.registry.registry_record import Deployment

__all__ = ["about_section", "checklist_section"]

_PARTS: Final = {
    "epsilon": "checklist.part_epsilon",
    "unit": "checklist.part_unit",
    "algorithm": "checklist.part_algorithm",
    "trust": "checklist.part_trust",
    "side_channels": "checklist.part_side_channels",
    "access": "checklist.part_access",
    "data_collection": "checklist.part_data_collection",
}
_QUESTIONS: Final = {
    "budget": "checklist.q_budget",
    "epsilon_justification": "checklist.q_epsilon_justification",
    "unprotected_quantities": "checklist.q_unprotected_quantities",
    "other_releases": "checklist.q_other_releases",
    "unit": "checklist.q_unit",
    "all_time": "checklist.q_all_time",
    "renewal": "checklist.q_all_time",
    "unit_meaning": "checklist.q_unit_meaning",
    "mechanisms": "checklist.q_mechanisms",
    "no_mechanisms": "checklist.q_mechanisms",
    "accounting": "checklist.q_accounting",
    "accounting_unsound": "checklist.q_accounting",
    "real_noise": "checklist.q_noise",
    "simulated": "checklist.q_noise",
    "utility": "checklist.q_utility",
    "bias": "checklist.q_bias",
    "model_name": "checklist.q_model_name",
    "access_type": "checklist.q_access_type",
    "trust": "checklist.q_trust",
    "reviews": "checklist.q_reviews",
    "refusals": "checklist.q_refusals",
    "grid": "checklist.q_grid",
    "side_channels": "checklist.q_side_channels",
    "roles": "checklist.q_roles",
    "no_roles": "checklist.q_roles",
    "chain": "checklist.q_chain",
    "access_control": "checklist.q_access_control",
    "data_security": "checklist.q_data_security",
    "versions": "checklist.q_versions",
    "data_collection": "checklist.q_data_collection",
}
_ANSWERS: Final = {
    "budget": "checklist.a_budget",
    "unit": "checklist.a_unit",
    "all_time": "checklist.a_all_time",
    "renewal": "checklist.a_renewal",
    "mechanisms": "checklist.a_mechanisms",
    "no_mechanisms": "checklist.a_no_mechanisms",
    "accounting": "checklist.a_accounting",
    "accounting_unsound": "checklist.a_accounting_unsound",
    "real_noise": "checklist.a_real_noise",
    "simulated": "checklist.a_simulated",
    "reviews": "checklist.a_reviews",
    "refusals": "checklist.a_refusals",
    "grid": "checklist.a_grid",
    "roles": "checklist.a_roles",
    "no_roles": "checklist.a_no_roles",
    "chain": "checklist.a_chain",
    "versions": "checklist.a_versions",
}
_FROM: Final = {
    Known.LEDGER: "checklist.from_ledger",
    Known.PERSON: "checklist.from_person",
    Known.OPEN: "checklist.open",
    Known.UNKNOWN: "checklist.unknown",
}


def checklist_section(subject: Subject, lines: Iterable[ChecklistLine]) -> Markup:
    """Return a table of questions and answers for each part, from the top of the pyramid."""
    texts, given = subject.texts, tuple(lines)
    heads = [texts(key) for key in ("checklist.question", "checklist.who", "checklist.answer")]
    tables = []
    for part in PARTS:
        rows = [
            (texts(_QUESTIONS[line.question]), texts(_FROM[line.known]), _answer(subject, line))
            for line in given
            if line.part == part
        ]
        caption = texts("checklist.caption", part=texts(_PARTS[part]))
        tables.append(small_table(caption, heads, rows, numbers=False))
    return section(texts("checklist.heading"), paragraph(texts("checklist.lead")), *tables)


def _answer(subject: Subject, line: ChecklistLine) -> Markup:
    texts = subject.texts
    if line.known is Known.LEDGER:
        facts = {name: user_text(value) for name, value in line.facts.items()}
        return texts(_ANSWERS[line.question], **facts)
    if line.known is Known.PERSON:
        return user_text(line.answer)
    if line.known is Known.OPEN:
        return texts("checklist.to_answer", field=element("code", line.answered_in))
    return texts("checklist.not_recorded")


def about_section(subject: Subject, about: Deployment) -> Markup:
    """Return what a person says of a deployment: what it is, for what, and whose."""
    texts = subject.texts
    facts = (
        ("about.description", about.description),
        ("about.use", about.intended_use),
        ("about.curators", ", ".join(about.data_curators)),
        ("about.region", about.data_product_region),
        ("about.kind", about.data_product_type),
        ("about.since", about.publication_date.isoformat()),
    )
    return section(texts("about.heading"), definitions((texts(key), user_text(said)) for key, said in facts))
