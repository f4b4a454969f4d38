"""The analyst's part of the console, without HTTP: what a question costs, asking it, its answer, dry runs.

`AskingService` is the face: it proposes, submits, shows and cancels for one analyst at a time. What it shows
before a charge comes from schema, parameters and ledger; what it shows after one also from released values.
When it shows an answer follows from public parameters, but for a bounded number of steps of time
(`sfumato.server.console.asking.time_grid`).
"""
