"""Where a ledger's rows are stored: one interface, an SQLite file or memory, and a PostgreSQL server.

`base` is the interface: transactions that survive crashes, threads and forks. Each database has three
modules: the store itself, its schema, and what its errors mean. `location` opens the store that a path or an
address names. Nothing here knows what a charge is.
"""
