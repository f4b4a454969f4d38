"""Laplace leaves side by side."""

from __future__ import annotations

import numpy as np

from sfumato.privacy import Gaussian, Laplace, compose
from sfumato.privacy.accountant import closed_forms

ORDERS = 1 + np.exp2(np.linspace(-8.0, 8.0, 17))


def test_curves_side_by_side_are_those_of_each_leaf() -> None:
    losses = [Laplace(scale) for scale in (1e-4, 0.1, 1.0, 7.5, 1e5, 0.0)]
    rows = Laplace.rdp_curves(losses, ORDERS)
    for row, loss in zip(rows, losses, strict=True):
        np.testing.assert_allclose(row, loss.rdp_curve(ORDERS), rtol=1e-15)
    assert np.isinf(rows[-1]).all()
    others = [Gaussian(1.0), Gaussian(3.0)]
    assert (Gaussian.rdp_curves(others, ORDERS)[1] == others[1].rdp_curve(ORDERS)).all()


def test_divergences_of_many_leaves_add_up() -> None:
    parts = [*(Laplace(1.0 + k) * (k % 3 + 1) for k in range(300)), Gaussian(2.0) * 5]
    total = sum(count * term.rdp_curve(ORDERS) for part in parts for term, count in part.terms)
    found = closed_forms.rdp(compose(parts).terms, ORDERS)
    assert (found >= total * (1 - 1e-14)).all()
    np.testing.assert_allclose(found, total, rtol=1e-12)
