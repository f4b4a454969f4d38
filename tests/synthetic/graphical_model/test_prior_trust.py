"""How far a prior is believed: by rows of its own, of a relative of it, and of something else."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.dual_fit import fit
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.graphical_model.prior_trust import PriorTrust

PRIOR = np.random.default_rng(0).dirichlet(np.full(300, 2.0))


def test_the_strength_is_one_over_how_much_more_counts_vary_than_samples_of_the_prior() -> None:
    """Counts of n rows of a Dirichlet around the prior vary (n + a)/(1 + a) times as much as of the prior."""
    rows, found = 20_000, {}
    for concentration in (1e9, 4_000.0):
        rng = np.random.default_rng(5)
        strengths = []
        for _ in range(5):
            drawn = rng.multinomial(rows, rng.dirichlet(PRIOR * concentration))
            noisy = drawn + rng.normal(0, 5.0, 300)
            strengths.append(PriorTrust().seen((0,), rows * PRIOR, noisy, np.full(300, 25.0)).strength)
        found[concentration] = float(np.mean(strengths))
    assert found[1e9] > 0.8
    assert found[4_000.0] == pytest.approx(4_001 / 24_000, rel=0.3)


def test_a_prior_is_refuted_where_counts_that_know_nothing_are_20_times_as_likely() -> None:
    """A column for itself, tables of several columns together; the median of columns decides on all of it."""
    rng, rows = np.random.default_rng(2), 20_000
    drawn = rng.multinomial(rows, PRIOR) + rng.normal(0, 5.0, 300)
    noise = np.full(300, 25.0)
    good, bad = rows * PRIOR, rows * rng.permutation(PRIOR)
    one = PriorTrust().seen((0,), good, drawn, noise)
    assert one.strength > 0.8
    assert one.seen((1,), bad, drawn, noise).strengths()[0] == {(0,): one.strength, (1,): 0.0}
    assert one.seen((1,), bad, drawn, noise).strength == 0.0
    most = one.seen((1,), good, drawn, noise).seen((2,), bad, drawn, noise)
    assert most.strength > 0.8, "one column of three is refuted, and followed as it was measured"
    pair, flat = PRIOR.reshape(20, 15), noise.reshape(20, 15)
    square = drawn.reshape(20, 15)
    product = rows * pair.sum(axis=1, keepdims=True) * pair.sum(axis=0)
    assert most.seen((0, 1), rows * pair, square, flat).strengths()[1] > 0.8
    wrong = np.maximum(0.0, 2 * product - rows * pair)  # the dependence turned around
    assert most.seen((0, 1), wrong, square, flat).strength == 0.0
    again = most.seen((0, 1), wrong, square, flat).seen((0, 1), rows * pair, square, flat)
    assert len(again.tables[0, 1][0]) == 600


def test_where_all_is_noise_a_prior_is_not_refuted() -> None:
    noisy = 100 * PRIOR + np.random.default_rng(1).normal(0, 500.0, 300)
    assert PriorTrust().seen((0,), 100 * PRIOR, noisy, np.full(300, 250_000.0)).strength > 0


def test_a_fit_weighs_the_prior_by_its_strength() -> None:
    """At the optimum the log-weights are the errors over slacks, here the variances times the strength."""
    rng, total = np.random.default_rng(3), 5_000.0
    counts = rng.multinomial(5_000, PRIOR) + rng.normal(0, 20.0, 300)
    trust = PriorTrust().seen((0,), total * PRIOR, counts, np.full(300, 400.0))
    base = BaseMeasure((300,), {(0,): np.log(PRIOR)})
    for believed in (trust, None):
        measured = Measurements((300,), {(0,): NoisyTable(counts, 400.0)}, total, base, believed)
        fitted = fit(measured, tolerance=1e-9, iterations=500)
        q = ModelMarginals(fitted.model)((0,))
        slack = 400.0 * (0.01 if believed is None else believed.strength)
        np.testing.assert_allclose(fitted.thetas[(0,)], (counts - total * q) / slack, atol=1e-5)
        assert fitted.prior_strength == (0.0 if believed is None else trust.strength)
        error = float(np.abs(q - PRIOR).sum() / 2)
        assert (error < 0.08) is (believed is not None)
