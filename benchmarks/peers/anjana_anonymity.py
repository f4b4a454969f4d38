"""The node that anjana generalises a table to, the rows left, and its CPU seconds; in its own environment."""

import contextlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from anjana.anonymity._k_anonymity import k_anonymity_inner

listed, k, limit = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
table = pd.read_parquet(sys.argv[1], columns=list(listed))
for name in table:
    table[name] = table[name].astype(str).astype(object)
hierarchies = {
    name: {level: np.array(of, dtype=object) for level, of in enumerate(levels)}
    for name, levels in listed.items()
}
start = time.process_time()
with contextlib.redirect_stdout(sys.stderr):
    released, suppressed, node = k_anonymity_inner(table, [], list(listed), k, limit, hierarchies)
seconds = time.process_time() - start
print(json.dumps([[int(node.get(name, 0)) for name in listed], len(table) - int(suppressed), seconds]))
