"""Sizes: of files, of functions, of folders."""

from __future__ import annotations

import io
import statistics
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from tools.measures.source import Module, length

__all__ = ["code_lines", "crowded_folders", "sizes", "totals"]

LONGEST_FILE = 400
MEDIAN_FILE = 150
LONG_FUNCTION = 45
LARGEST_FOLDER = 20


def totals(modules: Mapping[str, Module]) -> dict[str, float]:
    """Return the numbers: files, lines, and how long files and functions are."""
    lengths = [module.lines for module in modules.values()]
    functions = sorted(length(node) for module in modules.values() for node in module.functions)
    return {
        "files": len(lengths),
        "lines": sum(lengths),
        "lines of code": sum(code_lines(module.text) for module in modules.values()),
        "longest file": max(lengths, default=0),
        "median file": statistics.median(lengths) if lengths else 0,
        "functions": len(functions),
        "95th percentile of functions": functions[int(0.95 * len(functions))] if functions else 0,
    }


def code_lines(text: str) -> int:
    """Return how many lines hold code: neither blank, nor comment, nor docstring.

    >>> code_lines('"Doc."' + chr(10) + "x = 1  # one" + chr(10) + "# two" + chr(10))
    1
    """
    layout = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
    outside = layout | {tokenize.ENDMARKER, tokenize.ENCODING}
    lines: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in outside:
            statement.append(token)
        elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if [part.type for part in statement] != [tokenize.STRING]:
                lines.update(n for part in statement for n in range(part.start[0], part.end[0] + 1))
            statement = []
    return len(lines)


def sizes(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield files that are too long, and the median and percentile where those are."""
    for module in modules.values():
        if module.lines > LONGEST_FILE:
            yield f"{module.name}: {module.lines} lines, over {LONGEST_FILE}"
    measures = totals(modules)
    if measures["median file"] >= MEDIAN_FILE:
        yield f"the median file has {measures['median file']} lines, not under {MEDIAN_FILE}"
    if measures["95th percentile of functions"] >= LONG_FUNCTION:
        longest = sorted(
            (
                (length(node), f"{module.name}.{node.name}")
                for module in modules.values()
                for node in module.functions
            ),
            reverse=True,
        )
        names = ", ".join(f"{name} ({size})" for size, name in longest[:10])
        yield f"the 95th percentile of functions is not under {LONG_FUNCTION} lines; the longest: {names}"


def crowded_folders(modules: Mapping[str, Module], families: Collection[str]) -> Iterator[str]:
    """Yield folders of too many modules, other than families of siblings of one kind."""
    counts = Counter(name.rpartition(".")[0] for name, module in modules.items() if not module.is_package)
    for folder, count in sorted(counts.items()):
        if count > LARGEST_FOLDER and folder not in families:
            yield f"{folder}: {count} modules in one folder, over {LARGEST_FOLDER}"
