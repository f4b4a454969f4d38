"""What labels cost for the votes at hand: above the exact divergence, and released smoothly."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.learning.pate.confident import ConfidentGNMax
from sfumato.learning.pate.consensus import Consensus
from sfumato.learning.pate.consensus_release import ConsensusRelease
from sfumato.learning.pate.gnmax import GNMax
from sfumato.learning.pate.likeliest_outcome import log_tails
from sfumato.learning.pate.lnmax import LNMax
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.drawings import line, new_axes
from tests.learning.pate.label_distribution import label_distribution, vote_divergence
from tests.learning.pate.published_votes import theorem_6


def test_the_bound_holds_for_every_vote_of_a_few_teachers() -> None:
    for aggregator in (
        GNMax(stddev=1.5),
        GNMax(stddev=3, neighboring=Neighboring.REPLACE_ONE),
        ConfidentGNMax(threshold=5, check_stddev=2, stddev=1.5),
        ConfidentGNMax(threshold=9, check_stddev=1.5, stddev=1.5),
    ):
        for order in (1.5, 3.0, 9.0):
            owner = Consensus(aggregator=aggregator, teachers=8, classes=3, order=order)
            for votes in itertools.product(range(9), repeat=3):
                if sum(votes) == 8 and votes == tuple(sorted(votes)):
                    cost = owner.costs(np.array([votes]))[0]
                    assert vote_divergence(aggregator, np.array(votes), order) <= cost + 1e-9
                    assert cost <= owner.worst * (1 + 1e-12)


@pytest.mark.parametrize("order", [4.0, 16.0])
def test_the_bound_holds_and_helps_for_many_teachers(order: float) -> None:
    rng = np.random.default_rng(2)
    for aggregator in (GNMax(stddev=20), ConfidentGNMax(threshold=80, check_stddev=40, stddev=20)):
        owner = Consensus(aggregator=aggregator, teachers=120, classes=4, order=order)
        for share in (0.4, 0.8, 0.98):
            votes = rng.multinomial(120, [share, *[(1 - share) / 3] * 3])
            cost = owner.costs(votes[None])[0]
            assert vote_divergence(aggregator, votes, order) <= cost + 1e-9
            if share == 0.98:
                assert cost < owner.worst / 2


def test_costs_are_no_less_where_teachers_agree_by_far() -> None:
    """The formula of the class's notes in 60 digits: floats lose what is below 1e-16 beside 1."""
    stddev, order, classes = 40, 20.0, 10
    owner = Consensus(aggregator=GNMax(stddev=stddev), teachers=900, classes=classes, order=order)
    tails = log_tails(2.0 * stddev**2, 900)
    with mpmath.workdps(60):
        rho = mpmath.mpf(1) / stddev**2
        for gap in range(500, 901, 50):
            lack = -mpmath.mpf(float(tails[gap])) - mpmath.log(classes - 1)
            u = mpmath.sqrt(lack / rho)
            assert u >= order - 1
            hit = (1 - mpmath.exp(-lack)) ** order / (
                1 - mpmath.exp(-((mpmath.sqrt(lack) - mpmath.sqrt(rho)) ** 2))
            ) ** (order - 1)
            missed = mpmath.exp(-lack + (order - 1) * (lack / u + rho * (u + 1)))
            exact = mpmath.log(hit + missed) / (order - 1)
            cost = owner.table[0, gap]
            assert exact <= cost <= exact * (1 + 1e-6)


@pytest.mark.parametrize("gap", [120, 160, 200, 245])
@pytest.mark.parametrize("order", [7.5, 20.0])
@pytest.mark.sharpest("7.5-120", "20.0-160", "20.0-245")
def test_the_bound_is_the_published_one(order: float, gap: int) -> None:
    """To a few percent: the tails are bounds, and the noise is discrete. Its conditions may not be met."""
    stddev = 40
    with mpmath.workdps(30):
        q = 9 * mpmath.erfc(mpmath.mpf(gap) / (2 * stddev)) / 2
        published = float(theorem_6(q, stddev**2, order))
    votes = np.array([[gap, *[0] * 9]])
    owner = Consensus(aggregator=GNMax(stddev=stddev), teachers=250, classes=10, order=order)
    assert owner.costs(votes)[0] <= published * 1.08
    assert owner.costs(votes)[0] >= published * (1 - 1e-3) or published == pytest.approx(order / stddev**2)


