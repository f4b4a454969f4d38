"""Training runs on a ledger: the whole is charged first, each step is claimed once, by whatever processes."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import (
    BudgetExceeded,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerUnavailable,
    ParameterError,
    RunExhausted,
    SimulatedCharge,
)
from sfumato.ledger import Budget, ChainHead, Ledger, LedgerExport, LedgerView, Run
from sfumato.privacy import Gaussian, Laplace, PoissonSubsampled, PrivacyLoss
from tests.ledger.tampering import execute, tamper

BUDGET = Budget.approximate(epsilon=2.0, delta=1e-5)
STEP = PoissonSubsampled(Gaussian(4.0), sampling_probability=0.01)
DELTA = 1e-6
Open = Callable[..., Ledger]


def reserved(ledger: Ledger, steps: int = 100) -> Run:
    return ledger.reserve(STEP * steps, steps=steps, delta=DELTA, description="train")


def test_a_run_is_one_charge_at_the_price_of_its_whole_loss(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    run = reserved(ledger)
    (entry,) = ledger.entries()
    assert (entry.loss, entry.steps, entry.description) == (STEP * 100, 100, "train")
    assert entry.epsilon == (STEP * 100).epsilon(DELTA)
    assert (run.number, run.digest, run.reserved, run.claimed, run.left) == (1, entry.digest, 100, 0, 100)
    assert ledger.verify().sound


def test_steps_are_claimed_in_order_and_once_and_no_more_than_were_charged(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    run = reserved(ledger)
    assert run.claim() == range(1)
    assert run.claim(60) == range(1, 61)
    assert ledger.run(run.number).claim(1000) == range(61, 100)
    with pytest.raises(RunExhausted, match="got all 100 claimed; charge more with extend"):
        run.claim()
    assert (run.claimed, run.left) == (100, 0)
    assert ledger.verify().sound
    assert len(ledger.entries()) == 1


def test_an_extended_run_charges_more_and_goes_on(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    run = reserved(ledger)
    other = reserved(ledger, 50)
    run.claim(100)
    before = ledger.remaining(DELTA / 10).epsilon
    with pytest.raises(BudgetExceeded):
        run.extend(STEP * 1_000_000, steps=1_000_000, delta=DELTA / 10)
    run.extend(STEP * 20, steps=20, delta=DELTA / 10)
    assert run.claim(50) == range(100, 120)
    assert (other.reserved, other.claimed) == (50, 0)
    after = ledger.remaining(DELTA / 10).epsilon
    assert before is not None
    assert after is not None
    assert after < before
    assert ledger.verify().sound


def test_a_refused_run_leaves_no_trace(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    head = ledger.head()
    with pytest.raises(BudgetExceeded):
        reserved(ledger, 1_000_000)
    with pytest.raises(SimulatedCharge):
        ledger.reserve(STEP, steps=1, delta=DELTA, simulated=True)
    with pytest.raises(ParameterError, match="steps must be an integer of at least 1"):
        ledger.reserve(STEP, steps=0, delta=DELTA)
    assert ledger.head() == head


def test_the_steps_that_fit_do_and_one_more_does_not(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)

    def loss_of(steps: int) -> PrivacyLoss:
        return STEP * steps

    most = ledger.steps_that_fit(loss_of, maximum=1_000_000, delta=DELTA)
    assert 10_000 < most < 1_000_000
    assert ledger.steps_that_fit(loss_of, maximum=10, delta=DELTA) == 10
    with pytest.raises(BudgetExceeded):
        reserved(ledger, most + 1)
    reserved(ledger, most)
    assert ledger.steps_that_fit(loss_of, maximum=10, delta=DELTA) == 0


def test_a_replayed_step_is_claimed_again_only_with_its_digest(open_anywhere: Open) -> None:
    run = reserved(open_anywhere(budget=BUDGET))
    run.claim(3)
    assert run.claim_replayable(3, "a" * 64) is False
    assert run.claim_replayable(4, "b" * 64) is False
    assert run.claim_replayable(3, "a" * 64) is True
    for step, digest in ((3, "b" * 64), (4, "a" * 64), (2, "a" * 64), (0, "a" * 64)):
        with pytest.raises(LedgerMismatch, match="use its noise again"):
            run.claim_replayable(step, digest)
    with pytest.raises(ParameterError, match="be the next"):
        run.claim_replayable(6, "a" * 64)
    with pytest.raises(ParameterError, match="64 hexadecimal digits"):
        run.claim_replayable(5, "")
    assert run.claim(2) == range(5, 7)
    with pytest.raises(LedgerMismatch):
        run.claim_replayable(6, "a" * 64)
    run.claim(93)
    assert run.claim_replayable(4, "b" * 64) is True
    with pytest.raises(RunExhausted):
        run.claim_replayable(100, "a" * 64)


def test_a_run_is_found_again_by_its_first_charge_alone(open_anywhere: Open, at: Any) -> None:
    ledger = open_anywhere(at("kept"), budget=BUDGET)
    run = reserved(ledger)
    ledger.charge(Laplace(1e6), delta=0.0)
    run.claim(7)
    again = open_anywhere(at("kept"), budget=BUDGET)
    assert again.run(1, digest=run.digest).claim(3) == range(7, 10)
    with pytest.raises(LedgerMismatch, match="reserved steps, got 2"):
        again.run(2)
    with pytest.raises(LedgerMismatch, match="reserved steps, got 9"):
        again.run(9)
    for number, digest in ((1, "0" * 64), (9, run.digest)):
        with pytest.raises(LedgerCorrupt, match="gave a receipt for"):
            again.run(number, digest=digest)
    with Ledger.read(at("kept")) as reader:
        assert reader.run(1).claimed == 10
        with pytest.raises(LedgerUnavailable, match="opened for writing"):
            reader.run(1).claim()


def test_an_analysts_run_is_charged_to_them_too_and_so_is_its_extension(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    ledger.grant("ada", Budget.approximate(epsilon=1.0, delta=1e-5))
    view = LedgerView(ledger, "ada")
    with pytest.raises(BudgetExceeded, match="analyst 'ada'"):
        view.reserve(STEP * 20_000, steps=20_000, delta=DELTA)
    run = view.reserve(STEP * 5, steps=5, delta=DELTA / 10)
    view.run(run.number).extend(STEP * 5, steps=5)
    assert [entry.analyst for entry in view.entries()] == ["ada", "ada"]
    assert view.run(run.number).claim(20) == range(10)
    assert ledger.verify().sound


def test_an_analyst_does_not_go_on_with_anothers_run(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    for analyst in ("ada", "bob"):
        ledger.grant(analyst, Budget.approximate(epsilon=1.0, delta=1e-5))
    views = LedgerView(ledger, "ada"), LedgerView(ledger, "bob")
    theirs = views[0].reserve(STEP * 5, steps=5, delta=DELTA / 10)
    curators = ledger.reserve(STEP * 5, steps=5, delta=DELTA / 10)
    for run in (theirs, curators):
        with pytest.raises(LedgerMismatch, match="run must be one of analyst 'bob'"):
            views[1].run(run.number)
    assert ledger.run(theirs.number).claimed == 0


def test_a_third_party_checks_the_log_of_a_ledger_with_runs(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    run = reserved(ledger)
    run.extend(STEP, steps=1, delta=DELTA / 1e6)
    exported = LedgerExport.parse(ledger.export())
    assert exported.verify() == ledger.verify()
    assert [entry.steps for entry in exported.entries()] == [100, 1]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM claim",
        "UPDATE claim SET last = last - 1",
        "UPDATE claim SET first = first + 1",
        "UPDATE claim SET digest = 'x'",
        "INSERT INTO claim VALUES (1, 50, 60, '')",
        "INSERT INTO claim VALUES (1, 5, 5, '')",
        "INSERT OR REPLACE INTO claim VALUES (1, 0, 20, '')",
    ],
)
def test_the_record_only_grows(tmp_path: Path, open_ledger: Open, statement: str) -> None:
    ledger = open_ledger(tmp_path / "kept", budget=BUDGET)
    reserved(ledger).claim(10)
    with pytest.raises(sqlite3.Error, match=r"append-only|CHECK"):
        execute(tmp_path / "kept", statement)


@pytest.mark.parametrize(
    "change", ["DELETE FROM claim WHERE first = 10", "UPDATE claim SET last = 120 WHERE first = 11"]
)
def test_a_record_that_was_altered_shows(tmp_path: Path, open_ledger: Open, change: str) -> None:
    ledger = open_ledger(tmp_path / "kept", budget=BUDGET)
    run = reserved(ledger)
    run.claim(10)
    run.claim_replayable(10, "a" * 64)
    run.claim(9)
    run.claim_replayable(20, "a" * 64)
    assert ledger.verify().sound
    ledger.close()
    tamper(tmp_path / "kept", change)
    with Ledger.read(tmp_path / "kept") as reader, pytest.raises(LedgerCorrupt, match="steps in order"):
        reader.verify()


@pytest.mark.parametrize(
    "ask",
    [
        lambda run: run.claim(),
        lambda run: run.claim_replayable(2, "a" * 64),
        lambda run: run.left,
        lambda run: run.record(2),
    ],
)
def test_a_record_that_is_put_back_under_a_run_shows(
    tmp_path: Path, open_ledger: Open, ask: Callable[[Run], object]
) -> None:
    place, old = tmp_path / "kept", tmp_path / "old"
    run = reserved(open_ledger(place, budget=BUDGET))
    run.claim(2)
    shutil.copy(place, old)
    run.claim(10)
    shutil.copy(old, place)  # the chain is as it was, and nothing in the file tells
    with pytest.raises(LedgerCorrupt, match="never go back, got 2 steps of run 1 claimed where 12 were"):
        ask(run)


def test_steps_that_were_claimed_show_against_an_exported_head(open_anywhere: Open, tmp_path: Path) -> None:
    ledger = open_anywhere(budget=BUDGET)
    assert '"steps"' not in ledger.head().to_json()
    runs = reserved(ledger), reserved(ledger, 50)
    runs[0].claim(7)
    runs[1].claim(3)
    head = ChainHead.from_json(ledger.head().to_json())
    assert (head.steps, head) == (10, ledger.head())
    runs[0].claim(1)
    assert ledger.verify(head).sound
    with pytest.raises(LedgerMismatch, match="one that this ledger exported"):
        ledger.verify(dataclasses.replace(head, steps=9))


def test_a_record_that_was_put_back_shows_against_an_exported_head(tmp_path: Path, open_ledger: Open) -> None:
    place, old = tmp_path / "kept", tmp_path / "old"
    ledger = open_ledger(place, budget=BUDGET)
    run = reserved(ledger)
    run.claim(2)
    shutil.copy(place, old)
    run.claim(1)
    head = ledger.head()
    ledger.close()
    shutil.copy(old, place)
    again = open_ledger(place, budget=BUDGET)
    assert again.verify().sound, "without a head nothing can tell"
    with pytest.raises(LedgerCorrupt, match="2 steps claimed where the head has seen 3"):
        again.verify(head)


def test_the_record_of_the_first_steps_stays(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    run = reserved(ledger)
    run.claim(3)
    run.claim_replayable(3, "a" * 64)
    run.claim(4)
    kept = {steps: run.record(steps) for steps in range(9)}
    assert len(set(kept.values())) == 9
    run.claim(20)
    assert {steps: run.record(steps) for steps in range(9)} == kept
    with pytest.raises(LedgerCorrupt, match="never go back"):
        run.record(29)
    others = reserved(ledger)
    others.claim(3)
    others.claim_replayable(3, "b" * 64)
    others.claim(4)
    assert not set(kept.values()) & {others.record(steps) for steps in range(9)}


def test_an_event_that_was_there_is_required(open_anywhere: Open) -> None:
    ledger = open_anywhere(budget=BUDGET)
    head = ledger.head()
    reserved(ledger)
    ledger.require(head.position, head.digest)
    for position, digest in ((head.position, "0" * 64), (head.position + 2, head.digest)):
        with pytest.raises(LedgerCorrupt, match="never go back"):
            ledger.require(position, digest)


def test_no_two_processes_are_given_the_same_step_and_a_killed_one_takes_its_own_along(
    open_anywhere: Open, at: Any
) -> None:
    ledger = open_anywhere(at("shared"), budget=BUDGET)
    reserved(ledger, 300)
    script = (
        "import sys\nfrom sfumato.ledger import Ledger\n"
        "run = Ledger.manage(sys.argv[1]).run(1)\n"
        "while True:\n"
        "    for step in run.claim(3):\n"
        "        print(step, flush=True)\n"
    )
    command = [sys.executable, "-c", script, str(at("shared"))]
    pipe = subprocess.PIPE
    children = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    victim = children[0]
    assert victim.stdout is not None
    first = [victim.stdout.readline() for _ in range(4)]
    os.kill(victim.pid, signal.SIGKILL)
    rest = victim.stdout.read()  # also what the reader of lines has buffered, which communicate() leaves out
    victim.communicate()
    told = [int(line) for line in first + rest.splitlines() if line.strip()]
    for child in children[1:]:
        output, errors = child.communicate()
        assert "RunExhausted" in errors
        told += [int(line) for line in output.split()]
    assert len(told) == len(set(told))
    assert set(told) <= set(range(300))
    assert len(told) >= 297
    assert ledger.run(1).left == 0
    assert ledger.verify().sound
