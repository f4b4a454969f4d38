"""The JSON form: exact, versioned, and closed to what it does not know."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import (
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Neighboring,
    PureDP,
    loss_from_json,
)
from tests.cases import cases

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())["vectors"]
GAUSSIAN = {"kind": "gaussian", "noise_multiplier": 1.0, "neighboring": "add-remove"}


def text(loss: object, version: object = 1) -> str:
    return json.dumps({"format": "sfumato.loss", "version": version, "loss": loss})


@cases("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_pinned_text_costs_the_same_or_less(vector: dict[str, object]) -> None:
    loss = loss_from_json(str(vector["text"]))
    for delta, pinned, least in vector["epsilons"]:  # type: ignore[attr-defined]
        epsilon = loss.epsilon(float(delta))
        assert epsilon <= float(pinned) * (1 + 1e-11)
        assert least is None or epsilon >= float(least)


def test_numbers_survive_exactly() -> None:
    losses = [
        DiscreteLaplace(Fraction(10**30, 3), 7),
        DiscreteGaussian(0.1, neighboring=Neighboring.ZERO_OUT),
        Gaussian(0.1 + 0.2),
        PureDP(5e-324),
        ApproximateDP(1.7976931348623157e308, 1e-300),
        Composed(()),
        Gaussian(1.0) * 10**30,
    ]
    for loss in losses:
        assert loss_from_json(loss.to_json()) == loss
        assert pickle.loads(pickle.dumps(loss)) == loss
    assert '"stddev":"3602879701896397/36028797018963968"' in losses[1].to_json()


@cases(
    "bad",
    [
        "",
        "null",
        "[]",
        "{",
        "[" * 100_000,
        '{"format":"sfumato.loss","version":1}',
        '{"format":"sfumato.loss","version":1,"version":1,"loss":{}}',
        '{"format":"sfumato.loss","version":1,"loss":{"kind":"pure-dp","epsilon":NaN,"neighboring":"add-remove"}}',
        '{"format":"sfumato.loss","version":1,"loss":{"kind":"pure-dp","epsilon":1e999,"neighboring":"add-remove"}}',
        '{"format":"sfumato.loss","version":1,"loss":{"kind":"pure-dp","epsilon":'
        + "9" * 5000
        + ',"neighboring":"add-remove"}}',
        text(GAUSSIAN) + "x",
        text(GAUSSIAN, version=2),
        text(GAUSSIAN, version=0),
        text(GAUSSIAN, version=True),
        text(GAUSSIAN, version="1"),
        json.dumps({"format": "sfumato.loss", "version": 1, "loss": GAUSSIAN, "more": 1}),
        json.dumps({"format": "sfumato.receipt", "version": 1, "loss": GAUSSIAN}),
        json.dumps({"version": 1, "loss": GAUSSIAN}),
        text({**GAUSSIAN, "kind": "unknown"}),
        text({**GAUSSIAN, "kind": "Gaussian"}),
        text({**GAUSSIAN, "kind": 3}),
        text({**GAUSSIAN, "kind": ["gaussian"]}),
        text({**GAUSSIAN, "more": 1}),
        text({k: v for k, v in GAUSSIAN.items() if k != "neighboring"}),
        text({k: v for k, v in GAUSSIAN.items() if k != "noise_multiplier"}),
        text({**GAUSSIAN, "neighboring": "nobody"}),
        text({**GAUSSIAN, "neighboring": ["add-remove"]}),
        text({**GAUSSIAN, "neighboring": {"relation": "unknown"}}),
        text({**GAUSSIAN, "neighboring": {"relation": "add-remove"}}),
        text({**GAUSSIAN, "noise_multiplier": 10**400}),
        text({**GAUSSIAN, "noise_multiplier": "inf"}),
        text({**GAUSSIAN, "noise_multiplier": -1.0}),
        text({**GAUSSIAN, "noise_multiplier": "1/0"}),
        text({**GAUSSIAN, "noise_multiplier": "1.5"}),
        text({**GAUSSIAN, "noise_multiplier": None}),
        text({**GAUSSIAN, "noise_multiplier": True}),
        text({**GAUSSIAN, "noise_multiplier": [1.0]}),
        text({"kind": "discrete-gaussian", "stddev": "1/1", "sensitivity": 1.5, "neighboring": "add-remove"}),
        text(
            {
                "kind": "discrete-gaussian",
                "stddev": "1" * 5000 + "/1",
                "sensitivity": 1,
                "neighboring": "add-remove",
            }
        ),
        text({"kind": "discrete-gaussian", "stddev": "1/1", "neighboring": "add-remove"}),
        text({"kind": "repeated", "loss": GAUSSIAN}),
        text({"kind": "repeated", "loss": GAUSSIAN, "count": 1.5}),
        text({"kind": "repeated", "loss": GAUSSIAN, "count": -1}),
        text({"kind": "repeated", "loss": GAUSSIAN, "count": True}),
        text({"kind": "repeated", "loss": GAUSSIAN, "count": 0}),
        text({"kind": "repeated", "loss": GAUSSIAN, "count": 1}),
        text({"kind": "repeated", "loss": {"kind": "repeated", "loss": GAUSSIAN, "count": 2}, "count": 2}),
        text({"kind": "repeated", "loss": {"kind": "composed", "losses": []}, "count": 2}),
        text({"kind": "composed", "losses": [GAUSSIAN]}),
        text({"kind": "composed", "losses": [GAUSSIAN, GAUSSIAN]}),
        text({"kind": "repeated", "loss": 3, "count": 2}),
        text({"kind": "composed", "losses": GAUSSIAN}),
        text({"kind": "composed", "losses": [GAUSSIAN, None]}),
        text({"kind": "composed", "losses": [GAUSSIAN, {**GAUSSIAN, "neighboring": "zero-out"}]}),
        text({"kind": "composed", "losses": [], "more": 1}),
    ],
)
def test_what_is_not_known_is_refused(bad: str) -> None:
    with pytest.raises(ParameterError):
        loss_from_json(bad)


def test_deep_nesting_and_other_types_are_refused() -> None:
    deep: object = GAUSSIAN
    for _ in range(100):
        deep = {"kind": "composed", "losses": [deep]}
    for bad in (text(deep), b"{}", None, 3):
        with pytest.raises(ParameterError, match="text must"):
            loss_from_json(bad)  # type: ignore[arg-type]