def test_the_release_is_smooth_and_covers_the_local_sensitivity() -> None:
    """For every vote of four teachers on two questions, and every neighbor."""
    for aggregator in (
        GNMax(stddev=1.0),
        ConfidentGNMax(threshold=3, check_stddev=1, stddev=1),
        GNMax(stddev=2.0, neighboring=Neighboring.REPLACE_ONE),
    ):
        consensus = Consensus(aggregator=aggregator, teachers=4, classes=3, order=2.0)
        bound = ConsensusRelease(consensus=consensus, questions=2)
        ballots = list(itertools.product(range(3), repeat=2))  # one teacher's votes on both questions
        found = {}
        for cast in itertools.combinations_with_replacement(ballots, 4):
            votes = np.array([np.bincount([ballot[k] for ballot in cast], minlength=3) for k in (0, 1)])
            total = consensus.table[consensus.table_indices(votes)].sum()
            assert consensus.costs(votes).sum() <= total
            found[cast] = (total, bound.smooth_sensitivity(votes))
        beta = bound.smoothness or 0.0
        for cast, (total, smooth) in found.items():
            for near in changed(cast, ballots, aggregator.teachers_moved):
                other, smooth_there = found[near]
                assert abs(total - other) <= smooth + 1e-8
                assert smooth <= smooth_there * math.exp(beta) * (1 + 1e-12)


def changed(cast: tuple, ballots: list, moved: int) -> set[tuple]:  # type: ignore[type-arg]
    found = {cast}
    for _ in range(moved):
        found |= {
            tuple(sorted((*one[:place], new, *one[place + 1 :])))
            for one in found
            for place in range(4)
            for new in ballots
        }
    return found


def test_what_is_told_is_a_bound() -> None:
    consensus = Consensus(aggregator=GNMax(stddev=10), teachers=200, classes=3, order=8.0)
    bound = ConsensusRelease(consensus=consensus, questions=50, failure=0.1)
    votes = np.tile([180, 15, 5], (50, 1))
    total = consensus.costs(votes).sum()
    told = np.array([bound.release(votes, rng=seed).value for seed in range(100)])
    # Below with probability at most 0.1 each: 45 of 100 have a chance under 1e-16.
    assert (told < total).sum() < 45
    assert np.median(told) < consensus.worst * 50
    assert bound.release(votes, rng=1).simulated
    assert bound.privacy_loss.rdp(8.0) < math.inf


def test_bad_parameters() -> None:
    good = Consensus(aggregator=GNMax(stddev=10), teachers=10, classes=3, order=4.0)
    for name, make in {
        "aggregator": lambda: Consensus(aggregator=LNMax(scale=1), teachers=10, classes=3, order=4.0),
        "order": lambda: Consensus(aggregator=GNMax(stddev=10), teachers=10, classes=3, order=1.0),
        "classes": lambda: Consensus(aggregator=GNMax(stddev=10), teachers=10, classes=1, order=4.0),
        "smoothness": lambda: ConsensusRelease(consensus=good, questions=1, smoothness=3.0),
        "questions": lambda: ConsensusRelease(consensus=good, questions=0),
        "votes": lambda: ConsensusRelease(consensus=good, questions=2).release(np.zeros((1, 3), int)),
        "failure": lambda: ConsensusRelease(consensus=good, questions=2, failure=0.0),
    }.items():
        with pytest.raises(ParameterError, match=f"^{name} must"):
            make()  # type: ignore[no-untyped-call]


