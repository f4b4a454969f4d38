"""``sfumato report``: pages of releases and of whole ledgers, records to compare with, and files checked."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from sfumato import _check
from sfumato._wire import Format
from sfumato.cli.input.arguments import LedgerAddress
from sfumato.cli.output.facts import print_json
from sfumato.cli.output.guarding import check_free, file_of, resolved
from sfumato.cli.output.tables import printable
from sfumato.cli.output.writing import Format as Style
from sfumato.cli.output.writing import check_output, read_text, write_bytes, write_text
from sfumato.errors import ParameterError, SourceError
from sfumato.ledger.ledger import Ledger
from sfumato.queries.release.table import TableRelease
from sfumato.report.comparison.compare import compare_budget
from sfumato.report.comparison.comparison_page import comparison_page, comparison_text
from sfumato.report.deployments.deployment_page import deployment as deployment_page
from sfumato.report.pages.document import ReleasePage
from sfumato.report.pages.record_sections import StoredRecord
from sfumato.report.pages.release_page import stored_release
from sfumato.report.registry.registry_record import Deployment, registry_record
from sfumato.report.statements.guarantee_statement import read_statement
from sfumato.report.statements.json_ld import json_ld as described
from sfumato.report.statements.json_ld import with_json_ld

__all__ = ["report"]

_PAGES = Format("sfumato.release-pages", 1)
_CHECK = Format("sfumato.release-check", 1)


def report(
    ledger: LedgerAddress,
    number: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", help="Of the charge, as 'ledger show' lists it.")
    ] = None,
    *,
    output: Annotated[Path | None, typer.Option(help="File for the page.")] = None,
    pdf: Annotated[
        Path | None, typer.Option("--pdf", help="File for the page as PDF; needs the extra [pdf].")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder for a page of each stored table, in place of a number.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="With --folder: only what is published now.")
    ] = False,
    registry: Annotated[
        Path | None, typer.Option(help="File for a record of the whole ledger, for the public registry.")
    ] = None,
    about: Annotated[
        Path | None,
        typer.Option(help="TOML with what the ledger does not know, for --registry and --deployment."),
    ] = None,
    deployment: Annotated[
        bool, typer.Option("--deployment", help="A report of the whole ledger, in place of a number.")
    ] = False,
    audience: Annotated[
        str, typer.Option(help="Of --deployment: public (what is published), or internal (all).")
    ] = "public",
    compare: Annotated[
        str, typer.Option(metavar="UNIT", help="Place the budget among public records of this unit.")
    ] = "",
    json_ld: Annotated[
        bool, typer.Option("--json-ld", help="Put the guarantee into each page for machines, too.")
    ] = False,
    check: Annotated[
        Path | None, typer.Option(help="In place of pages: a Parquet file to compare with the ledger.")
    ] = None,
    language: Annotated[str, typer.Option(help="Of the page: en or de.")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="Print which pages were written.")] = False,
) -> None:
    """Make pages of stored releases, or of a whole ledger: numbers, who is protected, odds, receipt."""
    pages = (number, output, pdf, folder) != (None,) * 4 or published or json_ld or deployment or compare
    if check is not None:
        others = pages or (registry, about) != (None, None) or audience != "public"
        _check_file(ledger, check, alone=not others, as_json=as_json)
        return
    if registry is not None or (about is not None and not deployment):
        _write_record(ledger, registry, about, alone=not pages and not as_json)
        return
    if audience != "public" and not deployment:
        _check.refuse("audience", "stand beside --deployment", audience, "leave it out for pages of releases")
    whole = "deployment" if deployment or compare else number
    if json_ld and whole == "deployment":
        _check.refuse("json-ld", "stand beside a number or --folder", json_ld, "leave it out")
    _check_targets(whole, number, output, pdf, folder, published=published, as_json=as_json)
    _check_files_free(ledger, output, pdf)
    known = None if about is None else _read_about(about)
    kinds = {"audience": audience, "compare": compare, "language": language}
    with Ledger.read(ledger) as book:
        if folder is not None:
            files = {
                folder / f"release-{each}.html": _page(book, each, language, json_ld=json_ld).to_bytes()
                for each in _numbers(book, published=published)
            }
        elif number is None:
            files = _printed(*_of_ledger(book, known, deployment=deployment, **kinds), output, pdf)
        else:
            page = _page(book, number, language, json_ld=json_ld)
            files = _printed(page, page.html, output, pdf)
    for path in files if folder is not None else ():
        _check_file_free(path, ledger, "output")
    for path, made in files.items():
        write_bytes(path, made, again="it costs nothing to make it again")
    if (output, pdf, folder) != (None, None, None):
        _say(files, as_json=as_json)


def _of_ledger(
    book: Ledger, about: Deployment | None, *, deployment: bool, audience: str, compare: str, language: str
) -> tuple[ReleasePage, str]:
    """Return the page of a whole ledger, or of its budget among records, and what a terminal shows of it."""
    if deployment:
        given = {"audience": audience, "compared_unit": compare, "language": language}
        page = deployment_page(book, about=about, **given)
        return page, page.html
    comparison = compare_budget(book, unit=compare)
    return comparison_page(comparison, language=language), comparison_text(comparison, language=language)


def _printed(page: ReleasePage, text: str, output: Path | None, pdf: Path | None) -> dict[Path, bytes]:
    """Return a page's files; where none is asked for, print the text."""
    if output is None and pdf is None:
        typer.echo(text, nl=False)
        return {}
    files = {} if output is None else {output: page.to_bytes()}
    return files if pdf is None else files | {pdf: page.to_pdf()}


