"""What is public of a dataset: its tables, columns, unit and budget, and what was declared of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, final

from sfumato.queries.plan.schema import Column, Schema
from sfumato.session.session import Session
from sfumato.synthetic.domain.attributes import Attribute, Ordered
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.domain.edges import edge_text

__all__ = ["ColumnFacts", "DatasetFacts", "Domains", "TableFacts", "dataset_facts"]

Domains = Mapping[str, TableDomain]
"""What the curator declared of the private tables' values, by table."""

_SHOWN: Final = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A column: its name, its type, and the values that were declared for it.

    ``type`` is None where no query can use it; ``domain`` is "" where nothing was declared.
    """

    name: str
    type: str | None
    domain: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table: whether it is private, which column names its units (None for rows), and its columns."""

    name: str
    private: bool
    unit: str | None
    columns: tuple[ColumnFacts, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """What anybody may know of a dataset; made by `dataset_facts`.

    Parameters
    ----------
    privacy_unit, neighboring : str
        Who is protected, and against which change of the data.
    budget : str
        Of the dataset in all, or in each period.
    renewal : str
        How it renews; "" if it does not.
    engine : str
        What computes.
    version : int or None
        Of the dataset, since its ledger was made.
    tables : tuple of TableFacts
    """

    privacy_unit: str
    neighboring: str
    budget: str
    renewal: str
    engine: str
    version: int | None
    tables: tuple[TableFacts, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain values, for a page or for JSON."""
        return asdict(self)


def dataset_facts(session: Session, domains: Domains | None = None) -> DatasetFacts:
    """Return what is public of a session's dataset; no row is read.

    Parameters
    ----------
    session : Session
    domains : mapping of str to TableDomain, optional
        What was declared of the values of private tables.

    Returns
    -------
    DatasetFacts

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.synthetic import Ordered
    >>> people = pa.table({"person": [1, 2], "age": [30, 40]})
    >>> with sf.connect(people, privacy_unit="person", epsilon=1) as session:
    ...     facts = dataset_facts(session, {"data": TableDomain(age=Ordered.integers(0, 99))})
    >>> facts.privacy_unit, [(column.name, column.domain) for column in facts.tables[0].columns]
    ('person', [('person', ''), ('age', '0 to 99')])
    """
    declared = domains or {}
    private = [
        TableFacts(
            name=name,
            private=True,
            unit=scan.unit,
            columns=_columns(scan.schema, declared.get(name)),
        )
        for name, scan in session.catalog.private.items()
    ]
    public = [
        TableFacts(name=name, private=False, unit=None, columns=_columns(schema, None))
        for name, schema in session.catalog.public.items()
    ]
    ledger = session.ledger
    return DatasetFacts(
        privacy_unit=ledger.privacy_unit,
        neighboring=str(ledger.neighboring),
        budget=str(ledger.budget),
        renewal="" if ledger.renewal is None else str(ledger.renewal),
        engine=type(session.engine).__name__.removesuffix("Engine"),
        version=ledger.version,
        tables=(*private, *public),
    )


def _columns(schema: Schema, domain: TableDomain | None) -> tuple[ColumnFacts, ...]:
    known = {} if domain is None else {name.casefold(): each for name, each in domain.items()}
    return tuple(
        ColumnFacts(
            name=column.name, type=_type(column), domain=domain_words(known.get(column.name.casefold()))
        )
        for column in schema.columns
    )


def _type(column: Column) -> str | None:
    if column.type is not None:
        return column.type.value
    return None if column.element is None else f"ARRAY<{column.element.value}>"


def domain_words(attribute: Attribute | None) -> str:
    """Return what was declared of a column's values, in words; "" for nothing."""
    if attribute is None:
        return ""
    labels = [label for label in attribute.labels if label is not None]
    missing = " or missing" if None in attribute.labels else ""
    if isinstance(attribute, Ordered):
        edges = attribute.edges or ()
        ends = (labels[0], labels[-1]) if attribute.whole else (edge_text(edges[0]), edge_text(edges[-1]))
        return f"{ends[0]} to {ends[1]}{missing}"
    more = "" if len(labels) <= _SHOWN else f" and {len(labels) - _SHOWN} more"
    return f"{', '.join(map(str, labels[:_SHOWN]))}{more}{missing}"
