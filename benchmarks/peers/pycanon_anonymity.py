"""Seconds of CPU time that pycanon takes for one measure of a table; runs in its own environment."""

import json
import sys
import time

import pandas as pd
from pycanon import anonymity

measure, quasi_identifiers, sensitive = json.loads(sys.argv[2])
table = pd.read_parquet(sys.argv[1])
for name in table:
    if table[name].dtype.name in {"category", "string"}:
        table[name] = table[name].astype(str).astype(object)
arguments = (
    (table, quasi_identifiers) if measure == "k_anonymity" else (table, quasi_identifiers, [sensitive])
)
start = time.process_time()
getattr(anonymity, measure)(*arguments)
print(time.process_time() - start)
