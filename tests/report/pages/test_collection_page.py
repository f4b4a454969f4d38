"""Pages of surveys without a trusted curator: their epsilons, whom one must trust, odds, refusals."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from sfumato import local, report
from sfumato.crypto import SecretKey
from sfumato.errors import ParameterError
from sfumato.local import shuffle
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from tests.cases import cases

DOMAIN = local.Domain(["no", "yes", "<b>"])


def text_of(page: report.ReleasePage) -> str:
    body = ET.fromstring(page.html).find("body")
    assert body is not None
    return " ".join("".join(body.itertext()).split())


def numbers(page: report.ReleasePage) -> list[float]:
    """The first table's numbers: each estimate with the ends of its interval."""
    cells = ET.fromstring(page.html).findall(".//table")[0].findall("tbody/tr/td")
    said = (
        " ".join("".join(cell.itertext()) for cell in cells).replace("\N{MINUS SIGN}", "-").replace(",", "")
    )
    return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", said)]


def key(role: Any) -> Any:
    return SecretKey.generate(role).public


def test_a_local_survey_says_epsilon_of_a_report_and_that_no_collector_is_trusted() -> None:
    oracle = local.RandomizedResponse(epsilon=1.0, domain=DOMAIN)
    estimate = oracle.simulate([7000, 2000, 1000], rng=1)
    page = report.local_estimate(estimate, oracle)
    said = text_of(page)
    assert "epsilon is 1 and delta is 0, if any answer is replaced by any other" in said
    assert "two reports cost 2" in said
    assert "Nobody who collects" in said
    # e / (1 + e), and the most that a false chance of 1/2 becomes under three answers' randomized response
    assert "at most 73.2 in 100 likely after any messages" in said
    assert "you are in the data" not in said
    assert "Simulation" in said
    assert "<b>" in said
    lower, upper, _ = estimate.interval()
    shown = numbers(page)
    for index in range(3):
        value, low, high = shown[3 * index : 3 * index + 3]
        assert low <= lower[index] <= upper[index] <= high
        assert value == pytest.approx(estimate.frequencies[index], rel=1e-3)
    low, high, _ = estimate.forged_bias(100)
    assert f"a share moves by \N{MINUS SIGN}{-low:.4f}"[:28] in said
    assert high < 0.03


def test_the_odds_of_an_event_are_of_the_protocol_that_was_run() -> None:
    two = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["no", "yes"]))
    said = text_of(report.local_estimate(two.simulate([70, 30], rng=1), two))
    # a yes has the chances e/(1+e) and 1/(1+e); the line through (0, 0) and (0.269, 0.731) and then (1, 1)
    event = float(re.findall(r"at most ([\d.]+) in 100 with any other", said)[0])
    chance = 0.7310585786 + (0.5 - 0.2689414214) * 0.2689414214 / 0.7310585786
    assert 100 * chance <= event <= 100 * chance + 0.1001


def test_a_protocol_with_memos_says_the_total_of_a_device_and_its_odds() -> None:
    protocol = local.LongitudinalRandomizedResponse(
        epsilon=0.5, permanent_epsilon=1.0, domain=DOMAIN, max_memos=2
    )
    (estimate,) = protocol.simulate_rounds([700, 200, 100], rounds=1, rng=1)
    said = text_of(report.local_estimate(estimate, protocol))
    total = protocol.longitudinal_loss().epsilon(0.0)
    assert total == pytest.approx(2.0, rel=1e-9)
    assert "epsilon is 2 and delta is 0" in said
    assert "all that one device ever sends would look almost the same" in said
    assert "Epsilon of all reports of a device, ever2: at most 2 remembered answers" in said
    assert "when an answer changed, and whether it came back, is not protected" in said
    assert "at most 88.1 in 100 likely" in said  # e**2 / (1 + e**2)
    assert "two reports cost" not in said


@cases("language", ["en", "de"])
def test_means_ranges_and_strings_have_pages(language: str) -> None:
    mean = local.PiecewiseMean(epsilon=2.0, bounds=(-5.0, 24.0))
    page = report.local_estimate(mean.simulate([7.0, 9.0], [5000, 5000], rng=1), mean, language=language)
    assert ("from \N{MINUS SIGN}5 to 24" in text_of(page)) == (language == "en")
    ranges = local.HierarchicalHistogram(epsilon=1.0, domain=local.Bins(range(9)))
    made = ranges.simulate([100] * 8, rng=1)
    assert "hierarch" in report.local_estimate(made, ranges, language=language).html


