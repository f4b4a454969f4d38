"""A job as statements of one WITH each, for engines that this process does not run."""

from __future__ import annotations

from sfumato.queries.engines.compilation.group_table import numbered_groups
from sfumato.queries.engines.compilation.job import GROUPS, CompiledJob
from sfumato.queries.plan.query import ColumnType

__all__ = ["as_one_statement"]


def as_one_statement(prepared: CompiledJob, secret: bytes) -> tuple[str, ...]:
    """Return the statements that compute a job, each from the tables alone.

    Parameters
    ----------
    prepared : CompiledJob
    secret : bytes
        Keys the choice of rows and groups, and stands in the texts.

    Returns
    -------
    tuple of str
        First that of the sums: ``k0, ...`` and ``m0, ...``, sorted by key. Then one for each measure of
        counts by bin, in their order: the groups, ``leaf`` and ``n``.
    """
    bounding = prepared.bounding(secret)
    steps = [(step.name, step.select) for step in bounding.steps()] if prepared.unit else []
    if prepared.public:
        steps.insert(0, (GROUPS, _groups(prepared)))
    head = ",\n".join(f"{name} AS (\n{select}\n)" for name, select in steps)
    crowded = prepared.unit and bounding.trims_rows
    answers = [
        prepared.answer(bounding, any_crowded=crowded),
        *prepared.leaves(bounding, any_crowded=crowded).values(),
    ]
    return tuple(f"WITH {head}\n{answer}" if head else answer for answer in answers)


def _groups(prepared: CompiledJob) -> str:
    source = f"({prepared.table})"
    if prepared.listed is not None:
        rows = [
            ", ".join(
                f"{_literal(prepared, row[key], type_)} AS {key}"
                for key, type_ in zip(prepared.keys, prepared.types, strict=True)
            )
            for row in prepared.listed.to_pylist()
        ]
        empty = ", ".join(
            f"{_literal(prepared, None, type_)} AS {key}"
            for key, type_ in zip(prepared.keys, prepared.types, strict=True)
        )
        union = " UNION ALL ".join(f"SELECT {row}" for row in rows) or f"SELECT {empty} LIMIT 0"
        source = f"({union})"
    return numbered_groups(source, prepared.types, prepared.dialect)


def _literal(prepared: CompiledJob, value: object, type_: ColumnType) -> str:
    dialect = prepared.dialect
    match value:
        case None:
            return dialect.converted("NULL", type_)
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return dialect.integer(value)
        case float():
            return dialect.real(value)
        case str():
            return dialect.text(value)
        case _:
            return dialect.moment(str(value), type_)
