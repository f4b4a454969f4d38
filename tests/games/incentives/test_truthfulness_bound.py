"""What a lie gains at most by theorem: closed forms, attained by a test, never passed by a mechanism."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import ExponentialChoice, Game, regret, truthfulness
from sfumato.privacy import Exponential, Gaussian, Neighboring, PrivacyLoss, PureDP

REPLACE = Neighboring.REPLACE_ONE


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_closed_forms_of_the_additive_bound(epsilon: float) -> None:
    pure = truthfulness(PureDP(epsilon, neighboring=REPLACE), (-1, 3))
    assert pure.gain == pytest.approx(4 * math.tanh(epsilon / 2), rel=1e-9)
    assert pure.gain >= 4 * math.tanh(epsilon / 2) - 1e-15
    assert pure.factor == pytest.approx(math.exp(epsilon), rel=1e-12)
    ranged = truthfulness(Exponential(epsilon, neighboring=REPLACE))
    assert ranged.gain == pytest.approx(math.tanh(epsilon / 4), rel=1e-9)


def test_the_tight_bound_is_attained_by_randomized_response() -> None:
    epsilon = 0.8
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    bound = truthfulness(PureDP(epsilon, neighboring=REPLACE), (0, 2))
    # A utility of 2 for one answer: the truth gives it with 1 - p, the lie with p.
    assert bound.utility_of_lie(2 * (1 - p)) == pytest.approx(2 * p, rel=5e-3)
    assert bound.utility_of_lie(2 * (1 - p)) >= 2 * p - 1e-12
    assert bound.utility_of_lie(0.0) == pytest.approx(0.0, abs=1e-9)
    assert bound.utility_of_lie(2.0) == 2.0


def test_a_gaussian_loss_has_an_additive_bound_only() -> None:
    bound = truthfulness(Gaussian(1.0, neighboring=REPLACE), (0, 1))
    assert bound.factor == math.inf
    assert bound.gain == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-6)
    assert "approximately" in str(bound).lower()


@pytest.mark.parametrize("loss", [PureDP(0.5), Exponential(0.5), Exponential(3.0), Gaussian(0.5)])
def test_no_bound_on_a_lies_utility_exceeds_the_other_two(loss: PrivacyLoss) -> None:
    bound = truthfulness(loss, (-1, 3))
    for truth in np.linspace(-1, 3, 33).tolist():
        found = bound.utility_of_lie(truth)
        assert truth <= found <= truth + bound.gain + 1e-15
        assert math.isinf(bound.factor) or found <= -1 + bound.factor * (truth + 1) + 1e-15


def test_liars_together_pay_for_a_group() -> None:
    loss = PureDP(0.2, neighboring=REPLACE)
    bound = truthfulness(loss, liars=3)
    assert bound.gain == pytest.approx(math.tanh(0.3), rel=1e-9)
    assert "3 agents together" in str(bound)
    assert bound.utility_of_lie(0.5) > truthfulness(loss).utility_of_lie(0.5)


def test_no_lie_on_a_full_grid_of_types_passes_any_of_the_three_bounds() -> None:
    table = np.random.default_rng(5).random((3, 4))
    game = Game(types=range(3), alternatives=range(4), utilities=table, agents=3)
    choice = ExponentialChoice(game=game, epsilon=2.0)
    bound = truthfulness(choice.privacy_loss, game.utility_range)
    tight: dict[float, float] = {}
    for profile in product(range(3), repeat=3):
        truth = float(choice.probabilities(profile) @ table[profile[0]])
        tight[truth] = bound.utility_of_lie(truth)
        assert tight[truth] <= bound.factor * truth * 1.001
        assert tight[truth] <= (truth + bound.gain) * 1.001
        for report in range(3):
            lie = float(choice.probabilities((report, *profile[1:])) @ table[profile[0]])
            assert lie <= bound.factor * truth
            assert lie <= truth + bound.gain
            assert lie <= tight[truth]


def test_what_is_no_loss_or_no_range_is_refused() -> None:
    loss = PureDP(1.0)
    with pytest.raises(ParameterError, match="loss must be a PrivacyLoss"):
        truthfulness(1.0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="utility_range must be of finite length"):
        truthfulness(PureDP(1.0), (-1e308, 1e308))
    with pytest.raises(ParameterError, match="utility_range must end above"):
        truthfulness(loss, (1, 0))
    with pytest.raises(ParameterError, match="liars must be an integer of at least 1"):
        truthfulness(loss, liars=0)
    with pytest.raises(ParameterError, match=r"utility_of_truth must be from 0.0 to 1.0"):
        truthfulness(loss).utility_of_lie(1.5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_both_bounds_are_attained_by_a_lie_that_is_found(epsilon: float) -> None:
    # Agents who want what the scores count against: the mechanism helps whoever reports the contrary.
    scores, wanted = [[0, 1], [1, 0]], [[1, 0], [0, 1]]
    for agents in (1, 3):
        game = Game(types="ab", alternatives="xy", utilities=wanted, agents=agents)
        choice = ExponentialChoice(game=game, epsilon=epsilon, scores=scores)
        bound = truthfulness(choice.privacy_loss)
        found = regret(choice, game)
        assert found.gain.lower == pytest.approx(bound.gain, rel=1e-6)
        assert found.gain.lower <= bound.gain
        assert found.witness.type != found.witness.report
    many = Game(types="ab", alternatives="xy", utilities=wanted, agents=60)
    choice = ExponentialChoice(game=many, epsilon=epsilon, scores=scores)
    ratios = []
    for count in range(60):  # how many of the others are of type a
        others = "a" * count + "b" * (59 - count)
        for kind, lie in ("ab", "ba"):
            at = "ab".index(kind)
            truth, gained = (choice.probabilities(one + others)[at] for one in (kind, lie))
            ratios.append(gained / truth)
    assert max(ratios) <= math.exp(epsilon) * (1 + 1e-12)
    assert max(ratios) >= math.exp(epsilon) * (0.95 if epsilon == 0.1 else 0.999999)