def test_a_shuffled_survey_says_delta_the_honest_and_what_is_left_without_the_shuffler() -> None:
    oracle = local.RandomizedResponse(epsilon=2.0, domain=DOMAIN)
    asked = shuffle.Collection(
        protocol=oracle, batch_size=10_000, colluders=100, analyst=key("analyst"), shuffler=key("shuffler")
    )
    estimate = oracle.simulate([7000, 2000, 1000], rng=1)
    said = text_of(report.shuffled_estimate(estimate, asked, delta=1e-6))
    epsilon = asked.privacy_loss.epsilon(1e-6)
    shown = float(re.findall(r"epsilon is ([\d.]+) and delta is 1·10\^\N{MINUS SIGN}6", said)[0])
    assert epsilon <= shown <= epsilon * 1.001
    assert "at least 9900 of 10000 devices are honest (99 in 100)" in said
    # What is presupposed is not made less by rounding.
    other = replace(asked, batch_size=9999, colluders=1)
    enough = text_of(report.shuffled_estimate(estimate, other, delta=1e-6))
    assert "at least 9998 of 9999 devices are honest (99.99 in 100)" in enough
    # A delta of 0 is one, too: what is left is what each device does by itself.
    assert "epsilon is 2 and delta is 0" in text_of(report.shuffled_estimate(estimate, asked, delta=0.0))
    assert "what is left is the noise of your own device: epsilon is 2 " in said
    # the noise of one's own device bounds a belief, whatever the shuffler shows: e**2 / (1 + e**2)
    assert "at most 88.1 in 100 likely after any messages that they could see" in said
    with pytest.raises(ParameterError, match="delta must be given for reports without one, got None"):
        report.shuffled_estimate(estimate, asked)


def test_sums_of_shares_say_that_little_is_left_and_their_interval_is_of_the_noise() -> None:
    asked = shuffle.ShuffledSum(epsilon=1.0, delta=1e-6, clients=1000, bounds=(0.0, 1.0))
    estimate = asked.simulate([0.25], rng=1, counts=[1000])
    page = report.shuffled_estimate(estimate, asked)
    said = text_of(page)
    value, low, high = numbers(page)[:3]
    lower, upper, _ = estimate.interval()
    assert low <= lower <= upper <= high
    assert value == pytest.approx(estimate.total, rel=1e-3)
    assert "little or nothing is left of this protection" in said
    assert "at least 1,000 devices are honest" in said


def test_counts_above_a_threshold_trust_the_shuffler_with_counts() -> None:
    commitment = SparseCollection.commit(SparseCollection.encryption_key())
    known = SparseCollection(
        epsilon=1.0, delta=1e-6, batch_size=1000, max_keys=1, key_bytes=40, commitment=commitment,
        analyst=key("analyst"), shuffler=key("shuffler"),
    )  # fmt: skip
    histogram = shuffle.SparseHistogram(known)
    release = shuffle.SparseRelease(1, {"<script>": 431, "oil": 52}, 3)
    page = report.shuffled_estimate(release, histogram)
    said = text_of(page)
    assert f"shows only counts that reach {histogram.mechanism.threshold}" in said
    assert "does not say that nobody is in it" in said
    value, low, high = numbers(page)[:3]
    q = math.exp(-1 / 2)  # a client that is replaced moves two counts
    tail = q ** (high - value + 1) / (1 + q)
    assert (value, low) == (431, 2 * 431 - high)
    assert tail <= 0.025 <= tail / q**2
    assert "no bound on a belief about your answer holds" in said
    assert "after any messages that they could see" not in said
    assert "<script" not in page.html


def test_what_is_refused() -> None:
    oracle = local.RandomizedResponse(epsilon=1.0, domain=DOMAIN)
    estimate = oracle.simulate([7, 2, 1], rng=1)
    other = local.RandomizedResponse(epsilon=1.5, domain=DOMAIN)
    renamed = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["a", "b", "c"]))
    sums = shuffle.ShuffledSum(epsilon=1.0, delta=1e-6, clients=1000, bounds=(0.0, 1.0))
    for given, protocol, message in (
        (estimate, other, "protocol must be the one of the estimate"),
        (estimate, renamed, "protocol must be the one of the estimate"),
        (estimate, sums, "protocol must be one without a shuffler"),
        (estimate, "oracle", "protocol must be"),
        ([0.5], oracle, "estimate must be one of shares, a mean"),
    ):
        with pytest.raises(ParameterError, match=f"^{message}"):
            report.local_estimate(given, protocol)  # type: ignore[arg-type]
    for few in (999, 0):
        with pytest.raises(
            ParameterError, match=f"^estimate must be of 1000 reports or more.* it is of {few}"
        ):
            report.shuffled_estimate(sums.simulate([0.25], rng=1, counts=[few]), sums)
    with pytest.raises(ParameterError, match=r"^asked must be a Collection"):
        report.shuffled_estimate(estimate, oracle)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^protocol must be the one of the estimate"):
        report.shuffled_estimate(estimate, sums)
