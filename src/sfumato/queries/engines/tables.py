"""What engines over stored tables have in common: how they show the tables, open and close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, Self

from sfumato._check import refuse
from sfumato.queries.engines.dialect import StoredTable
from sfumato.queries.plan import Schema

__all__ = ["TablesEngine", "require_secret"]

_SECRET_BYTES: Final = 16


class TablesEngine(ABC):
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
        """Canonical text of all tables, columns and types, for the identity of a dataset."""
        lines = []
        for name, schema in sorted(self.schemas.items()):
            lines.append(f"table {name!r}")
            lines += [
                f"  {column.name!r} {'-' if column.type is None else column.type.value}"
                for column in schema.columns
            ]
        return "\n".join(lines)

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
        refuse(
            "secret",
            f"have at least {_SECRET_BYTES} bytes",
            f"{len(secret)} bytes",
            "draw it from a secure source",
        )
