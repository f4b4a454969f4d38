"""Who may change, and how: the relation that a guarantee is about."""

from __future__ import annotations

from enum import Enum, unique

__all__ = ["Neighboring"]


@unique
class Neighboring(Enum):
    """How two datasets that must look alike may differ in one privacy unit.

    The values are the names that serialised losses and ledgers store.

    Attributes
    ----------
    ADD_REMOVE
        One unit, with all its records, is present in one dataset and absent from the other.
    REPLACE_ONE
        One unit's records are exchanged for any other records; the number of units is public.
    ZERO_OUT
        One unit's records are exchanged for a fixed neutral value; the number of units is public.

    Examples
    --------
    >>> str(Neighboring.ADD_REMOVE)
    'add/remove one unit'
    >>> Neighboring("replace-one") is Neighboring.REPLACE_ONE
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    ZERO_OUT = "zero-out"

    def __str__(self) -> str:
        return {"add-remove": "add/remove", "replace-one": "replace", "zero-out": "zero out"}[
            self.value
        ] + " one unit"
