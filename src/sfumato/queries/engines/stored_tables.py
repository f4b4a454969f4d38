"""What engines over stored tables have in common: how they show the tables, open and close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, Self

from sfumato._check import refuse_state
from sfumato._wire import Format, canonical, optional
from sfumato.errors import ParameterError
from sfumato.queries.engines.dialects.base import StoredTable
from sfumato.queries.plan.query import Schema
from sfumato.queries.plan.wire_names import COLUMN_TYPE

__all__ = ["StoredTablesEngine", "require_secret"]

_FORMAT: Final = Format("sfumato.schema", 1)
_SECRET_BYTES: Final = 16


class StoredTablesEngine(ABC):
    """The face of an engine over tables that it knows by name; what it computes is the subclass's."""

    _tables: Mapping[str, StoredTable]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The tables by name, with their columns."""
        return {name: table.schema for name, table in self._tables.items()}

    @property
    def schema_text(self) -> str:
        """All tables, columns and types as JSON of the format ``sfumato.schema``, to identify a dataset."""
        tables = {
            name: [
                {"name": column.name, "type": optional(COLUMN_TYPE).encode(column.type)}
                for column in schema.columns
            ]
            for name, schema in self.schemas.items()
        }
        return canonical(_FORMAT.wrap({"tables": tables}))

    def unite(self, columns: Mapping[str, tuple[str, ...]]) -> None:
        """Refuse connected components: an engine that can make them overrides this.

        Raises
        ------
        ParameterError
            Always.
        """
        del columns
        raise ParameterError(
            "privacy_unit must be one column in a database or on a cluster, got several; make a column there "
            "that numbers the users and devices that are connected"
        )

    @abstractmethod
    def close(self) -> None:
        """Release what the engine holds; calling it again does nothing."""


def require_secret(secret: bytes) -> None:
    """Refuse a secret that could be guessed.

    Raises
    ------
    ParameterError
        If it has fewer than 16 bytes.
    """
    if len(secret) < _SECRET_BYTES:
        rule, remedy = f"have at least {_SECRET_BYTES} bytes", "draw it from a secure source"
        refuse_state("secret", rule, f"it has {len(secret)}", remedy)
