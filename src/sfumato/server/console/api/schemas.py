"""Schemas of what the interface takes and answers, by the names that its document has them under.

>>> sorted(SCHEMAS)[:3]
['Account', 'AccountFacts', 'Answer']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sfumato.server.console.api.operation import Schema

__all__ = ["NUMBERS", "QUESTION", "SCHEMAS", "WHOLE", "obj", "reference"]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
AMOUNT: Final[Schema] = {"type": "number", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
MAYBE_NUMBER: Final[Schema] = {"type": ["number", "null"]}
NUMBERS: Final[Schema] = {"type": "object", "additionalProperties": AMOUNT}
MOMENT: Final[Schema] = {"type": ["number", "null"], "description": "Seconds since 1970."}
STATED: Final[Schema] = {
    "type": ["number", "string"],
    "description": "A number, or 'Infinity' where there is no bound.",
}


def obj(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    """Return the schema of an object with no other members.

    Parameters
    ----------
    required, optional : mapping of str to Schema
    """
    members = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": members,
        "required": list(required),
        "additionalProperties": False,
    }


def reference(name: str) -> Schema:
    """Return what stands for a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


QUESTION: Final[Mapping[str, Schema]] = {
    "params": {"type": "object", "description": "What @name stands for."},
    "epsilon": {"type": ["number", "null"], "description": "Where the text states none."},
    "period": {"type": "string", "description": "Where the budget renews, the one that is asked about."},
    "purpose": {"type": "string", "description": "One line, which the charge carries."},
}
"""What a question has beside its SQL."""

_COLUMN: Final = obj({"name": TEXT, "type": TEXT})
_TABLE: Final[Mapping[str, Schema]] = {"columns": _list(_COLUMN), "rows": _list({"type": "array"})}
_EXPECTED: Final = obj(
    {
        "name": TEXT,
        "kind": TEXT,
        "half_width": MAYBE_NUMBER,
        "stddev": MAYBE_NUMBER,
        "per": TEXT,
        "unit": TEXT,
    }
)
_QUESTION: Final = obj({"sql": TEXT, **QUESTION})
_OFFER: Final = obj({"message": TEXT, "epsilon": MAYBE_NUMBER, "delta": AMOUNT, "columns": _list(_EXPECTED)})
_PROPOSAL: Final = obj(
    {
        "question": _QUESTION, "analyst": TEXT, "epsilon": STATED, "delta": AMOUNT,
        "columns": _list(_EXPECTED), "cost": NUMBERS, "before": NUMBERS, "after": NUMBERS,
        "sentence": TEXT, "explanation": TEXT, "passes": COUNT, "requests": _list(TEXT), "free": FLAG,
        "offer": {"anyOf": [_OFFER, {"type": "null"}]}, "fits": FLAG,
    }
)  # fmt: skip
_STATES: Final = ["queued", "running", "done", "refused", "failed", "cancelled"]
_JOB: Final = obj(
    {
        "id": TEXT, "request": TEXT, "state": {"type": "string", "enum": _STATES}, "question": _QUESTION,
        "proposal": reference("Proposal"), "message": TEXT, "charges": _list(WHOLE), "ahead": COUNT,
        "submitted": MOMENT, "begun": MOMENT, "ended": MOMENT, "next_look": MOMENT, "deadline": MOMENT,
        "retry_after": {"type": ["number", "null"], "description": "Seconds until its state can change."},
    }
)  # fmt: skip
_BUDGET: Final = obj(
    {"kind": TEXT, "epsilon": MAYBE_NUMBER, "delta": MAYBE_NUMBER, "rho": MAYBE_NUMBER, "mu": MAYBE_NUMBER}
)
_MAYBE_BUDGET: Final[Schema] = {"anyOf": [_BUDGET, {"type": "null"}]}
_WISH: Final = obj({"budget": _BUDGET, "purpose": TEXT})
_STEP: Final = obj({"time": TEXT, "state": TEXT, "by": TEXT, "comment": TEXT})
_REVIEW: Final[Mapping[str, Schema]] = {
    "number": WHOLE, "asked_by": TEXT, "state": TEXT, "purpose": TEXT, "steps": _list(_STEP),
}  # fmt: skip
_COMPARED: Final = obj({"name": TEXT, "now": TEXT, "then": TEXT, "changed": FLAG})
_LISTED: Final = obj(
    {
        "number": WHOLE, "state": {"type": "string", "enum": ["published", "withdrawn"]}, "purpose": TEXT,
        "time": TEXT, "comment": TEXT,
    }
)  # fmt: skip
_PUBLISHED: Final[Mapping[str, Schema]] = {
    "number": WHOLE, "table": TEXT, "question": TEXT, "purpose": TEXT, "published": TEXT, "epsilon": STATED,
    "delta": AMOUNT, "loss": TEXT, "privacy_unit": TEXT, "neighboring": TEXT, "level": AMOUNT,
    "intervals": _list(TEXT), "ledger": TEXT, "receipt": TEXT, "digest": TEXT,
}  # fmt: skip
_EVENT: Final = obj(
    {"position": COUNT, "kind": TEXT, "charge": {"type": ["integer", "null"]}, "time": TEXT, "by": TEXT,
     "digest": TEXT}
)  # fmt: skip
_HEAD: Final[Schema] = {"type": ["object", "null"], "description": "For a curator alone."}

