"""Trust reports: what is printed, written and read back, and the loss that aggregators leave."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sfumato.errors import ParameterError
from sfumato.federated.trust_report import Collusion, TrustReport, aggregators_report
from sfumato.privacy import Gaussian, Laplace


def test_one_honest_aggregator_is_enough_and_none_is_not() -> None:
    loss = Gaussian(2.0) * 3
    report = aggregators_report(aggregators=3, loss=loss, delta=1e-6)
    assert [row.colluders for row in report.rows] == [0, 1, 2, 3]
    assert [row.masks_hold for row in report.rows] == [True, True, True, False]
    assert [row.epsilon for row in report.rows] == [loss.epsilon(1e-6)] * 3 + [None]
    assert report.to_text().splitlines()[-1] == "  3: none"
    assert "All 3 aggregators must collude to see a measurement" in str(report)
    assert "counts the noise of one honest aggregator" in " ".join(report.statements)


def test_without_noise_no_epsilon_is_printed() -> None:
    report = aggregators_report(protocol="Poplar1")
    assert report.delta is None
    assert report.rows == ()
    assert report.setting == "Poplar1 with 2 aggregators"
    assert "at every level" in str(report)
    assert "no differential privacy" in str(report)
    assert "epsilon" not in str(report)
    assert "at every level" not in str(aggregators_report())


def test_mastic_says_what_every_level_shows() -> None:
    report = aggregators_report(protocol="Mastic", loss=Gaussian(2.0) * 4, delta=1e-6)
    assert report.setting == "Mastic with 2 aggregators"
    text = " ".join(report.statements)
    assert "sums of weights below prefixes at every level" in text
    assert "Counts of clients are seen too, unless" in text
    assert [row.epsilon for row in report.rows] == [(Gaussian(2.0) * 4).epsilon(1e-6)] * 2 + [None]


def test_numbers_are_rounded_up_and_infinity_is_no_bound() -> None:
    rows = (
        Collusion(colluders=0, masks_hold=True, epsilon=1.00001),
        Collusion(colluders=1, masks_hold=False, epsilon=7.0),
        Collusion(colluders=2, masks_hold=False, epsilon=float("inf")),
    )
    report = TrustReport(setting="a", colluding="clients", statements=("b",), delta=1.00001e-6, rows=rows)
    assert report.to_text().splitlines() == [
        "a",
        "- b",
        "Colluding clients: epsilon at delta 1.001e-06",
        "  0: 1.001",
        "  1: 7 (own noise only)",
        "  2: none",
    ]


def test_lines_are_short_and_lose_no_word() -> None:
    words = [f"word{i}" for i in range(60)]
    report = TrustReport(setting="a", colluding="b", statements=(" ".join(words),), delta=None, rows=())
    lines = report.to_text().splitlines()[1:]
    assert max(map(len, lines)) <= 106
    assert min(map(len, lines[:-1])) > 95
    assert " ".join(lines).removeprefix("-").split() == words
    assert all(line.startswith("  word") for line in lines[1:])


def test_a_report_is_read_back() -> None:
    report = aggregators_report(aggregators=2, loss=Laplace(1.0), delta=0.0)
    assert TrustReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert TrustReport.from_json(aggregators_report().to_json()) == aggregators_report()
    rows = (Collusion(colluders=0, masks_hold=True, epsilon=float("inf")),)
    plain = TrustReport(setting="a", colluding="b", statements=("c",), delta=0.5, rows=rows)
    assert plain.to_json() == {
        "format": "sfumato.trust_report",
        "version": 1,
        "setting": "a",
        "colluding": "b",
        "statements": ["c"],
        "delta": 0.5,
        "rows": [{"colluders": 0, "masks_hold": True, "epsilon": "inf"}],
    }
    assert TrustReport.from_json(plain.to_json()) == plain


def test_what_is_no_report_is_refused() -> None:
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: aggregators_report(aggregators=1), "aggregators must be"),
        (lambda: aggregators_report(aggregators=3, protocol="Mastic"), "aggregators must be 2 for Mastic"),
        (lambda: aggregators_report(aggregators=3, protocol="Poplar1"), "aggregators must be 2 for Poplar1"),
        (lambda: aggregators_report(protocol="Other"), "protocol must be 'Prio3', 'Poplar1' or"),  # type: ignore[arg-type]
        (lambda: aggregators_report(loss=Laplace(1.0)), "delta must be"),
        (lambda: aggregators_report(loss=1.0, delta=0.0), "loss must be"),  # type: ignore[arg-type]
        (lambda: Collusion(colluders=-1, masks_hold=True, epsilon=None), "colluders must be"),
        (lambda: Collusion(colluders=1, masks_hold=1, epsilon=None), "masks_hold must be"),  # type: ignore[arg-type]
        (lambda: Collusion(colluders=1, masks_hold=True, epsilon=-1.0), "epsilon must be"),
        (lambda: TrustReport(setting=1, colluding="", statements=(), delta=None, rows=()), "setting must be"),  # type: ignore[arg-type]
        (lambda: TrustReport(setting="", colluding="", statements=(), delta=2.0, rows=()), "delta must be"),
        (lambda: TrustReport.from_json({"sfumato.trust_report": 1}), "document must be"),
    ]
    for make, match in wrong:
        with pytest.raises(ParameterError, match=match):
            make()
