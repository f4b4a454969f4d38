"""The tables of a ledger on PostgreSQL, in a schema of its own, and how an opened one is known to be whole.

The columns are those of a ledger's file. ``head`` has one row: it is what a charge locks, and it knows the
last position ever written, so that a row cut off the end is noticed. Triggers hold all tables append-only;
whoever owns the tables can drop the triggers, which is found when the ledger is opened, or by the chain.
An event that opens or changes an analyst's account takes the right to call ``may_grant``, which the owner has
and can grant: who may only charge cannot raise a budget.
"""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.store.base import SCHEMA_VERSION, Transaction

__all__ = ["APPLICATION", "FIRST_HEAD", "NO_CURATOR", "check_schema", "statements"]

NO_CURATOR = "SF001"
"""The code of the error of a grant by a user without the right to grant; the standard leaves it free."""

APPLICATION = "sfumato ledger"
FIRST_HEAD = "INSERT INTO head VALUES (1, :application, :version, 0)"
TABLES = ("event", "release", "secret")

REFUSE = "RAISE EXCEPTION 'a ledger is append-only' USING ERRCODE = 'integrity_constraint_violation';"
REFUSED = f"BEGIN {REFUSE} END"
ADVANCE = "UPDATE head SET position = NEW.position WHERE id = 1 AND position = NEW.position - 1;"
MAY_GRANT = "has_function_privilege(current_user, 'may_grant()', 'EXECUTE')"
ONLY_CURATORS = f"RAISE EXCEPTION 'only a curator grants' USING ERRCODE = '{NO_CURATOR}';"
APPENDED = f"""BEGIN
    IF NEW.kind = 'account' AND NOT {MAY_GRANT} THEN {ONLY_CURATORS} END IF;
    {ADVANCE} IF NOT FOUND THEN {REFUSE} END IF; RETURN NEW;
END"""
ADVANCED = f"""BEGIN
    IF NEW.id <> OLD.id OR NEW.application <> OLD.application OR NEW.version < OLD.version
        OR NEW.position NOT IN (OLD.position, OLD.position + 1) THEN {REFUSE} END IF;
    RETURN NEW;
END"""
FOLLOWING = "(SELECT coalesce(max(last), -1) + 1 FROM claim WHERE run = NEW.run)"
IS_LAST = "NOT EXISTS (SELECT 1 FROM claim WHERE run = OLD.run AND first > OLD.first)"
APPENDED_CLAIM = f"""BEGIN
    IF NEW.first <> {FOLLOWING} THEN {REFUSE} END IF;
    RETURN NEW;
END"""
GROWN_CLAIM = f"""BEGIN
    IF NEW.run <> OLD.run OR NEW.first <> OLD.first OR NEW.last < OLD.last OR NEW.digest <> OLD.digest
        OR NOT {IS_LAST} THEN {REFUSE} END IF;
    RETURN NEW;
END"""
FUNCTIONS = {
    "refuse_change": REFUSED,
    "append_event": APPENDED,
    "advance_head": ADVANCED,
    "append_claim": APPENDED_CLAIM,
    "grow_claim": GROWN_CLAIM,
}

RIGHTS = {"may_grant": "SELECT TRUE"}
"""Functions that do nothing: who may call one has the right that it is named after."""

