"""The command line of ``tools/mutate.py``."""

from __future__ import annotations

import argparse
import math
import os
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tools.measures.source import Module
from tools.measures.source import modules as modules_of
from tools.mutation.collecting import TIERS, markers_for
from tools.mutation.drawing import changed_lines, drawn, touched
from tools.mutation.equivalents import listed, stale
from tools.mutation.graph import CACHE, Graph
from tools.mutation.host import Host, preload
from tools.mutation.judging import FIRST_ROUND, Change, Judge
from tools.mutation.kernels import KernelMutant, kernel_mutants, kernels_drawn
from tools.mutation.mutants import Mutant, mutants
from tools.mutation.reach import Reach
from tools.mutation.report import Report

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/mutate.py", description="Mutation testing of the package.")
    parser.add_argument("--package", type=Path, default=Path("src/sfumato"))
    parser.add_argument("--tests", type=Path, default=Path("tests"))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--since", metavar="REVISION", help="only functions that changed since that commit")
    what.add_argument("--files", nargs="+", type=Path, metavar="FILE", help="only these files of the package")
    what.add_argument("--only", nargs="+", metavar="ID", help="these mutants, as an earlier run named them")
    what.add_argument("--kernels", type=int, metavar="COUNT", help="so many mutants of the C kernels instead")
    what.add_argument(
        "--trace",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="find and remember which tests reach which functions",
    )
    parser.add_argument("--count", type=int, default=40, help="how many mutants (40)")
    parser.add_argument("--seed", default="0", help="of the draw: any text (0)")
    parser.add_argument("--seconds", type=float, default=180.0, help="when to stop (180)")
    parser.add_argument("--patience", type=float, default=20.0, help="processor seconds for each mutant (20)")
    parser.add_argument("--limit", type=float, default=5.0, help="processor seconds for an unknown test (5)")
    parser.add_argument("--memory", type=int, default=4096, help="mebibytes for each mutant (4096)")
    parser.add_argument(
        "--tier", action="append", choices=TIERS, default=[], help="run tests with this mark too"
    )
    parser.add_argument("--equivalents", type=Path, default=Path("tools/equivalents.toml"))
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the verdicts there, as JSON")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Try mutants and print what becomes of them; return 1 if one survives that is not listed."""
    began = time.monotonic()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # a thread would not live on in a fork
    arguments = _parser().parse_args(argv)
    graph = Graph(arguments.package, arguments.tests, CACHE)
    reach = Reach(CACHE / "reach.json")
    markers = markers_for(arguments.tier)
    if arguments.trace is not None:
        return _trace(graph, reach, arguments.trace or [arguments.tests], markers)
    modules = modules_of(arguments.package)
    kernels = kernel_mutants()
    entries = listed(arguments.equivalents)
    chosen = _chosen(arguments, modules, kernels, {entry.key for entry in entries})
    _agree(arguments.package, [change for change in chosen if isinstance(change, Mutant)])
    preload(_libraries(graph, chosen))
    judge = Judge(
        graph,
        reach,
        markers,
        deadline=began + arguments.seconds,
        patience=arguments.patience,
        memory=arguments.memory,
        limit=arguments.limit,
    )
    report = Report({entry.key for entry in entries}, stale(entries, _keys(modules, kernels)), len(chosen))
    report.begin(arguments.seed)
    for trial in judge.judged(chosen):
        report.tell(trial)
    report.end(judge.notes, time.monotonic() - began)
    if arguments.report:
        report.write(arguments.report)
    return report.status


