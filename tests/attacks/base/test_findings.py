"""The shape of all attacks: rates with intervals, curves, bounds only where they hold, and JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from sfumato import attacks
from sfumato.attacks import Findings, Knowledge, TargetGuesses
from sfumato.attacks.base.accusations import accusations
from sfumato.attacks.base.loss_bounds import AttackBound
from sfumato.errors import ParameterError
from sfumato.numerics.interval import Interval
from sfumato.privacy import ApproximateDP, GaussianDP, Neighboring, PureDP
from tests.cases import cases

REPLACE = Neighboring.REPLACE_ONE


def made(scores: list[float], claimed: list[Any], **options: Any) -> TargetGuesses:
    values = np.array(scores)
    return TargetGuesses(guesses=values, scores=values, claimed=np.array(claimed), **options)


def accused(count: int, people: int) -> TargetGuesses:
    flags = np.arange(people) < count
    return TargetGuesses(
        guesses=flags, scores=flags.astype(float), claimed=flags, correct=np.ones(people, bool)
    )


def presence(**options: Any) -> Findings:
    chosen: dict[str, Any] = {"targets": accused(80, 100), "controls": accused(10, 100), "exchangeable": True}
    chosen |= {"attack": "test", "kind": "presence", "knowledge": Knowledge(("nothing",))}
    return Findings(**(chosen | options))


def test_rates_have_clopper_pearson_intervals_that_hold_together() -> None:
    found = presence(confidence=0.95)
    assert found.success is not None
    assert found.baseline is not None
    # Four ends of .0125 each.
    exact = [binomtest(hits, 100).proportion_ci(0.975) for hits in (80, 10)]
    assert found.success[:2] == pytest.approx(list(exact[0]), abs=1e-5)
    assert found.baseline[:2] == pytest.approx(list(exact[1]), abs=1e-5)
    assert found.advantage is not None
    assert found.advantage.lower == found.success.lower - found.baseline.upper
    assert found.precision is not None
    true, false = exact[0].high, exact[1].low
    assert found.precision.upper == pytest.approx(true / (true + false), abs=1e-4)
    rare = presence(prior=0.01).precision
    assert rare is not None
    assert rare.upper == pytest.approx(0.01 * true / (0.01 * true + 0.99 * false), abs=1e-4)


def test_bounds_are_those_of_the_loss_between_the_worlds_that_are_compared() -> None:
    success, advantage, precision = presence(loss=PureDP(1.0, neighboring=REPLACE)).bounds
    assert advantage.allowed == pytest.approx((np.e - 1) / (np.e + 1), abs=1e-9)
    rate = binomtest(10, 100).proportion_ci(0.975).high
    exact = min(np.e * rate, 1 - (1 - rate) / np.e)
    assert exact <= success.allowed < exact + 0.002
    assert precision.allowed == pytest.approx(np.e / (1 + np.e), abs=1e-9)
    assert success.exceeded
    # A control takes a target's place: two steps of add/remove.
    doubled = presence(loss=PureDP(1.0)).bounds
    assert doubled[1].allowed == pytest.approx((np.e**2 - 1) / (np.e**2 + 1), abs=1e-9)
    once = presence(loss=PureDP(1.0), worlds=Neighboring.ADD_REMOVE, design="runs").bounds
    assert once[1].allowed == pytest.approx(advantage.allowed, abs=1e-9)


def test_a_delta_leaves_no_bound_on_the_precision_of_accusations_that_are_never_false() -> None:
    loss = ApproximateDP(1.0, 1e-6, neighboring=REPLACE)
    assert presence(loss=loss, controls=accused(0, 100)).bounds[2].allowed == 1
    assert presence(loss=loss).bounds[2].allowed < 0.75


def test_no_bound_is_printed_where_its_conditions_do_not_hold() -> None:
    loss = PureDP(1.0, neighboring=REPLACE)
    for options, reason in (
        ({"loss": None}, "states no privacy loss"),
        ({"loss": loss, "exchangeable": False}, "not said to be drawn alike"),
        ({"loss": loss, "controls": None}, "no controls"),
        ({"loss": loss, "worlds": Neighboring.ADD_REMOVE}, "the loss is about"),
    ):
        found = presence(**options)
        assert found.bounds == ()
        assert reason in str(found)


def test_precision_and_recall_count_everyone_at_one_score_together() -> None:
    scores = np.array([3.0, 2.0, 2.0, 1.0])
    right = np.array([True, True, False, False])
    targets = TargetGuesses(guesses=scores, scores=scores, claimed=scores > 1, correct=right)
    found = Findings(attack="test", kind="value", knowledge=Knowledge(("nothing",)), targets=targets)
    curve = found.curve()
    assert curve is not None
    assert curve.x.tolist() == [0.25, 0.5, 0.5]
    assert curve.y.tolist() == pytest.approx([1.0, 2 / 3, 0.5])
    assert found.precision is not None
    assert found.precision.lower < 2 / 3 < found.precision.upper
    assert found.baseline is None


def test_without_the_truth_nothing_is_said_of_right_and_wrong() -> None:
    targets = made([1.0, 2.0], [True, True])
    found = Findings(attack="test", kind="value", knowledge=Knowledge(("nothing",)), targets=targets)
    assert (found.success, found.advantage, found.precision, found.curve()) == (None, None, None, None)
    assert "truth was not given" in str(found)
    with pytest.raises(ParameterError, match="truth must be given for a curve"):
        found.plot()


def test_json_has_rates_and_bounds_and_no_guess_about_a_person() -> None:
    found = presence(loss=GaussianDP(1.0, neighboring=REPLACE), numbers={"threshold": np.inf})
    written = json.loads(found.to_json())
    assert written["format"] == "sfumato.attack-findings"
    assert written["targets"] == {"people": 100, "claims": 80, "right": 80}
    assert [bound["name"] for bound in written["bounds"]] == ["success", "advantage", "precision"]
    assert written["numbers"] == {"threshold": None}
    assert written["curve"]["x"][-1] == written["curve"]["y"][-1] == 1
    assert "guesses" not in found.to_json()
    assert "scores" not in found.to_json()


def test_a_threshold_is_chosen_by_scores_that_are_not_counted() -> None:
    """Memorized controls: the half that chose the threshold would show no false accusation at all."""
    generator = np.random.default_rng(5)
    rates = []
    for _ in range(200):
        others = generator.normal(size=40)
        found = accusations(
            generator.normal(size=5), truth=np.ones(5, bool), controls=others, false_positive_rate=0.01
        )
        assert found.controls is not None
        assert found.controls.people == 20
        rates.append(found.controls.claims / 20)
    # The greatest of 20 is exceeded by each other one with chance 1/21: .0476 +- .0035 here.
    assert abs(np.mean(rates) - 1 / 21) < 6 * 0.0035


def test_targets_who_are_not_in_the_data_are_controls() -> None:
    scores, truth = np.arange(6.0), np.array([True, False, True, False, True, False])
    found = accusations(scores, truth=truth, controls=None, false_positive_rate=0.5, threshold=2.5)
    assert found.controls is not None
    assert found.targets.scores.tolist() == [0, 2, 4]
    assert (found.targets.claims, found.controls.claims) == (1, 2)
    unknown = accusations(scores, truth=None, controls=None, false_positive_rate=0.5)
    assert (unknown.targets.correct, unknown.controls, unknown.threshold) == (None, None, np.inf)


def test_an_attack_runs_on_both_releases_and_draws_both() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    attack = attacks.MembershipAttack(
        score=lambda model, people: np.asarray(model)[people], people=np.arange(50), false_positive_rate=0.1
    )
    generator = np.random.default_rng(1)
    raw = np.concatenate([generator.normal(3, 1, 50), generator.normal(0, 1, 50)])
    loss = GaussianDP(0.1, neighboring=REPLACE)
    options: dict[str, Any] = {
        "truth": np.ones(50, bool),
        "controls": np.arange(50, 100),
        "exchangeable": True,
    }
    found = attacks.compare(attack, raw=raw, private=generator.normal(0, 1, 100), loss=loss, **options)
    assert found.raw.bounds == ()
    assert len(found.private.bounds) == 3
    assert found.raw.targets.claims > 40
    assert found.private.targets.claims < 20
    assert [line.get_label() for line in found.plot().lines] == ["raw", "private", "the loss allows"]
    assert json.loads(found.to_json())["private"]["bounds"]
    unlike = presence(loss=loss, exchangeable=False)
    assert [line.get_label() for line in unlike.plot().lines] == ["test"]
    # Without controls the curve is of precision and recall, where a trade-off function has no place.
    ceiling = AttackBound(name="share", seen=Interval(0.1, 0.2), allowed=0.3, condition="any")
    alone = presence(loss=loss, controls=None, extra_bounds=(ceiling,))
    assert [line.get_label() for line in alone.plot().lines] == ["test"]
    assert str(found).startswith("RAW\nmembership inference: ")


@cases(
    "make",
    [
        lambda: Knowledge("a text"),  # type: ignore[arg-type]
        lambda: Knowledge(()),
        lambda: made([], []),
        lambda: made([1.0, 2.0], [True]),
        lambda: made([np.nan], [True]),
        lambda: made([1.0], [1]),
        lambda: made([1.0], [True], correct=np.array([True, False])),
        lambda: presence(confidence=1.0),
        lambda: presence(prior=0.0),
        lambda: presence(kind="other"),
        lambda: presence(design="coins"),
        lambda: attacks.compare("attack", raw=1, private=2),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(make: Any) -> None:
    with pytest.raises(ParameterError):
        make()


def test_controls_of_one_release_do_not_show_the_world_without_a_target() -> None:
    """Of 8 secrets the release names each with chance q; the one it has seen e q, the others q / e.

    Add/remove of the secret costs epsilon 1, yet members are named e^2 times as often as controls.
    """
    q = 0.05
    loss = PureDP(1.0)
    with_secret = np.array([np.e * q, *[q / np.e] * 7])
    ratios = np.append(with_secret, 1 - with_secret.sum()) / np.array([*[q] * 8, 1 - 8 * q])
    assert max(ratios.max(), 1 / ratios.min()) <= np.e * (1 + 1e-12)
    runs = 100_000
    rates: dict[str, Any] = {
        "targets": accused(round(with_secret[0] * runs), runs),
        "controls": accused(round(with_secret[1] * runs), runs),
        "worlds": Neighboring.ADD_REMOVE,
    }
    found = presence(loss=loss, **rates)
    assert found.bounds == ()
    assert "do not show the world" in str(found)
    rates["worlds"] = REPLACE
    assert not any(bound.exceeded for bound in presence(loss=loss, **rates).bounds)


def test_an_attack_may_say_that_its_rates_have_no_bound() -> None:
    found = presence(loss=PureDP(1.0, neighboring=REPLACE), no_bound="its controls are no baseline")
    assert found.bounds == ()
    assert "no bound: its controls are no baseline" in str(found)