COLUMNS = {
    "head": """id integer PRIMARY KEY CHECK (id = 1), application text NOT NULL, version integer NOT NULL,
        position bigint NOT NULL""",
    "event": """position bigint PRIMARY KEY, kind text NOT NULL, charge bigint, body text NOT NULL,
        previous text NOT NULL, digest text NOT NULL""",
    "release": """charge bigint PRIMARY KEY, request text NOT NULL, dataset_version bigint NOT NULL,
        payload bytea NOT NULL""",
    "secret": "id integer PRIMARY KEY CHECK (id = 1), key bytea NOT NULL",
    # Steps [first, last] of one run, as in a file.
    "claim": """run bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL CHECK (last >= first),
        digest text NOT NULL CHECK (digest = '' OR first = last), PRIMARY KEY (run, first)""",
}
INDEXES = {
    # A charge is recorded once and committed once.
    "event_of_charge": "CREATE UNIQUE INDEX event_of_charge ON event (kind, charge) WHERE charge IS NOT NULL",
    "release_of_request": "CREATE INDEX release_of_request ON release (request, dataset_version, charge)",
}
TRIGGERS = {
    "event_appended": ("BEFORE INSERT ON event FOR EACH ROW", "append_event"),
    "head_advanced": ("BEFORE UPDATE ON head FOR EACH ROW", "advance_head"),
    "head_refused": ("BEFORE DELETE OR TRUNCATE ON head", "refuse_change"),
    "claim_appended": ("BEFORE INSERT ON claim FOR EACH ROW", "append_claim"),
    "claim_grown": ("BEFORE UPDATE ON claim FOR EACH ROW", "grow_claim"),
    "claim_refused": ("BEFORE DELETE OR TRUNCATE ON claim", "refuse_change"),
} | {
    f"{table}_refused": (f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}", "refuse_change")
    for table in TABLES
}


def statements(schema: str) -> Iterable[str]:
    """Yield what makes the tables in a schema, given as a quoted name, that is first on the search path."""
    for name, columns in COLUMNS.items():
        yield f"CREATE TABLE {name} ({columns})"
    yield from INDEXES.values()
    for name, body in FUNCTIONS.items():
        # The path is fixed: what a session's own path begins with must not stand in for the ledger's tables.
        yield (
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql "
            f"SET search_path = {schema}, pg_temp AS $body${body}$body$"
        )
    for name, body in RIGHTS.items():
        yield f"CREATE FUNCTION {name}() RETURNS boolean LANGUAGE sql AS $body${body}$body$"
        yield f"REVOKE EXECUTE ON FUNCTION {name}() FROM PUBLIC"
    for name, (event, function) in TRIGGERS.items():
        yield f"CREATE TRIGGER {name} {event} EXECUTE FUNCTION {function}()"


def check_schema(transaction: Transaction, schema: str, name: str) -> None:
    """Refuse a schema that is not a ledger, is one of a later version, or lost a table or a trigger.

    Raises
    ------
    LedgerCorrupt
        Not a ledger, or its schema was altered.
    LedgerUnavailable
        A ledger of a later version.
    """
    tables = {row[0] for row in transaction.execute(EXISTING_TABLES, {"schema": schema})}
    marked = None
    if "head" in tables:
        marked = transaction.execute("SELECT application, version FROM head WHERE id = 1").fetchone()
    if marked is None or marked[0] != APPLICATION:
        raise LedgerCorrupt(f"ledger must be a schema that sfumato made, got {name}; give another schema")
    if marked[1] > SCHEMA_VERSION:
        raise LedgerUnavailable(
            f"ledger must have a format up to {SCHEMA_VERSION}, got {marked[1]} in {name}; upgrade sfumato "
            "to open it"
        )
    functions = {tuple(row) for row in transaction.execute(EXISTING_FUNCTIONS, {"schema": schema})}
    triggers = {tuple(row) for row in transaction.execute(EXISTING_TRIGGERS, {"schema": schema})}
    expected = {
        (trigger, event.split(" ON ")[1].split()[0], function, "O")
        for trigger, (event, function) in TRIGGERS.items()
    }
    made = set((FUNCTIONS | RIGHTS).items())
    if not (COLUMNS.keys() <= tables and made <= functions and triggers == expected):
        raise LedgerCorrupt(
            f"ledger must have the tables and triggers it was made with, got an altered {name}; "
            "restore the schema from a backup"
        )


EXISTING_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = :schema"
EXISTING_FUNCTIONS = """SELECT p.proname, p.prosrc FROM pg_catalog.pg_proc AS p
    JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = :schema"""
EXISTING_TRIGGERS = """SELECT t.tgname, c.relname, p.proname, t.tgenabled
    FROM pg_catalog.pg_trigger AS t
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
    WHERE n.nspname = :schema AND NOT t.tgisinternal"""
