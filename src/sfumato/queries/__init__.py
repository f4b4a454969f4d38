"""Private SQL, compiled: text, typed plan, price, exact bounded integers, noise, released table.

A query goes through the folders in this order. `sql` reads text (or what `builder` writes) and makes the plan
of `plan`. `pricing` chooses one mechanism for each sum that is needed, and their one loss. `engines` computes
exact, bounded integers where the data lies. `release` adds the noise, and makes the table that an analyst
gets; `outer` runs the SQL around private SELECTs on it. `planner` chooses noise for many queries at once and
suggests limits, `continual` counts over time. `sfumato.session` walks the whole way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.queries.outer.release import PostprocessedRelease
    from sfumato.queries.planner.suggested_limits import SuggestedLimits
    from sfumato.queries.release.table import TableRelease

__all__ = ["PostprocessedRelease", "SuggestedLimits", "TableRelease"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "PostprocessedRelease": "sfumato.queries.outer.release",
        "SuggestedLimits": "sfumato.queries.planner.suggested_limits",
        "TableRelease": "sfumato.queries.release.table",
    },
)
