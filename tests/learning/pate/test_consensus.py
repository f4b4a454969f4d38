"""What labels cost for the votes at hand: above the exact divergence, and released smoothly."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.learning.pate.confident import ConfidentGNMax
from sfumato.learning.pate.consensus import Consensus, _log_tails
from sfumato.learning.pate.consensus_release import ConsensusRelease
from sfumato.learning.pate.gnmax import GNMax
from sfumato.learning.pate.lnmax import LNMax
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.privacy import Neighboring
from tests.learning.pate.label_distribution import vote_divergence


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
    tails = _log_tails(2.0 * stddev**2, 900)
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


def theorem(q: float, stddev: float, order: float) -> float:
    """Papernot et al. 2018, Theorem 6 with the orders of Proposition 10, for continuous noise."""
    mu2 = stddev * math.sqrt(-math.log(q))
    mu1 = mu2 + 1
    e1, e2 = mu1 / stddev**2, mu2 / stddev**2
    assert order <= mu1
    assert q <= math.exp((mu2 - 1) * e2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2
    a = (1 - q) / (1 - (q * math.exp(e2)) ** ((mu2 - 1) / mu2))
    b = math.exp(e1) / q ** (1 / (mu1 - 1))
    return math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)


@pytest.mark.parametrize("gap", [190, 220, 245])
def test_the_bound_is_the_published_one(gap: int) -> None:
    """To a few percent: the tails are bounds, and the noise is discrete."""
    stddev, order = 40.0, 20.0
    q = 9 * math.erfc(gap / (2 * stddev)) / 2
    votes = np.array([[gap, *[0] * 9]])
    owner = Consensus(aggregator=GNMax(stddev=stddev), teachers=250, classes=10, order=order)
    published = min(theorem(q, stddev, order), order / stddev**2)
    assert owner.costs(votes)[0] == pytest.approx(published, rel=0.08)
    assert owner.costs(votes)[0] >= published * (1 - 1e-3)


def test_the_published_account_of_mnist_is_in_reach() -> None:
    """250 teachers, threshold 200, noise 150 and 40, 286 answers at delta 1e-5.

    The votes are made up, with the agreement of a good ensemble, so only the magnitude can be compared: 1.97
    was published for real votes.
    """
    aggregator = ConfidentGNMax(threshold=200, check_stddev=150, stddev=40)
    agree = np.random.default_rng(0).beta(12, 1.0, size=700)
    most = np.rint(250 * agree).astype(int)
    votes = np.zeros((700, 10), int)
    votes[:, 0], votes[:, 1] = np.maximum(most, 250 - most), np.minimum(most, 250 - most)
    labels, paid = aggregator.label(votes, 286, SimulatedSource(1))
    asked = int(np.flatnonzero(labels >= 0)[-1]) + 1
    assert paid == 286
    best = math.inf
    for order in (10.0, 14.0, 18.0, 24.0):
        owner = Consensus(aggregator=aggregator, teachers=250, classes=10, order=order)
        total = owner.costs(votes[:asked]).sum()
        best = min(best, total + math.log(1e5) / (order - 1))
    independent = aggregator.loss(questions=asked, answers=286).epsilon(1e-5)
    assert 0.8 < best < 2.3
    assert 2.2 < independent < 2.8


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
            found[cast] = (consensus.costs(votes).sum(), bound.smooth_sensitivity(votes))
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


def test_a_check_at_its_threshold_passes_no_more_often_than_half_the_time_and_a_tie() -> None:
    aggregator = ConfidentGNMax(threshold=3, check_stddev=40, stddev=0.8)
    owner = Consensus(aggregator=aggregator, teachers=25, classes=3, order=3.0)
    # The law of the class's notes: the check misses by passing, with the chance of noise of 0 or more.
    lack = -_log_tails((40 * (1 + 2.0**-52)) ** 2, 25)[:1]
    assert lack[0] == pytest.approx(math.log(2), abs=0.01)
    rho = aggregator.check.privacy_loss.zcdp().rho
    hit, missed = owner._hit(lack, rho), owner._missed(lack, rho)
    bound = np.logaddexp(hit, missed + 2 * owner._answer) / 2
    assert (owner.table[3] <= bound * (1 + 1e-6)).all()
    assert (owner.table[3] < owner.worst / 2).any()
