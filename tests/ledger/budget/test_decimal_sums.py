"""Equal parts that sum to the budget as decimals fit into it, and one more does not."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, PrivacyFilter
from sfumato.ledger.budget.spent import NOTHING, BinarySpent, Spent
from sfumato.mechanisms import Gaussian, Laplace, Quantile
from sfumato.privacy import ZCDP, ApproximateDP, DiscreteLaplace, PrivacyLoss, PureDP

DECIMALS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(-exponent), st.integers(1, 9999), st.integers(1, 5)
).filter(lambda part: part <= 20)
COUNTS = st.integers(1, 40)


def fit(budget: Budget, losses: list[PrivacyLoss], delta: float = 0.0) -> bool:
    """Charge all of these, and then see that the smallest further charge is refused."""
    account = PrivacyFilter(budget)
    for loss in losses:
        account.charge(loss, delta=delta)
    return not account.would_accept(losses[0], delta=delta)


@given(DECIMALS, COUNTS)
def test_parts_of_epsilon_fit(part: Decimal, count: int) -> None:
    budget, epsilon = Budget.pure(epsilon=float(part * count)), float(part)
    answer = Laplace.calibrated(sensitivity=1, epsilon=epsilon)
    exact = 1 / Fraction(part)
    # Where the float is less than the decimal, noise is for the float: the loss is at most either.
    assert Fraction(answer.scale) == exact or Fraction(epsilon) < Fraction(part)
    assert exact <= Fraction(answer.scale) <= exact * (1 + Fraction(1, 10**9))
    assert fit(budget, [answer.privacy_loss] * count)
    assert fit(budget, [PureDP(epsilon)] * count)
    assert fit(Budget.pure(epsilon=float(part * count)), [PureDP(epsilon) * count])


@given(st.lists(DECIMALS, min_size=1, max_size=12))
def test_unequal_parts_fit(parts: list[Decimal]) -> None:
    losses = [Laplace.calibrated(sensitivity=1, epsilon=float(part)).privacy_loss for part in parts]
    assert fit(Budget.pure(epsilon=float(sum(parts))), losses)


@given(DECIMALS, COUNTS)
def test_parts_of_rho_fit(part: Decimal, count: int) -> None:
    assert fit(Budget.zcdp(rho=float(part * count)), [ZCDP(float(part))] * count)


@given(DECIMALS, st.integers(1, 9999), st.integers(7, 12), COUNTS)
def test_parts_of_epsilon_and_delta_fit(part: Decimal, digits: int, exponent: int, count: int) -> None:
    mass = Decimal(digits).scaleb(-exponent - 4)
    half = float(mass * count)
    budget = Budget.approximate(epsilon=float(part * count), delta=float(2 * mass * count))
    assert budget.filters.members[0].delta == half
    account = PrivacyFilter(budget)
    for _ in range(count):
        account.charge(ApproximateDP(float(part), float(mass)), delta=float(mass))
    assert account.spent().epsilon == float(part * count)
    assert account.spent().delta == half


@pytest.mark.parametrize(("epsilon", "delta", "count"), [(0.1, 1e-7, 10), (0.3, 3e-9, 3)])
def test_calibrated_answers_fit_as_they_were_asked(epsilon: float, delta: float, count: int) -> None:
    whole = Budget.approximate(
        epsilon=float(Decimal(repr(epsilon)) * count), delta=float(2 * Decimal(repr(delta)) * count)
    )
    gaussian = Gaussian.calibrated(sensitivity=1, epsilon=epsilon, delta=delta)
    for loss in (
        gaussian.privacy_loss,
        Laplace.calibrated(sensitivity=1, epsilon=epsilon, delta=delta).privacy_loss,
    ):
        cost = whole.filters.members[0].price(loss, delta)
        total = NOTHING
        for _ in range(count):
            total = total.plus(cost)
        assert whole.filters.members[0].holds(total)
    median = Quantile(epsilon=epsilon, bounds=(0, 10), quantile=0.5)
    pure = Budget.pure(epsilon=whole.epsilon or 0.0)
    assert fit(pure, [median.privacy_loss] * count)


@pytest.mark.parametrize(
    ("count", "options", "whole"),
    [
        (3, "epsilon=0.3, delta=0", {"epsilon": 0.9}),
        (5, "epsilon=0.2, delta=0", {"epsilon": 1.0}),
        (10, "epsilon=0.1, delta=0", {"epsilon": 1.0}),
        (10, "epsilon=0.1, delta=1e-7", {"epsilon": 1.0, "delta": 2e-6}),
    ],
)
def test_answers_of_a_session_fit(count: int, options: str, whole: dict[str, float]) -> None:
    people = pa.table({"person": range(100), "x": range(100)})
    query = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) COUNT(*) AS n FROM data WHERE x >= "
    with sf.connect(people, privacy_unit="person", rng=1, **whole) as session:  # type: ignore[call-overload]
        for at in range(count):
            release = session.sql(f"{query}{at}")
        epsilon = Fraction(options.partition("=")[2].partition(",")[0])
        assert release.epsilon <= float(epsilon)
        assert release.loss == DiscreteLaplace(1 / epsilon) or epsilon == Fraction(3, 10)
        if "delta" not in whole:
            with pytest.raises(BudgetExceeded, match=r"epsilon is used up|with \S+e-0[89]-DP left"):
                session.sql(f"{query}{count}")


def test_stated_parts_and_thirds_of_a_query_fit() -> None:
    people = pa.table({"person": range(100), "x": range(100)})
    head = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1, delta=0)"
    total = "SUM(x, contribution_bounds_per_group => (0, 9)) AS s"
    thirds = f"{head} COUNT(*) AS n, {total}, COUNT(DISTINCT person) AS u FROM data"
    parts = f"{head} COUNT(*, epsilon => 0.03) AS n, COUNT(x, epsilon => 0.07) AS s FROM data"
    with sf.connect(people, privacy_unit="person", rng=1, epsilon=0.2) as session:
        for terms in [session.sql(text).loss.terms for text in (thirds, parts)]:
            spent = sum(count * Fraction(term.pure_epsilon()) for term, count in terms)
            assert Fraction(1, 10) * (1 - Fraction(1, 10**6)) < spent <= Fraction(1, 10)
        left = session.ledger.remaining().epsilon
        assert left is not None
        assert left < 1e-7


@given(st.lists(st.floats(0.0, 10.0), max_size=20), st.lists(st.floats(0.0, 10.0), max_size=20))
def test_floats_from_before_are_never_less_than_they_were(old: list[float], new: list[float]) -> None:
    total: Spent = NOTHING
    for amount in old:
        total = total.plus(BinarySpent(amount, 0.0))
    assert isinstance(total, BinarySpent) or not old
    for amount in new:
        total = total.plus(Spent(amount, 0.0))
    exact = sum(map(Fraction, old), Fraction(0)) + sum((Fraction(repr(x)) for x in new), Fraction(0))
    read = Fraction(total.amount) if isinstance(total, BinarySpent) else Fraction(repr(total.amount))
    assert exact <= read <= exact * (1 + Fraction(42, 2**51)) + Fraction(1, 10**300)
