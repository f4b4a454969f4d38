"""PipelineDP's answer to the query of the benchmark, as JSON; runs in its own environment."""

import pipeline_dp
import pyarrow.parquet as pq
from measure import DELTA, EPSILON, MAX_GROUPS, MAX_ROWS, UPPER, report


def answer(path):
    table = pq.read_table(path)
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN],
        max_partitions_contributed=MAX_GROUPS,
        max_contributions_per_partition=MAX_ROWS,
        min_value=0.0,
        max_value=UPPER,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    result = engine.aggregate(rows, params, extractors)
    accountant.compute_budgets()
    return len(list(result))


report(answer, "count, sum and mean, on its local backend")
