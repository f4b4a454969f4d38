"""Counters over time: sums so far of a table that grows, released for one charge."""
