"""The exceptions of sfumato: every error that it raises on purpose, in one tree.

::

    SfumatoError
    +-- ParameterError             a parameter breaks its rule          (also a ValueError)
    |   +-- NeighboringMismatch    two losses protect different things
    |   +-- UnboundedSensitivity   no finite sensitivity can be stated
    |   +-- UnfitModule            a module on which no clipping of single examples holds
    |       +-- UnattributedParameter  a gradient came past the engine
    +-- UnsupportedView            a loss cannot be seen in that notion (also a TypeError)
    +-- QueryError                 a query was refused before anything was charged (also a ValueError)
    |   +-- SqlSyntaxError         the text is not SQL
    |   +-- UnsupportedSql         SQL that has no private meaning here
    |   +-- SchemaError            an unknown table or column, or a wrong type
    |   +-- OptionError            OPTIONS(...) or an argument breaks its rule
    +-- SourceError                a data source cannot be opened or read
    +-- EngineError                the engine failed after the charge; the charge stays
    |   +-- QueryCancelled         it was cancelled after the charge; the charge stays
    +-- LedgerError
    |   +-- BudgetExceeded         the charge does not fit; nothing was charged
    |   +-- RunExhausted           all steps that a run reserved were claimed
    |   +-- LedgerMismatch         the ledger belongs to another dataset, unit or budget
    |   +-- LedgerCorrupt          the file is damaged or was altered
    |   +-- LedgerUnavailable      the file cannot be read or written
    |   +-- SimulatedCharge        simulated randomness against a real budget
    +-- DeviceBudgetExceeded       a report does not fit into a device's budget; nothing was spent or drawn
    +-- OutOfMemory                a batch does not fit into memory     (also a MemoryError)
    +-- MissingExtra               an optional library is absent        (also an ImportError)

Two warnings: `PrecisionWarning`, an interval of the accountant is wider than asked, its ends are right;
`ContradictionWarning`, two proofs of one number exclude each other, which is a fault of sfumato's.
Messages have one shape: parameter, rule, value, remedy. They depend on the schema and on parameters
only, never on the data.
"""

from __future__ import annotations

from typing import Protocol

__all__ = [
    "BudgetExceeded",
    "ContradictionWarning",
    "DeviceBudgetExceeded",
    "EngineError",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerMismatch",
    "LedgerUnavailable",
    "MissingExtra",
    "NeighboringMismatch",
    "OptionError",
    "OutOfMemory",
    "ParameterError",
    "PrecisionWarning",
    "QueryCancelled",
    "QueryError",
    "RunExhausted",
    "SchemaError",
    "SfumatoError",
    "SimulatedCharge",
    "SourceError",
    "SqlSyntaxError",
    "UnattributedParameter",
    "UnboundedSensitivity",
    "UnfitModule",
    "UnsupportedSql",
    "UnsupportedView",
]


class SfumatoError(Exception):
    """Root of every error that sfumato raises on purpose."""


class ParameterError(SfumatoError, ValueError):
    """A parameter breaks its rule."""


class NeighboringMismatch(ParameterError):
    """Two things that protect different neighboring relations were put together."""


class UnboundedSensitivity(ParameterError):
    """One unit may move the result without limit, so no noise can hide it."""


class UnfitModule(ParameterError):
    """A module, its loss or how they were used, on which no clipping of single examples holds."""


class UnattributedParameter(UnfitModule):
    """A parameter got a gradient that belongs to no example: one that nothing clips."""


class UnsupportedView(SfumatoError, TypeError):
    """A privacy loss has no proven bound in the notion that was asked for."""


class PrecisionWarning(UserWarning):
    """An interval is wider than asked; both its ends are right."""


class ContradictionWarning(UserWarning):
    """Two proofs of one number exclude each other: one is wrong, and the wider bounds are returned."""


class QueryError(SfumatoError, ValueError):
    """A query was refused before anything was charged."""


class SqlSyntaxError(QueryError):
    """The text could not be parsed as SQL."""


class UnsupportedSql(QueryError):
    """The SQL is valid but has no private meaning here."""


class SchemaError(QueryError):
    """The query names an unknown table or column, or uses one with the wrong type."""


class OptionError(QueryError):
    """An entry of OPTIONS(...) or a named argument breaks its rule."""


class SourceError(SfumatoError):
    """A data source cannot be opened or read."""


class EngineError(SfumatoError):
    """The engine failed after the charge was recorded; the charge stays."""


class QueryCancelled(EngineError):
    """The query was cancelled after the charge was recorded; the charge stays, for rows were read."""


class LedgerError(SfumatoError):
    """Root of the ledger's errors."""


class _Guarantee(Protocol):
    """What an error reads of a `sfumato.privacy.Guarantee`, which this module cannot import."""

    @property
    def epsilon(self) -> float | None: ...
    @property
    def delta(self) -> float | None: ...
    @property
    def rho(self) -> float | None: ...
    @property
    def mu(self) -> float | None: ...
    @property
    def answerable_epsilon(self) -> float | None: ...
    @property
    def answerable_delta(self) -> float | None: ...
    @property
    def amounts(self) -> str: ...


class BudgetExceeded(LedgerError):
    """The charge does not fit into the budget; nothing was charged and no data was read.

    Parameters
    ----------
    message : str
        What was refused, and the remedy.
    remaining : sfumato.privacy.Guarantee
        What is left, with the largest epsilon at which the query would be answered, at its delta.
    requested : sfumato.privacy.Guarantee
        What the refused charge would have cost.
    """

    def __init__(self, message: str, *, remaining: _Guarantee, requested: _Guarantee) -> None:
        super().__init__(message)
        self.remaining = remaining
        self.requested = requested


class RunExhausted(LedgerError):
    """All steps that a training run reserved were claimed; it goes on when more are charged."""


class LedgerMismatch(LedgerError):
    """The ledger belongs to another dataset, privacy unit or budget."""


class LedgerCorrupt(LedgerError):
    """The ledger's file is damaged, truncated or was altered."""


class LedgerUnavailable(LedgerError):
    """The ledger's file cannot be read or written; the message says whether anything was charged."""


class SimulatedCharge(LedgerError):
    """Simulated randomness was to be charged against a real budget."""


class DeviceBudgetExceeded(SfumatoError):
    """A device's own budget does not allow a report; nothing was spent or drawn."""


class OutOfMemory(SfumatoError, MemoryError):
    """What clipping stores of a batch does not fit into memory; the batch can be run in parts."""


class MissingExtra(SfumatoError, ImportError):
    """An optional library is absent; the message names the extra that installs it."""
