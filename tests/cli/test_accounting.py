"""The commands that account for a loss print the library's numbers."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.privacy import Gaussian, PoissonSubsampled, PureDP, loss_from_json

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
        ["epsilon", "--gaussian", "1", "--laplace", "1"],
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
