"""The front door: ``connect()`` joins data, engine and ledger in a session, which answers private questions.

>>> import pyarrow as pa
>>> import sfumato as sf
>>> people = pa.table({"person": range(1000), "smokes": [True, False] * 500})
>>> with sf.connect(people, privacy_unit="person", epsilon=1.0, rng=7) as session:
...     release = session.sql(
...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS n FROM data"
...     )
>>> release.to_arrow().column_names
['n']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.session.connection import connect
    from sfumato.session.remote.remote_answer import RemoteAnswer
    from sfumato.session.remote.remote_session import RemoteSession
    from sfumato.session.rendering import render_sql
    from sfumato.session.session import Session
    from sfumato.session.units import ROW

__all__ = ["ROW", "RemoteAnswer", "RemoteSession", "Session", "connect", "render_sql"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ROW": "sfumato.session.units",
        "RemoteAnswer": "sfumato.session.remote.remote_answer",
        "RemoteSession": "sfumato.session.remote.remote_session",
        "Session": "sfumato.session.session",
        "connect": "sfumato.session.connection",
        "render_sql": "sfumato.session.rendering",
    },
)
