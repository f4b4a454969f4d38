"""Every door that reads data, on pairs of neighbors: what is free and what is public is the same on both.

Compared are how a call ends (exit code, kind and text of an error), what the ledger was charged, and all
outputs that are declared to be public: schemas, losses, cards, shapes. The noisy values themselves are not.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sfumato as sf
from sfumato import learning
from sfumato.cli.commands import app
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from sfumato.synthetic import Categorical, CountBound, Hierarchy, Marginals, Ordered, TableDomain

Public = dict[str, Any]
Line = bytes
"""A line of a CSV file as it stands there, of a person whose row no writer would write so."""


class Row(NamedTuple):
    """One person: what a file, a frame and an array can hold of them."""

    person: int | None
    day: dt.date | None
    town: str | None
    age: float | None
    rich: str | None


BASE = [
    Row(1, dt.date(2026, 1, 1), "A", 30.0, "yes"),
    Row(2, dt.date(2026, 1, 2), "B", 61.5, "no"),
    Row(3, dt.date(2026, 1, 2), "A", 17.0, "no"),
]
ODD = [
    Row(9, dt.date(2026, 1, 1), "A", 50.0, "yes"),
    Row(9, dt.date(2026, 1, 3), "B", 50.0, "a class that nobody declared"),
    Row(None, None, None, None, None),
    Row(9, dt.date(1, 1, 1), "", math.nan, ""),
    Row(-(2**63), dt.date(9999, 12, 31), "A\x00B", math.inf, "yes"),
    Row(9, dt.date(2026, 1, 1), '"', -math.inf, "no"),
    Row(1, dt.date(2026, 1, 1), "A,\n", 1e308, "no"),
    Row(2, dt.date(2026, 1, 1), "Ä" * 300, -0.0, "yes"),
]
TABLES: list[list[Row]] = [[], BASE[:1], BASE]
ODD_LINES: list[Line] = [
    *(b"9,2026-01-01,A,abc,yes", b"abc,today,A,1.5,yes", b"9.5,2026-02-30,A,1e999,yes"),
    *(b"88", b"88,1", b"9,,,,,,,", b"9,2026-01-01,A,50,yes,", b"," * (1 << 16), b"", b" ", b"\n\n\n"),
    *(b'9,"2026-01-01,A,50,yes', b'9,2026-01-01,"A"B,50,yes', b'9,2026-01-01,A"B,50,yes', b'"', b'""'),
    *(b'9,"A\n9,2026-01-01","B\r\nC,50",yes', b'9\\,2026-01-01,A\\",50,yes', b"'9,2026-01-01',A,50,yes"),
    *(b"9;2026-01-01;A;50;yes", b"9\t2026-01-01\tA\t50\tyes", b"person,day,town,age,rich", b"town,person"),
    *(b"9,2026-01-01,A\x00B,5\x000,yes", b"\x00", b"\r", b"A\rB", b"\x1a", b"# 9"),
    *(b"9,2026-01-01,\xff\xfe,\xfa,yes", b"\xff\xfe9\x00", b"\xef\xbb\xbf9"),
    *(b"9,2026-01-01," + b"A" * (3 << 20) + b",50,yes", b'9,2026-01-01,"' + b"A\n" * 1000),
]


@contextlib.contextmanager
def book(neighboring: Neighboring = Neighboring.ADD_REMOVE) -> Iterator[Ledger]:
    ledger = Ledger.open(
        None,
        budget=Budget.approximate(epsilon=50.0, delta=1e-2),
        privacy_unit="row",
        neighboring=neighboring,
        dataset=Dataset(schema="x", fingerprint=lambda key: "0" * 64),
        simulated=True,
    )
    with ledger:
        yield ledger


def charges(ledger: Ledger) -> list[Any]:
    return [(entry.description, entry.epsilon, entry.loss, entry.steps) for entry in ledger.entries()]


def kept_charges(path: Path) -> list[Any]:
    """Return the charges of a ledger's file; none where a command was refused before it made one."""
    if not path.exists():
        return []
    with Ledger.read(path) as ledger:
        return charges(ledger)


