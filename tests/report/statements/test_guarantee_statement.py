"""Statements: read back from Parquet as they were written, and refused when anything was altered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sfumato as sf
from sfumato import report
from sfumato.errors import LedgerCorrupt, LedgerMismatch, ParameterError, SourceError
from sfumato.learning.reports.evaluation import EvaluationRecord
from sfumato.ledger import Ledger
from sfumato.privacy import Laplace, PureDP
from tests.report.making import GROUPS, stored, towns

if TYPE_CHECKING:
    from sfumato.session.session import Session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    file = tmp_path_factory.mktemp("ledger") / "l"
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, delta=1e-5, ledger=file) as opened:
        opened.sql(GROUPS)
        opened.sql("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data")
        yield opened


WRITTEN = (
    '{"charge":2,"delta":0.0,"digest":"cd","epsilon":0.5,"format":"sfumato.guarantee","head":"{\\"charges\\":2,'
    '\\"claimed_steps\\":0,\\"digest\\":\\"cd\\",\\"format\\":\\"sfumato.ledger-head\\",\\"ledger\\":\\"ab\\",'
    '\\"mac\\":\\"b50d243a5c4a7ecfa2e33a238654a8a608ae791acfce90ac89eb95633ce8b9d1\\",\\"position\\":3,'
    '\\"version\\":1}","ledger":"ab","loss":{"kind":"laplace","neighboring":"add-remove",'
    '"noise_multiplier":2.0},"neighboring":"add-remove","notion":"pure-dp","period":"",'
    '"privacy_unit":"person","release_sha256":"ef","simulated":false,"version":1}'
)


def test_a_statement_is_read_as_it_was_first_written() -> None:
    found = report.GuaranteeStatement.from_json(WRITTEN)
    assert (found.epsilon, found.loss, found.charge, found.payload) == (0.5, Laplace(2.0), 2, "ef")
    assert found.head.position == 3
    assert found.to_json() == WRITTEN


@pytest.mark.parametrize("shape", [{}, {"intervals": True}, {"intervals": True, "clamp": True}])
def test_parquet_holds_the_guarantee_and_is_verified(
    session: Session, tmp_path: Path, shape: dict[str, bool]
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    ledger = session.ledger
    made = report.statement(ledger, 1)
    entry, receipt = ledger.entry(1), ledger.receipt(1)
    assert (made.epsilon, made.delta, made.loss) == (entry.epsilon, entry.delta, entry.loss)
    assert (made.notion, made.privacy_unit, made.digest) == ("approximate-dp", "who", receipt.digest)
    assert made.payload == ledger.reviews.approval(1, by="rita").payload
    release = ledger.release(1)
    pq.write_table(made.attached(release.to_arrow(**shape)), tmp_path / "x.parquet")
    found = report.read_statement(tmp_path / "x.parquet")
    assert found == made
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.equals(release.to_arrow(**shape))
    session.sql(GROUPS.replace("epsilon=4", "epsilon=0.1"))  # the chain has grown since
    assert found.verify(ledger, table) == "none"
    assert json.loads(table.schema.metadata[b"sfumato.guarantee"])["notion"] == "approximate-dp"


def test_what_was_altered_is_refused(session: Session) -> None:
    import pyarrow as pa  # noqa: PLC0415

    ledger = session.ledger
    made, table = report.statement(ledger, 2), ledger.release(2).to_arrow()
    assert made.notion == "pure-dp"
    altered: dict[str, Any] = {
        "epsilon": 0.25,
        "delta": 1e-9,
        "loss": Laplace(3.0),
        "privacy_unit": "row",
        "simulated": True,
        "charge": 1,
        "digest": "0" * 64,
        "payload": "0" * 64,
        "period": "2026-01",
    }
    for name, value in altered.items():
        with pytest.raises(LedgerMismatch, match=r"statement must say what the ledger says"):
            replace(made, **{name: value}).verify(ledger)
    for number in (0, -1, 99, 2**70):
        with pytest.raises(LedgerMismatch, match=r"statement must say what the ledger says"):
            replace(made, charge=number).verify(ledger)
    with pytest.raises(ParameterError, match=r"^table must be"):
        made.verify(ledger, "numbers")
    with pytest.raises(LedgerMismatch, match="ledger must be the one of the statement"):
        replace(made, ledger="other").verify(ledger)
    with pytest.raises(LedgerMismatch, match="head must be one that this ledger exported"):
        replace(made, head=replace(made.head, position=1)).verify(ledger)
    numbers = table.column(0).to_pylist()
    for other in (
        pa.table({"n": [numbers[0] + 1]}),
        pa.table({"m": numbers}),
        pa.table({"n": pa.array(numbers, pa.float64())}),
        table.slice(0, 0),
        ledger.release(1).to_arrow(),
    ):
        with pytest.raises(LedgerMismatch, match="table must hold the numbers of the release"):
            made.verify(ledger, other)


def test_a_ledger_that_was_put_back_is_noticed(tmp_path: Path) -> None:
    count = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
    file, old = tmp_path / "l", tmp_path / "old"
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, ledger=file) as session:
        session.sql(count)
    old.write_bytes(file.read_bytes())
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, ledger=file) as session:
        session.sql(count.replace("0.5", "0.7"))
        made = report.statement(session.ledger, 1)
        assert made.verify(session.ledger) == "none"
    with Ledger.read(old) as book, pytest.raises(LedgerCorrupt):
        made.verify(book)


def test_an_answer_that_was_read_back_is_found_by_its_bytes(session: Session) -> None:
    replayed = session.sql(GROUPS)
    assert replayed.receipt is None
    assert report.statement(session.ledger, replayed) == report.statement(session.ledger, 1)
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, delta=1e-5) as other:
        answer = other.sql(GROUPS)
        with pytest.raises(ParameterError, match="release must be one of this ledger"):
            report.statement(session.ledger, answer)


def test_a_receipt_names_the_charge_where_two_have_the_same_bytes() -> None:
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, rng=1) as session:
        ask = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
        answer, ledger = session.sql(ask), session.ledger
        assert answer.receipt is not None
        again = ledger.charge(answer.loss, delta=0.0, description="the same once more")
        ledger.commit(again, answer.record.to_bytes())
        assert report.statement(ledger, answer).charge == 1
        assert report.statement(ledger, ledger.release(2)).charge == 2  # type: ignore[arg-type]
        for forged in ({"sequence": 2}, {"digest": "0" * 64}, {"ledger": "another"}, {"sequence": 9}):
            other = copy(answer)
            object.__setattr__(other, "receipt", replace(answer.receipt, **forged))
            with pytest.raises(ParameterError, match="release must be one of this ledger"):
                report.statement(ledger, other)


def test_a_head_from_before_the_charge_is_none_of_the_statements() -> None:
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, delta=1e-5) as opened:
        early = opened.ledger.head()
        opened.sql("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data")
        made = report.statement(opened.ledger, 1)
        assert made.verify(opened.ledger) == "none"
        with pytest.raises(LedgerMismatch, match=r"statement must say what the ledger says"):
            replace(made, head=early).verify(opened.ledger)


def test_a_charge_that_was_priced_too_low_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, delta=1e-5) as opened:
        for epsilon in (0.5, 0.7):
            ask = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={epsilon}, delta=0) COUNT(*) AS n FROM data"
            opened.sql(f"SELECT {ask}")
        ledger = opened.ledger
        found = replace(ledger.verify(), underpriced=(1,))
        monkeypatch.setattr(type(ledger), "verify", lambda self, head=None: found)
        with pytest.raises(LedgerMismatch, match="accounting had a hole"):
            report.statement(ledger, 1).verify(ledger)
        assert report.statement(ledger, 2).verify(ledger) == "none"


def test_other_stored_releases_have_statements() -> None:
    numbers: dict[str, Any] = {"correct": 83, "rows": 100, "lower": 0.77, "upper": 0.89, "epsilon": 0.5}
    record = EvaluationRecord(**numbers, charge=1, loss=PureDP(0.5), privacy_unit="row", simulated=False)
    with stored(record, record.loss) as ledger:
        made = report.statement(ledger, 1)
        assert made.verify(ledger, made.attached(record.to_arrow())) == "none"


def test_what_is_read_is_a_statement_or_refused(session: Session, tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415

    made = report.statement(session.ledger, 2)
    assert report.GuaranteeStatement.from_json(made.to_json()) == made
    with pytest.raises(ParameterError, match="source must hold a statement"):
        report.read_statement(pa.table({"n": [1]}))
    with pytest.raises(ParameterError, match="source must be a table, a schema or a path"):
        report.read_statement(7)
    with pytest.raises(SourceError, match="must be a file of Parquet"):
        report.read_statement(tmp_path / "nothing.parquet")
    for wrong in (
        made.to_json().replace("sfumato.guarantee", "sfumato.loss"),
        made.to_json().replace('"pure-dp"', '"zcdp"'),
        made.to_json().replace('"delta":0', '"gamma":0'),
        "{",
    ):
        with pytest.raises(ParameterError, match=r"^statement must"):
            report.GuaranteeStatement.from_json(wrong)
    kept = made.attached(pa.table({"n": [1]}).replace_schema_metadata({"mine": "1"}))
    assert set(kept.schema.metadata) == {b"mine", b"sfumato.guarantee"}