SCHEMAS: Final[Mapping[str, Schema]] = {
    "Problem": {
        "type": "object",
        "description": "An error, as RFC 9457 has it; 'error' names a class of sfumato.errors.",
        "properties": {
            "type": TEXT, "title": TEXT, "status": {"type": "integer"}, "detail": TEXT, "error": TEXT,
            "remaining": NUMBERS, "requested": NUMBERS, "job": TEXT,
        },
        "required": ["type", "title", "status", "detail", "error"],
    },
    "Proposal": _PROPOSAL,
    "Job": _JOB,
    "Jobs": obj({"jobs": _list(reference("Job"))}),
    "AnswerFacts": obj(
        {"job": TEXT, "epsilon": STATED, "delta": AMOUNT, "privacy_unit": TEXT, "simulated": FLAG,
         "explanation": TEXT, "receipts": _list(obj({"number": WHOLE, "ledger": TEXT, "digest": TEXT}))}
    ),
    "Answer": obj({**_TABLE, "facts": reference("AnswerFacts")}),
    "DryRun": obj({**_TABLE, "notice": TEXT, "explanation": TEXT, "seed": COUNT, "simulated": FLAG}),
    "AccountFacts": obj({"amounts": NUMBERS, "words": TEXT}),
    "Account": obj(
        {"analyst": TEXT, "unit": TEXT, "neighboring": TEXT, "renewal": TEXT, "budget": _MAYBE_BUDGET,
         "left": {"anyOf": [reference("AccountFacts"), {"type": "null"}]},
         "request": {"anyOf": [_WISH, {"type": "null"}]}}
    ),
    "Dataset": obj(
        {
            "title": TEXT, "privacy_unit": TEXT, "neighboring": TEXT, "budget": TEXT, "renewal": TEXT,
            "engine": TEXT, "version": {"type": ["integer", "null"]},
            "tables": _list(
                obj({"name": TEXT, "private": FLAG, "unit": {"type": ["string", "null"]},
                     "columns": _list(obj({"name": TEXT, "type": {"type": ["string", "null"]},
                                           "domain": TEXT}))})
            ),
        }
    ),
    "Review": obj({**_REVIEW, "compared": _list(_COMPARED), "before": {"type": ["integer", "null"]},
                   "checklist": _list(obj({"name": TEXT, "words": TEXT}))}),
    "Reviews": obj({"reviews": _list(obj(_REVIEW))}),
    "Reviewed": obj({"reviews": _list(obj({"number": WHOLE, "state": TEXT}))}),
    "Statement": obj({"statement": TEXT}),
    "Releases": obj({"releases": _list(_LISTED)}),
    "Release": obj({**_TABLE, "facts": obj(_PUBLISHED)}),
    "Log": obj({"events": _list(_EVENT), "page": WHOLE, "last": WHOLE, "head": _HEAD, "public_key": TEXT}),
    "Verified": obj(
        {"sound": FLAG, "events": COUNT, "charges": COUNT, "releases": COUNT, "underpriced": _list(WHOLE),
         "overdrawn": FLAG, "damage": TEXT}
    ),
}  # fmt: skip
"""Each schema that an operation names."""
