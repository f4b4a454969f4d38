"""Auditing: black-box and exact tests of what a mechanism claims, ours or anybody's.

:func:`audit` runs a mechanism many times on neighboring inputs and certifies a lower bound on its epsilon,
with the event that shows it; :func:`exact_audit` computes it where the distribution is known;
:func:`audit_precision` looks at the low bits of floats, :func:`audit_timing` at the clock; observers of time,
memory and random state make events of what a run shows besides its output;
:func:`audit_one_run` tests a training by one run. Known-broken algorithms to try them on are in
`sfumato.audit.specimens`, and nowhere else.

What an audit finds on real data is the curator's: run it on made-up inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.audit.blackbox import Audit, audit
    from sfumato.audit.events import Event
    from sfumato.audit.exact_probabilities import ExactAudit, exact_audit
    from sfumato.audit.floating_point import PrecisionAudit, audit_precision
    from sfumato.audit.input_pairs import InputPair, array_pairs, score_pairs, vector_pairs
    from sfumato.audit.one_run import (
        Guesses,
        OneRunAudit,
        audit_one_run,
        best_guesses,
    )
    from sfumato.audit.one_run_bounds import one_run_bound, one_run_p_value
    from sfumato.audit.one_run_trade_off import one_run_trade_off_p_value
    from sfumato.audit.side_channels.observed_runs import ObservedOutput
    from sfumato.audit.side_channels.observers import MemoryObserver, Observer, TimeObserver
    from sfumato.audit.side_channels.random_state import RandomStateObserver
    from sfumato.audit.side_channels.timing import TimingAudit, audit_timing
    from sfumato.audit.sparse_vector_quadrature import sparse_vector_distribution, sparse_vector_ratio

__all__ = [
    "Audit",
    "Event",
    "ExactAudit",
    "Guesses",
    "InputPair",
    "MemoryObserver",
    "ObservedOutput",
    "Observer",
    "OneRunAudit",
    "PrecisionAudit",
    "RandomStateObserver",
    "TimeObserver",
    "TimingAudit",
    "array_pairs",
    "audit",
    "audit_one_run",
    "audit_precision",
    "audit_timing",
    "best_guesses",
    "exact_audit",
    "one_run_bound",
    "one_run_p_value",
    "one_run_trade_off_p_value",
    "score_pairs",
    "sparse_vector_distribution",
    "sparse_vector_ratio",
    "vector_pairs",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Audit": "sfumato.audit.blackbox",
        "Event": "sfumato.audit.events",
        "ExactAudit": "sfumato.audit.exact_probabilities",
        "Guesses": "sfumato.audit.one_run",
        "InputPair": "sfumato.audit.input_pairs",
        "MemoryObserver": "sfumato.audit.side_channels.observers",
        "ObservedOutput": "sfumato.audit.side_channels.observed_runs",
        "Observer": "sfumato.audit.side_channels.observers",
        "OneRunAudit": "sfumato.audit.one_run",
        "PrecisionAudit": "sfumato.audit.floating_point",
        "RandomStateObserver": "sfumato.audit.side_channels.random_state",
        "TimeObserver": "sfumato.audit.side_channels.observers",
        "TimingAudit": "sfumato.audit.side_channels.timing",
        "array_pairs": "sfumato.audit.input_pairs",
        "audit": "sfumato.audit.blackbox",
        "audit_one_run": "sfumato.audit.one_run",
        "audit_precision": "sfumato.audit.floating_point",
        "audit_timing": "sfumato.audit.side_channels.timing",
        "best_guesses": "sfumato.audit.one_run",
        "exact_audit": "sfumato.audit.exact_probabilities",
        "one_run_bound": "sfumato.audit.one_run_bounds",
        "one_run_p_value": "sfumato.audit.one_run_bounds",
        "one_run_trade_off_p_value": "sfumato.audit.one_run_trade_off",
        "score_pairs": "sfumato.audit.input_pairs",
        "sparse_vector_distribution": "sfumato.audit.sparse_vector_quadrature",
        "sparse_vector_ratio": "sfumato.audit.sparse_vector_quadrature",
        "vector_pairs": "sfumato.audit.input_pairs",
    },
)
