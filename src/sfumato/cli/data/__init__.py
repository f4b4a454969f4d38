"""The demo's table: real people of the American Community Survey, already public (see NOTICE.txt)."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ACS"]

ACS = Path(__file__).with_name("acs.parquet")
"""The Parquet file: 27,253 people of sixteen US states, one row each; ``person_id`` numbers them."""
