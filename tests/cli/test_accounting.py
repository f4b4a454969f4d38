"""The commands that account for a loss print the library's numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.run_options import RunOptions, Sampler
from sfumato.privacy import (
    BallsInBins,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PrivacyLoss,
    PureDP,
    RandomAllocation,
    SampledWithReplacement,
    loss_from_json,
)
from tests.cases import cases

EPOCHS = ["--epochs", "15", "--batch-size", "250", "--examples", "60000"]
PAPER = ["--gaussian", "1.3", *EPOCHS, "--delta", "1e-5"]
SGD = ["--sampling-probability", "0.01", "--steps", "10000", "--delta", "1e-5"]


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    return result.exit_code, result.stdout, result.stderr


def test_epsilon_of_dp_sgd() -> None:
    code, out, _ = run("epsilon", "--gaussian", "1.0", *SGD, "--json")
    assert code == 0
    facts = json.loads(out)
    assert facts["lower"] <= 6.187712 <= facts["epsilon"] <= 6.194
    assert facts["loss"]["loss"]["count"] == 10_000
    assert (facts["format"], facts["version"]) == ("sfumato.epsilon", 1)
    assert loss_from_json(json.dumps(facts["loss"])) == PoissonSubsampled(Gaussian(1.0), 0.01) * 10_000
    assert "epsilon 6.1" in run("epsilon", "--gaussian", "1.0", *SGD)[1]


def test_a_loss_is_read_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    loss = PureDP(0.5) * 2
    path = tmp_path / "loss.json"
    path.write_text(loss.to_json())
    for code, out, _ in (
        run("epsilon", str(path), "--json"),
        run("epsilon", "-", "--json", stdin=loss.to_json()),
    ):
        assert code == 0
        assert json.loads(out)["epsilon"] == 1.0
    assert json.loads(run("epsilon", "--gaussian", "1", "--json")[1])["epsilon"] is None


def test_calibrated_noise_meets_its_target() -> None:
    code, out, _ = run("calibrate", "--epsilon", "1", *SGD, "--json")
    assert code == 0
    noise = json.loads(out)["noise_multiplier"]
    assert 3.8128168 <= noise <= 3.8128168 * (1 + 1e-4)
    assert (PoissonSubsampled(Gaussian(noise), 0.01) * 10_000).epsilon(1e-5) <= 1
    assert "noise multiplier 2.00" in run("calibrate", "--epsilon", "0.5", "--laplace")[1]


def test_the_epsilon_that_is_shown_is_not_below_the_one_that_is_proven() -> None:
    for noise in ("0.7", "1.1", "3.3", "1e-8", "1e8"):
        arguments = ("epsilon", "--gaussian", noise, "--delta", "1e-5")
        facts = json.loads(run(*arguments, "--json")[1])
        words = run(*arguments)[1].split()
        assert float(words[1]) >= facts["epsilon"]
        assert float(words[6]) <= facts["lower"]
        assert float(words[8].rstrip(")")) >= facts["epsilon"]


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    for arguments in (
        ["epsilon"],
        ["epsilon", "--gaussian", "1", "--steps", "1.5"],
        [
            "epsilon",
            "--gaussian",
            "1",
            "--steps",
            "5",
            "--epochs",
            "1",
            "--batch-size",
            "2",
            "--examples",
            "9",
        ],
        ["epsilon", "--gaussian", "1", "--batch-size", "2"],
        ["epsilon", "--gaussian", "1", "--epochs", "2"],
        ["epsilon", "--gaussian", "1", "--sampler", "fixed-size"],
        ["epsilon", "--gaussian", "1", "--sampling-probability", "1/0"],
        ["epsilon", "--gaussian", "1", "--plus", "poisson=2"],
        ["epsilon", "--gaussian", "1", "--neighboring", "replace-one", "--sampling-probability", "0.1"],
        ["epsilon", str(tmp_path / "absent.json")],
        ["epsilon", "-", "--sampling-probability", "0.5"],
        ["epsilon", "--gaussian", "-1"],
        ["calibrate", "--epsilon", "-1"],
        ["calibrate", "--epsilon", "1"],
    ):
        code, out, err = run(*arguments)
        assert code == 2
        assert not out
        assert err.startswith("sfumato: ")
        assert err.count("\n") == 1


def test_a_papers_line_is_checked() -> None:
    """MNIST's classic line: .94 by the moments of its paper, .85 in truth, for the same run."""
    facts = json.loads(run("epsilon", *PAPER, "--json")[1])
    assert facts["loss"]["loss"]["count"] == 3600
    assert 0.8528 <= facts["lower"] <= facts["epsilon"] <= 0.8533
    assert 0.9421 <= facts["rdp_epsilon"] <= 0.9423
    assert facts["loss"]["loss"]["loss"]["sampling_probability"] >= 250 / 60000
    shown = run("epsilon", *PAPER)[1]
    for part in (
        "by R\u00e9nyi DP the same run is epsilon 0.942",
        "one unit is added or removed",
        "shuffled",
    ):
        assert part in shown
    alone = 0.05 * 2.718281828459045 ** facts["epsilon"] + 1e-5
    assert facts["power"] >= alone > facts["power"] - 1e-6
    large = json.loads(run("epsilon", "--gaussian", "0.5", "--delta", "1e-3", "--json")[1])
    grown = 1 - 2.718281828459045 ** -large["epsilon"] * (1 - 1e-3 - 0.05)
    assert large["power"] >= grown > large["power"] - 1e-6


