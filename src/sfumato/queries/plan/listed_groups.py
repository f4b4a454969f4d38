"""The rows of listed groups: those of other groups are in no answer, so they use up no limit.

Groups of one key are held to the list exactly; of several keys each is held to its own listed values, so a
combination that is not listed counts as a group where both of its parts are in the list.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.queries.plan.constants import literal
from sfumato.queries.plan.nodes import Filter, InPublic, PublicScan, Relation
from sfumato.queries.plan.query import (
    Column,
    ColumnType,
    Expression,
    Named,
    Project,
    PublicRelation,
    PublicTable,
    PublicValues,
    Query,
    Schema,
)
from sfumato.queries.plan.typed_expressions import TypedTree, cast, column, operand

__all__ = ["within_listed_groups"]


def within_listed_groups(query: Query) -> Relation:
    """Return the rows of a query whose keys are listed; all rows where no groups are listed.

    Parameters
    ----------
    query : Query
    """
    relation, groups = query.relation, query.public_groups
    if isinstance(groups, PublicValues):
        for index, key in enumerate(query.keys):
            listed = list(dict.fromkeys(row[index] for row in groups.rows))
            relation = Filter(relation, _among(key.expression, listed))
    elif isinstance(groups, PublicTable):
        for name, key in zip(groups.columns, query.keys, strict=True):
            known = Schema((Column(name, key.expression.type),))
            read = Expression(column(name, key.expression.type).tree, key.expression.type)
            public = Project(PublicScan(groups.table, known), (Named(name, read),), None)
            relation = InPublic(relation, key.expression, public, negated=False)
    elif isinstance(groups, PublicRelation):
        for name, key in zip(groups.columns, query.keys, strict=True):
            found = groups.relation.schema.find(name)
            made = column(name, key.expression.type if found is None else found.type)
            made = made if made.type is key.expression.type else cast(made, key.expression.type)
            read = Expression(made.tree, key.expression.type)
            public = Project(groups.relation, (Named(name, read),), None)
            relation = InPublic(relation, key.expression, public, negated=False)
    return relation


def _among(key: Expression, listed: list[object]) -> Expression:
    """Return the condition that a key is one of the listed values, NULL if that is one."""
    subject = operand(TypedTree(key.tree, key.type))
    values = [literal(value, key.type) for value in listed if value is not None]
    tests: list[exp.Expression] = [exp.In(this=subject, expressions=values)] if values else []
    if None in listed:
        tests.append(exp.Is(this=subject.copy(), expression=exp.Null()))
    if not tests:
        return Expression(exp.Boolean(this=False), ColumnType.BOOLEAN)
    tree = tests[0] if len(tests) == 1 else exp.Or(this=exp.Paren(this=tests[0]), expression=tests[1])
    return Expression(tree, ColumnType.BOOLEAN)