def ended(act: Callable[[], Public]) -> Public:
    """Return what an act returns, or how it failed."""
    try:
        return act()
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def table_of(rows: Sequence[Row]) -> pa.Table:
    schema = pa.schema(
        {
            "person": pa.int64(),
            "day": pa.date32(),
            "town": pa.string(),
            "age": pa.float64(),
            "rich": pa.string(),
        }
    )
    return pa.Table.from_pylist([row._asdict() for row in rows], schema=schema)


def csv_of(rows: Sequence[Row | Line], folder: Path) -> Path:
    """Write a CSV file of its names and rows; a line goes into it as it is."""
    text = io.StringIO(newline="")
    path = folder / "people.csv"
    with path.open("wb") as file:
        csv_lines: list[Any] = [Row._fields, *rows]
        for row in csv_lines:
            if isinstance(row, bytes):
                file.write(row + b"\n")
            else:
                text.seek(text.truncate(0))
                csv.writer(text).writerow(row)
                file.write(text.getvalue().encode())
    return path


TYPES = {"person": "INT64", "day": "DATE", "age": "FLOAT64"}
TYPE_WORDS = [word for name, type_ in TYPES.items() for word in ("--type", f"{name}={type_}")]


def arrays_of(rows: Sequence[Row]) -> tuple[Any, Any]:
    ages = np.array([[math.nan if row.age is None else row.age, row.person or 0] for row in rows], np.float64)
    labels = np.array([{"no": 0.0, "yes": 1.0, None: math.nan}.get(row.rich, 7.0) for row in rows])
    return ages.reshape(len(rows), 2), labels


# the doors: from rows and an empty folder to all that is public


def trained(rows: Sequence[Row], folder: Path, *, path: Path, more: Sequence[str] = ()) -> Public:
    del rows
    kept, model = folder / "kept.ledger", folder / "model.pt"
    words = ["train", str(path), "--target", "rich=yes,no", "--number", "age=0:100", "--category", "town=A,B"]
    words += ["--epsilon", "4", "--delta", "1e-4", "--epochs", "2", "--batch-size", "4"]
    done = CliRunner().invoke(app, [*words, "--ledger", str(kept), "--output", str(model), *more])
    card = json.loads(done.stdout) if done.exit_code == 0 else {}
    if card:
        del card["privacy"]["ledger"]["id"]
    charged = kept_charges(kept)
    told = done.stderr.replace(str(folder), "")
    return {"exit": done.exit_code, "told": told, "card": card, "charges": charged, "model": model.exists()}


def train_parquet(rows: Sequence[Row], folder: Path) -> Public:
    path = folder / "people.parquet"
    pa.parquet.write_table(table_of(rows), path)
    return trained(rows, folder, path=path, more=["--rows", "12"])


def train_csv(rows: Sequence[Row | Line], folder: Path) -> Public:
    path = csv_of(rows, folder)
    return trained((), folder, path=path, more=["--rows", "12", *TYPE_WORDS])


def train_without_a_number(rows: Sequence[Row], folder: Path) -> Public:
    path = folder / "people.parquet"
    pa.parquet.write_table(table_of(rows), path)
    return trained(rows, folder, path=path)


def estimator(make: Callable[..., Any]) -> Callable[[Sequence[Row], Path], Public]:
    def fit(rows: Sequence[Row], folder: Path) -> Public:
        del folder
        with book() as ledger:
            model = make(ledger=ledger, random_state=3)

            def act() -> Public:
                model.fit(*arrays_of(rows))
                fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
                fitted.pop("labels_", None)  # of KMeans: the rows' own, which its page says must not be shown
                public = {name: np.shape(value) for name, value in fitted.items()}
                loss, classes = model.privacy_loss_, np.asarray(getattr(model, "classes_", [])).tolist()
                return {"attributes": public, "loss": loss, "classes": classes}

            return {**ended(act), "charges": charges(ledger)}

    return fit


