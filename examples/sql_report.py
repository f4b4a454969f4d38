"""Ask the shipped census excerpt in SQL; print a table with 95 % intervals and what is left of the budget.

Run ``python examples/sql_report.py``: it needs no argument and no file, and takes about a second. Each run
draws new noise. The ledger is in a temporary folder here; with real data, store it where it lasts.
"""

from __future__ import annotations

import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import sfumato as sf

QUERY = """
    SELECT WITH DIFFERENTIAL_PRIVACY
      OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=1)
      state,
      COUNT(*) AS people,
      AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
    FROM data GROUP BY state ORDER BY state LIMIT 8"""


def row(name: str, *cells: str) -> None:
    """Print one line of the table."""
    print(f"{name:<6}" + "".join(f"{cell:>28}" for cell in cells))


def main() -> None:
    """Ask one query and report its answer."""
    with (
        as_file(files("sfumato.cli.data") / "acs.parquet") as data,
        tempfile.TemporaryDirectory() as folder,
        sf.connect(
            data, privacy_unit="person_id", epsilon=2.0, delta=1e-7, ledger=Path(folder) / "acs.ledger"
        ) as people,
    ):
        release = people.sql(QUERY)
        row("state", "people", "mean income")
        for state in release.to_arrow(intervals=True).to_pylist():
            row(
                state["state"],
                *(
                    f"{state[name]:,.0f} ({state[f'{name}_lower']:,.0f} to {state[f'{name}_upper']:,.0f})"
                    for name in ("people", "income")
                ),
            )
        print("left of the budget:", people.ledger.remaining())


if __name__ == "__main__":
    main()
