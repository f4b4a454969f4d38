"""Check what the wheel holds, and that the source distribution builds the same wheel.

Run ``python tools/check_wheel.py WHEEL --sdist SDIST --twin WHEEL`` at the project's root. The wheel must
hold the package's files, the compiled kernel, the marker for type checkers, the demo's data with its notice,
the licence and the NOTICE, and nothing else; its metadata must say what pyproject.toml says. The twin is a
wheel that was built another way (one from the tree, one from the source distribution): both must hold the
same bytes.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

__all__ = ["expected_files", "main", "metadata_faults", "sdist_faults", "wheel_faults"]

LARGEST_REST = 600_000
"""Bytes, compressed, of all that is not source: data and kernels. Sources are as many as the library has."""
INTERPRETER, ABI = "cp311", "abi3"
WRITTEN_BY_SETUPTOOLS = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt")
KEPT_OUT_OF_SDIST = re.compile(r"\.(so|pyd|pyc|ledger)$|(^|/)(\.(?!ci(/|$))|build/|dist/)")
NEEDED_IN_SDIST = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "NOTICE",
    "CHANGELOG.md",
    "tests/test_project.py",
)


def expected_files(root: Path, project: Mapping[str, Any]) -> set[str]:
    """Return the paths that the wheel must hold, kernels with the suffix of the stable ABI.

    Parameters
    ----------
    root : pathlib.Path
        The project's root.
    project : mapping
        The content of ``pyproject.toml``.
    """
    name, version = project["project"]["name"], project["project"]["version"]
    tools = project["tool"]["setuptools"]
    files = {path.relative_to(root / "src").as_posix() for path in (root / "src" / name).rglob("*.py")}
    for package, patterns in tools["package-data"].items():
        folder = root / "src" / Path(*package.split("."))
        found = [path for pattern in patterns for path in folder.glob(pattern)]
        files.update(path.relative_to(root / "src").as_posix() for path in found)
    files.update(f"{kernel['name'].replace('.', '/')}.{ABI}.so" for kernel in tools.get("ext-modules", ()))
    info = f"{name}-{version}.dist-info"
    files.update(f"{info}/{file}" for file in WRITTEN_BY_SETUPTOOLS)
    return files | {f"{info}/licenses/{file}" for file in project["project"]["license-files"]}


def _is_source(path: str) -> bool:
    return path.endswith((".py", ".pyi")) or ".dist-info/" in path


def wheel_faults(wheel: Path, root: Path, project: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a wheel: its name, size, files and metadata."""
    name, version, _, tags = parse_wheel_filename(wheel.name)
    if (name, str(version)) != (project["project"]["name"], project["project"]["version"]):
        yield f"the wheel's name must be the project's and its version, got {wheel.name}"
    for tag in tags:
        if (tag.interpreter, tag.abi) != (INTERPRETER, ABI):
            yield f"the wheel must be tagged {INTERPRETER}-{ABI}, got {tag}"
    with zipfile.ZipFile(wheel) as archive:
        entries = [entry for entry in archive.infolist() if not _is_source(entry.filename)]
        rest = sum(entry.compress_size for entry in entries)
        if rest > LARGEST_REST:
            yield f"the wheel must have at most {LARGEST_REST} bytes besides sources, got {rest}"
        held, expected = set(archive.namelist()), expected_files(root, project)
        yield from (f"missing from the wheel: {path}" for path in sorted(expected - held))
        yield from (f"must not be in the wheel: {path}" for path in sorted(held - expected))
        text = archive.read(f"{name}-{version}.dist-info/METADATA").decode()
        commands = archive.read(f"{name}-{version}.dist-info/entry_points.txt").decode()
    yield from metadata_faults(Parser().parsestr(text), project)
    for script, target in project["project"].get("scripts", {}).items():
        if f"{script} = {target}" not in commands.splitlines():
            yield f"the wheel must install the command {script} = {target}"


def metadata_faults(metadata: Message, project: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of METADATA that differ from ``pyproject.toml``."""
    declared = project["project"]
    single = {
        "Name": declared["name"],
        "Version": declared["version"],
        "Summary": declared["description"],
        "Requires-Python": declared["requires-python"],
        "License-Expression": declared["license"],
        "Description-Content-Type": "text/markdown",
    }
    for field, value in single.items():
        if metadata[field] != value:
            yield f"METADATA: {field} must be {value!r}, got {metadata[field]!r}"
    several = {
        "License-File": set(declared["license-files"]),
        "Classifier": set(declared["classifiers"]),
        "Provides-Extra": set(declared.get("optional-dependencies", {})),
    }
    for field, values in several.items():
        if odd := set(metadata.get_all(field, [])) ^ values:
            yield f"METADATA: {field} differs from pyproject.toml in {', '.join(sorted(odd))}"
    needs = {Requirement(line) for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    if odd_needs := needs ^ {Requirement(line) for line in declared["dependencies"]}:
        odd_lines = ", ".join(sorted(map(str, odd_needs)))
        yield f"METADATA: Requires-Dist differs from pyproject.toml in {odd_lines}"
    if not str(metadata.get_payload()).startswith("#"):
        yield "METADATA: the description must be the README"


def sdist_faults(sdist: Path, project: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the source distribution lacks, and what was built or hidden that it must not hold."""
    with tarfile.open(sdist) as archive:
        held = {path.partition("/")[2] for path in archive.getnames()} - {""}
    kernels = project["tool"]["setuptools"].get("ext-modules", ())
    sources = [file for kernel in kernels for file in (*kernel["sources"], *kernel.get("depends", ()))]
    yield from (
        f"missing from the sdist: {path}" for path in (*NEEDED_IN_SDIST, *sources) if path not in held
    )
    yield from (
        f"must not be in the sdist: {path}" for path in sorted(held) if KEPT_OUT_OF_SDIST.search(path)
    )


def twin_faults(wheel: Path, twin: Path) -> Iterator[str]:
    """Yield the files whose bytes differ between two wheels."""

    def sums(path: Path) -> dict[str, int]:
        with zipfile.ZipFile(path) as archive:
            return {item.filename: item.CRC for item in archive.infolist()}

    first, second = sums(wheel), sums(twin)
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            yield f"{name} differs between the wheel and its twin"


def main(argv: Sequence[str] | None = None) -> int:
    """Print what the wheel weighs and every fault; return 1 if there is one."""
    parser = argparse.ArgumentParser(description="Check what the wheel holds.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--sdist", type=Path)
    parser.add_argument("--twin", type=Path, help="the same wheel, built another way")
    arguments = parser.parse_args(argv)
    root = Path.cwd()
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    faults = list(wheel_faults(arguments.wheel, root, project))
    faults += sdist_faults(arguments.sdist, project) if arguments.sdist else ()
    faults += twin_faults(arguments.wheel, arguments.twin) if arguments.twin else ()
    for fault in faults:
        print(f"fault: {fault}")
    print(f"{arguments.wheel.name}: {arguments.wheel.stat().st_size} bytes, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
