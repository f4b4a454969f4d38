"""Which mutants are tried: a seeded draw over files, or over what has changed since a commit."""

from __future__ import annotations

import ast
import random
import re
import subprocess
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from tools.house import Function, Module
from tools.mutation.mutants import Mutant, mutants

__all__ = ["changed_lines", "drawn", "drawn_everywhere", "touched"]


def _pick(rng: random.Random, found: Iterable[Mutant]) -> Mutant | None:
    """Draw a kind, then a mutant of that kind, so that the frequent kinds do not crowd out the others."""
    kinds: dict[str, list[Mutant]] = {}
    for mutant in found:
        kinds.setdefault(mutant.kind, []).append(mutant)
    return rng.choice(kinds[rng.choice(sorted(kinds))]) if kinds else None


def drawn(pool: Collection[Mutant], count: int, rng: random.Random) -> list[Mutant]:
    """Return so many different mutants of a pool, or all of it in a drawn order."""
    left = {mutant.identity: mutant for mutant in pool}
    found: list[Mutant] = []
    while left and len(found) < count:
        mutant = _pick(rng, left.values())
        if mutant is not None:
            found.append(left.pop(mutant.identity))
    return found


def drawn_everywhere(
    modules: Mapping[str, Module], count: int, rng: random.Random, listed: Collection[tuple[str, str, str]]
) -> list[Mutant]:
    """Return so many mutants of a package: a file is drawn by its size, then a mutant in it."""
    names = sorted(modules)
    sizes = [modules[name].path.stat().st_size for name in names]
    found: dict[str, Mutant] = {}
    for _ in range(20 * count):
        if len(found) == count:
            break
        (name,) = rng.choices(names, sizes)
        mutant = _pick(rng, [m for m in mutants(modules[name]) if m.key not in listed])
        if mutant is not None:
            found.setdefault(mutant.identity, mutant)
    return list(found.values())


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
