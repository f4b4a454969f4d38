"""The demo's table: real people of the American Community Survey, already public (see NOTICE.txt)."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ACS", "ACS_DOMAIN"]

ACS = Path(__file__).with_name("acs.parquet")
"""The Parquet file: 27,253 people of sixteen US states, one row each; ``person_id`` numbers them."""

ACS_DOMAIN = Path(__file__).with_name("acs_domain.toml")
"""What is public of some of its columns: a file for `sfumato.synthetic.TableDomain.from_toml`."""
