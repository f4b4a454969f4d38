"""Which mutants are tried: a seeded draw over files, or over what has changed since a commit."""

from __future__ import annotations

import ast
import hashlib
import math
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from tools.measures.source import Function, Module
from tools.mutation.mutants import Mutant, mutants

__all__ = ["changed_lines", "drawn", "touched"]


def drawn(pool: Iterable[Mutant], count: int, seed: str) -> list[Mutant]:
    """Return so many different mutants of a pool, or all of it, in a drawn order.

    Files are drawn by their sizes, and in a file each kind of mutant as often as any other, so that the
    frequent kinds do not crowd out the rest. The order of two mutants depends on the seed, on them and on how
    many there are in their files: a change elsewhere leaves them as they are.
    """
    found = {mutant.identity: mutant for mutant in pool}
    kinds = Counter((mutant.path, mutant.kind) for mutant in found.values())
    files = Counter(path for path, _ in kinds)
    sizes = {path: path.stat().st_size for path in files}

    def arrival(mutant: Mutant) -> float:
        # The first of exponential clocks with these rates is one drawn by the rates, and so is each next one.
        rate = sizes[mutant.path] / files[mutant.path] / kinds[mutant.path, mutant.kind]
        digest = hashlib.sha256(f"{seed}:{mutant.identity}".encode()).digest()
        return -math.log((int.from_bytes(digest[:7]) + 1) / 2**56) / rate

    return sorted(found.values(), key=lambda mutant: (arrival(mutant), mutant.identity))[:count]


def changed_lines(revision: str, folder: Path) -> dict[Path, set[int]]:
    """Return the lines of each file below a folder that differ from a commit, but of no ignored file."""
    diff = _git(
        "diff", "--unified=0", "--no-color", "--no-ext-diff", "--relative", revision, "--", str(folder)
    )
    found: dict[Path, set[int]] = {}
    lines: set[int] = set()
    for line in diff.splitlines():
        if line.startswith("+++ "):
            lines = found.setdefault(Path(line.removeprefix("+++ ").removeprefix("b/")), set())
        elif head := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, number = int(head[1]), int(head[2] or 1)
            lines.update(range(first, first + max(number, 1)))
    for name in _git("ls-files", "--others", "--exclude-standard", "--", str(folder)).splitlines():
        text = Path(name).read_text(encoding="utf-8", errors="replace")
        found[Path(name)] = set(range(1, len(text.splitlines()) + 1))
    return {path: lines for path, lines in found.items() if path.exists()}


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S607
    if run.returncode:
        raise SystemExit(f"git {arguments[0]} failed: {run.stderr.strip()}")
    return run.stdout


def touched(module: Module, lines: Collection[int]) -> list[Mutant]:
    """Return the mutants of the innermost functions that hold one of the lines, or on one outside them."""
    spans = []

    def descend(body: Iterable[ast.AST], scope: tuple[str, ...]) -> None:
        for node in body:
            named = isinstance(node, Function | ast.ClassDef)
            inner = (*scope, node.name) if isinstance(node, Function | ast.ClassDef) else scope
            if named and isinstance(node, Function):
                spans.append((node.lineno, node.end_lineno or node.lineno, ".".join(inner)))
            descend(ast.iter_child_nodes(node), inner)

    descend(module.tree.body, ())
    names = set()
    for line in lines:
        around = [span for span in spans if span[0] <= line <= span[1]]
        if around:
            names.add(max(around)[2])
    return [m for m in mutants(module) if (m.name in names if m.unit else m.line in lines)]
