"""The JavaScript client as users get it: packed by npm, installed from that tarball into an empty folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

__all__ = ["CLIENT", "VECTORS", "installed", "keyed_digests", "minified", "run", "tool"]

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "javascript"
VECTORS = ROOT / "tests" / "golden" / "local"
SECONDS = 120


def tool(*names: str) -> str:
    """Return the path of the first program that is there; without one skip, but in CI fail."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        missing = (
            f"no {' or '.join(names)} is installed; on Debian: apt-get install nodejs npm chromium esbuild"
        )
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    """Run a program in a folder and return what it prints; if it fails, so does the test."""
    environment = os.environ | {"NO_COLOR": "1", "npm_config_cache": str(folder / ".npm")} | variables
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False,
        timeout=SECONDS, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        pytest.fail(
            f"{command[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
        )
    return done.stdout


def installed(folder: Path) -> Path:
    """Install the packed client into a folder, with its tests beside it, and return the folder."""
    npm = tool("npm")
    tool("node")
    (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
    (packed,) = run(npm, "pack", "--silent", "--pack-destination", folder, CLIENT, folder=folder).split()
    offline = ("--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    run(npm, "install", *offline, folder / packed, folder=folder)
    shutil.copytree(CLIENT / "test", folder / "test")
    return folder


def minified(folder: Path, entry: str) -> bytes:
    """Bundle an entry point of the installed client by itself, as a program's build does, and minify it."""
    (folder / "entry.js").write_text(f'export * from "{entry}";\n')
    options = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--external:node:crypto")
    run(tool("esbuild"), "entry.js", *options, "--outfile=bundle.js", "--log-level=error", folder=folder)
    return (folder / "bundle.js").read_bytes()


def keyed_digests() -> list[dict[str, Any]]:
    """BLAKE2b of messages around the length of a block, with and without a key, by Python's own library."""
    made = []
    for size in (0, 1, 127, 128, 129, 256, 300):
        for key in (b"k", bytes(range(64))):
            message = bytes(at & 255 for at in range(size))
            digest = hashlib.blake2b(message, digest_size=32, key=key, person=b"sfumato test").hexdigest()
            made.append({"size": size, "key": key.hex(), "digest": digest})
    return made
