"""What a query's delta costs: nothing where its noise is pure."""

from __future__ import annotations

import pyarrow as pa

import sfumato as sf
from sfumato.queries.outer.release import PostprocessedRelease


def test_a_delta_that_no_noise_uses_stays_in_the_budget() -> None:
    """Laplace noise of 0.5 costs 0.5, not the 0.49999998 that it has at the delta of the query."""
    count = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8) COUNT(*) AS n FROM data"
    grouped = count.replace("1e-8)", "1e-8, max_groups_contributed=1)").replace("COUNT", "x, COUNT")
    people = pa.table({"person": range(400), "x": [1, 2] * 200})
    with sf.connect(people, privacy_unit="person", epsilon=2.0, delta=1e-6) as session:
        first = session.sql(count)
        left = session.ledger.remaining(1e-8)
        assert (left.epsilon, left.delta, left.answerable_epsilon) == (1.5, 5e-7, 1.5)
        assert (first.epsilon, first.delta, first.charged_delta) == (0.5, 1e-8, 0.0)
        assert "Charged to the budget: rho 0.1225, delta 0, epsilon 0.5" in session.explain(count)
        assert session.sql(count).replayed
        # A threshold needs its delta.
        second = session.sql(grouped + " GROUP BY x")
        assert second.charged_delta == 1e-8
        assert session.ledger.remaining().delta == 4.9e-7
        charged = [(entry.epsilon, entry.delta) for entry in session.ledger.entries()]
        assert charged == [(0.5, 0.0), (0.5, 1e-8)]
        assert session.ledger.verify().sound


def test_what_is_shown_of_several_answers_is_what_is_charged() -> None:
    """A delta that is charged for one of two answers is stated once, however many OPTIONS state it."""
    options = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1, delta=1e-8, max_groups_contributed=1)"
    both = (
        f"WITH all_ AS ({options} COUNT(*) AS n FROM data), "
        f"each_ AS ({options} x, COUNT(*) AS m FROM data GROUP BY x), "
        f"sum_ AS ({options} COUNT(*) AS k FROM data WHERE x = 1) SELECT * FROM all_, each_, sum_"
    )
    people = pa.table({"person": range(400), "x": [1, 2] * 200})
    with sf.connect(people, privacy_unit="person", epsilon=2.0, delta=1e-6) as session:
        words = session.explain(both)
        assert words.count("Together: epsilon 0.1 at delta 0, charged") == 2
        assert words.count("Together: epsilon 0.1 at delta 1e-08, charged") == 1
        assert "All together: epsilon 0.3, delta 1e-08, charged" in words
        release = session.sql(both)
        assert sorted(entry.delta for entry in session.ledger.entries()) == [0.0, 0.0, 1e-8]
        assert (release.epsilon, release.delta, release.charged_delta) == (0.3, 3e-8, 1e-8)
        assert isinstance(release, PostprocessedRelease)
        assert release.cost == (0.3, 1e-8)
