"""One page of each kind, as a browser and a printer get it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import sfumato as sf
from sfumato import report
from sfumato.ledger import Budget, Dataset, Ledger, Role
from sfumato.privacy import Gaussian, Neighboring, PureDP

if TYPE_CHECKING:
    from sfumato.privacy.loss import PrivacyLoss

__all__ = ["GROUPS", "kinds_of_pages", "publish", "stored", "towns"]

GROUPS = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=4, delta=1e-7, max_groups_contributed=2) "
    "town, COUNT(*) AS people, AVG(age, contribution_bounds_per_group => (0, 100)) AS age "
    "FROM data GROUP BY town"
)


def stored(payload: Any, loss: PrivacyLoss) -> Ledger:
    """A ledger in memory with this one release."""
    ledger = Ledger.open(
        None,
        budget=Budget.approximate(epsilon=50.0, delta=1e-5),
        privacy_unit="person",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(sex STRING)", fingerprint=lambda key: "0" * 64),
    )
    receipt = ledger.charge(loss, delta=1e-6, description="counts", purpose="a test")
    ledger.commit(receipt, payload.to_bytes())
    return ledger


def towns(count: int) -> Any:
    """A table of 3,000 people in so many towns."""
    import pyarrow as pa  # noqa: PLC0415

    rows = range(3000)
    town = [f"Town {row % count:02}" for row in rows]
    return pa.table({"who": list(rows), "town": town, "age": [20.0 + row % 60 for row in rows]})


@cache
def kinds_of_pages(language: str) -> tuple[tuple[str, report.ReleasePage], ...]:
    """Return each kind of page with its name; they take seconds to make."""
    return tuple(_kinds_of_pages(language))


def _kinds_of_pages(language: str) -> Iterator[tuple[str, report.ReleasePage]]:
    with sf.connect(towns(12), privacy_unit="who", epsilon=9, delta=1e-5) as session:
        answer = session.sql(GROUPS)
        yield "release", report.release(answer, ledger=session.ledger, language=language)
        yield "stored release", report.stored_release(session.ledger, 1, language=language)
        pure = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
        yield "release without a ledger", report.release(session.sql(pure), language=language)
    yield from _records(language)
    yield "model card", report.model_card(_card(), language=language)
    yield from _collections(language)
    yield from _deployments(language)


def _deployments(language: str) -> Iterator[tuple[str, report.ReleasePage]]:
    """A ledger with members, accounts and a release that was published, for each audience; a comparison."""
    with stored(_evaluation(), PureDP(0.5)) as ledger:
        ledger.grant("<ada>", Budget.approximate(epsilon=2.0, delta=5e-7), reason="a test")
        publish(ledger, 1)
        for audience in ("public", "internal"):
            page = report.deployment(ledger, audience=audience, compared_unit="user-day", language=language)
            yield f"{audience} deployment", page
    found = report.compare(PureDP(1.0), unit="person")
    yield "comparison", report.comparison_page(found, language=language)


def publish(ledger: Ledger, number: int) -> None:
    """Have a release reviewed and published: by carl and cora, curators, and rita, who signs."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    key = Ed25519PrivateKey.generate()
    ledger.members.set_roles("carl", {Role.CURATOR})
    ledger.members.set_roles("rita", {Role.REVIEWER}, by="carl")
    ledger.members.set_roles("cora", {Role.CURATOR}, by="carl")
    ledger.members.register_key("rita", key.public_key(), by="cora")
    ledger.reviews.request(number, by="carl")
    approval = ledger.reviews.approval(number, by="rita")
    ledger.reviews.approve(approval, approval.sign(key))
    ledger.reviews.publish(number, by="carl")


def _collections(language: str) -> Iterator[tuple[str, report.ReleasePage]]:
    from sfumato import local  # noqa: PLC0415
    from sfumato.local import shuffle  # noqa: PLC0415

    domain = local.Domain(["no", "yes", "<b>"])
    oracle = local.LongitudinalRandomizedResponse(epsilon=1.0, permanent_epsilon=2.0, domain=domain)
    (first,) = oracle.simulate_rounds([700, 200, 100], rounds=1, rng=1)
    yield "local shares", report.local_estimate(first, oracle, language=language)
    mean = local.PiecewiseMean(epsilon=2.0, bounds=(0.0, 24.0))
    yield "local mean", report.local_estimate(mean.simulate([7.0], [900], rng=1), mean, language=language)
    asked = shuffle.ShuffledHistogram(epsilon=1.0, delta=1e-6, clients=1000, domain=domain)
    mixed = asked.simulate([700, 200, 100], rng=1)
    yield "shuffled shares", report.shuffled_estimate(mixed, asked, language=language)


def _records(language: str) -> Iterator[tuple[str, report.ReleasePage]]:
    import pyarrow as pa  # noqa: PLC0415

    from sfumato.synthetic import Hierarchy, Invariant, Marginals, TableDomain, TopDown  # noqa: PLC0415
    from sfumato.synthetic.releases.release_record import SyntheticRecord  # noqa: PLC0415

    domain = TableDomain(sex=["f", "<m>"], work=["a", "b"])
    people = pa.table({"id": range(400), "sex": ["f", "<m>"] * 200, "work": ["a", "a", "b", "b"] * 100})
    with sf.connect(people, privacy_unit="id", epsilon=9, delta=1e-6) as session:
        session.marginals(domain, Marginals([("sex", "work")]), epsilon=1.0, delta=1e-8)
        session.synthesize(domain, epsilon=6.0, delta=1e-7, method="independent")
        yield "marginals", report.stored_release(session.ledger, 1, language=language)
        yield "synthetic model", report.stored_release(session.ledger, 2, language=language)
    places = Hierarchy.from_table(pa.table({"town": ["x", "y"]}), ["town"], root="country")
    rows = pa.table({"town": ["x"] * 60 + ["y"] * 30, "sex": ["f", "<m>"] * 45, "work": ["a"] * 90})
    topdown = TopDown(
        hierarchy=places, domain=domain, queries=[(), ("sex",)], rho=2, invariants=[Invariant("town")]
    )
    released = topdown.release(rows, rng=1)
    table = SyntheticRecord(kind="topdown", release=released, epsilon=9.0, delta=1e-6, privacy_unit="person")
    with stored(table, released.loss) as ledger:
        yield "topdown", report.stored_release(ledger, 1, language=language)
    evaluation = _evaluation()
    with stored(evaluation, evaluation.loss) as ledger:
        yield "evaluation", report.stored_release(ledger, 1, language=language)


def _evaluation() -> Any:
    from sfumato.learning.reports.evaluation import EvaluationRecord  # noqa: PLC0415

    numbers = {"correct": 83, "rows": 100, "lower": 0.77, "upper": 0.89, "epsilon": 0.5, "charge": 1}
    return EvaluationRecord(**numbers, loss=PureDP(0.5), privacy_unit="row", simulated=False)  # type: ignore[arg-type]


def _card() -> Any:
    from sfumato.learning import PrivacyCard  # noqa: PLC0415

    return PrivacyCard(
        epsilon=1.5,
        delta=1e-5,
        neighboring=Neighboring.REPLACE_ONE,
        unit="<user>",
        loss=Gaussian(3.0, neighboring=Neighboring.REPLACE_ONE),
        steps=1200,
        sampler="poisson",
        sampling={"sampling_probability": 0.01},
        participation=1200,
        noise={"kind": "keyed"},
        noise_multiplier=3.0,
        clipping={"kind": "flat", "clip_norm": 1.0},
        float_safe=False,
        simulated=False,
    )
