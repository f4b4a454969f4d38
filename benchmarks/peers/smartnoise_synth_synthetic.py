"""MST and AIM of smartnoise-synth; runs in its own environment."""

from typing import Any

import numpy as np
import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer
from synthetic_job import Rows, run


def job(name: str) -> Any:
    def made(rows: Rows, sizes: list[int], epsilon: float, delta: float, seed: int) -> Rows:
        np.random.seed(seed)  # the library draws from it
        names = [f"c{column}" for column in range(len(sizes))]
        frame = pd.DataFrame(rows, columns=names)
        # It takes the domain from what it is shown: each cell once, which tells nothing of the rows.
        cells = pd.DataFrame({n: np.arange(max(sizes)) % size for n, size in zip(names, sizes, strict=True)})
        transformer = TableTransformer([LabelTransformer(nullable=False) for _ in names])
        transformer.fit(cells)
        synthesizer = Synthesizer.create(name, epsilon=epsilon, delta=delta)
        synthesizer.fit(frame, transformer=transformer)
        return pd.DataFrame(synthesizer.sample(len(rows)), columns=names).to_numpy(np.int64)

    return made


run({"MST": job("mst"), "AIM": job("aim")})