def pate(rows: Sequence[Row], folder: Path) -> Public:
    del folder
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = arrays_of(rows)
    with book() as ledger:

        def act() -> Public:
            units = np.array([row.person for row in rows], object)
            teachers = learning.Teachers.fit(
                lambda number: linear_model.LogisticRegression(),
                X,
                y,
                units=units,
                count=3,
                classes=[0.0, 1.0],
                rng=1,
            )
            poll = learning.Poll(learning.GNMax(stddev=5), questions=2, ledger=ledger, delta=1e-5, rng=1)
            labels = poll.label(teachers.votes(np.zeros((2, 2))))
            return {
                "count": teachers.count,
                "shape": labels.shape,
                "loss": poll.loss,
                "left": poll.questions_left,
            }

        return {**ended(act), "charges": charges(ledger)}


def federated(rows: Sequence[Row], folder: Path) -> Public:
    torch = pytest.importorskip("torch")
    del folder
    clients = [(torch.zeros(1, 1), torch.tensor([[row.age or 0.0]])) for row in rows]
    with book() as ledger:

        def act() -> Public:
            training = learning.FederatedTraining(
                torch.nn.Linear(1, 1),
                clients,
                learning.local_sgd(torch.nn.functional.mse_loss, learning_rate=0.1),
                sampler=learning.PoissonSampler(
                    population=9, sampling_probability=0.5, steps=3, public_batch_size=4.5, seed=2
                ),
                clipping=learning.Flat(clip_norm=1.0),
                noise_multiplier=2.0,
                noise=learning.SimulatedNoise(5),
                ledger=ledger,
                delta=1e-5,
            )
            training.run()
            return {
                "loss": training.privacy_loss,
                "rounds": training.rounds,
                "epsilon": training.epsilon(1e-5),
            }

        return {**ended(act), "charges": charges(ledger)}


def tuning(rows: Sequence[Row], folder: Path) -> Public:
    del folder
    X, y = arrays_of(rows)

    def run(alpha: float, source: Any) -> tuple[float, Any]:
        seed = int(source.words(1)[0] % 2**31)
        model = learning.LogisticRegression(
            bounds=(0, 100), classes=[0.0, 1.0], alpha=alpha, steps=2, random_state=seed
        )
        return float(model.fit(X, y).score([[30.0, 1.0], [60.0, 2.0]], [1.0, 0.0])), model.coef_.shape

    with book() as ledger:

        def act() -> Public:
            one = learning.LogisticRegression(bounds=(0, 100), classes=[0.0, 1.0], steps=2, random_state=1)
            base = one.fit(np.zeros((0, 2)), np.zeros(0)).privacy_loss_
            runs = learning.Runs.geometric(2)
            best = learning.tune(run, [0.1, 1.0], base, runs=runs, ledger=ledger, delta=1e-5, rng=1)
            return {"loss": best.loss, "output": best.value.output}

        return {**ended(act), "charges": charges(ledger)}


SQL = {
    "groups": """town, COUNT(*) AS n, SUM(age, contribution_bounds_per_group => (0, 100)) AS age,
        APPROX_QUANTILES(age, 2, contribution_bounds_per_row => (0, 100)) AS q FROM data GROUP BY town""",
    "expressions": """COUNT(DISTINCT rich) AS kinds,
        AVG(SQRT(age), contribution_bounds_per_group => (0, 10)) AS root,
        COUNT(IF(CAST(town AS INT64) > 0, 1, NULL)) AS cast
        FROM data WHERE 1 / age > 0 AND EXTRACT(YEAR FROM day) > 1900""",
    "refused": "SUM(age / 0, contribution_bounds_per_group => (0, 100)) AS age FROM data GROUP BY nothing",
}


def answered(session: sf.Session) -> Public:
    public: Public = {"charges": charges(session.ledger)}
    for name, query in SQL.items():

        def act(query: str = query) -> Public:
            release = session.sql(
                "SELECT WITH DIFFERENTIAL_PRIVACY "
                f"OPTIONS(epsilon=0.5, delta=1e-6, max_groups_contributed=1) {query}"
            )
            return {"schema": release.to_arrow().schema, "loss": release.loss}

        public[name] = ended(act)
    public["charged"] = charges(session.ledger)
    return public


