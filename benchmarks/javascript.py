"""The JavaScript client in Node: 1,000 reports of every frequency protocol, its bytes when minified."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from sfumato.local import device
from sfumato.local.device import Domain
from sfumato.local.device.base.protocols import PROTOCOLS

__all__ = ["measure_javascript"]

ROOT: Final = Path(__file__).parents[1]
CLIENT: Final = ROOT / "javascript" / "src" / "index.js"
SCRIPT: Final = Path(__file__).with_name("javascript_reports.mjs")
CATEGORIES: Final = 1024
ALLOWED: Final = 1000.0
"""Milliseconds for a thousand reports."""
ESBUILD: Final = "esbuild@0.28.2"


def measure_javascript() -> None:
    """Print a row for each protocol, and the sizes if the registry of npm answers."""
    node = shutil.which("node")
    if node is None:
        print("javascript: no Node is installed; on Debian: apt-get install nodejs npm")
        return
    with tempfile.TemporaryDirectory() as folder:
        questions = Path(folder, "questions.json")
        questions.write_text(json.dumps(dict(_questions())))
        command = [node, str(SCRIPT), str(CLIENT), str(questions)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found: dict[str, dict[str, float]] = json.loads(done.stdout)
        print(
            f"{'1,000 reports in Node':<30}{'first, ms':>10}{'best, ms':>10}{'bytes':>7}  of {ALLOWED:.0f} ms"
        )
        for name, row in found.items():
            within = "" if row["first"] <= ALLOWED else "  MISSED"
            print(f"{name:<30}{row['first']:>10.1f}{row['best']:>10.1f}{row['width']:>7}{within}")
        print(f"{'all':<30}{sum(row['first'] for row in found.values()):>10.1f}")
        _print_size(Path(folder))


def _questions() -> list[tuple[str, dict[str, Any]]]:
    """Every frequency protocol about 1,024 categories at epsilon 1, and RAPPOR as it is by default."""
    made = []
    for name, kind in PROTOCOLS.items():
        randomizer = getattr(device, kind)
        if ".frequency." in randomizer.__module__:
            one = (
                randomizer()
                if name == "rappor"
                else randomizer(epsilon=1.0, domain=Domain(range(CATEGORIES)))
            )
            value = "https://example.org" if name == "rappor" else 77
            stated = {"specification": json.dumps(one.specification()), "digest": one.digest.hex()}
            made.append((name, {**stated, "value": value}))
    return made


def _print_size(folder: Path) -> None:
    """Bundle and minify it by esbuild, which npm brings; say so where it cannot."""
    npx, bundle = shutil.which("npx"), folder / "client.js"
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--external:node:crypto"]
    command = [str(npx), "--yes", ESBUILD, str(CLIENT), *options, f"--outfile={bundle}", "--log-level=error"]
    if npx is None or subprocess.run(command, check=False, cwd=folder, stdin=subprocess.DEVNULL).returncode:
        print(f"minified: not measured, as npm cannot bring {ESBUILD}")
        return
    content = bundle.read_bytes()
    print(f"minified by {ESBUILD}: {len(content):,} bytes, {len(gzip.compress(content, 9)):,} by gzip")
