"""The shuffler: a process that stands between people and the analyst.

Its messages, and what protects whom, are in `sfumato.local.shuffle` and `sfumato.local.device`; here are the
store that survives being killed, and the service around it, which needs ``sfumato[server]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.server.client import Visitor
    from sfumato.server.serving import serve
    from sfumato.server.shuffler import Shuffler

__all__ = ["Shuffler", "Visitor", "serve"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Shuffler": "sfumato.server.shuffler",
        "Visitor": "sfumato.server.client",
        "serve": "sfumato.server.serving",
    },
    extras={"uvicorn": "server", "h11": "server"},
)
