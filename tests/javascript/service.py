"""A shuffler as its operator runs it, for devices with WebCrypto: `sfumato shuffle serve`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.local import shuffle

__all__ = ["KEYS", "collection", "served"]

KEYS = {
    role: shuffle.SecretKey(role, role[:1].encode() * 32, "aes-256-gcm") for role in ("analyst", "shuffler")
}
MAIN = "from sfumato.cli.main import main; main()"


def collection(protocol: Any, batch_size: int) -> shuffle.Collection:
    """A collection whose keys are for AES-256-GCM."""
    keys: dict[str, Any] = {role: key.public for role, key in KEYS.items()}
    return shuffle.Collection(protocol=protocol, batch_size=batch_size, name="wöche 7", **keys)


@contextmanager
def served(made: shuffle.Collection, folder: Path, *options: str) -> Iterator[str]:
    """Run the service on a free port, and yield its address; the collection's file is in the folder."""
    file, key = folder / "collection.json", folder / "shuffler.key"
    file.write_text(json.dumps(made.specification()))
    KEYS["shuffler"].to_file(key)
    further = ["--key", str(key), "--folder", str(folder / "store"), "--port", "0", *options]
    command = [sys.executable, "-c", MAIN, "shuffle", "serve", str(file), *further]
    popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert popen.stdout is not None
    assert popen.stderr is not None
    try:
        first = popen.stdout.readline()
        assert " at http" in first, popen.stderr.read()
        yield first.split(" at ")[1].strip()
    finally:
        popen.kill()
        popen.communicate(timeout=60)
