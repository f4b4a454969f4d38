"""Four ways to publish the census excerpt, and what an attack finds in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato import anonymity, attacks
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.census.person_types import Person
from sfumato.cli.data import ACS
from sfumato.session.connection import connect
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Marginals

__all__ = ["Publication", "introduction", "publications"]

_SEED: Final = 2020
_MEMBERS: Final = 20_000
_KNOWN: Final = ("area", "age", "sex", "race", "marital_status")
_BLOCKS: Final = 12
_BLOCK: Final = 20
_EPSILON: Final = 1.0
_RACES: Final = ("White alone", "Black or African American alone", "Asian alone", "another")
_STATUSES: Final = (
    "Never married",
    "Now married, spouse present",
    "Now Married, spouse absent",
    "Divorced",
    "Separated",
    "Widowed",
)
_TABLES: Final = (("sex", "age"), ("race", "sex", "age"), ("sex", "married"), ("age", "married"))
_SOLVE: Final = 3.0  # seconds for each block


class _Blocks(NamedTuple):
    """Who lives in each made-up block, and as many who do not."""

    types: attacks.PersonTypes
    people: Mapping[str, Sequence[Person]]
    controls: Mapping[str, Sequence[Person]]


class Publication(NamedTuple):
    """One way to publish, and what an attack found in it.

    Attributes
    ----------
    title, text : str
    found : Findings
    """

    title: str
    text: str
    found: Findings


def introduction() -> str:
    """Return what the data are, and who are the controls."""
    return (
        f"The data: {_MEMBERS:,} adults of the American Community Survey of 2019, drawn by lot; about "
        "two thousand others are not in what is published. What an attack finds of these others it has "
        "learned of the population; what it finds beyond that, the release gave away. The file is public: "
        "that is why this demo may attack it, and count who was found."
    )


def publications() -> Iterator[Publication]:
    """Publish the same table in four ways, and attack each."""
    members, controls = _adults()
    yield _names_removed(members, controls)
    yield _anonymised(members, controls)
    blocks = _blocks(members, controls)
    yield _counts(blocks)
    yield _private_counts(blocks)


def _names_removed(members: pa.Table, controls: pa.Table) -> Publication:
    title = "Names removed"
    attack = attacks.HomogeneityAttack(targets=members.select(_KNOWN), sensitive="income")
    released = members.select([*_KNOWN, "income"])
    found = attack.run(released, truth=members.column("income"), controls=controls)
    text = (
        "Rows without names, with area, age, sex, race, marital status and income. A neighbor or a voter "
        "list knows the first five. Where one row fits, the income is known to the dollar."
    )
    return Publication(title, text, found)


def _anonymised(members: pa.Table, controls: pa.Table) -> Publication:
    title = "Made 5-anonymous"
    states = dict(zip(*(members.column(name).to_pylist() for name in ("area", "state")), strict=True))
    levels = dict.fromkeys(_KNOWN) | {
        "area": anonymity.GeneralizationHierarchy.from_rows(
            [(area, state, "*") for area, state in states.items()]
        ),
        "age": anonymity.Intervals((5, 10, 20, 40)),
    }
    data = anonymity.Microdata(members, quasi_identifiers=levels, sensitive=["tenure"])
    best = anonymity.generalize(data, k=5, suppression=0.05)
    attack = attacks.HomogeneityAttack(
        targets=members.select(_KNOWN), sensitive="tenure", hierarchies=data.hierarchies
    )
    found = attack.run(best.table, truth=members.column("tenure"), controls=controls)
    chosen = ", ".join(f"{name} {level}" for name, level in best.levels.items())
    text = (
        f"The optimal generalisation (levels: {chosen}; {int(best.suppressed.sum())} rows suppressed) "
        "leaves five equals to everyone. But where all of a class own their home, or all rent, nobody needs "
        "to know which row is whose."
    )
    return Publication(title, text, found)


def _counts(blocks: _Blocks) -> Publication:
    title = "Counts instead of rows"
    tables = {
        block: [
            attacks.PublishedCounts.of(people, blocks.types, name=" x ".join(by), by=by) for by in _TABLES
        ]
        for block, people in blocks.people.items()
    }
    attack = attacks.CensusReconstruction(types=blocks.types)
    found = attack.run(tables, truth=blocks.people, controls=blocks.controls)
    text = (
        f"Four tables of counts for each of {_BLOCKS} made-up blocks of {_BLOCK} people: "
        f"{', '.join(' x '.join(by) for by in _TABLES)}, ages in five-year bands. An integer program finds "
        "people who have all these counts, and a second one who is in every solution: "
        f"{int(found.numbers['certain persons'])} are."
    )
    return Publication(title, text, found)


def _private_counts(blocks: _Blocks) -> Publication:
    title = "The same counts from the ledger"
    types = blocks.types
    columns = ("block", *types.attributes)
    rows = [(block, *person) for block, people in blocks.people.items() for person in people]
    table = pa.table(dict(zip(columns, map(pa.array, map(list, zip(*rows, strict=True))), strict=True)))
    table = table.append_column("person", pa.array(range(len(rows))))
    domain = TableDomain({"block": list(blocks.people), **{k: list(v) for k, v in types.attributes.items()}})
    with connect(table, privacy_unit="person", epsilon=_EPSILON, delta=1e-5) as session:
        workload = Marginals([("block", *by) for by in _TABLES])
        release = session.marginals(domain, workload, epsilon=_EPSILON, delta=1e-6)
    marginals = [(by, release.marginal("block", *by)) for by in _TABLES]
    tables = {
        block: [
            attacks.PublishedCounts(
                name=" x ".join(by), by=by, counts=marginal.counts[place], noise_scale=float(marginal.stddev)
            )
            for by, marginal in marginals
        ]
        for place, block in enumerate(blocks.people)
    }
    attack = attacks.CensusReconstruction(types=types, population=_BLOCK, time_limit=_SOLVE)
    found = attack.run(
        tables, truth=blocks.people, controls=blocks.controls, loss=release.loss, exchangeable=True
    )
    text = (
        f"One charge of ({_EPSILON:g}, 1e-06)-DP for all four tables, noise of deviation "
        f"{marginals[0][1].stddev:.1f} and more in each cell. Sums over many blocks stay useful and "
        "unbiased. The same attack looks for the people who explain the noisy counts best."
    )
    return Publication(title, text, found)


def _adults() -> tuple[pa.Table, pa.Table]:
    table = pq.read_table(ACS)
    table = table.filter(pc.greater_equal(table.column("age"), 18))
    order = np.random.default_rng(_SEED).permutation(table.num_rows)
    return table.take(pa.array(order[:_MEMBERS])), table.take(pa.array(order[_MEMBERS:]))


def _blocks(members: pa.Table, controls: pa.Table) -> _Blocks:
    """Return blocks of people of one area each, the released and the others drawn alike."""
    inside, outside = (_by_area(table) for table in (members, controls))
    areas = sorted(outside, key=lambda area: -len(outside[area]))[:_BLOCKS]
    people = {f"{area}, block 1": inside[area][:_BLOCK] for area in areas}
    others = {f"{area}, block 1": outside[area][:_BLOCK] for area in areas}
    types = attacks.PersonTypes(
        {"age": range(15, 100, 5), "sex": ("Female", "Male"), "race": _RACES, "married": _STATUSES}
    )
    return _Blocks(types, people, others)


def _by_area(table: pa.Table) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in table.select(_KNOWN).to_pylist():
        race = row["race"] if row["race"] in _RACES else _RACES[-1]
        person = (min(row["age"], 99) // 5 * 5, row["sex"], race, row["marital_status"])
        found.setdefault(row["area"], []).append(person)
    return found
