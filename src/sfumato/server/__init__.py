"""Processes: the shuffler, the collector of plain local reports, DAP's leader and helper, and the console.

The shuffler's messages, and what protects whom, are in `sfumato.local.shuffle` and `sfumato.local.device`,
those of DAP in `sfumato.federated.dap`. Here are the stores that survive being killed, and the services
around them, which need ``sfumato[server]``; the curator's console needs ``sfumato[console]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.server.client import Visitor
    from sfumato.server.console.console_process import serve_console
    from sfumato.server.console.settings import ConsoleSettings
    from sfumato.server.dap.dap_client import DapUploader, collect_batch
    from sfumato.server.dap.party import DapParty
    from sfumato.server.dap.running import serve_dap
    from sfumato.server.hosting.collections_service import serve_collections
    from sfumato.server.listening import Listening
    from sfumato.server.local_collector import LocalCollector
    from sfumato.server.serving import serve, serve_local
    from sfumato.server.shuffler import Shuffler

__all__ = [
    "ConsoleSettings",
    "DapParty",
    "DapUploader",
    "Listening",
    "LocalCollector",
    "Shuffler",
    "Visitor",
    "collect_batch",
    "serve",
    "serve_collections",
    "serve_console",
    "serve_dap",
    "serve_local",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ConsoleSettings": "sfumato.server.console.settings",
        "DapParty": "sfumato.server.dap.party",
        "DapUploader": "sfumato.server.dap.dap_client",
        "Listening": "sfumato.server.listening",
        "LocalCollector": "sfumato.server.local_collector",
        "Shuffler": "sfumato.server.shuffler",
        "Visitor": "sfumato.server.client",
        "collect_batch": "sfumato.server.dap.dap_client",
        "serve": "sfumato.server.serving",
        "serve_collections": "sfumato.server.hosting.collections_service",
        "serve_console": "sfumato.server.console.console_process",
        "serve_dap": "sfumato.server.dap.running",
        "serve_local": "sfumato.server.serving",
    },
    extras={
        "uvicorn": "server",
        "h11": "server",
        "starlette": "console",
        "jinja2": "console",
        "joserfc": "console",
    },
)
