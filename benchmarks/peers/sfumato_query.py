"""Our answer to the query of the benchmark, from opening the file to the noisy table, as JSON."""

from measure import SQL, report

from sfumato import connect


def answer(path):
    # The budget is larger than the query, which a ledger's bound over all answers to come needs.
    with connect(path, privacy_unit="person", epsilon=2.0, delta=1e-7) as session:
        return session.sql(SQL).to_arrow().num_rows


report(answer, "count, sum and mean")
