"""SmartNoise SQL's answer to the query of the benchmark, as JSON; runs in its own environment."""

import pandas as pd
import snsql
from measure import DELTA, EPSILON, MAX_GROUPS, UPPER, report

METADATA = {
    "": {
        "main": {
            "visits": {
                "max_ids": MAX_GROUPS,  # rows, by the SQL that it writes
                "row_privacy": False,
                "censor_dims": True,
                "person": {"type": "int", "private_id": True},
                "place": {"type": "string"},
                "spent": {"type": "float", "lower": 0.0, "upper": UPPER},
            }
        }
    }
}
QUERY = "SELECT place, COUNT(*) AS n, SUM(spent) AS s, AVG(spent) AS a FROM main.visits GROUP BY place"


def answer(path):
    # What it is given goes to each noisy column: here a quarter each, and two thirds of delta, are epsilon 1
    # and delta 1e-8 in all, as get_privacy_cost(QUERY) confirms.
    privacy = snsql.Privacy(epsilon=EPSILON / 4, delta=DELTA * 2 / 3)
    reader = snsql.from_df(pd.read_parquet(path), privacy=privacy, metadata=METADATA)
    return len(reader.execute(QUERY)) - 1  # the first is the header


report(answer, "count, sum and mean; bounds the rows of a person, 10 in all, and not the places")
