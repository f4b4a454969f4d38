"""The figures that manuals of RRreg and rr print, from their designs and counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from sfumato.local import surveys

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "published.json").read_text("utf-8"))


def design_of(vector: dict[str, Any]) -> Any:
    given = dict(vector["design"])
    return getattr(surveys, given.pop("kind"))(**given)


def half_a_digit(text: str) -> float:
    """How far a number may be from its printed decimals."""
    return 0.51 * 10.0 ** -len(text.partition(".")[2])


def test_estimates_are_the_published_ones() -> None:
    estimated = [vector for vector in VECTORS if "estimate" in vector]
    assert len(estimated) == 4
    for vector in estimated:
        design, yes, count = design_of(vector), vector["yes"], vector["respondents"]
        found = design.estimate({"yes": yes, "no": count - yes})
        seen = {"estimate": found.prevalence, "stddev": found.stddev, "z": found.prevalence / found.stddev}
        for name in seen.keys() & vector.keys():
            value = seen[name]
            assert value == pytest.approx(float(vector[name]), abs=half_a_digit(vector[name])), name
        # Where the count is not printed no other one gives the estimate.
        for other in (yes - 1, yes + 1) if "stddev" in vector else ():
            near = design.estimate({"yes": other, "no": count - other}).prevalence
            assert abs(near - float(vector["estimate"])) > 100 * half_a_digit(vector["estimate"])


def test_powers_are_the_published_ones_by_the_normal_approximation() -> None:
    """The package's power is an approximation; ours sums binomial probabilities, and is near it."""
    powers = [vector for vector in VECTORS if "power" in vector]
    assert len(powers) == 1
    for vector in powers:
        design, count, risk = design_of(vector), vector["respondents"], vector["false_positive_rate"]
        rates = [design.yes_rate(vector[name]) for name in ("null", "prevalence")]
        errors = [np.sqrt(rate * (1 - rate) / count) for rate in rates]
        approximate = ndtr((rates[1] - rates[0] - ndtri(1 - risk) * errors[0]) / errors[1])
        assert approximate == pytest.approx(float(vector["power"]), abs=half_a_digit(vector["power"]))
        options = {name: vector[name] for name in ("null", "prevalence", "false_positive_rate")}
        exact = surveys.power(design, respondents=count, two_sided=False, **options)
        assert exact == pytest.approx(float(vector["power"]), abs=0.01)
