"""Bad arguments: refused with the parameter, the rule and the value; nothing charged, no file left."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.ledger import Dataset, Ledger
from sfumato.privacy import PureDP

Open = Callable[..., Ledger]


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, "0", None])
def test_bad_deltas_are_refused(open_ledger: Open, delta: Any) -> None:
    ledger = open_ledger()
    with pytest.raises(ParameterError, match="delta must be in"):
        ledger.charge(PureDP(0.1), delta=delta)
    assert ledger.entries() == ()


@pytest.mark.parametrize(
    "arguments",
    [{"loss": 0.1}, {"loss": None}, {"request": 1}, {"description": b"x"}],
)
def test_bad_charges_are_refused(open_ledger: Open, arguments: dict[str, Any]) -> None:
    ledger = open_ledger()
    with pytest.raises(ParameterError, match="must be"):
        ledger.charge(**{"loss": PureDP(0.1), "delta": 0.0, **arguments})
    with pytest.raises(ParameterError, match="payload must be bytes"):
        ledger.commit(ledger.charge(PureDP(0.1), delta=0.0), "text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": 1.0},
        {"privacy_unit": ""},
        {"privacy_unit": 3},
        {"neighboring": "add-remove"},
        {"dataset": "people"},
        {"lock_timeout": -1.0},
        {"path": ""},
        {"path": "a\0b"},
        {"dataset": Dataset(schema="s", fingerprint=lambda key: key.hex() + "0")},
        {"dataset": Dataset(schema="s", fingerprint=lambda key: key)},  # type: ignore[arg-type,return-value]
    ],
)
def test_bad_openings_are_refused_and_leave_no_file(
    open_ledger: Open, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError, match="must"):
        open_ledger(**({"path": tmp_path / "l"} | arguments))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("arguments", [{"schema": ""}, {"schema": 1}, {"fingerprint": "x"}])
def test_bad_datasets_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must be"):
        Dataset(**{"schema": "s", "fingerprint": str, **arguments})
