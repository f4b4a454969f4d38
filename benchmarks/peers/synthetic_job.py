"""What each script of a peer of the synthetic benchmark reads and writes; the standard library and numpy.

``python SCRIPT ROWS.npz OUT.npy JOB EPSILON DELTA SEED``: rows are cells by column, as whole numbers. The
last line that is printed is a JSON object with the CPU seconds of the fit and as many rows.
"""

import json
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "run"]

Rows = NDArray[np.int64]
Job = Callable[[Rows, list[int], float, float, int], Rows]


def run(jobs: dict[str, Job]) -> None:
    """Run the job that the command line names.

    Parameters
    ----------
    jobs : dict of str to callable
        From rows, cells of each column, epsilon, delta and a seed to as many synthetic rows.
    """
    source, target, name, epsilon, delta, seed = sys.argv[1:]
    with np.load(source) as given:
        rows, sizes = given["rows"], given["sizes"].tolist()
    before = time.process_time()
    drawn = jobs[name](rows, sizes, float(epsilon), float(delta), int(seed))
    seconds = time.process_time() - before
    np.save(target, np.asarray(drawn, np.int64))
    print(json.dumps({"seconds": seconds}))
