"""The trust report of secure aggregation: which collusion leaves which noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

import pytest

from sfumato.errors import ParameterError
from sfumato.federated.distributed_noise.discrete_gaussian import DistributedDiscreteGaussian
from sfumato.federated.distributed_noise.skellam import DistributedSkellam
from sfumato.federated.secure_aggregation.degree import plan_neighbors, security_failure_bound
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.federated.secure_aggregation_trust import fewest_breaking, secure_aggregation_report
from sfumato.privacy import DiscreteGaussianSum, Neighboring

NOISE = DistributedDiscreteGaussian(
    clients=40, minimum_survivors=32, dimension=6, clip_norm=1.0, noise_multiplier=5.0, bits=18, colluders=4
)


def _left(honest: int, delta: float, rounds: int) -> float:
    loss = DiscreteGaussianSum(
        NOISE.share, honest, NOISE.l2_squared, NOISE.padded, neighboring=Neighboring.ZERO_OUT
    )
    return (loss * rounds).epsilon(delta)


def test_each_colluder_takes_its_noise_with_it_until_the_masks_break() -> None:
    plan = NOISE.secure_aggregation()
    assert (plan.shares, fewest_breaking(plan)) == (20, 20)
    report = secure_aggregation_report(plan, NOISE, delta=1e-6, rounds=3, colluders=[0, 4, 19, 20, 35])
    assert [row.masks_hold for row in report.rows] == [True, True, True, False, False]
    expected = [_left(honest, 1e-6, 3) for honest in (32, 28, 13, 1, 1)]
    assert [row.epsilon for row in report.rows] == pytest.approx(expected, rel=1e-12)
    assert report.rows[1].epsilon == pytest.approx((NOISE.privacy_loss * 3).epsilon(1e-6), rel=1e-12)
    assert report.delta == 1e-6
    shown = " ".join(report.statements)
    assert "collude with 20 clients" in shown
    assert "neither is checked by the server" in shown
    assert "31 of them isolate one client" in shown
    assert "sure for 28 honest survivors, 4 colluders" in shown
    assert "32 of 40 clients" in shown
    assert "exact" not in shown
    assert "3 rounds of each client" in report.setting


def test_the_rows_stand_around_the_limits() -> None:
    report = secure_aggregation_report(NOISE.secure_aggregation(), NOISE, delta=1e-6)
    assert [row.colluders for row in report.rows] == [0, 1, 4, 10, 19, 20, 31]
    sparse = secure_aggregation_report(
        NOISE.secure_aggregation(degree=20, threshold=11), NOISE, delta=1e-6, rounds=1
    )
    assert [row.colluders for row in sparse.rows] == [0, 1, 4, 5, 8, 10, 11, 31]
    assert "11 of a client's 20 neighbors" in sparse.statements[1]
    noise = replace(NOISE, clients=49, minimum_survivors=39, colluders=0, scale=None)
    sparse = secure_aggregation_report(noise.secure_aggregation(degree=40, threshold=27), noise, delta=1e-6)
    assert [row.colluders for row in sparse.rows] == [0, 1, 4, 9, 13, 26, 27, 38]


def test_an_infinite_epsilon_is_no_bound() -> None:
    report = secure_aggregation_report(
        NOISE.secure_aggregation(), NOISE, delta=1e-6, rounds=10**310, colluders=[0, 20]
    )
    assert [row.epsilon for row in report.rows] == [None, None]
    assert report.statements[-1].endswith("own noise is in its message: no bound.")


def test_the_chance_that_a_graph_fails_comes_out_of_delta() -> None:
    plan = NOISE.secure_aggregation(degree=24, threshold=17)
    failure = security_failure_bound(40, degree=24, threshold=17, dropped=8, corrupt=7)
    assert 0 < 5 * failure < Fraction(1, 10)
    delta = float(5 * failure * 3)
    row = secure_aggregation_report(plan, NOISE, delta=delta, rounds=5, colluders=[7]).rows[0]
    assert row.masks_hold
    assert row.epsilon == pytest.approx(_left(25, delta * 2 / 3, 5), rel=1e-9)
    row = secure_aggregation_report(plan, NOISE, delta=delta / 2, rounds=5, colluders=[7]).rows[0]
    assert not row.masks_hold
    assert row.epsilon == pytest.approx(_left(1, delta / 2, 5), rel=1e-12)


def test_a_server_that_deviates_needs_fewer() -> None:
    noise = replace(NOISE, minimum_survivors=35)
    plan = noise.secure_aggregation(active=True)
    assert plan.shares == 27
    assert fewest_breaking(plan) == 2 * 28 - 40
    report = secure_aggregation_report(plan, noise, delta=1e-6, colluders=[15, 16])
    assert [row.masks_hold for row in report.rows] == [True, False]
    assert "register that the server does not keep" in " ".join(report.statements)
    assert "active mode" in report.setting
    assert fewest_breaking(replace(plan, threshold=39)) == 39


def test_on_a_sparse_graph_a_server_that_deviates_tries_many_graphs() -> None:
    noise = DistributedDiscreteGaussian(
        clients=200, minimum_survivors=150, dimension=4, clip_norm=1.0, noise_multiplier=4.0, bits=18
    )
    graph = plan_neighbors(200, dropout=0.05, corruption=0.05, active=True)
    plan = noise.secure_aggregation(degree=graph.degree, threshold=graph.threshold, active=True)
    half = graph.degree // 2
    assert fewest_breaking(plan) == min(graph.threshold - half, 2 * 150 - 200)
    said = " ".join(secure_aggregation_report(plan).statements)
    assert f"collude with 100 clients, or {graph.threshold - half} of {half} in a row" in said
    assert min(row.colluders for row in secure_aggregation_report(plan, noise, delta=1e-6).rows) == 0
    report = secure_aggregation_report(plan, noise, delta=1e-6, colluders=[10, 30, 99, 100])
    assert [row.masks_hold for row in report.rows] == [True, False, False, False]
    # All others as neighbors: what decides is the quorum, whatever the graph.
    whole = SecureAggregation(clients=9, length=1, bounds=(0, 1), bits=4, minimum_survivors=7, active=True)
    assert fewest_breaking(whole) == min(6, 2 * 7 - 9)
    graphs = {
        active: security_failure_bound(200, degree=40, threshold=31, dropped=0, corrupt=11, active=active)
        for active in (False, True)
    }
    tail = sum(Fraction(comb(11, k) * comb(189, 20 - k), comb(200, 20)) for k in (11,))
    assert graphs[True] == min(Fraction(1), 2**60 * 200 * tail)
    assert graphs[False] < graphs[True]


def test_skellam_noise_has_a_report_too() -> None:
    noise = DistributedSkellam(
        clients=40,
        minimum_survivors=32,
        dimension=6,
        clip_norm=1.0,
        noise_multiplier=5.0,
        bits=18,
        colluders=4,
    )
    report = secure_aggregation_report(
        noise.secure_aggregation(), noise, delta=1e-6, rounds=2, colluders=[4, 20]
    )
    assert report.rows[0].epsilon == pytest.approx((noise.privacy_loss * 2).epsilon(1e-6), rel=1e-12)
    assert not report.rows[1].masks_hold
    assert report.rows[1].epsilon == pytest.approx((noise.loss_against(31) * 2).epsilon(1e-6), rel=1e-12)


def test_an_exact_sum_is_no_differential_privacy() -> None:
    plan = SecureAggregation(clients=9, length=1, bounds=(0, 1), bits=4, minimum_survivors=7)
    report = secure_aggregation_report(plan)
    assert "no differential privacy" in str(report)
    assert (report.rows, report.delta) == ((), None)


def test_the_failure_of_a_graph_is_the_hypergeometric_tail() -> None:
    assert security_failure_bound(9, degree=8, threshold=5, dropped=2, corrupt=5) == 1
    assert security_failure_bound(9, degree=8, threshold=5, dropped=8, corrupt=4) == 0
    tail = sum(Fraction(comb(6, k) * comb(13, 8 - k), comb(19, 8)) for k in (5, 6))
    apart = Fraction(comb(9, 4), comb(20, 4))
    found = security_failure_bound(20, degree=8, threshold=5, dropped=3, corrupt=6)
    assert found == min(Fraction(1), 20 * (tail + apart))
    plan = plan_neighbors(200, dropout=0.1, corruption=0.1)
    again = security_failure_bound(200, degree=plan.degree, threshold=plan.threshold, dropped=20, corrupt=20)
    assert float(again) == pytest.approx(plan.security_failure, rel=1e-9)


def test_what_does_not_fit_is_refused() -> None:
    plan = NOISE.secure_aggregation()
    for other in (replace(NOISE, bits=20, scale=None), replace(NOISE, dimension=9, scale=None)):
        with pytest.raises(ParameterError, match="noise must be for the plan's vectors and survivors"):
            secure_aggregation_report(plan, other, delta=1e-6)
    more = replace(NOISE, minimum_survivors=33, scale=None)
    with pytest.raises(ParameterError, match="noise must be for the plan's vectors and survivors"):
        secure_aggregation_report(plan, more, delta=1e-6)
    clipped = SecureAggregation(clients=40, length=8, bounds=(-9, 9), bits=18, minimum_survivors=32)
    with pytest.raises(ParameterError, match="noise must be for the plan's vectors and survivors"):
        secure_aggregation_report(clipped, NOISE, delta=1e-6)
    with pytest.raises(ParameterError, match="delta must be"):
        secure_aggregation_report(plan, NOISE)
    with pytest.raises(ParameterError, match="colluders must be below the 40 clients"):
        secure_aggregation_report(plan, NOISE, delta=1e-6, colluders=[40])
    with pytest.raises(ParameterError, match="rounds must be"):
        secure_aggregation_report(plan, NOISE, delta=1e-6, rounds=0)