@cases("neighboring", list(Neighboring))
def test_a_check_costs_what_the_chances_of_its_noise_say(neighboring: Neighboring) -> None:
    """In 40 digits, by sums over the discrete Gaussian, for the most distant of the neighbors."""
    aggregator = ConfidentGNMax(threshold=14, check_stddev=3, stddev=4, neighboring=neighboring)
    moved = aggregator.teachers_moved
    for order in (2.0, 9.0):
        owner = Consensus(aggregator=aggregator, teachers=25, classes=3, order=order)
        answer = Consensus(
            aggregator=GNMax(stddev=4, neighboring=neighboring), teachers=25, classes=3, order=order
        )
        apart = order * aggregator.check.privacy_loss.zcdp().rho
        with mpmath.workdps(40):
            weights = {k: mpmath.exp(-mpmath.mpf(k * k) / 18) for k in range(-90, 91)}
            total = mpmath.fsum(weights.values())

            def passes(most: int) -> mpmath.mpf:
                return mpmath.fsum(w for k, w in weights.items() if k >= 14 - most) / total  # noqa: B023

            for most, gap in ((9, 5), (13, 9), (14, 3), (14, 14), (20, 18), (25, 25)):
                cost = mpmath.mpf(float(answer.table[0, gap]))
                p = passes(most)
                moments = [
                    (1 - p) ** order * (1 - other) ** (1 - order)
                    + p**order * other ** (1 - order) * mpmath.exp((order - 1) * cost)
                    for other in (passes(most + by) for by in range(-moved, moved + 1))
                ]
                exact = min(mpmath.log(max(moments)) / (order - 1), cost + apart)
                assert exact <= owner.table[most, gap] <= exact * (1 + 1e-8) + 1e-9


def test_a_check_that_never_passes_is_priced_by_its_worst_votes() -> None:
    aggregator = ConfidentGNMax(threshold=900, check_stddev=2, stddev=4)
    owner = Consensus(aggregator=aggregator, teachers=25, classes=3, order=9.0)
    assert owner.table[25, 25] <= owner.worst
    assert owner.table[25, 25] == pytest.approx(
        Consensus(aggregator=GNMax(stddev=4), teachers=25, classes=3, order=9.0).table[0, 25] + 9 / 8
    )


def test_votes_for_more_classes_than_two_cost_no_more_than_the_table_says() -> None:
    """And less where the others are far behind the second."""
    owner = Consensus(aggregator=GNMax(stddev=20), teachers=120, classes=10, order=9.0)
    few = owner.costs(np.array([[90, 20, 10]]))  # of ten classes, seven of which have no vote
    votes = np.array([[90, 20, 10, *[0] * 7]])
    assert owner.costs(votes) == pytest.approx(few, rel=1e-12)
    assert owner.costs(votes)[0] < owner.table[owner.table_indices(votes)][0] * 0.9


def test_votes_beyond_the_teachers_count_as_all_of_them() -> None:
    for aggregator in (GNMax(stddev=20), ConfidentGNMax(threshold=80, check_stddev=40, stddev=20)):
        owner = Consensus(aggregator=aggregator, teachers=120, classes=3, order=9.0)
        most, more = np.array([[120, 0, 0]]), np.array([[500, 0, 0]])
        assert owner.costs(more) == owner.costs(most)
        assert [int(index[0]) for index in owner.table_indices(more)][1] == 120
        assert owner.table_indices(more) == owner.table_indices(most)


def test_the_mean_over_the_checks_noise_is_no_bound() -> None:
    """What the paper's scripts add up: the check, and an answer's cost times the chance that there is one."""
    aggregator = ConfidentGNMax(threshold=8, check_stddev=2, stddev=0.5)
    order, votes = 4.0, np.array([4, 4, 0])
    exact = vote_divergence(aggregator, votes, order)
    chance = 1 - label_distribution(aggregator, votes)[-1]
    assert order / (2 * 2**2) + chance * order / 0.5**2 < 0.6 * exact
    owner = Consensus(aggregator=aggregator, teachers=8, classes=3, order=order)
    assert exact <= owner.costs(votes[None])[0]


def test_what_is_drawn_is_the_public_table() -> None:
    plain = Consensus(aggregator=GNMax(stddev=4), teachers=12, classes=3, order=10.0)
    ax = plain.plot(new_axes())
    assert line(ax) == (list(range(13)), plain.table[0].tolist())
    assert line(ax, 1)[1] == [plain.worst, plain.worst]
    checked = ConfidentGNMax(threshold=9, check_stddev=4, stddev=4)
    owner = Consensus(aggregator=checked, teachers=12, classes=3, order=10.0)
    drawn = np.ma.filled(owner.plot(new_axes()).images[0].get_array(), np.nan)
    possible = np.tri(13, dtype=bool)
    assert np.array_equal(drawn[possible], owner.table[possible])
    assert np.isnan(drawn[~possible]).all()
