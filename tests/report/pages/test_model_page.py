"""The page of a trained model: the card's facts and conditions, the odds of its loss, nothing that runs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from sfumato import report
from sfumato.errors import ParameterError
from sfumato.learning import PrivacyCard
from sfumato.privacy import Gaussian, Neighboring
from tests.cases import cases


def card(**given: Any) -> PrivacyCard:
    fields: dict[str, Any] = {
        "epsilon": 1.5,
        "delta": 1e-5,
        "neighboring": Neighboring.REPLACE_ONE,
        "unit": "<user>",
        "loss": Gaussian(3.0, neighboring=Neighboring.REPLACE_ONE),
        "steps": 1200,
        "sampler": "poisson",
        "sampling": {"sampling_probability": 0.01},
        "participation": 1200,
        "noise": {"kind": "keyed"},
        "noise_multiplier": 3.0,
        "clipping": {"kind": "flat", "clip_norm": 1.0},
        "float_safe": False,
        "simulated": False,
    }
    return PrivacyCard(**(fields | given))


@cases("language", ["en", "de"])
def test_a_card_becomes_a_page(language: str) -> None:
    given = card(ledger={"ledger": "<b>", "charge": 3}, software={"torch": "2"})
    page = report.model_card(given, language=language)
    root = ET.fromstring(page.html)
    body = root.find("body")
    assert body is not None
    said = " ".join("".join(body.itertext()).split())
    for condition in given.conditions:
        assert condition in said
    (conditions,) = [each for each in root.iter("div") if each.get("lang") == "en"]
    assert len(list(conditions.iter("li"))) == len(given.conditions)
    assert "clip norm 1.0" in said
    assert "<user>" in said
    assert ("1,200, of which" in said) == (language == "en")
    assert ("certain others" in said) == (language == "en")
    assert "<b>" not in page.html


def test_a_simulated_model_says_that_nobody_is_protected() -> None:
    assert 'class="notice"' in report.model_card(card(simulated=True)).html
    assert 'class="notice"' not in report.model_card(card()).html
    with pytest.raises(ParameterError, match="card must be"):
        report.model_card("card")  # type: ignore[arg-type]
