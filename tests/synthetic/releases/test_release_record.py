"""What was written once is read to the same cells and numbers, and written the same today."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.synthetic import MarginalsRelease, TableDomain, TopDownRelease
from sfumato.synthetic.releases.release_record import SyntheticRecord
from tests.run_time import run_time

if run_time(__name__):
    from tests.golden.synthetic import making, released_places

FOLDER = Path(__file__).parents[2] / "golden" / "synthetic"


def test_domains_are_read_back_and_written_the_same() -> None:
    for name, domain in making.DOMAINS.items():
        text = (FOLDER / name).read_text(encoding="ascii")
        assert TableDomain.from_json(text) == domain
        assert TableDomain.from_json(text).to_json() == text.strip() == domain.to_json()


def test_a_release_is_read_back_and_written_the_same() -> None:
    payload = (FOLDER / "release.json").read_bytes()
    stored, today = SyntheticRecord.from_bytes(payload), making.record()
    assert stored.to_bytes() + b"\n" == payload
    assert (stored.kind, stored.epsilon, stored.delta, stored.privacy_unit) == (
        "marginals",
        1,
        1e-9,
        "person",
    )
    assert stored.simulated
    assert stored.loss == today.loss
    assert isinstance(stored.release, MarginalsRelease)
    for columns in ((), ("sex",), ("age",), ("age", "sex")):
        old, new = (each.release.marginal(*columns) for each in (stored, today))
        assert np.allclose(old.counts, new.counts, rtol=1e-12)
        assert old.labels == new.labels
        assert old.stddev == pytest.approx(new.stddev, rel=1e-12)


def test_a_bought_domain_is_read_back_and_written_the_same() -> None:
    payload = (FOLDER / "bought.json").read_bytes()
    stored, today = SyntheticRecord.from_bytes(payload), making.bought()
    assert stored.to_bytes() + b"\n" == payload
    assert stored.kind == "domain"
    assert (stored.release.domain, stored.release.absent) == (today.release.domain, ("none",))
    assert stored.loss == today.loss


def test_released_places_are_read_back_with_their_intervals_and_written_the_same() -> None:
    payload = (FOLDER / "released-places.json").read_bytes()
    stored, today = SyntheticRecord.from_bytes(payload), released_places.record()
    assert stored.to_bytes() + b"\n" == payload == today.to_bytes() + b"\n"
    assert (stored.kind, stored.simulated, stored.loss) == ("topdown", False, today.loss)
    old, new = stored.release, today.release
    assert isinstance(old, TopDownRelease)
    assert (old.outside_guarantee, old.unfinished, old.domain) == (
        ("the total at each state",),
        1,
        released_places.DOMAIN,
    )
    assert old.counts("town", "sex", "age")[2].tolist() == [[0, 0, 200], [70_000, 0, 0]]
    assert stored.to_arrow().equals(new.to_arrow("town"))
    for columns, places in (((), {"state": ["A"]}), (("sex",), {"town": [12, 21]}), (("age", "sex"), None)):
        one, other = old.estimate(*columns, places=places), new.estimate(*columns, places=places)
        assert one.counts.tolist() == other.counts.tolist()
        assert one.stddev == other.stddev
    assert old.estimate(places={"state": ["B"]}).stddev == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"sfumato.synthetic-release"', b'"sfumato.another"'),
        (b'"kind":"marginals"', b'"kind":"moments"'),
        (b'\\"version\\":1', b'\\"version\\":9'),
        (b'\\"sigma\\":', b'\\"sigmo\\":'),
        (b'\\"columns\\":[0]', b'\\"columns\\":[7]'),
        (b'\\"columns\\":[0]', b'\\"columns\\":[1]'),
    ],
)
def test_what_was_never_written_is_refused(old: bytes, new: bytes) -> None:
    payload = (FOLDER / "release.json").read_bytes()
    assert old in payload
    with pytest.raises(LedgerUnavailable, match="of a kind that is known here"):
        SyntheticRecord.from_bytes(payload.replace(old, new))