def _check_files_free(ledger: str, output: Path | None, pdf: Path | None) -> None:
    for name, file in (("output", output), ("pdf", pdf)):
        if file is not None:
            _check_file_free(file, ledger, name)


def _check_file_free(file: Path, ledger: str, name: str) -> None:
    check_output(Style.TABLE, file, name=name)
    check_free(file, sources={}, ledger=file_of(ledger), name=name)


def _page(book: Ledger, number: int, language: str, *, json_ld: bool) -> ReleasePage:
    page = stored_release(book, number, language=language)
    return with_json_ld(page, described(book, number)) if json_ld else page


def _check_file(ledger: str, file: Path, *, alone: bool, as_json: bool) -> None:
    """Compare a file's statement and numbers with the ledger."""
    if not alone:
        rule = "stand alone, but for --json"
        _check.refuse_state("check", rule, "other options are given", "pass the ledger and the file")
    said = read_statement(file)
    with Ledger.read(ledger) as book:
        state = said.verify(book, _numbers_of(file))
    if as_json:
        facts = {"charge": said.charge, "ledger": said.ledger, "review": state}
        print_json(_CHECK, {**facts, "simulated": said.simulated})
        return
    typer.echo(
        printable(f"release {said.charge} of ledger {said.ledger}: guarantee and numbers are the ledger's")
    )
    if said.simulated:
        typer.echo("simulated: the noise follows from a number that is known, and protects nobody")
    if state != "none":
        typer.echo(f"in review: {state}")


def _numbers_of(file: Path) -> pa.Table:
    try:
        return pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        message = f"{str(file)!r} must be a file of Parquet that can be read; check it"
        raise SourceError(message) from error


def _read_about(path: Path) -> Deployment:
    return Deployment.from_toml(read_text("about", path, "write a file of TOML"))


def _write_record(ledger: str, registry: Path | None, about: Path | None, *, alone: bool) -> None:
    """Write a record for the registry to a file."""
    if registry is None or about is None or not alone:
        found = "it stands alone" if registry is None or about is None else "other options are given"
        _check.refuse_state("registry", "stand beside --about only", found, "pass both, or --deployment")
    _check_file_free(registry, ledger, "registry")
    known = _read_about(about)
    with Ledger.read(ledger) as book:
        record = registry_record(book, known)
    write_text(registry, record, name="registry", again="it costs nothing to make it again")


def _check_targets(
    whole: object,
    number: int | None,
    output: Path | None,
    pdf: Path | None,
    folder: Path | None,
    *,
    published: bool,
    as_json: bool,
) -> None:
    """Refuse options that exclude each other, before the ledger is opened."""
    if whole == "deployment" and (number is not None or folder is not None):
        rule = "stand without a number or --folder, as --compare must"
        _check.refuse_state("deployment", rule, "one of these is given", "leave it out")
    if (whole is None) == (folder is None):
        given = "neither" if whole is None else "both"
        rule = "be a charge's number or left out for --folder"
        _check.refuse_state("number", rule, f"{given} is given", "write a number, or --folder FOLDER")
    if folder is not None:
        for name, file in (("output", output), ("pdf", pdf)):
            if file is not None:
                _check.refuse(name, "be left out with --folder", str(file), "pages are named by number")
        if not resolved(folder).is_dir():
            _check.refuse("folder", "be a folder that exists", str(folder), "make it first")
    if published and folder is None:
        _check.refuse("published", "stand beside --folder", published, "leave it out for one number")
    if output is not None and pdf is not None and resolved(output) == resolved(pdf):
        _check.refuse("pdf", "be another file than --output", str(pdf), "name two files, or one of them")
    if as_json and (output, pdf, folder) == (None, None, None):
        rule = "stand beside --output, --pdf or --folder"
        _check.refuse("json", rule, as_json, "standard output is the page")


def _numbers(book: Ledger, *, published: bool) -> list[int]:
    """Return the charges that there are pages of, or those of them that are published."""
    shown = {review.number for review in book.reviews.all("published")}
    stored = (entry.sequence for entry in book.entries() if entry.committed)
    return [number for number in stored if (not published or number in shown) and _has_page(book, number)]


def _has_page(book: Ledger, number: int) -> bool:
    """Whether a page can be made; what began a counter is stored too, and can not be read back."""
    try:
        return isinstance(book.release(number), TableRelease | StoredRecord)
    except ParameterError:
        return False


def _say(files: dict[Path, bytes], *, as_json: bool) -> None:
    if as_json:
        written = [
            {"path": str(path), "bytes": len(made), "sha256": hashlib.sha256(made).hexdigest()}
            for path, made in files.items()
        ]
        print_json(_PAGES, {"pages": written})
        return
    for path, made in files.items():
        typer.echo(printable(f"{path}: {len(made):,} bytes"), err=True)
    if not files:
        typer.echo("no such releases", err=True)
