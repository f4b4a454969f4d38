"""JSON documents that other commands wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sfumato.cli.output.writing import read_bytes
from sfumato.errors import ParameterError

__all__ = ["read_document"]


def read_document(file: Path, kind: str, command: str) -> dict[str, Any]:
    """Return the object in a JSON file, or refuse another file, naming the command that writes one."""
    try:
        content = json.loads(read_bytes(file))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ParameterError(
            f"{str(file)!r} must be a {kind}'s file, got something else; write one with `{command}`"
        )
    return content
