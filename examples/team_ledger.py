"""Two analysts share the budget of one dataset: each has an account, and a query beyond it is refused.

Run ``python examples/team_ledger.py``: it needs no argument and no file, and takes about a second.
A team's ledger may also be a PostgreSQL database: pass its address in place of the path.
"""

from __future__ import annotations

import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import sfumato as sf
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Ledger


def count(data: Path, path: Path, analyst: str, age: int, epsilon: float) -> None:
    """Count the people of an age or above on an analyst's account, and print the answer or the refusal."""
    with sf.connect(
        data, privacy_unit="person_id", epsilon=1.0, delta=1e-7, ledger=path, analyst=analyst
    ) as people:
        query = people.table().filter(f"age >= {age}").agg(n=sf.count())
        try:
            n = query.release(epsilon=epsilon, delta=0).to_arrow()["n"][0]
        except BudgetExceeded as refusal:
            largest = refusal.remaining.answerable_epsilon
            print(f"{analyst}, epsilon {epsilon}: refused, the largest that fits is {largest:.4g}")
        else:
            print(f"{analyst}, epsilon {epsilon}: {n} people of {age} or above")
        print(f"  left for {analyst}: {people.account.remaining()}")


def main() -> None:
    """Open two accounts, ask three questions and verify the ledger."""
    with as_file(files("sfumato.cli.data") / "acs.parquet") as data, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "acs.ledger"
        sf.connect(data, privacy_unit="person_id", epsilon=1.0, delta=1e-7, ledger=path).close()
        with Ledger.manage(path) as ledger:  # the curator opens the accounts
            ledger.grant("ada", Budget.approximate(epsilon=0.6, delta=5e-8))
            ledger.grant("grace", Budget.approximate(epsilon=0.3, delta=5e-8))
        count(data, path, "ada", 18, 0.4)
        count(data, path, "grace", 18, 0.2)
        count(data, path, "grace", 65, 0.2)  # 0.1 is left on this account, so nothing is charged
        with Ledger.manage(path) as ledger:
            ledger.verify()
            print("verified, spent by both:", ledger.spent())


if __name__ == "__main__":
    main()
