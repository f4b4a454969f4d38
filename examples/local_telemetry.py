"""Devices report their browser at epsilon 1, and a server that never sees a true value estimates shares.

Run ``python examples/local_telemetry.py``: it needs no argument and no file, and takes about a second.
"""

from __future__ import annotations

import json

import numpy as np

from sfumato import local
from sfumato.local import device

BROWSERS = ["chromium", "edge", "firefox", "safari", "another"]
SHARES = [0.45, 0.12, 0.08, 0.3, 0.05]


def main() -> None:
    """Play the server and 20,000 devices."""
    # The server publishes the question and its randomizer, as JSON.
    oracle = local.OptimalLocalHashing(epsilon=1.0, domain=local.Domain(BROWSERS))
    specification = json.dumps(oracle.device.specification())

    # Each device randomizes its own value. Only these bytes leave it.
    true = np.random.default_rng(1).choice(BROWSERS, 20_000, p=SHARES)
    randomizer = device.Randomizer.from_specification(json.loads(specification))
    reports = [randomizer.randomize(browser) for browser in true]

    # The server counts the reports and estimates the share of each browser.
    aggregator = oracle.aggregator()
    for report in reports:
        aggregator.add(report)
    estimate = aggregator.estimate()

    lower, upper, _ = estimate.bands(0.95)
    print(f"{aggregator.accepted:,} reports of {oracle.device.width} bytes")
    print(f"{'browser':<10}{'true':>8}{'estimate':>10}   all five at once, 95 %")
    for index, browser in enumerate(BROWSERS):
        print(
            f"{browser:<10}{np.mean(true == browser):>8.1%}{estimate.frequencies[index]:>10.1%}"
            f"   {lower[index]:.1%} to {upper[index]:.1%}"
        )
    loss = oracle.privacy_loss
    print(f"epsilon of one report: {loss.epsilon(0.0):.4f}, of five reports: {(loss * 5).epsilon(0.0):.4f}")


if __name__ == "__main__":
    main()
