"""MST and AIM of dpmm, on cells that are declared and not binned again; runs in its own environment."""

from typing import Any

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline
from synthetic_job import Rows, run


def job(kind: Any, **given: Any) -> Any:
    def made(rows: Rows, sizes: list[int], epsilon: float, delta: float, seed: int) -> Rows:
        names = [f"c{column}" for column in range(len(sizes))]
        pipeline = kind(epsilon=epsilon, delta=delta, disable_processing=True, n_jobs=1, **given)
        domain = dict(zip(names, sizes, strict=True))
        pipeline.fit(pd.DataFrame(rows, columns=names), domain, random_state=seed)
        return pipeline.generate(n_records=len(rows), random_state=seed)[names].to_numpy()

    return made


run({"MST": job(MSTPipeline), "AIM": job(AIMPipeline, max_model_size=4)})
