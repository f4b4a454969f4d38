"""The loss of a stated guarantee gives its numbers back, and mass is never lost."""

from __future__ import annotations

import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Guarantee, Neighboring
from sfumato.report.pages.stated_loss import stated_loss

RELATION = Neighboring.REPLACE_ONE


def test_each_notion_has_a_loss_with_its_numbers_and_relation() -> None:
    pure = stated_loss(Guarantee(neighboring=RELATION, epsilon=0.5))
    assert pure.epsilon(0.0) == 0.5
    approximate = stated_loss(Guarantee(neighboring=RELATION, epsilon=0.5, delta=1e-6))
    assert approximate.epsilon(1e-6) == pytest.approx(0.5, rel=1e-9)
    assert approximate.epsilon(9e-7) > 0.5
    rho = stated_loss(Guarantee(neighboring=RELATION, rho=0.1))
    assert rho.zcdp().rho == 0.1
    mu = stated_loss(Guarantee(neighboring=RELATION, mu=0.7, delta=1e-3))
    assert 0.7 <= mu.gdp().mu < 0.7 + 1e-12
    # (0, delta) aside: the advantage of 0.7-GDP is 0.2737.
    assert mu.risk().advantage.upper == pytest.approx(1e-3 + (1 - 1e-3) * 0.27366, abs=1e-4)
    assert {loss.neighboring for loss in (pure, approximate, rho, mu)} == {RELATION}
    assert stated_loss(Guarantee(neighboring=RELATION, epsilon=1.0, rho=9.0)).epsilon(0.0) == 1.0


def test_a_divergence_of_one_order_alone_is_refused() -> None:
    with pytest.raises(ParameterError, match="guarantee must state epsilon, rho or mu"):
        stated_loss(Guarantee(neighboring=RELATION, epsilon=1.0, order=2.0))
