"""Cells of columns by the schema of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from sfumato import _check
from sfumato.synthetic.domain.attributes import Attribute, Categorical, attribute_of

__all__ = ["schema_attributes"]


def schema_attributes(
    schema: pa.Schema, declared: Mapping[str, object] | None, columns: Sequence[str] | None
) -> dict[str, Attribute]:
    """Return the cells of a schema's columns; see `TableDomain.from_schema`.

    Parameters
    ----------
    schema : pyarrow.Schema
    declared : mapping of str to Categorical, Ordered or list, optional
    columns : sequence of str, optional

    Returns
    -------
    dict of str to Categorical or Ordered

    Raises
    ------
    ParameterError
        If a column is not in the schema once, has no cells, or is declared with cells of another type.
    """
    _check.instance("schema", schema, pa.Schema, "pass table.schema")
    made: dict[str, Attribute] = {}
    for name in schema.names if columns is None else columns:
        if schema.names.count(name) != 1 or name in made:
            rule = f"be columns of the schema {schema.names}, each once"
            _check.refuse("columns", rule, name, "rename or leave out what is there twice")
        field = schema.field(name)
        if declared is not None and name in declared:
            made[name] = attribute_of(name, declared[name])
            made[name].require(name, field.type)
        elif pa.types.is_boolean(field.type):
            made[name] = Categorical((False, True), missing=field.nullable)
        else:
            rule, found = "have declared cells, as its type has none", f"it is of {field.type}"
            remedy = "declare it, or leave it out of columns="
            _check.refuse_state(f"column {name!r}", rule, found, remedy)
    return made
