"""The log: an append-only hash chain of events, the releases stored with them, verification and export.

`hash_chain` links events, `events` says what each kind of event holds and how it is written, `event_log`
reads and appends them in a store. `entries`, `releases`, `step_claims` and `accounts` are what is read out of
them. `verification` checks a whole ledger, `chain_head` and `export` are copies that others check.
"""
