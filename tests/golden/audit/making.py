"""The reports of audits, as ``sfumato audit --json`` prints them, from fixed numbers."""

from __future__ import annotations

import math

import numpy as np

from sfumato.audit.blackbox import Audit, json_report
from sfumato.audit.events import Event
from sfumato.audit.flattening import as_outputs
from sfumato.audit.floating_point import PrecisionAudit
from sfumato.audit.input_pairs import InputPair
from sfumato.audit.outcome_encoding import OutcomeEncoder
from sfumato.audit.scores import ColumnScore

__all__ = ["files"]

PAIR = InputPair(first=[1], second=[1, 1])
COLUMN = ColumnScore("output", 0)


def files() -> dict[str, bytes]:
    """Return the bytes of each file by name."""
    encoder = OutcomeEncoder(2.0**-20)
    outputs = as_outputs(np.array([0.5, 1.5, 2.5]))
    encoder.learn(outputs, outputs)
    event = Event(encoder=encoder, score=COLUMN, threshold=1.5, above=True)
    found = Audit(
        epsilon_lower=0.75,
        delta=1e-6,
        violated=True,
        event=event,
        hits=(4711, 815),
        tested=10_000,
        mu_lower=0.25,
        epsilon_if_gaussian=1.125,
        epsilon=0.5,
        pair=PAIR,
        confidence=0.999,
        trials=20_000,
    )
    unbounded = Audit(
        epsilon_lower=math.inf,
        delta=0.0,
        violated=True,
        event=event,
        hits=(10_000, 0),
        tested=10_000,
        mu_lower=math.inf,
        epsilon_if_gaussian=None,
        epsilon=0.5,
        pair=PAIR,
        confidence=0.999,
        trials=20_000,
    )
    bits = PrecisionAudit(
        impossible=42,
        tested=10_000,
        epsilon_lower=6.5,
        delta=0.0,
        violated=True,
        epsilon=0.5,
        pair=PAIR,
        confidence=0.999,
        trials=20_000,
    )
    return {
        "audit-report.json": json_report(found).encode(),
        "audit-report-floating-point.json": json_report(unbounded, bits).encode(),
    }
