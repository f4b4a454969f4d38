"""Pages of what is stored beside SQL tables: marginals, models, domains, places, evaluations."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

import sfumato as sf
from sfumato import report
from sfumato.learning.reports.evaluation import EvaluationRecord
from sfumato.privacy import PureDP
from sfumato.synthetic import (
    BoughtCategories,
    BoughtDomain,
    Hierarchy,
    Invariant,
    Marginals,
    TableDomain,
    TopDown,
)
from sfumato.synthetic.releases.release_record import SyntheticRecord
from tests.report.making import stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from sfumato.session.session import Session
    from sfumato.synthetic.releases.release_record import StorableRelease

DOMAIN = TableDomain(sex=["f", "<m>"], work=["a", "b"])


def text_of(page: report.ReleasePage) -> str:
    body = ET.fromstring(page.html).find("body")
    assert body is not None
    return " ".join("".join(body.itertext()).split())


def marginals(session: Session) -> StorableRelease:
    return session.marginals(DOMAIN, Marginals([("sex", "work")]), epsilon=1.0, delta=1e-8)


def model(session: Session) -> StorableRelease:
    return session.synthesize(DOMAIN, epsilon=6.0, delta=1e-7, method="independent")


@pytest.mark.parametrize(
    ("ask", "advice", "exact"),
    [
        (marginals, "Beside a number stands the standard deviation", "each one that was counted has noise"),
        (model, "no row is a person", "none was counted: each follows from noisy numbers"),
    ],
)
def test_tables_and_models_have_pages_with_the_stored_digest(
    ask: Callable[[Session], StorableRelease], advice: str, exact: str
) -> None:
    import pyarrow as pa  # noqa: PLC0415

    people = pa.table({"id": range(400), "sex": ["f", "<m>"] * 200, "work": ["a", "a", "b", "b"] * 100})
    with sf.connect(people, privacy_unit="id", epsilon=9, delta=1e-6) as session:
        released = ask(session).to_arrow()
        page = report.stored_release(session.ledger, 1)
        assert session.ledger.reviews.approval(1, by="rita").payload in page.html
    said = text_of(page)
    assert advice in said
    assert exact in said
    assert "no bound on a belief holds for every release" in said
    assert "<m>" in said
    written = re.findall(r"<td class=\"n\">([^<]*)</td>", page.html)[: 2 * released.num_rows : 2]
    counts = [float(each.replace(",", "").replace("\N{MINUS SIGN}", "-")) for each in written]
    assert counts == pytest.approx(released["count"].to_pylist(), rel=1e-3, abs=1e-3)


def test_what_topdown_released_exactly_is_named() -> None:
    import pyarrow as pa  # noqa: PLC0415

    places = Hierarchy.from_table(pa.table({"town": ["x", "y"]}), ["town"], root="country")
    people = pa.table({"town": ["x"] * 60 + ["y"] * 30, "sex": ["f", "<m>"] * 45, "work": ["a"] * 90})
    mechanism = TopDown(
        hierarchy=places, domain=DOMAIN, queries=[(), ("sex",)], rho=2, invariants=[Invariant("town")]
    )
    released = mechanism.release(people, rng=1)
    record = SyntheticRecord(kind="topdown", release=released, epsilon=9.0, delta=1e-6, privacy_unit="person")
    with stored(record, released.loss) as ledger:
        said = text_of(report.stored_release(ledger, 1))
    assert "parts add up to their total" in said
    assert released.outside_guarantee
    for outside in released.outside_guarantee:
        assert f"Released exactly, and protected by nothing: {outside}" in said
    assert "No number above is exact" not in said
    assert "Simulation" in said  # its noise came from a seed


@pytest.mark.parametrize("language", ["en", "de"])
def test_an_evaluation_has_odds_and_an_interval(language: str) -> None:
    record = EvaluationRecord(
        correct=83,
        rows=100,
        lower=0.77,
        upper=0.89,
        epsilon=0.5,
        loss=PureDP(0.5),
        privacy_unit="row",
        simulated=False,
        charge=1,
    )
    with stored(record, record.loss) as ledger:
        page = report.stored_release(ledger, 1, language=language)
    said = text_of(page)
    assert "0.83 (0.77 to 0.89)" in said or "0,83 (0,77 bis 0,89)" in said
    assert "62.3" in said or "62,3" in said
    assert "is public, and exact" in said or "ist öffentlich und genau" in said
    assert len(page.to_bytes()) < 20_000


def test_a_bought_domain_says_that_names_are_as_in_the_data() -> None:
    bought = BoughtDomain({"city": BoughtCategories()}, epsilon=1.0, delta=1e-6)
    import pyarrow as pa  # noqa: PLC0415

    released = bought.release(pa.table({"city": ["Rome"] * 90}), rng=1)
    record = SyntheticRecord(kind="domain", release=released, epsilon=1.0, delta=1e-6, privacy_unit="person")
    with stored(record, released.loss) as ledger:
        said = text_of(report.stored_release(ledger, 1))
    assert "The names of categories that were found are as they stand in the data" in said
    assert "each one that was counted has noise" not in said
