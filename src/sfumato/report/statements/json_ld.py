"""The guarantee of a release as JSON-LD: a schema.org Dataset, for catalogues and search engines.

The guarantee is a list of ``PropertyValue`` under ``guarantee`` of a vocabulary of our own, whose terms are
the fields of `GuaranteeStatement`. In a page it is a data block, which is no script: nothing runs, and the
page's policy stays as it is.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from sfumato import _check
from sfumato.ledger.ledger import Ledger
from sfumato.report.pages.document import ReleasePage
from sfumato.report.statements.guarantee_statement import GuaranteeStatement, statement

__all__ = ["VOCABULARY", "json_ld", "with_json_ld"]

VOCABULARY: Final = "urn:sfumato:guarantee:1:"
"""What the terms of the guarantee begin with."""

_TAKEN: Final = frozenset(
    {
        "name",
        "description",
        "identifier",
        "measurementTechnique",
        "variableMeasured",
        "datePublished",
        "creativeWorkStatus",
    }
)
_NAME: Final = re.compile("[A-Za-z]+")
_STATUS: Final = {"published": "Published", "withdrawn": "Withdrawn"}
_UNSAFE: Final = re.compile("[<>&\x7f]")


def json_ld(
    ledger: Ledger, number: int, *, name: str = "", description: str = "", more: dict[str, Any] | None = None
) -> str:
    """Return the description of a release as a schema.org Dataset with its guarantee, in JSON-LD.

    Parameters
    ----------
    ledger : Ledger
    number : int
        Of the charge.
    name, description : str
        Of the dataset; its number, and its purpose or question, unless given.
    more : dict, optional
        Other properties by schema.org's names, such as ``{"license": "https://..."}``, with values of JSON.

    Returns
    -------
    str
        JSON, which can stand in HTML as it is.

    Raises
    ------
    ParameterError
        If nothing was stored with this charge, or ``more`` would replace what follows from the ledger, or
        has other names.

    Notes
    -----
    Guarantee: post-processing of the release and of public parameters; see `statement`. It says so of what
    was withdrawn.

    Examples
    --------
    >>> import json
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato import report
    >>> with sf.connect(pa.table({"n": range(1000)}), privacy_unit=sf.ROW, epsilon=1.0) as session:
    ...     answer = session.sql(
    ...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS people FROM data"
    ...     )
    ...     made = json.loads(report.json_ld(session.ledger, 1))
    >>> made["@type"], made["variableMeasured"], made["dp:guarantee"][0]["value"]
    ('Dataset', ['people'], 0.5)
    """
    for key, text in (("name", name), ("description", description)):
        _check.instance(key, text, str, "pass a text, or leave it out")
    given = _checked({} if more is None else more)
    said, entry = statement(ledger, number), ledger.entry(number)
    about = description or entry.purpose or " ".join(entry.description.split())
    review = ledger.reviews.of(number)
    document: dict[str, Any] = {
        "@context": {"@vocab": "https://schema.org/", "dp": VOCABULARY},
        "@type": "Dataset",
        "name": name or f"Release {number}",
        "description": about or f"Release {number} of ledger {said.ledger}, with differential privacy.",
        "identifier": f"sfumato:{said.ledger}:{number}",
        "measurementTechnique": "differential privacy",
        "variableMeasured": ledger.release(number).to_arrow().column_names,
        "dp:guarantee": _properties(said),
    }
    published = [step.time for step in review.steps if step.state == "published"]
    if review.state == "published" and published:
        document["datePublished"] = published[-1].date().isoformat()
    if review.state in _STATUS:
        document["creativeWorkStatus"] = _STATUS[review.state]
    return _harmless(json.dumps(document | given, indent=1))


def _checked(more: object) -> dict[str, Any]:
    """Return properties that can stand beside what follows from the ledger, whatever a name is short for."""
    if not isinstance(more, dict):
        _check.refuse_type("more", "be a dict of properties", more, 'pass {"license": "https://..."}')
    for name in more:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            _check.refuse("more", "have names of schema.org, of letters", name, 'such as "license"')
        if name in _TAKEN:
            remedy = "pass name= or description="
            _check.refuse("more", "leave out what follows from the ledger", name, remedy)
    try:
        json.dumps(more, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        _check.refuse_state("more", "have values of JSON", "one is none", "write dates and numbers as text")
    return dict(more)


def with_json_ld(page: ReleasePage, text: str) -> ReleasePage:
    """Return a page that holds a description in JSON-LD as a data block, which runs nothing.

    Parameters
    ----------
    page : ReleasePage
    text : str
        As `json_ld` made it.

    Returns
    -------
    ReleasePage

    Raises
    ------
    ParameterError
        If one is of another type.
    """
    _check.instance("page", page, ReleasePage, "pass report.stored_release(ledger, number)")
    _check.instance("text", text, str, "pass report.json_ld(ledger, number)")
    head, mark, rest = page.html.partition("</head>")
    block = f'<script type="application/ld+json">{_harmless(text)}</script>'
    return ReleasePage(html=f"{head}{block}{mark}{rest}", language=page.language)


def _harmless(text: str) -> str:
    """Return JSON that can stand in HTML and XML: what could end the block is written as an escape."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _properties(said: GuaranteeStatement) -> list[dict[str, Any]]:
    """Return the guarantee as properties with values."""
    values: dict[str, Any] = {
        "epsilon": said.epsilon,
        "delta": said.delta,
        "notion": said.notion,
        "neighboring": str(said.neighboring),
        "privacy_unit": said.privacy_unit,
        "simulated": said.simulated,
        "loss": said.loss.to_json(),
        "ledger": said.ledger,
        "charge": said.charge,
        "digest": said.digest,
        "release_sha256": said.payload,
    }
    if said.period:
        values["period"] = said.period
    return [
        {"@type": "PropertyValue", "propertyID": f"{VOCABULARY}{name}", "name": name, "value": value}
        for name, value in values.items()
    ]