def test_delta_at_an_epsilon() -> None:
    facts = json.loads(run("epsilon", "--gaussian", "1", "--epsilon", "1", "--json")[1])
    assert facts["lower_delta"] <= 0.12693673750664397 <= facts["delta"] < 0.12694
    assert run("epsilon", "--gaussian", "1", "--epsilon", "1")[1].startswith("delta 0.12693")


def test_other_notions_stand_beside() -> None:
    facts = json.loads(run("epsilon", "--gaussian", "2", "--steps", "1e2", "--delta", "1e-5", "--json")[1])
    assert 12.5 <= facts["rho"] < 12.5001
    assert 5.0 <= facts["mu"] < 5.0001


def test_several_mechanisms_are_priced_together(tmp_path: Path) -> None:
    (tmp_path / "loss.json").write_text((PureDP(0.25) * 2).to_json())
    words = ["--gaussian", "4", "--laplace", "8", "--plus", "pure=0.125,steps=2", str(tmp_path / "loss.json")]
    facts = json.loads(run("epsilon", *words, "--delta", "1e-5", "--json")[1])
    together = Gaussian(4.0) + Laplace(8.0) + PureDP(0.25) * 2 + PureDP(0.125) * 2
    assert facts["epsilon"] == together.epsilon(1e-5)


REPLACED = Gaussian(3.0, neighboring=Neighboring.REPLACE_ONE)
ZEROED = Gaussian(3.0, neighboring=Neighboring.ZERO_OUT)
BATCHES = {"epochs": "2", "batch_size": "5", "examples": "20"}
DRAWN = FixedSizeSampled(REPLACED, 5, 20)
SAMPLED = PoissonSubsampled(Gaussian(3.0), 0.25)


@cases(
    ("options", "loss"),
    [
        ({"steps": "10"}, Gaussian(3.0) * 10),
        ({"steps": "10", "neighboring": Neighboring.ZERO_OUT}, ZEROED * 10),
        ({"steps": "8", "sampling_probability": "1/4"}, SAMPLED * 8),
        (BATCHES, SAMPLED * 8),
        (BATCHES | {"sampler": Sampler.FIXED_SIZE}, DRAWN * 8),
        (BATCHES | {"sampler": Sampler.WITH_REPLACEMENT}, SampledWithReplacement(REPLACED, 5, 20) * 8),
        (BATCHES | {"sampler": Sampler.ALLOCATION}, RandomAllocation(Gaussian(3.0), 8, 2)),
        (BATCHES | {"sampler": Sampler.BALLS_IN_BINS}, BallsInBins(Gaussian(3.0), 4, 2)),
        ({"epochs": "3", "sampler": Sampler.SHUFFLED}, ZEROED * 3),
    ],
)
def test_every_sampler(options: dict[str, Any], loss: PrivacyLoss) -> None:
    made = RunOptions(**options)
    assert made.loss(Gaussian, 3.0) == loss
    assert len(list(made.assumptions())) == 5


def test_a_sampler_is_chosen_on_the_command_line() -> None:
    words = ("--sampler", "fixed-size", *EPOCHS[:2], "--batch-size", "5", "--examples", "20")
    code, out, _ = run("epsilon", "--gaussian", "30", *words, "--delta", "1e-5", "--json")
    facts = json.loads(out)
    assert (code, facts["tight"], facts["lower"]) == (0, False, 0.0)
    assert facts["loss"]["loss"]["loss"]["loss"]["neighboring"] == "replace-one"
    assert any("all sets of its size" in line for line in facts["assumptions"])
