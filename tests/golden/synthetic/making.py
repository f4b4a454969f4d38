"""Golden files of published tables: domains with and without structural zeros, and stored releases."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from sfumato.synthetic import (
    BoughtCategories,
    BoughtDomain,
    BoughtEdges,
    Categorical,
    Marginals,
    Ordered,
    ResidualMechanism,
    TableDomain,
)
from sfumato.synthetic.releases.release_record import SyntheticRecord
from tests.golden.synthetic import released_model, released_places, released_ranges

__all__ = ["DOMAINS", "bought", "files", "record"]

PLAIN = TableDomain(
    age=Ordered.integers(0, 3, missing=True),
    share=Ordered(edges=[0.0, 0.1, 2.5]),
    born=Ordered(edges=[dt.date(1990, 1, 1), dt.date(2000, 1, 1), dt.date(2010, 1, 1)]),
    sex=Categorical(["f", "m"], other=True),
    code=Categorical([2**53 + 1, -7], missing=True),
    smokes=[True, False],
)
DOMAINS = {
    "domain.json": PLAIN,
    "domain-zeros.json": PLAIN.with_structural_zeros(
        {"age": [0, None], "smokes": [True]}, {"sex": ["(other)"], "code": [-7, None]}
    ),
}


def record() -> SyntheticRecord:
    """Return the record of a release over few cells, of a fixed seed."""
    domain = TableDomain(sex=["f", "m"], age=Ordered(0, 90, bins=3))
    mechanism = ResidualMechanism(domain=domain, workload=Marginals.every(2), scale=2)
    rows = {"sex": ["f", "m", "m"] * 20, "age": range(60)}
    return SyntheticRecord(
        kind="marginals",
        release=mechanism.release(pa.table(rows), rng=20261128),
        epsilon=1.0,
        delta=1e-9,
        privacy_unit="person",
    )


def bought() -> SyntheticRecord:
    """Return the record of a domain that was bought, of a fixed seed."""
    columns = {"town": BoughtCategories(), "age": BoughtEdges(0, 90, bins=3), "none": BoughtCategories()}
    mechanism = BoughtDomain(columns, epsilon=3.0, delta=1e-3)
    rows = {"town": ["a", "b", "b"] * 40, "age": range(120), "none": pa.nulls(120, pa.string())}
    return SyntheticRecord(
        kind="domain",
        release=mechanism.release(pa.table(rows), rng=20261128),
        epsilon=3.0,
        delta=1e-3,
        privacy_unit="person",
    )


def files() -> dict[str, bytes]:
    """Return the files by name."""
    domains = {name: domain.to_json().encode() + b"\n" for name, domain in DOMAINS.items()}
    return {
        **domains,
        **released_model.files(),
        **released_places.files(),
        **released_ranges.files(),
        "release.json": record().to_bytes() + b"\n",
        "bought.json": bought().to_bytes() + b"\n",
    }
