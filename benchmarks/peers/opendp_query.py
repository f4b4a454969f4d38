"""OpenDP's answer to the query of the benchmark, as JSON; runs in OpenDP's own virtual environment."""

import opendp.prelude as dp
import polars as pl
from measure import DELTA, EPSILON, MAX_GROUPS, MAX_ROWS, UPPER, report

dp.enable_features("contrib")


def answer(path):
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("person")),
        privacy_loss=dp.loss_of(epsilon=EPSILON, delta=DELTA),
        split_evenly_over=1,
        # A float sum is refused without such bounds; they do not make the places public.
        margins=[dp.polars.Margin(by=[pl.col("place")], max_length=5_000_000, max_groups=1_000)],
    )
    query = (
        context.query()
        .truncate_per_group(MAX_ROWS, by=["place"])
        # keep="sample", the default, fails at collect(); "first" is by name, and keeps one less than asked.
        .truncate_num_groups(MAX_GROUPS, by=["place"], keep="first")
        .group_by("place")
        .agg(
            dp.len(signed=False),
            pl.col("spent").dp.sum((0.0, UPPER)).alias("sum"),
            pl.col("spent").dp.mean((0.0, UPPER)).alias("mean"),
        )
    )
    return query.release().collect().height


report(answer, "count, sum and mean; the first 9 places of a person by name, as the default fails")
