"""Plans for marginals: what they say of the error comes true."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import Domain, FourierMarginals, Marginals, SampledMarginals, choose
from sfumato.local.marginals.covering_design import covering
from tests.chance import accepts_only
from tests.local.laws import SEVEN_SIGMA, within

SIZES = (2, 4, 2, 3)
DOMAINS = [Domain(range(size)) for size in SIZES]
KINDS = np.array(list(product(*map(range, SIZES))))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_plans_say_what_comes(epsilon: float) -> None:
    each, repeats, generator = 1000, 50, np.random.default_rng(2)
    n = each * len(KINDS)
    choice = choose(Marginals(DOMAINS, order=2), epsilon=epsilon, n=n)
    assert [plan.error for plan in choice.plans] == sorted(plan.error for plan in choice.plans)
    assert sorted(plan.width for plan in choice.plans) == [2, 2, 3, 4]
    for plan in choice.plans:
        protocol, squares = choice.protocol(plan), []
        for _ in range(repeats):
            estimate = protocol.simulate(KINDS, np.full(len(KINDS), each), generator)
            errors = [
                np.sum((estimate.table(*pair) - 1 / (SIZES[pair[0]] * SIZES[pair[1]])) ** 2)
                for pair in combinations(range(4), 2)
            ]
            squares.append(np.mean(errors))
        # The coefficients of three categories have a little less error than planned.
        found = within(np.mean(squares), 0.03 * plan.error / SEVEN_SIGMA + np.std(squares) / np.sqrt(repeats))
        accepts_only(found, plan.error, half=plan.error / 2, twice=2 * plan.error)
        assert plan.bytes == protocol.device.width
        assert plan.construction == 0


def test_which_is_best_depends_on_epsilon() -> None:
    domains = [Domain(range(2))] * 10
    low, high = (choose(Marginals(domains, order=3), epsilon=x, n=10**6) for x in (0.5, 4.0))
    assert isinstance(low.protocol(), FourierMarginals)
    assert isinstance(high.protocol(), SampledMarginals)
    assert low.best.error > 30 * high.best.error
    assert str(low).splitlines()[1].startswith("FourierMarginals")
    short = choose(Marginals(domains, order=3), epsilon=4.0, n=10**6, max_bytes=6)
    assert all(plan.bytes <= 6 for plan in short.plans)
    assert not high.ruled_out
    told = {f"{plan.bytes} bytes a report" for plan in high.plans if plan.bytes > 6}
    assert set(short.ruled_out.values()) == told
    assert len(short.plans) + len(short.ruled_out) == len(high.plans)


def test_examples_allow_tables_that_are_put_together() -> None:
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 2, (2000, 8))
    rows[:, 1] = rows[:, 0]
    question = Marginals([Domain(range(2))] * 8, order=3, example=rows)
    few, many = (choose(question, epsilon=1.0, n=n) for n in (10_000, 10**9))
    assert few.best.construction > 0
    assert few.best.width == 2
    assert many.best.construction == 0
    # What the second attribute says of the first is in all pairs: independent noise is what is missed.
    assert few.best.construction < 1e-3


@pytest.mark.parametrize(("order", "width"), [(1, 3), (2, 2), (2, 4), (3, 5)])
def test_all_sets_are_covered(order: int, width: int) -> None:
    sizes = (2, 3, 2, 5, 2, 2, 7, 2, 2, 3)
    views = covering(sizes, order, width, 128)
    held = {one for view in views for one in combinations(view, order)}
    assert held == set(combinations(range(10), order))
    assert all(list(view) == sorted(set(view)) for view in views)
    assert len(set(views)) == len(views)
    for view in views:
        assert len(view) <= width
        assert np.prod([sizes[at] for at in view]) <= 128 or len(view) == order
    assert len(covering((2,) * 16, 3, 4, 4096)) == 140  # Steiner's quadruples: no design has fewer


def test_parameters_that_break_a_rule() -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("n must", {"n": 0}),
        ("epsilon must", {"epsilon": 0.0}),
        ("order must be at most", {"order": 5}),
        ("max_bytes must", {"max_bytes": 0}),
        ("max_bytes must leave", {"max_bytes": 1, "epsilon": 1.0, "domains": [Domain(range(100))] * 3}),
        ("example must", {"example": [[0, 0]]}),
        ("example must", {"example": [[0, 0], [1]]}),
        ("example must", {"example": 3}),
        ("values must", {"example": [[0, 9, 0, 0]]}),
        ("domains must", {"domains": [3]}),
        ("domains must", {"domains": 3}),
    ]
    for rule, change in wrong:
        whole: dict[str, Any] = {"epsilon": 1.0, "domains": DOMAINS, "n": 1000, **change}
        asked = {name: whole.pop(name) for name in ("domains", "order", "example") if name in whole}
        with pytest.raises(ParameterError, match=rule):
            choose(Marginals(**asked), **whole)
    for domains in (3, [3], DOMAINS[:1]):
        other: Any = domains
        with pytest.raises(ParameterError, match="domains must"):
            SampledMarginals.every(1, epsilon=1.0, domains=other)
        with pytest.raises(ParameterError, match="domains must"):
            FourierMarginals(epsilon=1.0, domains=other)
    with pytest.raises(ParameterError, match="order must leave"):
        Marginals([Domain(range(2))] * 200, order=4)


def test_where_coefficients_are_too_many_tables_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.local.device.marginals.fourier._MAX_COEFFICIENTS", 20)
    choice = choose(Marginals(DOMAINS), epsilon=1.0, n=10**6)
    assert {plan.name for plan in choice.plans} == {"SampledMarginals"}
