"""The JavaScript client in a real browser: vectors, refusals, and its reports in a running shuffler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato import local
from sfumato.server import Visitor
from tests.javascript.browser import browsing, pages
from tests.javascript.package import VECTORS, installed, keyed_digests, tool
from tests.javascript.service import KEYS, collection, served
from tests.server.setting import memory_folder

pytestmark = pytest.mark.browser

TRUE = ["yes"] * 12 + ["no"] * 8


def test_a_page_reproduces_the_vectors_and_its_reports_are_counted(tmp_path: Path) -> None:
    program = tool("chromium", "chromium-browser", "google-chrome")
    made = collection(local.RandomizedResponse(epsilon=20.0, domain=local.Domain(["no", "yes"])), len(TRUE))
    texts = {f"/{name}": (VECTORS / name).read_text() for name in ("vectors.json", "sealed.json")}
    texts["/blake2b.json"] = json.dumps(keyed_digests())
    with pages(installed(tmp_path), texts) as site, memory_folder() as folder:
        page = f"http://127.0.0.1:{site.port}"
        with served(made, folder, "--origin", page) as url:
            run = {"url": url, "id": made.device.id.hex(), "epsilon": 20.0, "values": TRUE}
            site.texts["/run.json"] = json.dumps(run)
            with browsing(program, f"{page}/test/page.html") as browser:
                found = site.result(browser)
                stranger = site.result(browser)
            with Visitor(url) as visitor:
                batches = visitor.status()["batches"]
                batch = visitor.batch(1, KEYS["analyst"]) if batches else b""
    known = json.loads((VECTORS / "vectors.json").read_text())
    parts = ("randomizers", "rare", "clients", "memoizing", "directions")
    reports = sum(len(one["reports"]) for part in parts for one in known[part])
    reports += sum(len(device["rounds"]) for one in known["memoizing"] for device in one["devices"])
    assert found == {"reports": reports, "envelopes": 1, "taken": len(TRUE), "refused": 0, "left": 0}
    assert stranger == "was not answered"
    opening = made.opening(KEYS["analyst"])
    assert opening.add(batch) == len(TRUE)
    # at epsilon 20 a report is false with a chance of 2e-9
    assert abs(opening.estimate().raw - [0.4, 0.6]).max() < 0.01


def test_two_pages_spend_one_budget_together(tmp_path: Path) -> None:
    program = tool("chromium", "chromium-browser", "google-chrome")
    lifetime, tries = 150, 100
    texts = {"/spend.json": json.dumps({"lifetime": lifetime, "tries": tries})}
    with pages(installed(tmp_path), texts) as site:
        page = f"http://127.0.0.1:{site.port}/test/page.html?two"
        with browsing(program, page) as browser:
            found = [site.result(browser) for _ in range(3)]
    found.remove("opened")
    for storage in ("database", "locks"):
        assert all(0 < one[storage] <= tries for one in found)
        assert sum(one[storage] for one in found) == lifetime
