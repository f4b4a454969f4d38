"""``sfumato report``: pages in files, of one release, of all, and of what is published."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato import report
from sfumato.cli.commands import app
from sfumato.cli.data import ACS
from sfumato.learning.reports.evaluation import EvaluationRecord
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring, PureDP
from tests.browser import needed
from tests.cases import cases

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
BUDGET = ("--privacy-unit", "person_id", "--epsilon", "2")


def answered(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "l"
    answered("sql", ACS, *BUDGET, "--ledger", path, COUNT)
    answered("sql", ACS, *BUDGET, "--ledger", path, COUNT.replace("data", "data WHERE age > 18"))
    return path


def test_a_page_is_the_one_that_python_makes(ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    asked = ("report", ledger, 2, "--output", out, "--language", "de", "--json")
    written = json.loads(answered(*asked))["pages"]
    with Ledger.read(ledger) as book:
        page = report.stored_release(book, 2, language="de")
    assert out.read_bytes() == page.to_bytes()
    digest = hashlib.sha256(page.to_bytes()).hexdigest()
    assert written == [{"path": str(out), "bytes": out.stat().st_size, "sha256": digest}]
    assert answered("report", ledger, 2, "--language", "de") == page.html


def test_pages_of_all_releases_and_of_those_that_are_published(ledger: Path, tmp_path: Path) -> None:
    answered("report", ledger, "--folder", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release-1.html", "release-2.html"]
    assert "Nobody has reviewed this release." in (tmp_path / "release-1.html").read_text()
    empty = tmp_path / "published"
    empty.mkdir()
    assert json.loads(answered("report", ledger, "--folder", empty, "--published", "--json"))["pages"] == []
    assert not list(empty.iterdir())


@cases(
    "arguments, message",
    [
        ((), "number must be a charge's number or left out for --folder, but neither is given"),
        ((1, "--folder", "."), "both is given"),
        (("--folder", "nowhere"), "folder must be a folder that exists"),
        ((1, "--published"), "published must stand beside --folder"),
        ((1, "--json"), "json must stand beside --output, --pdf or --folder"),
        ((1, "--deployment"), "deployment must stand without a number or --folder, as --compare must"),
        ((1, "--compare", "person"), "deployment must stand without a number or --folder"),
        (("--compare", "humans"), "unit must be one of account-month, birth,"),
        (("--compare", "person", "--json"), "json must stand beside --output, --pdf or --folder"),
        (("--compare", "person", "--json-ld"), "json-ld must stand beside a number or --folder"),
        (("--deployment", "--json-ld"), "json-ld must stand beside a number or --folder"),
        ((1, "--audience", "internal"), "audience must stand beside --deployment, got 'internal'"),
        (("--deployment", "--audience", "all"), "audience must be one of public, internal, got 'all'"),
        (("--check", "x.parquet", "--deployment"), "check must stand alone"),
        (("--folder", ".", "--output", "x"), "output must be left out with --folder"),
        (("--folder", ".", "--pdf", "x"), "pdf must be left out with --folder"),
        ((1, "--output", "x", "--pdf", "./x"), "pdf must be another file than --output"),
        ((1, "--pdf", "nowhere/x.pdf"), "pdf must be a file in a folder that exists"),
        (("--check", "x.parquet", "--folder", "."), "check must stand alone"),
        (("--check", "x.parquet", 1), "check must stand alone"),
        ((9,), "number must be that of a charge with a stored release, got 9"),
        ((1, "--language", "fr"), "language must be one of en, de"),
    ],
)
def test_what_is_refused(ledger: Path, arguments: tuple[object, ...], message: str) -> None:
    result = CliRunner().invoke(app, [str(each) for each in ("report", ledger, *arguments)])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_pdf_without_its_library_names_the_extra(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    out = tmp_path / "page.pdf"
    result = CliRunner().invoke(app, ["report", str(ledger), "1", "--pdf", str(out)])
    assert result.exit_code == 1
    assert "pip install 'sfumato[pdf]'" in " ".join(result.stderr.split())
    assert not out.exists()


@pytest.mark.browser
def test_a_pdf_is_the_one_that_python_makes(ledger: Path, tmp_path: Path) -> None:
    needed("weasyprint")
    out, page = tmp_path / "page.pdf", tmp_path / "page.html"
    written = json.loads(answered("report", ledger, 1, "--pdf", out, "--output", page, "--json"))["pages"]
    with Ledger.read(ledger) as book:
        assert out.read_bytes() == report.stored_release(book, 1).to_pdf()
    assert [each["path"] for each in written] == [str(page), str(out)]


def test_a_record_for_the_registry_is_written(ledger: Path, tmp_path: Path) -> None:
    about, out = tmp_path / "about.toml", tmp_path / "record.yaml"
    about.write_text(
        'name = "ACS"\ndescription = "d"\nintended_use = "u"\ndata_product_region = "US"\n'
        'data_curators = ["c"]\nregistry_authors = ["a"]\npublication_date = 2026-01-31\n'
    )
    assert answered("report", ledger, "--registry", out, "--about", about) == ""
    record = json.loads(out.read_text())
    assert record["deployment"]["privacy_loss"]["privacy_unit"] == "person_id"
    assert record["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 2
    given = ("--registry", out, "--about", about)
    for arguments in (
        ("--registry", out),
        ("--about", about),
        ("1", *given),
        ("--compare", "person", *given),
    ):
        result = CliRunner().invoke(app, ["report", str(ledger), *map(str, arguments)])
        assert result.exit_code == 2
        assert "registry must stand beside --about only" in result.stderr


def test_the_ledger_is_not_written_over(ledger: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(ledger), "1", "--output", str(ledger)])
    assert result.exit_code == 2
    assert "not be the ledger" in result.stderr


def test_the_report_of_a_deployment_is_the_one_that_python_makes(ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "deployment.html"
    with Ledger.read(ledger) as book:
        public, internal = report.deployment(book), report.deployment(book, audience="internal")
    assert answered("report", ledger, "--deployment", "--output", out, "--json")
    assert out.read_bytes() == public.to_bytes()
    assert answered("report", ledger, "--deployment", "--audience", "internal") == internal.html
    assert "age &gt; 18" not in internal.html


def test_what_a_person_says_of_a_deployment_is_on_its_page(ledger: Path, tmp_path: Path) -> None:
    about = tmp_path / "about.toml"
    about.write_text(
        'name = "ACS"\ndescription = "d"\nintended_use = "u"\ndata_product_region = "US"\n'
        'data_curators = ["c"]\nregistry_authors = ["a"]\npublication_date = 2026-01-31\n'
        '[checklist]\nutility = "Within 5 of 100."\n'
    )
    page = answered("report", ledger, "--deployment", "--about", about)
    with Ledger.read(ledger) as book:
        known = report.Deployment.from_toml(about.read_text())
        assert report.deployment(book, about=known).html == page
    assert "<h1>ACS</h1>" in page
    assert "Within 5 of 100." in page


def test_a_budget_is_compared_as_text_as_a_page_and_in_the_report(ledger: Path, tmp_path: Path) -> None:
    said = answered("report", ledger, "--compare", "user-day")
    assert said.startswith("The unit is user-day. There are 5 records of this unit")
    assert "2. Movement Ranges Map (Meta, 2020)" in said
    out = tmp_path / "compared.html"
    answered("report", ledger, "--compare", "user-day", "--output", out)
    found = report.compare(PureDP(2.0), unit="user-day")
    assert out.read_bytes() == report.comparison_page(found).to_bytes()
    whole = answered("report", ledger, "--deployment", "--compare", "user-day")
    assert "Movement Ranges Map" in whole
    assert "Movement Ranges Map" not in answered("report", ledger, "--deployment")


def test_parquet_carries_its_guarantee_and_is_checked(ledger: Path, tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    replayed, again = tmp_path / "sql.parquet", tmp_path / "again.parquet"
    answered("sql", ACS, *BUDGET, "--ledger", ledger, "--output", replayed, COUNT)
    answered("ledger", "release", ledger, 1, "--output", again, "--no-intervals")
    for file in (replayed, again):
        assert "release 1 of ledger" in answered("report", ledger, "--check", file)
        assert json.loads(answered("report", ledger, "--check", file, "--json"))["review"] == "none"
    with Ledger.read(ledger) as book:
        assert report.read_statement(replayed) == report.statement(book, 1)
    table = pq.read_table(again)
    (count,) = table.column("n").to_pylist()
    pq.write_table(pa.table([[count + 1]], schema=table.schema), again)
    result = CliRunner().invoke(app, ["report", str(ledger), "--check", str(again)])
    assert result.exit_code != 0
    assert "table must hold the numbers of the release" in " ".join(result.stderr.split())
    damaged = bytearray(replayed.read_bytes())
    damaged[4:40] = b"\xff" * 36  # the numbers, not the schema
    again.write_bytes(damaged)
    result = CliRunner().invoke(app, ["report", str(ledger), "--check", str(again)])
    assert "must be a file of Parquet that can be read" in " ".join(result.stderr.split())


def test_a_simulated_release_is_not_confirmed_without_saying_so(tmp_path: Path) -> None:
    file, out = tmp_path / "simulated", tmp_path / "x.parquet"
    numbers = {"correct": 83, "rows": 100, "lower": 0.77, "upper": 0.89, "epsilon": 0.5, "charge": 1}
    record = EvaluationRecord(**numbers, loss=PureDP(0.5), privacy_unit="row", simulated=True)  # type: ignore[arg-type]
    with Ledger.open(
        file,
        budget=Budget.pure(epsilon=1.0),
        privacy_unit="row",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
        simulated=True,
    ) as book:
        receipt = book.charge(record.loss, delta=0.0, description="how good it is", simulated=True)
        book.commit(receipt, record.to_bytes())
    answered("ledger", "release", file, 1, "--output", out)
    assert "protects nobody" in answered("report", file, "--check", out)
    assert json.loads(answered("report", file, "--check", out, "--json"))["simulated"] is True


def test_pages_have_json_ld_where_it_is_asked_for(ledger: Path) -> None:
    page = answered("report", ledger, 1, "--json-ld")
    with Ledger.read(ledger) as book:
        plain = report.stored_release(book, 1)
        assert page == report.with_json_ld(plain, report.json_ld(book, 1)).html
    assert page.count('<script type="application/ld+json">') == page.count("<script") == 1