def _chosen(
    arguments: argparse.Namespace,
    modules: Mapping[str, Module],
    kernels: Sequence[KernelMutant],
    listed: Collection[tuple[str, str, str]],
) -> Sequence[Change]:
    """Return the mutants that the command line asks for."""
    if arguments.only:
        return _named(arguments.only, modules, kernels)
    if arguments.kernels is not None:
        return kernels_drawn(kernels, arguments.kernels, random.Random(arguments.seed), listed)  # noqa: S311
    by_path = {module.path.resolve(): module for module in modules.values()}
    pool: list[Mutant] = []
    if not arguments.since and not arguments.files:
        pool = [mutant for module in modules.values() for mutant in mutants(module)]
    if arguments.since:
        for path, lines in changed_lines(arguments.since, arguments.package).items():
            if path.resolve() in by_path:
                pool += touched(by_path[path.resolve()], lines)
    for path in arguments.files or []:
        if path.resolve() not in by_path:
            raise SystemExit(f"--files must name files of {arguments.package}, got {path}")
        pool += mutants(by_path[path.resolve()])
    return drawn([m for m in pool if m.key not in listed], arguments.count, arguments.seed)


def _named(
    identities: Iterable[str], modules: Mapping[str, Module], kernels: Iterable[KernelMutant]
) -> list[Change]:
    found: list[Change] = []
    for identity in identities:
        module = identity.rpartition(":")[0]
        candidates = [*(mutants(modules[module]) if module in modules else ()), *kernels]
        found += [change for change in candidates if change.identity == identity]
        if not found or found[-1].identity != identity:
            raise SystemExit(f"--only must name a mutant, got {identity}; its function may have changed")
    return found


def _keys(
    modules: Mapping[str, Module], kernels: Iterable[KernelMutant]
) -> dict[str, Callable[[], Iterable[tuple[str, str, str]]]]:
    """Return for each module and C file how to have what the list knows its mutants by."""

    def of_module(name: str) -> list[tuple[str, str, str]]:
        return [mutant.key for mutant in mutants(modules[name])]

    def of_file(name: str) -> list[tuple[str, str, str]]:
        return [kernel.key for kernel in kernels if kernel.path.name == name]

    found: dict[str, Callable[[], Iterable[tuple[str, str, str]]]] = {}
    found |= {name: partial(of_module, name) for name in modules}
    found |= {name: partial(of_file, name) for name in {kernel.path.name for kernel in kernels}}
    return found


def _agree(package: Path, chosen: Iterable[Mutant]) -> None:
    """Refuse to go on where the package that would be imported is not the one in the source tree."""
    found = find_spec(package.name)
    if found is None or found.origin is None:
        raise SystemExit(
            f"{package.name} cannot be imported; install it, or put {package.parent} on PYTHONPATH"
        )
    home = Path(found.origin).parent
    for path in {change.path for change in chosen}:
        installed = home / path.relative_to(package)
        if not installed.exists() or installed.read_bytes() != path.read_bytes():
            raise SystemExit(
                f"{installed} differs from {path}; install again, or put {package.parent} on PYTHONPATH"
            )


def _libraries(graph: Graph, chosen: Iterable[Change]) -> set[str]:
    """Return the modules of other libraries that the nearest tests load."""
    names = set()
    for change in chosen:
        for near in graph.nearest(change.module)[:FIRST_ROUND]:
            name = graph.module_of(Path(near.tests)) if near.tests.endswith(".py") else near.tests
            names.add(name or change.module)
    return graph.externals(names)


def _trace(graph: Graph, reach: Reach, paths: Sequence[Path], markers: str) -> int:
    """Run tests once and remember which functions each reaches."""
    files = [graph.paths[name] for name in graph.test_imports]
    chosen = [path for path in files if any(path.is_relative_to(wanted) for wanted in paths)]
    tests = {}
    with Host(graph.package, [path.as_posix() for path in chosen], markers, math.inf) as host:
        if host.failure:
            raise SystemExit(f"the tests cannot be collected: {host.failure.why}")
        for event in host.ask({"do": "trace"}, lambda: math.inf):
            if "traced" in event:
                tests[event["traced"]] = (host.tests[event["traced"]], event["seconds"], event["reached"])
    reach.remember(tests, [graph.paths[name] for name in graph.modules])
    print(f"{len(tests)} of {len(host.tests)} tests traced in {len(chosen)} files")
    return 0
