"""Syntactic anonymity: k-anonymity, l-diversity, t-closeness and re-identification risk of a table.

These notions describe a table. They are no differential privacy: nothing here has a ``privacy_loss``,
nothing can be charged to a ledger, and anonymising a table first never lowers the price of a private query on
it. What is computed here is the curator's own: a measure of real rows is an answer that nobody paid for, and
the chosen generalisation itself shows something of the rows.

>>> import pyarrow as pa
>>> from sfumato import anonymity
>>> people = pa.table({"age": [31, 34, 52, 58], "sex": ["F", "F", "M", "M"]})
>>> data = anonymity.Microdata(people, quasi_identifiers={"age": anonymity.Intervals((10, 50)), "sex": None})
>>> data.hierarchies["age"].labels[1]
('[30, 40)', '[50, 60)')
>>> anonymity.check(data, levels={"age": 1}).k
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.anonymity.hierarchies.dates import Dates
    from sfumato.anonymity.hierarchies.hierarchy import Hierarchy
    from sfumato.anonymity.hierarchies.intervals import Intervals
    from sfumato.anonymity.hierarchies.prefixes import Prefixes
    from sfumato.anonymity.hierarchies.suppression import Suppression
    from sfumato.anonymity.report.check import check
    from sfumato.anonymity.report.report import Report
    from sfumato.anonymity.table.microdata import Microdata

__all__ = ["Dates", "Hierarchy", "Intervals", "Microdata", "Prefixes", "Report", "Suppression", "check"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Dates": "sfumato.anonymity.hierarchies.dates",
        "Hierarchy": "sfumato.anonymity.hierarchies.hierarchy",
        "Intervals": "sfumato.anonymity.hierarchies.intervals",
        "Microdata": "sfumato.anonymity.table.microdata",
        "Prefixes": "sfumato.anonymity.hierarchies.prefixes",
        "Report": "sfumato.anonymity.report.report",
        "Suppression": "sfumato.anonymity.hierarchies.suppression",
        "check": "sfumato.anonymity.report.check",
    },
)
