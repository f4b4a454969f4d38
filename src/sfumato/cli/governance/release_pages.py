"""``sfumato report``: pages of stored releases and of whole ledgers, and a budget among public records."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from sfumato import _check
from sfumato._wire import Format
from sfumato.cli.input.arguments import LedgerAddress
from sfumato.cli.output.facts import print_json
from sfumato.cli.output.guarding import check_free, file_of, resolved
from sfumato.cli.output.tables import printable
from sfumato.cli.output.writing import Format as Style
from sfumato.cli.output.writing import check_output, read_text, write_text
from sfumato.errors import ParameterError
from sfumato.ledger.ledger import Ledger
from sfumato.queries.release.table import TableRelease
from sfumato.report.comparison.compare import Comparison
from sfumato.report.comparison.compare import compare as compare_records
from sfumato.report.comparison.comparison_page import comparison_page, comparison_text
from sfumato.report.deployments.deployment_page import deployment as deployment_page
from sfumato.report.pages.document import ReleasePage
from sfumato.report.pages.record_sections import StoredRecord
from sfumato.report.pages.release_page import stored_release
from sfumato.report.pages.stated_loss import stated_loss
from sfumato.report.registry.registry_record import Deployment, registry_record

__all__ = ["report"]

_PAGES = Format("sfumato.release-pages", 1)


def report(
    ledger: LedgerAddress,
    number: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", help="Of the charge, as 'ledger show' lists it.")
    ] = None,
    *,
    output: Annotated[Path | None, typer.Option(help="File for the page.")] = None,
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
    language: Annotated[str, typer.Option(help="Of the page: en or de.")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="Print which pages were written.")] = False,
) -> None:
    """Make pages of stored releases, or of a whole ledger: numbers, who is protected, odds, receipt."""
    if registry is not None or (about is not None and not deployment):
        others = (number, output, folder)
        alone = others == (None, None, None) and not (published or as_json or deployment or compare)
        _write_record(ledger, registry, about, alone=alone)
        return
    if audience != "public" and not deployment:
        _check.refuse("audience", "stand beside --deployment", audience, "leave it out for pages of releases")
    whole = "deployment" if deployment or compare else number
    _check_targets(whole, number, output, folder, published=published, as_json=as_json)
    known = None if about is None else _read_about(about)
    with Ledger.read(ledger) as book:
        if compare and not deployment:
            comparison = _compared(book, compare)
            if output is None:
                typer.echo(comparison_text(comparison, language=language), nl=False)
                return
            pages = {output: comparison_page(comparison, language=language)}
        elif whole is not None:
            page = _one_page(book, number, known, audience=audience, compare=compare, language=language)
            if output is None:
                typer.echo(page.html, nl=False)
                return
            pages = {output: page}
        else:
            numbers = _numbers(book, published=published)
            pages = {
                Path(folder or "") / f"release-{each}.html": stored_release(book, each, language=language)
                for each in numbers
            }
    for path in pages:
        check_output(Style.TABLE, path)
        check_free(path, sources={}, ledger=file_of(ledger))
    for path, page in pages.items():
        write_text(path, page.html, again="it costs nothing to make it again")
    _say(pages, as_json=as_json)


def _read_about(path: Path) -> Deployment:
    return Deployment.from_toml(read_text("about", path, "write a file of TOML"))


def _one_page(
    book: Ledger,
    number: int | None,
    about: Deployment | None,
    *,
    audience: str,
    compare: str,
    language: str,
) -> ReleasePage:
    """Return the page of a release, or of the whole ledger where no number is given."""
    if number is None:
        given = {"audience": audience, "compared_unit": compare, "language": language}
        return deployment_page(book, about=about, **given)
    return stored_release(book, number, language=language)


def _compared(book: Ledger, unit: str) -> Comparison:
    """Return the budget of a ledger among public records."""
    return compare_records(stated_loss(book.budget.guarantee(book.neighboring)), unit=unit)


def _write_record(ledger: str, registry: Path | None, about: Path | None, *, alone: bool) -> None:
    """Write a record for the registry to a file."""
    if registry is None or about is None or not alone:
        found = "it stands alone" if registry is None or about is None else "other options are given"
        _check.refuse_state("registry", "stand beside --about only", found, "pass both, or --deployment")
    check_output(Style.TABLE, registry, name="registry")
    check_free(registry, sources={}, ledger=file_of(ledger), name="registry")
    known = _read_about(about)
    with Ledger.read(ledger) as book:
        record = registry_record(book, known)
    write_text(registry, record, name="registry", again="it costs nothing to make it again")


def _check_targets(
    whole: object,
    number: int | None,
    output: Path | None,
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
        if output is not None:
            _check.refuse("output", "be left out with --folder", str(output), "pages are named by number")
        if not resolved(folder).is_dir():
            _check.refuse("folder", "be a folder that exists", str(folder), "make it first")
    if published and folder is None:
        _check.refuse("published", "stand beside --folder", published, "leave it out for one number")
    if as_json and output is None and folder is None:
        _check.refuse("json", "stand beside --output or --folder", as_json, "standard output is the page")


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


def _say(pages: dict[Path, ReleasePage], *, as_json: bool) -> None:
    if as_json:
        written = [
            {
                "path": str(path),
                "bytes": len(page.to_bytes()),
                "sha256": hashlib.sha256(page.to_bytes()).hexdigest(),
            }
            for path, page in pages.items()
        ]
        print_json(_PAGES, {"pages": written})
        return
    for path, page in pages.items():
        typer.echo(printable(f"{path}: {len(page.to_bytes()):,} bytes"), err=True)
    if not pages:
        typer.echo("no such releases", err=True)
