"""Mutants of the C kernels: changes of their text, each compiled as the package is."""

from __future__ import annotations

import hashlib
import random
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.mutation.planting import Importer

__all__ = ["DoesNotCompile", "KernelMutant", "kernel_mutants", "kernels_drawn"]

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
NOT_CODE = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|^\s*#\s*(?!define\b)[^\n]*", re.S | re.M
)
"""Comments, texts and directives, but not what a macro is defined as."""

NUMBER = r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+)(?![\w.]*\.)(?:[uU]?[lL]{0,2})\b"
DEFINED = re.compile(r"^(?:#define (\w+)|[A-Za-z_][^;{}=]*?\b(\w+)\([^;]*$)", re.M)


class DoesNotCompile(Exception):
    """The changed text is no C."""


@dataclass(frozen=True, slots=True)
class KernelMutant:
    """One small change of the C text.

    Parameters
    ----------
    identity : str
        The file's name and a hash of what changes.
    extension : mapping
        The extension's table in ``pyproject.toml``.
    path, line : pathlib.Path, int
        Where the change is.
    name : str
        The function or macro.
    kind : str
        What kind of change it is.
    original, mutated : str
        The line before and after.
    text : str
        The whole changed file.
    """

    identity: str
    extension: Mapping[str, Any]
    path: Path
    line: int
    name: str
    kind: str
    original: str
    mutated: str
    text: str

    @property
    def module(self) -> str:
        """The extension module."""
        return str(self.extension["name"])

    @property
    def key(self) -> tuple[str, str, str]:
        """What the list of equivalent mutants knows it by."""
        return self.qualified, self.original, self.mutated

    @property
    def qualified(self) -> str:
        """The file and the function or macro."""
        return f"{self.path.name}.{self.name}"

    def importer(self, folder: Path) -> Importer:
        """Compile the extension below a folder and return how it is imported from there.

        Raises
        ------
        DoesNotCompile
            If the compiler refuses the text.
        """
        room = Path(tempfile.mkdtemp(dir=folder))
        sources = [Path(source) for source in self.extension["sources"]]
        for source in self.path.parent.glob("*.[ch]"):
            shutil.copy(source, room)
        (room / self.path.name).write_text(self.text, encoding="utf-8")
        built = room / f"{self.module.rpartition('.')[2]}.so"
        command = _compiler(self.extension, [room / source.name for source in sources], built)
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise DoesNotCompile(run.stderr)
        return Importer(self.module, built)


def _compiler(extension: Mapping[str, Any], sources: Collection[Path], built: Path) -> list[str]:
    """Return the command that setuptools would run, in one step."""
    settings = sysconfig.get_config_vars()
    macros = [f"-D{name}={value}" for name, value in extension.get("define-macros", [])]
    return [
        *shlex.split(str(settings["LDSHARED"])),
        *shlex.split(str(settings.get("CCSHARED") or "")),
        f"-I{sysconfig.get_path('include')}",
        *macros,
        *extension.get("extra-compile-args", []),
        *map(str, sources),
        *("-o", str(built)),
        *(f"-l{library}" for library in extension.get("libraries", [])),
    ]


def _changes(code: str) -> Iterator[tuple[str, int, int, str]]:
    """Yield kind, start, end and what to put there, for code whose comments and texts are blanked."""
    for found in re.finditer(r"(?<![<>=!\-+*/&|^%])(<=|>=|==|!=|<|>)(?![<>=])", code):
        if not (found[0] == ">" and code[found.start() - 1] == "-"):
            yield "comparison", *found.span(), COMPARISONS[found[0]]
    for found in re.finditer(r"(<<|>>)(\s*)(" + NUMBER + ")", code):
        for step in (1, -1):
            yield "shift", *found.span(3), _moved(found[3], step)
    for found in re.finditer(NUMBER, code):
        if not re.search(r"(<<|>>)\s*$", code[: found.start()]):
            for step in (1, -1) if int(found[0].rstrip("uUlL"), 0) else (1,):
                yield "off by one", *found.span(), _moved(found[0], step)
    for found in re.finditer(r"(?<=[\w)\]])\s*([+-])\s*(?=[\w(])(?<![+-][+-])", code):
        yield "sign", *found.span(1), "-" if found[1] == "+" else "+"
    for found in re.finditer(r"(?<=[\w)\]])\s*&\s*(?:\w+|\([^()]*\))(?![\w(\[])", code):
        yield "mask", *found.span(), ""


def _moved(number: str, step: int) -> str:
    digits = number.rstrip("uUlL")
    value = int(digits, 0) + step
    return (hex(value) if digits[:2].lower() == "0x" else str(value)) + number[len(digits) :]


def kernel_mutants(project: Path = Path("pyproject.toml")) -> list[KernelMutant]:
    """Return every mutant of the C files of the project's extension modules."""
    tables = tomllib.loads(project.read_text(encoding="utf-8")) if project.exists() else {}
    modules = tables.get("tool", {}).get("setuptools", {}).get("ext-modules", [])
    found: list[KernelMutant] = []
    for extension in modules:
        for name in (*extension["sources"], *extension.get("depends", [])):
            found += _of_file(extension, Path(name))
    return found


def _of_file(extension: Mapping[str, Any], path: Path) -> Iterator[KernelMutant]:
    text = path.read_text(encoding="utf-8")
    code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    met: Counter[tuple[str, ...]] = Counter()
    for kind, start, end, instead in _changes(code):
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        before = [name[1] or name[2] for name in DEFINED.finditer(code, 0, last)]
        name = before[-1] if before else ""
        if name and re.search(rf"#define {name}\b.*_H\b", text[first:last]):
            continue
        changed = text[:start] + instead + text[end:]
        original = " ".join(text[first:last].split())
        mutated = " ".join((text[first:start] + instead + text[end:last]).split())
        key = (name, original, mutated)
        met[key] += 1
        digest = hashlib.sha256("\0".join((*key, str(met[key]))).encode()).hexdigest()[:8]
        yield KernelMutant(
            f"{path.name}:{digest}",
            extension,
            path,
            text.count("\n", 0, start) + 1,
            name,
            kind,
            original,
            mutated,
            changed,
        )


def kernels_drawn(
    pool: Collection[KernelMutant], count: int, rng: random.Random, listed: Collection[tuple[str, str, str]]
) -> list[KernelMutant]:
    """Return so many different mutants, one kind as likely as another."""
    kinds: dict[str, list[KernelMutant]] = {}
    for mutant in pool:
        if mutant.key not in listed:
            kinds.setdefault(mutant.kind, []).append(mutant)
    found: list[KernelMutant] = []
    while kinds and len(found) < count:
        kind = rng.choice(sorted(kinds))
        found.append(kinds[kind].pop(rng.randrange(len(kinds[kind]))))
        if not kinds[kind]:
            del kinds[kind]
    return found
