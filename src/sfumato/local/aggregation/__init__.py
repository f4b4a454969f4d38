"""Counting reports: aggregators whose states merge, for Arrow, Parquet and Spark."""
