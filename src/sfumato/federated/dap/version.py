"""Which draft of DAP is spoken."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["VERSION", "Role"]

VERSION: Final = b"dap-16"
"""The version tag, bound to every sealed share and to every proof."""


class Role(IntEnum):
    """The parties of a task, as numbered in messages.

    Examples
    --------
    >>> Role(2).name
    'LEADER'
    """

    COLLECTOR = 0
    CLIENT = 1
    LEADER = 2
    HELPER = 3
