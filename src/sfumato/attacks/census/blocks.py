"""Many blocks, reconstructed in parallel, with a file each, so that a run that was killed can go on."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._durable import write_whole
from sfumato._progress import Progress, shown_progress
from sfumato._wire import canonical, parse
from sfumato.attacks.census.person_types import PersonTypes
from sfumato.attacks.census.published_tables import PublishedTable
from sfumato.attacks.census.table_program import TableProgram, table_program
from sfumato.attacks.census.table_reconstruction import ContradictoryTables, TableReconstruction, solve_tables
from sfumato.errors import EngineError, ParameterError

__all__ = ["BlockReconstruction", "reconstruct_blocks"]

Tables = Sequence[PublishedTable]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockReconstruction:
    """What was reconstructed of a block.

    Parameters
    ----------
    block : str
    reconstruction : TableReconstruction or None
        None where the tables contradict each other.
    contradictory : tuple of str
        Tables that do.
    resumed : bool
        Whether it was read from a file of an earlier run.

    Examples
    --------
    >>> from sfumato.attacks import PersonTypes, PublishedCounts
    >>> types = PersonTypes({"sex": ("F", "M")})
    >>> blocks = {"1001": [PublishedCounts(name="sex", by=("sex",), counts=[1, 0])]}
    >>> reconstruct_blocks(types, blocks)["1001"].reconstruction.persons()
    [('F',)]
    """

    block: str
    reconstruction: TableReconstruction | None
    contradictory: tuple[str, ...] = ()
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class _Job:
    types: PersonTypes
    population: int | None
    variability: bool
    time_limit: float | None
    folder: Path | None

    def run(self, block: str, tables: Tables) -> BlockReconstruction:
        built = table_program(self.types, tables, population=self.population)
        digest = self._digest(block, built)
        file = (
            None
            if self.folder is None
            else self.folder / f"{hashlib.sha256(block.encode()).hexdigest()[:32]}.json"
        )
        if file is not None and file.exists() and (known := self._read(file, block, digest)):
            return known
        try:
            found = solve_tables(self.types, built, variability=self.variability, time_limit=self.time_limit)
            result = BlockReconstruction(block=block, reconstruction=found)
        except ContradictoryTables as refused:
            result = BlockReconstruction(block=block, reconstruction=None, contradictory=refused.tables)
        if file is not None:
            write_whole(file, _written(result, digest), mode=0o600)
        return result

    def _digest(self, block: str, built: TableProgram) -> str:
        """Return a digest of all that the result follows from."""
        program, found = built.program, hashlib.sha256(block.encode())
        found.update(repr((self.types.attributes, self.variability, self.time_limit, built.tables)).encode())
        matrix = program.matrix
        for array in (
            self.types.codes,
            matrix.data,
            matrix.indices.astype(np.int64),
            matrix.indptr.astype(np.int64),
            program.row_lower,
            program.row_upper,
            program.objective,
            program.upper,
        ):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def _read(self, file: Path, block: str, digest: str) -> BlockReconstruction | None:
        """Return what an earlier run found, or None where the file is of other tables or damaged."""
        try:
            document = parse("block", file.read_bytes())
        except ParameterError:
            return None
        if not isinstance(document, dict) or document.get("digest") != digest:
            return None
        if document["contradictory"]:
            tables = tuple(document["contradictory"])
            return BlockReconstruction(block=block, reconstruction=None, contradictory=tables, resumed=True)
        found = TableReconstruction(
            types=self.types,
            counts=_dense(document["counts"], len(self.types)),
            certain=_dense(document["certain"], len(self.types)),
            shared=document["shared"],
            proven=document["proven"],
            misfit=float(document["misfit"]),
        )
        return BlockReconstruction(block=block, reconstruction=found, resumed=True)


def reconstruct_blocks(
    types: PersonTypes,
    blocks: Mapping[str, Tables],
    *,
    folder: str | os.PathLike[str] | None = None,
    processes: int = 1,
    population: int | None = None,
    variability: bool = True,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
) -> dict[str, BlockReconstruction]:
    """Reconstruct the persons of each of many blocks.

    Parameters
    ----------
    types : PersonTypes
        Who may be in a block.
    blocks : mapping of str to sequences of PublishedTable
    folder : path, optional
        Where a file for each block is written as soon as it is done, and read again by the next run with
        the same tables: one that was killed goes on where it was. The files hold reconstructed persons;
        their owner alone can read them.
    processes : int
        How many blocks at a time.
    population, variability, time_limit
        As for `reconstruct_tables`, for each block.
    progress : callable or bool, optional
        Called with how many blocks are done and how many there are. By default a bar is shown on a terminal
        and in a notebook; True shows it anywhere, False nowhere.

    Returns
    -------
    dict of str to BlockReconstruction
        In the order of the blocks. Tables that contradict each other do not stop the others.

    Raises
    ------
    ParameterError
        If tables do not fit the types, before any work where that shows.
    Unsolved
        If a time limit came before a solution; blocks that were done are in the folder.
    EngineError
        If a process was ended from outside.

    Examples
    --------
    >>> import tempfile
    >>> from sfumato.attacks import PersonTypes, PublishedCounts
    >>> types, folder = PersonTypes({"sex": ("F", "M")}), tempfile.mkdtemp()
    >>> blocks = {str(n): [PublishedCounts(name="sex", by=("sex",), counts=[n, 1])] for n in range(3)}
    >>> first = reconstruct_blocks(types, blocks, folder=folder)
    >>> again = reconstruct_blocks(types, blocks, folder=folder)
    >>> [found.resumed for found in again.values()]
    [True, True, True]
    """
    _check.integer("processes", processes, minimum=1)
    _check.instance("types", types, PersonTypes)
    for tables in blocks.values():
        for table in tables:
            _check.instance("tables", table, PublishedTable, "pass PublishedCounts and its like")
    place = None if folder is None else Path(folder)
    if place is not None:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
    job = _Job(types, population, variability, time_limit, place)
    found = {}
    with shown_progress(progress, "reconstructing blocks") as show:
        for done, result in enumerate(_results(job, blocks, processes), 1):
            found[result.block] = result
            show(done, len(blocks))
    return found


def _results(job: _Job, blocks: Mapping[str, Tables], processes: int) -> Iterator[BlockReconstruction]:
    if processes == 1:
        for block, tables in blocks.items():
            yield job.run(block, tables)
        return
    lost = False
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running = deque[Future[BlockReconstruction]]()
        try:
            for block, tables in blocks.items():
                running.append(pool.submit(job.run, block, tables))
                if len(running) >= 4 * processes:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        except BrokenProcessPool:
            lost = True
        finally:
            for waiting in running:
                waiting.cancel()
    if lost:
        raise EngineError(
            "processes must last to the end, got one that was ended; run again with the same folder"
        )


def _written(result: BlockReconstruction, digest: str) -> bytes:
    document: dict[str, Any] = {
        "block": result.block,
        "digest": digest,
        "contradictory": list(result.contradictory),
    }
    found = result.reconstruction
    if found is not None:
        document |= {
            "counts": _sparse(found.counts),
            "certain": _sparse(found.certain),
            "shared": found.shared,
            "proven": found.proven,
            "misfit": found.misfit,
        }
    return canonical(document).encode()


def _sparse(counts: NDArray[np.int64]) -> list[list[int]]:
    places = np.flatnonzero(counts)
    return [places.tolist(), counts[places].tolist()]


def _dense(written: list[list[int]], size: int) -> NDArray[np.int64]:
    counts = np.zeros(size, dtype=np.int64)
    counts[written[0]] = written[1]
    return counts
