"""Delta at many epsilons of one loss: enclosed as by single readings, whatever was asked before."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from sfumato.privacy import Gaussian, Laplace, PoissonSubsampled, Precision, PrivacyLoss, PureDP
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.delta_curve import DeltaCurve
from sfumato.privacy.accountant.inversion import Line

EPSILONS = [0.0, 0.1, 1.0, 4.0]


def curve(loss: PrivacyLoss, relative: float) -> DeltaCurve:
    return DeltaCurve([(term.dominating_pair(), count) for term, count in loss.terms], relative)


def run(steps: int = 1000) -> PrivacyLoss:
    return PoissonSubsampled(Gaussian(1.0), 0.01) * steps


def test_a_curve_encloses_what_single_readings_enclose() -> None:
    mixed = run(100) + Laplace(5.0) * 10 + Gaussian(4.0)
    for loss in (run(), mixed):
        found = curve(loss, 1e-3)
        for epsilon in EPSILONS:
            one = loss.delta_interval(epsilon, Precision(1e-4))
            lower, upper, _ = found.interval(epsilon)
            assert lower <= one.upper, epsilon
            assert upper >= one.lower, epsilon
            assert upper - lower <= 1e-3 * upper, epsilon


def test_a_curve_encloses_exact_sums() -> None:
    with mpmath.workdps(60):
        for steps, epsilon in ((40, 1), (40, mpmath.mpf("0.3")), (1000, mpmath.mpf("0.05"))):
            p = 1 / (1 + mpmath.exp(-epsilon))
            found = curve(PureDP(float(epsilon)) * steps, 1e-6)
            for at in (0.0, 0.7, 3.1):
                exact = mpmath.mpf(0)
                for ups in range(steps + 1):
                    loss = (2 * ups - steps) * mpmath.mpf(float(epsilon))
                    if loss > at:
                        mass = mpmath.binomial(steps, ups) * p**ups * (1 - p) ** (steps - ups)
                        exact += mass * (1 - mpmath.exp(at - loss))
                lower, upper, _ = found.interval(at)
                assert lower <= exact * (1 + mpmath.mpf("1e-12"))
                assert exact * (1 - mpmath.mpf("1e-12")) <= upper
                assert upper - lower <= 2e-6 * upper


def test_a_reading_does_not_depend_on_those_before_it() -> None:
    alone = curve(run(), 1e-3).interval(1.0)
    used = curve(run(), 1e-3)
    for epsilon in EPSILONS:
        used.interval(epsilon)
    assert used.interval(1.0) == alone


def test_all_readings_of_a_run_share_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, prepare = [0], Line._prepare

    def counted(line: Line) -> None:
        prepared[0] += 1
        assert line.points < 2000
        prepare(line)

    monkeypatch.setattr(Line, "_prepare", counted)
    loss = run(1001)
    loss.curve("trade-off")
    assert 0 < prepared[0] <= 40
    loss.risk()
    loss.loss_variable().quantile(0.99)
    assert prepared[0] <= 60


def test_a_loss_without_pairs_of_neighbors_is_read_one_by_one() -> None:
    single = PoissonSubsampled(Gaussian(1.0), 0.01)
    bounds = intervals.delta_on_curve(single, 0.5, Precision(1e-3))
    assert bounds == single.delta_interval(0.5, Precision(1e-3))
    assert bounds.lower < bounds.upper


def test_a_deep_composition_at_a_large_delta_needs_no_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its epsilon lies where Chernoff's bound says little: the line must be made for the right place."""
    points, prepare = [0], Line._prepare

    def counted(line: Line) -> None:
        points[0] += line.points
        prepare(line)

    monkeypatch.setattr(Line, "_prepare", counted)
    found = (PureDP(1.0) * 10**6).epsilon_interval(0.5)
    # The exact median of a binomial loss, moved by what the hockey-stick divergence takes off.
    assert found.lower < 462_116.9
    assert found.upper > 462_115.0
    assert found.upper - found.lower < 1e-3 * found.upper
    assert points[0] < 20_000


def test_pairs_of_one_kind_side_by_side_are_the_pairs_alone() -> None:
    losses = [Laplace(20.0 + i) for i in range(70)]
    columns = np.array([loss.dominating_pair().parameters for loss in losses], float).T[..., None]
    rows = losses[0].dominating_pair().stacked(columns)
    cuts = rows.cuts(8.0)
    bins = rows.bins(cuts, swapped=False)
    for i, loss in enumerate(losses):
        pair = loss.dominating_pair()
        one = pair.bins(pair.cuts(8.0), swapped=False)
        assert bins.split().loss[i] == pytest.approx(one.split().loss, rel=1e-12)
        assert bins.merged().log_mass[i] == pytest.approx(one.merged().log_mass, rel=1e-12)
