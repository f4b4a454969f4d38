"""PrivSyn of privsyn-core; runs in its own environment."""

import pandas as pd
from privsyn import PrivSynModel
from synthetic_job import Rows, run


def privsyn(rows: Rows, sizes: list[int], epsilon: float, delta: float, seed: int) -> Rows:
    names = [f"c{column}" for column in range(len(sizes))]
    model = PrivSynModel(epsilon=epsilon, delta=delta, random_state=seed)
    model.fit(pd.DataFrame(rows, columns=names), dict(zip(names, sizes, strict=True)))
    return model.sample(len(rows), seed=seed)[names].to_numpy()


run({"PrivSyn": privsyn})
