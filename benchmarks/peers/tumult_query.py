"""Tumult Analytics' answer to the query of the benchmark, as JSON; needs Java and its own environment."""

import os
import sys
import tempfile

from measure import DELTA, EPSILON, MAX_GROUPS, MAX_ROWS, UPPER, report
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    QueryBuilder,
    Session,
)

# Spark would start the Python that is on the path, which has no Tumult.
os.environ["PYSPARK_PYTHON"] = sys.executable
# Java does not heed TMPDIR.
os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={tempfile.gettempdir()}"


def answer(path):
    spark = SparkSession.builder.master("local[*]").config("spark.driver.memory", "8g")
    spark = spark.config("spark.sql.shuffle.partitions", os.cpu_count()).getOrCreate()
    session = Session.from_dataframe(
        ApproxDPBudget(EPSILON, DELTA),
        "visits",
        spark.read.parquet(path),
        protected_change=AddRowsWithID("person"),
    )
    bounded = QueryBuilder("visits").enforce(MaxGroupsPerID("place", MAX_GROUPS))
    bounded = bounded.enforce(MaxRowsPerGroupPerID("place", MAX_ROWS))
    places = session.evaluate(bounded.get_groups(["place"]), ApproxDPBudget(EPSILON / 4, DELTA))
    groups = bounded.groupby(KeySet.from_dataframe(places))
    shown = [
        len(session.evaluate(query, ApproxDPBudget(EPSILON / 4, 0)).toPandas())
        for query in (groups.count(), groups.sum("spent", 0.0, UPPER), groups.average("spent", 0.0, UPPER))
    ]
    return max(shown)


report(answer, "count, sum and mean, each a query of its own; with the start of Java")