def connect_frame(rows: Sequence[Row], folder: Path) -> Public:
    del folder

    def act() -> Public:
        with sf.connect(table_of(rows), privacy_unit="person", epsilon=9, delta=1e-4, rng=3) as session:
            return answered(session)

    return ended(act)


def connect_parquet(rows: Sequence[Row], folder: Path) -> Public:
    path = folder / "people.parquet"
    pa.parquet.write_table(table_of(rows), path)

    def act() -> Public:
        with sf.connect(str(path), privacy_unit="person", epsilon=9, delta=1e-4, rng=3) as session:
            return answered(session)

    return ended(act)


def connect_csv(rows: Sequence[Row | Line], folder: Path) -> Public:
    path = csv_of(rows, folder)

    def act(types: dict[str, str] | None) -> Public:
        with sf.connect(
            str(path), privacy_unit="person", epsilon=9, delta=1e-4, types=types, rng=3
        ) as session:
            return answered(session)

    return {"declared": ended(lambda: act(TYPES)), "texts": ended(lambda: act(None))}


def pandas_of(rows: Sequence[Row], dtypes: dict[str, str]) -> Any:
    pandas = pytest.importorskip("pandas")
    frame = {}
    for name in Row._fields:
        values = [getattr(row, name) for row in rows]
        frame[name] = pandas.Series(values, dtype=object).astype(dtypes.get(name, object))
    return pandas.DataFrame(frame)


def connect_pandas(rows: Sequence[Row], folder: Path) -> Public:
    del folder
    texts = "string[python]"
    frame = pandas_of(
        rows, {"person": "Int64", "day": "datetime64[s]", "town": texts, "age": "float64", "rich": texts}
    )

    def act() -> Public:
        with sf.connect(frame, privacy_unit="person", epsilon=9, delta=1e-4, rng=3) as session:
            return answered(session)

    return ended(act)


def connect_pandas_objects(rows: Sequence[Row], folder: Path) -> Public:
    del folder
    frame = pandas_of(rows, {})
    mixed: list[Any] = [row.person if row.person == 9 else row.town for row in rows]
    frame["mixed"] = pytest.importorskip("pandas").Series(mixed, dtype=object)

    def act() -> Public:
        with sf.connect(frame, privacy_unit="person", epsilon=9, delta=1e-4, rng=3) as session:
            return answered(session)

    return ended(act)


def counter(rows: Sequence[Row], folder: Path) -> Public:
    del folder

    def act() -> Public:
        with sf.connect(table_of(rows), privacy_unit="person", epsilon=9, delta=1e-4, rng=3) as session:
            places = session.table().group_by("town", public_groups={"town": ["A", "B"]})
            query = places.agg(n=sf.count(), age=sf.sum("age", bounds=(0, 100)))
            start = dt.date(2026, 1, 1)
            made = session.counter(
                query.options(max_groups_contributed=1),
                moment="day", start=start, every="day", steps=4, epsilon=2.0, delta=1e-7, max_periods=2,
            )  # fmt: skip
            with made:
                release = made.refresh(until=dt.date(2026, 1, 4))
                return {
                    "loss": made.loss,
                    "schema": release.to_arrow().schema,
                    "rows": release.to_arrow().num_rows,
                    "charges": charges(session.ledger),
                }

    return ended(act)


def marginals(rows: Sequence[Row], folder: Path) -> Public:
    del folder
    domain = TableDomain(
        age=Ordered(0, 100, bins=4, missing=True),
        town=Categorical(["A", ""], missing=True, other=True),
        day=Ordered(edges=[dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 9)]),
    )

    def act() -> Public:
        with sf.connect(table_of(rows), privacy_unit="person", epsilon=9, delta=1e-4, rng=3) as session:
            released = session.marginals(domain, Marginals.every(2), epsilon=1.0, delta=1e-7)
            return {
                "loss": released.loss,
                "schema": released.to_arrow().schema,
                "rows": released.to_arrow().num_rows,
                "charges": charges(session.ledger),
            }

    return ended(act)


