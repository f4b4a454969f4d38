"""The figures of PATE's papers beside ours, as `docs/pate.md` has them."""

from __future__ import annotations

import math
from pathlib import Path

import mpmath
import pytest

from sfumato.learning.pate.consensus import Consensus
from sfumato.learning.pate.lnmax import LNMax
from sfumato.privacy import RDPCurve
from tests.cases import cases
from tests.learning.pate.published_votes import CONFIDENT, ConfidentRun, expected_divergence

GUIDE = (Path(__file__).parents[3] / "docs/pate.md").read_text("utf-8")
LAPLACE = [
    # data, answers, delta, published (Papernot et al. 2017, Figure 4)
    ("MNIST", 100, 1e-5, 2.04),
    ("MNIST", 1000, 1e-5, 8.03),
    ("SVHN", 500, 1e-6, 5.04),
    ("SVHN", 1000, 1e-6, 8.19),
]


def by_eight_moments(answer_epsilon: float, answers: int, delta: float) -> float:
    """The data-independent bound of the authors' `analysis.py`: pure DP, and moments 1 to 8."""
    moments = {k: min(answer_epsilon**2 * k * (k + 1) / 2, answer_epsilon * k) for k in range(1, 9)}
    return min((answers * moment + math.log(1 / delta)) / k for k, moment in moments.items())


@cases(("data", "answers", "delta", "published"), LAPLACE)
def test_laplace_noise_for_any_votes(data: str, answers: int, delta: float, published: float) -> None:
    loss = LNMax(scale=20).loss(questions=answers)
    theirs, ours = by_eight_moments(2 / 20, answers, delta), loss.epsilon(delta)
    assert loss.epsilon(0.0) == pytest.approx(answers / 10, rel=1e-9)
    assert published < ours < theirs
    row = f"| {data} | 20 | {answers:,} | {delta:.0e} | {published} | {theirs:.2f} | {ours:.2f} |"
    assert row.replace("e-0", "e-") in GUIDE


def test_an_answer_at_scale_20_costs_a_tenth() -> None:
    """One teacher moves two counts: 2/20. The paper's text says 0.05, its sum of 1,000 answers 0.1."""

    def advanced_composition(epsilon: float, count: int, delta: float) -> float:
        return math.sqrt(2 * count * math.log(1 / delta)) * epsilon + count * epsilon * math.expm1(epsilon)

    assert LNMax(scale=20).answer_loss.epsilon(0.0) == pytest.approx(0.1, rel=1e-12)
    assert advanced_composition(0.1, 1000, 1e-5) == pytest.approx(26, abs=0.5)
    assert advanced_composition(0.05, 1000, 1e-5) < 11
    # The default of their script, and of PySyft's copy, is noise at scale 10: the figure in many tutorials.
    assert by_eight_moments(2 * 0.1, 100, 1e-5) == pytest.approx(11.756462732485115, rel=1e-12)
    assert "11.76" in GUIDE
    assert f"{LNMax(scale=10).loss(questions=100).epsilon(1e-5):.2f} in truth" in GUIDE


@cases("run", CONFIDENT)
def test_confident_answers(run: ConfidentRun) -> None:
    loss = run.aggregator.loss(questions=run.questions, answers=run.answers)
    rho = run.questions / (2 * run.check_stddev**2) + run.answers / run.stddev**2
    assert loss.zcdp().rho == pytest.approx(rho, rel=1e-9)
    ours = loss.epsilon(run.delta)
    assert run.published < ours < run.by_moments

    votes, weight = run.votes()
    with mpmath.workdps(30):
        found = [expected_divergence(run, row) for row in votes]
        theirs = float(sum(cost for cost, _ in found)) * weight
        answered = float(sum(chance for _, chance in found)) * weight
    assert answered == pytest.approx(run.answers, rel=2e-3)
    theirs += math.log(1 / run.delta) / (run.order - 1)
    owner = Consensus(aggregator=run.aggregator, teachers=run.teachers, classes=10, order=run.order)
    total = float(owner.costs(votes).sum() * weight)
    assert total + math.log(1 / run.delta) / (run.order - 1) == pytest.approx(theirs, rel=0.07)
    by_votes = RDPCurve([run.order], [total]).epsilon(run.delta)
    assert by_votes < theirs
    parameters = f"{run.threshold:,}, {run.check_stddev}, {run.stddev}"
    counts = f"{run.answers:,} of {run.questions:,}"
    figures = f"{run.published} | {run.by_moments:.2f} | {ours:.2f} | {theirs:.2f} | {by_votes:.2f}"
    row = f"| {run.data} | {parameters} | {counts} | {run.delta:.0e} | {figures} |"
    assert row.replace("e-0", "e-") in GUIDE, row