def topdown(rows: Sequence[Row], folder: Path) -> Public:
    del folder
    domain = TableDomain(
        age=Ordered(0, 100, bins=4, missing=True), rich=Categorical(["yes", "no"], missing=True)
    )
    domain = domain.with_structural_zeros({"age": [None], "rich": ["yes"]})
    towns = pa.table({"land": ["x", "y", "y"], "town": ["B", "A", ""]})
    places = Hierarchy.from_table(towns, ["land", "town"])

    def act() -> Public:
        with sf.connect(table_of(rows), privacy_unit="person", epsilon=9, delta=1e-4, rng=3) as session:
            released = session.topdown(
                domain, hierarchy=places, queries=[(), ("age", "rich")], epsilon=1.0, delta=1e-7,
                bounds=[CountBound("town", upper={"A": 9})], max_rows_contributed=2,
            )  # fmt: skip
            measured = released.measured or {}
            return {
                "loss": released.loss,
                "schema": released.to_arrow().schema,
                "stddev": released.estimate("age", places={"town": ["A"]}).stddev,
                "shapes": [[table.counts.shape for table in tables] for tables in measured.values()],
                "impossible": released.counts("town", "age", "rich")[:, 4, 0].tolist(),
                "charges": charges(session.ledger),
            }

    return ended(act)


def sql_command(rows: Sequence[Row], folder: Path) -> Public:
    path = folder / "people.parquet"
    pa.parquet.write_table(table_of(rows), path)
    return asked(path, folder)


def sql_command_csv(rows: Sequence[Row | Line], folder: Path) -> Public:
    return asked(csv_of(rows, folder), folder, TYPE_WORDS)


def asked(path: Path, folder: Path, more: Sequence[str] = ()) -> Public:
    kept = folder / "kept.ledger"
    words = ["sql", str(path), "--privacy-unit", "person", "--epsilon", "5", "--delta", "1e-5", *more]
    query = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-6) {SQL['expressions']}"
    done = CliRunner().invoke(app, [*words, "--ledger", str(kept), "--format", "csv", query])
    charged = kept_charges(kept)
    head = next(iter(io.StringIO(done.stdout)), "")
    return {
        "exit": done.exit_code,
        "head": head,
        "told": done.stderr.replace(str(folder), ""),
        "charges": charged,
    }


def estimators() -> dict[str, Callable[[Sequence[Row], Path], Public]]:
    two: dict[str, Any] = {"bounds": (0, 100), "classes": [0.0, 1.0]}
    names: dict[str, dict[str, Any]] = {
        "LogisticRegression": {**two, "steps": 3},
        "LinearRegression": {"bounds": (0, 100), "y_bounds": (0, 1)},
        "GaussianNB": two,
        "KMeans": {"n_clusters": 2, "bounds": (0, 100), "steps": 2},
        "PCA": {"bounds": (0, 100)},
        "StandardScaler": {},
        "GradientBoostingClassifier": {**two, "n_estimators": 2},
        "GradientBoostingRegressor": {"bounds": (0, 100), "y_bounds": (0, 1), "n_estimators": 2},
    }

    def maker(name: str, given: dict[str, Any]) -> Callable[..., Any]:
        return lambda **own: getattr(learning, name)(**given, **own)

    return {
        name: estimator(lambda name=name, given=given, **own: maker(name, given)(**own))
        for name, given in names.items()
    }


CSV: dict[str, Callable[[Sequence[Row | Line], Path], Public]] = {
    "sfumato train --rows, CSV": train_csv,
    "sfumato sql, CSV": sql_command_csv,
    "connect, CSV": connect_csv,
}
ADD_REMOVE: dict[str, Callable[[Sequence[Row], Path], Public]] = {
    "sfumato train --rows, Parquet": train_parquet,
    "sfumato sql": sql_command,
    **CSV,
    "connect, pandas": connect_pandas,
    "connect, pandas object columns": connect_pandas_objects,
    "connect, a frame": connect_frame,
    "connect, Parquet": connect_parquet,
    "counter": counter,
    "marginals": marginals,
    "TopDown": topdown,
    "PATE": pate,
    "federated": federated,
    "tuning": tuning,
    **estimators(),
}
REPLACE: dict[str, Callable[[Sequence[Row], Path], Public]] = {"sfumato train": train_without_a_number}
"""Doors where the number of rows is public: a row is exchanged for another."""

SLOW = {"sfumato train --rows, Parquet", "sfumato train --rows, CSV"}


def folders(tmp_path: Path) -> Iterator[Path]:
    for number in range(10_000):
        folder = tmp_path / str(number)
        folder.mkdir()
        yield folder


@pytest.mark.parametrize("door", ADD_REMOVE)
def test_a_row_more_changes_nothing_that_costs_nothing(door: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    read, new = ADD_REMOVE[door], folders(tmp_path)
    public = read(BASE, next(new))
    for rows in TABLES:
        assert read(rows, next(new)) == public
    for row in ODD:
        assert read([*BASE, row], next(new)) == public, row


def test_what_is_compared_are_answers(tmp_path: Path) -> None:
    new = folders(tmp_path)
    for command in (sql_command, sql_command_csv):
        assert command(BASE, next(new))["exit"] == 0
    for connect in (connect_frame, connect_parquet, connect_csv, connect_pandas):
        found = connect(BASE, next(new))
        found = found.get("declared", found)
        assert {"schema", "loss"} == set(found["groups"]) == set(found["expressions"])
        assert found["refused"]["error"] == "SchemaError"


@pytest.mark.parametrize("door", CSV)
def test_nor_does_a_line_that_is_no_row(door: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    read, new = CSV[door], folders(tmp_path)
    public = read(BASE, next(new))
    for line in (b"9,2026-01-01,A,abc,yes", b"88", b"88,1,2,3,4,5,6", b'9,"A,50,yes'):
        assert read([*BASE, line], next(new)) == public, line
    together: list[Row | Line] = []
    for odd in ODD_LINES:
        together += [odd, *BASE]
    assert read(together, next(new)) == public


@pytest.mark.exhaustive
@pytest.mark.parametrize("door", sorted(set(CSV) - SLOW))
def test_nor_does_any_line_alone(door: str, tmp_path: Path) -> None:
    read, new = CSV[door], folders(tmp_path)
    public = read(BASE, next(new))
    for line in ODD_LINES:
        assert read([*BASE, line], next(new)) == public, line[:80]


TOWNS = st.one_of(st.none(), st.sampled_from(["A", "B", "", "12", "a\x00b"]), st.text(max_size=4))
ROWS = st.builds(
    Row,
    person=st.one_of(st.none(), st.integers(0, 3), st.integers(-(2**63), 2**63 - 1)),
    day=st.one_of(st.none(), st.dates()),
    town=TOWNS,
    age=st.one_of(st.none(), st.floats()),
    rich=st.one_of(st.sampled_from(["yes", "no"]), TOWNS),
)


@pytest.mark.parametrize("door", sorted(set(ADD_REMOVE) - SLOW))
@settings(max_examples=8)
@given(rows=st.lists(ROWS, max_size=4), extra=ROWS)
def test_nor_does_any_other_row(door: str, rows: list[Row], extra: Row) -> None:
    pytest.importorskip("torch")
    read = ADD_REMOVE[door]
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder) / "here", Path(folder) / "there"
        here.mkdir()
        there.mkdir()
        assert read(rows, here) == read([*rows, extra], there)


@pytest.mark.parametrize("door", sorted(set(CSV) - SLOW))
@settings(max_examples=8)
@given(rows=st.lists(ROWS, max_size=3), line=st.binary(max_size=30), at=st.integers(0, 3))
def test_nor_do_any_bytes(door: str, rows: list[Row], line: bytes, at: int) -> None:
    read = CSV[door]
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder) / "here", Path(folder) / "there"
        here.mkdir()
        there.mkdir()
        assert read(rows, here) == read([*rows[:at], line, *rows[at:]], there)


@pytest.mark.parametrize("door", REPLACE)
def test_a_row_for_another_changes_nothing_that_costs_nothing(door: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    read, new = REPLACE[door], folders(tmp_path)
    public = read(BASE, next(new))
    for row in ODD:
        assert read([*BASE[:2], row], next(new)) == public, row
