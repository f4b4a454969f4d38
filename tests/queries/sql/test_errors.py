"""One row for each mistake: the class of its error, and a phrase of its message."""

from __future__ import annotations

import pytest

from sfumato.errors import OptionError, QueryError, SchemaError, SqlSyntaxError, UnsupportedSql
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.queries.people import CATALOG

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=2) "
PUBLIC = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, max_groups_contributed=2, "
    "group_selection_strategy=PUBLIC_GROUPS) "
)
LISTED = "RIGHT JOIN (SELECT DISTINCT state FROM states) AS p USING (state) GROUP BY state"


def options(entries: str) -> str:
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({entries}) state, COUNT(*) FROM data GROUP BY state"


BASE = "epsilon=1, delta=1e-8, max_groups_contributed=1"
BOUNDS = "contribution_bounds_per_group"
ROW = "contribution_bounds_per_row"

SYNTAX = [
    ("", SqlSyntaxError, "the query is empty"),
    (" ; ;", SqlSyntaxError, "the query is empty"),
    ("hello world", SqlSyntaxError, "line 1, column 1: a query must begin with SELECT, got 'hello'"),
    ("SELECT a\n  b c FROM data", SqlSyntaxError, "line 2, column 5"),
    ("SELECT a\nFROM data WHERE (age > 3", SqlSyntaxError, "line 2, column 24"),
    ("SELECT a FROM data WHERE age >", SqlSyntaxError, "column 30: the expression is incomplete, got '>'"),
    ("SELECT 'abc FROM data", SqlSyntaxError, "close the quote"),
    ("SELECT a FROM `data", SqlSyntaxError, "close the quote"),
    ("SELECT '\ud800' FROM data", SqlSyntaxError, "surrogate"),
    ("SELECT " + "1," * 600_000, SqlSyntaxError, "shorter than"),
    ("SELECT WITH PRIVACY a FROM data", SqlSyntaxError, "DIFFERENTIAL_PRIVACY, got 'PRIVACY'"),
    ("SELECT WITH", SqlSyntaxError, "must be followed by DIFFERENTIAL_PRIVACY"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS epsilon=1", SqlSyntaxError, "(name = value, ...)"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1 COUNT(*) FROM data", SqlSyntaxError, "never closed"),
    (DP + f"SUM(DISTINCT age, {BOUNDS} => (0, 1)) FROM data", SqlSyntaxError, "not behind DISTINCT"),
]

STATEMENTS = [
    ("SELECT 1; SELECT 2", UnsupportedSql, "one statement"),
    (DP + "COUNT(*) FROM data; DROP TABLE data", UnsupportedSql, "one statement"),
    ("DROP TABLE data", UnsupportedSql, "DROP is not answered"),
    ("CREATE TABLE a AS SELECT 1", UnsupportedSql, "CREATE is not answered"),
    ("INSERT INTO data VALUES (1)", UnsupportedSql, "INSERT is not answered"),
    ("UPDATE data SET age = 1", UnsupportedSql, "UPDATE is not answered"),
    ("DELETE FROM data", UnsupportedSql, "DELETE is not answered"),
    ("PRAGMA database_list", UnsupportedSql, "PRAGMA is not answered"),
    ("COPY data TO 'out.csv'", UnsupportedSql, "COPY is not answered"),
    ("ATTACH 'other.db'", UnsupportedSql, "ATTACH is not answered"),
    ("INSTALL httpfs", UnsupportedSql, "INSTALL is not answered"),
    ("EXPLAIN SELECT 1", UnsupportedSql, "EXPLAIN is not answered as a query"),
    ("FROM data", UnsupportedSql, "FROM alone is not answered"),
    ("SELECT * FROM data |> WHERE age > 3", UnsupportedSql, "pipe syntax must begin with FROM"),
    ("FROM data |> WHERE age > 3", UnsupportedSql, "must have one aggregation at least"),
    ("FROM data |> DROP age |> AGGREGATE COUNT(*)", UnsupportedSql, "|> DROP is not answered here"),
    ("FROM data |> ORDER BY age |> AGGREGATE COUNT(*)", UnsupportedSql, "|> ORDER is not answered here"),
    (
        "FROM data |> AGGREGATE COUNT(*) |> AGGREGATE 1",
        UnsupportedSql,
        "must not mix the rows of several units",
    ),
    ("FROM data |> AGGREGATE COUNT(*) |> RENAME f0_ AS n", UnsupportedSql, "|> RENAME is not answered here"),
    ("FROM data |> AGGREGATE COUNT(*) AS n |> SET n", UnsupportedSql, "a column and its new value"),
    ("FROM (FROM data |> WHERE TRUE) |> AGGREGATE COUNT(*)", UnsupportedSql, "pipe syntax in parentheses"),
    ("FROM data |> WHERE age) OR (1 |> AGGREGATE COUNT(*)", UnsupportedSql, "closed that was never opened"),
    ("WITH c AS (PRAGMA x) " + DP + "COUNT(*) FROM data", UnsupportedSql, "'c' in WITH must be a SELECT"),
    ("FROM data |> ", UnsupportedSql, "|> an operator is not answered"),
    ("SELECT 1 UNION ALL SELECT 2", UnsupportedSql, "UNION of SELECTs"),
    (
        "SELECT WITH ANONYMIZATION OPTIONS(epsilon=1) 1",
        UnsupportedSql,
        "write SELECT WITH DIFFERENTIAL_PRIVACY",
    ),
    ("SELECT WITH AGGREGATION_THRESHOLD a FROM data", UnsupportedSql, "a threshold alone is not private"),
    (f"SELECT COUNT(*) FROM ({DP} age FROM data)", UnsupportedSql, "must stand alone here"),
    (f"{DP} COUNT(*) FROM ({DP} age FROM data)", UnsupportedSql, "cannot be nested"),
]

OPTIONS = [
    ("SELECT state, COUNT(*) FROM data GROUP BY state", OptionError, "a default epsilon"),
    (options("epslon=1"), OptionError, "did you mean epsilon?"),
    (options("colour=1"), OptionError, "the options are delta, epsilon"),
    (options(BASE + ", group_selection_epsilon=0"), OptionError, "group_selection_epsilon must be positive"),
    (
        DP.replace("delta", "group_selection_epsilon=0.5, delta") + "COUNT(*) FROM data",
        OptionError,
        "where no groups are chosen",
    ),
    (options(BASE + ", epsilon=2"), OptionError, "epsilon must be given once"),
    (options(BASE + ", max_rows_contributed=3"), OptionError, "must stand without max_groups_contributed"),
    (
        options("epsilon=1, delta=1e-8, max_rows_contributed=3, max_rows_per_group=2"),
        OptionError,
        "must stand without max_rows_per_group",
    ),
    (options("epsilon=1, delta=1e-8, max_rows_contributed=0"), OptionError, "at least 1, got 0"),
    (options(BASE + ", k_threshold=3"), OptionError, "the threshold follows from delta"),
    (options("delta=1e-8, max_groups_contributed=1"), OptionError, "epsilon must be given"),
    (options("epsilon=1, max_groups_contributed=1"), OptionError, "delta must be given"),
    (options("epsilon='1', delta=0"), OptionError, "epsilon must be positive and finite, got '1'"),
    (options("epsilon=NULL, delta=0"), OptionError, "epsilon must have a value, got NULL"),
    (options("epsilon=0, delta=0"), OptionError, "epsilon must be positive and finite, got 0"),
    (options("epsilon=-0.5, delta=0"), OptionError, "got -0.5"),
    (options("epsilon=1e999, delta=0"), OptionError, "got inf"),
    (options("epsilon=NaN, delta=0"), OptionError, "got 'NaN'"),
    (options("epsilon=1+1, delta=0"), OptionError, "epsilon must be a literal"),
    (options("epsilon=@e, delta=0"), OptionError, "@e must have a value, got none"),
    (options("epsilon"), OptionError, "must be name = value"),
    (options("epsilon=1, , delta=0"), OptionError, "must be name = value"),
    (options("epsilon=1, delta=1"), OptionError, "delta must be in [0, 1), got 1"),
    (options("epsilon=1, delta=-1e-8"), OptionError, "delta must be in [0, 1)"),
    (
        options("epsilon=1, delta=0, max_groups_contributed=1"),
        OptionError,
        "list the groups with public_groups=",
    ),
    (options("epsilon=1, delta=1e-8"), OptionError, "max_groups_contributed must be given"),
    (options("epsilon=1, delta=1e-8, max_groups_contributed=NULL"), OptionError, "got NULL"),
    (options("epsilon=1, delta=1e-8, max_groups_contributed=0"), OptionError, "at least 1, got 0"),
    (options("epsilon=1, delta=1e-8, max_groups_contributed=1.0"), OptionError, "got 1.0"),
    (options("epsilon=1, delta=1e-8, max_groups_contributed=2000000000000"), OptionError, "at most 2**40"),
    (options(BASE + ", max_rows_per_group=0"), OptionError, "max_rows_per_group must be an integer"),
    (
        options(BASE + ", privacy_unit_column=state"),
        OptionError,
        "the session's unit 'person_id', got 'state'",
    ),
    (options(BASE + ", privacy_unit_column=3"), OptionError, "must name a column"),
    (
        options(BASE + ", privacy_unit_column=age").replace("data", "lines"),
        OptionError,
        "must be left out where each row is a unit",
    ),
    (options(BASE + ", group_selection_strategy=BEST"), OptionError, "LAPLACE_THRESHOLD, GAUSSIAN_THRESHOLD"),
    (options(BASE + ", group_selection_strategy=PUBLIC_GROUPS"), OptionError, "needs a list of the groups"),
]

SHAPE = [
    (DP + "DISTINCT state FROM data", UnsupportedSql, "SELECT DISTINCT is not supported"),
    (DP + "* FROM data", UnsupportedSql, "SELECT * would show raw rows"),
    (DP + "d.* FROM data AS d", UnsupportedSql, "SELECT * would show raw rows"),
    (DP + "state FROM data", UnsupportedSql, "'state' would show raw rows"),
    (DP + "age + 1 AS older FROM data", UnsupportedSql, "'older' would show raw rows"),
    (
        DP + "sex, COUNT(*) FROM data GROUP BY state",
        UnsupportedSql,
        "neither a GROUP BY item nor an aggregate",
    ),
    (
        DP + "UPPER(sex), COUNT(*) FROM data GROUP BY state",
        UnsupportedSql,
        "'sex' is neither a GROUP BY item",
    ),
    (DP + "age + COUNT(*) FROM data", UnsupportedSql, "'age' would show raw rows"),
    (DP + "COUNT(*) + agee FROM data", SchemaError, "did you mean 'age'?"),
    (DP + "COUNT(COUNT(*)) FROM data", UnsupportedSql, "inside of an aggregate or among rows"),
    (DP + "COUNT(*) || 'x' FROM data", SchemaError, "must be STRING, got INT64"),
    (DP + "COUNT(*)", UnsupportedSql, "must read a private table; write SELECT ... FROM"),
    (DP + "COUNT(*) OVER () FROM data", UnsupportedSql, "write it in SQL around the private SELECT"),
    (DP + "SUM(COUNT(*)) OVER () FROM data", UnsupportedSql, "write it in SQL around the private SELECT"),
    (DP + "LENGTH(state) FILTER (WHERE age > 3) FROM data", UnsupportedSql, "FILTER must stand behind"),
    (DP + "COUNT(*) FROM data GROUP BY ROLLUP(state)", UnsupportedSql, "ROLLUP makes several groupings"),
    (DP + "COUNT(*) FROM data GROUP BY CUBE(state)", UnsupportedSql, "CUBE makes several groupings"),
    (
        DP + "COUNT(*) FROM data GROUP BY GROUPING SETS ((state), (sex))",
        UnsupportedSql,
        "GROUPING SETS makes",
    ),
    (DP + "GROUPING(state), COUNT(*) FROM data GROUP BY state", UnsupportedSql, "the aggregate GROUPING"),
    (DP + "COUNT(*) FROM data HAVING COUNT(*)", SchemaError, "the condition of HAVING must be BOOL"),
    (DP + "COUNT(*) FROM data HAVING age > 3", UnsupportedSql, "'age' would show raw rows"),
    (DP + "COUNT(*) FROM data HAVING (SELECT TRUE)", UnsupportedSql, "a subquery in an expression"),
    (
        DP + "COUNT(*) AS state FROM data GROUP BY UPPER(data.state) HAVING state > 3",
        SchemaError,
        "called like a column that is grouped by",
    ),
    (DP + "COUNT(*) FROM data QUALIFY TRUE", UnsupportedSql, "QUALIFY is not supported"),
    (DP + "COUNT(*) FROM data LIMIT 3 OFFSET -2", UnsupportedSql, "OFFSET must be a whole number"),
    (DP + "COUNT(*) FROM data LIMIT 0", UnsupportedSql, "LIMIT must be at least 1"),
    (DP + "COUNT(*) FROM data LIMIT -1", UnsupportedSql, "LIMIT must be a whole number"),
    (DP + "AS STRUCT COUNT(*) FROM data", UnsupportedSql, "AS STRUCT"),
    (DP + "COUNT(*) FROM data ORDER BY age", UnsupportedSql, "'age' would show raw rows"),
    (DP + "COUNT(*) FROM data ORDER BY 'a'", UnsupportedSql, "ORDER BY a constant"),
    (DP + "COUNT(*) FROM data ORDER BY 2", SchemaError, "from 1 to 1, got 2"),
    (DP + "COUNT(*) FROM data GROUP BY 3", SchemaError, "from 1 to 1, got 3"),
    (DP + "COUNT(*) AS n FROM data GROUP BY n", UnsupportedSql, "GROUP BY must not name an aggregate"),
    (DP + "COUNT(*) AS n FROM data GROUP BY 'a'", UnsupportedSql, "must name a column"),
    (DP + "COUNT(*) FROM data GROUP BY person_id", UnsupportedSql, "groups of one unit each"),
    (DP + "state AS n, COUNT(*) AS N FROM data GROUP BY state", SchemaError, "two columns of the answer"),
    (
        DP + "state, state AS s, COUNT(*) FROM data GROUP BY state",
        UnsupportedSql,
        "shows a GROUP BY item twice",
    ),
    (DP + "COUNT(*) AS `` FROM data", SchemaError, "must be printable"),
    (DP + "COUNT(*) FROM data WHERE " + "(" * 40 + "age" + ")" * 40 + " > 1", UnsupportedSql, "deep"),
    (DP + "COUNT(*) FROM data WHERE " + "NOT " * 60 + "married", UnsupportedSql, "deep"),
    (DP + "COUNT(*) FROM data WHERE " + "NOT " * 5000 + "married", UnsupportedSql, "deep"),
]

AGGREGATES = [
    (DP + "COUNTIF(*) FROM data", UnsupportedSql, "COUNTIF must have one condition"),
    (DP + "COUNTIF(age) FROM data", SchemaError, "the condition of IF must be BOOL"),
    (DP + "LOGICAL_OR(married) FROM data", UnsupportedSql, "write COUNTIF(condition)"),
    (DP + "STRING_AGG(state) FROM data", UnsupportedSql, "a list of values is not private"),
    (DP + "COUNT(*) FILTER (WHERE age) FROM data", SchemaError, "the condition of IF must be BOOL"),
    (DP + "MAX(seen) FROM data", UnsupportedSql, "write MAX(DATE(t), ...)"),
    (
        DP + "MAX(born, contribution_bounds_per_row => (0, 9)) FROM data",
        OptionError,
        "contribution_bounds_per_row of MAX must be dates",
    ),
    (
        DP + "MAX(born, contribution_bounds_per_row => (DATE '2020-01-01', 'x')) FROM data",
        SchemaError,
        "a DATE must be a real moment",
    ),
    (DP + "MIN(born, report_format => 'JSON') FROM data", OptionError, "MIN of a DATE has no report_format"),
    (
        DP + "COUNT(*) FROM data WHERE MAX(age) FILTER (WHERE married) > 3",
        UnsupportedSql,
        "cannot stand here",
    ),
    (DP + "ANON_COUNT(*) FROM data", UnsupportedSql, "is not supported; use COUNT, SUM"),
    (DP + f"VAR_SAMP(age, {BOUNDS} => (0, 1)) FROM data", OptionError, "must be bounded per row, got"),
    (DP + f"STDDEV(age, {ROW} => (1, 0)) FROM data", OptionError, "lower bound first"),
    (DP + f"STDDEV(age, {ROW} => (1e15, 1000000000000001)) FROM data", OptionError, "subtract a constant"),
    (DP + f"STDDEV_POP(state, {ROW} => (0, 1)) FROM data", SchemaError, "use CAST(... AS INT64)"),
    (DP + f"VARIANCE(age, Income, {ROW} => (0, 1)) FROM data", UnsupportedSql, "one argument besides"),
    (DP + f"CORR(age, {ROW} => ((0, 1), (0, 1))) FROM data", UnsupportedSql, "two arguments besides"),
    (DP + f"CORR(age, Income, {ROW} => (0, 1)) FROM data", OptionError, "must be bounds for each column"),
    (DP + f"COVAR_POP(age, Income, {ROW} => ((0, 1), 3)) FROM data", OptionError, "bounds for each column"),
    (DP + f"CORR(age, married, {ROW} => ((0, 1), (0, 1))) FROM data", SchemaError, "write IF(condition"),
    (DP + "SUM(age, age) FROM data", UnsupportedSql, "one argument besides its bounds, got 2"),
    (DP + "COUNT(*) AS n, COUNT(age) AS n_upper FROM data", SchemaError, "the interval of 'n'"),
    (DP + f"SUM(age, {BOUNDS} => (9, 0)) FROM data", OptionError, "lower bound first, got (9, 0)"),
    (DP + f"SUM(age, {BOUNDS} => (0, 1.7e308)) FROM data", OptionError, "must reach from 1e-150 to 1e150"),
    (DP + f"AVG(age, {BOUNDS} => (-1e308, 1e308)) FROM data", OptionError, "bring the column to another"),
    (DP + f"AVG(age, {BOUNDS} => (1e15, 1000000000000001)) FROM data", OptionError, "subtract a constant"),
    (DP + f"SUM(age, {BOUNDS} => (0, 5e-324)) FROM data", OptionError, "must reach from 1e-150 to 1e150"),
    (DP + f"SUM(age, {BOUNDS} => (age, 9)) FROM data", OptionError, "got the column 'age'"),
    (DP + f"SUM(age, {BOUNDS} => (0, 3 * 3)) FROM data", OptionError, "must be a literal"),
    (DP + f"SUM(age, {BOUNDS} => (0, 1e999)) FROM data", OptionError, "must be finite"),
    (DP + f"SUM(age, {BOUNDS} => (0, '9')) FROM data", OptionError, "a pair of numbers"),
    (DP + f"SUM(age, {BOUNDS} => (0, NULL)) FROM data", OptionError, "must be a literal"),
    (DP + f"SUM(age, {BOUNDS} => 9) FROM data", OptionError, "a pair of literals"),
    (DP + f"SUM(age, {BOUNDS} => (0, 1), {BOUNDS} => (0, 1)) FROM data", OptionError, "given once"),
    (DP + "SUM(age, contribution_bounds_per_row => (0, 9)) FROM data", OptionError, "max_rows_per_group"),
    (DP + "AVG(age, contribution_bounds_per_row => (0, 9)) FROM data", OptionError, "bounded per group"),
    (DP + "COUNT(*, contribution_bounds_per_row => (0, 9)) FROM data", OptionError, "bounded per group"),
    (DP + f"COUNT(*, {BOUNDS} => (-9, -1)) FROM data", OptionError, "must reach from 1 to 2**40"),
    (DP + f"COUNT(*, {BOUNDS} => (0, 2.5)) FROM data", OptionError, "must be whole numbers"),
    (DP + f"COUNT(*, {BOUNDS} => (0, 0)) FROM data", OptionError, "must reach from 1"),
    (
        DP + f"SUM(age, {BOUNDS} => (0, 9), epsilon => -3) FROM data",
        OptionError,
        "positive and finite, got -3",
    ),
    (DP + "COUNT(*, report_format => 3) FROM data", OptionError, "report_format must be a string"),
    (
        DP + "COUNT(*, report_format => JSON) FROM data",
        OptionError,
        "name JSON; write report_format => 'JSON'",
    ),
    (DP + "COUNT(*, report_format => 'JSON') + 1 FROM data", UnsupportedSql, "which can only be shown"),
    (DP + "COUNT(*, report_format => 'JSON') AS n FROM data ORDER BY n", UnsupportedSql, "only be shown"),
    (DP + "COUNT(*, report_format => 'JSON') AS n FROM data HAVING n > 3", UnsupportedSql, "only be shown"),
    (
        DP + f"APPROX_QUANTILES(age, 4, {ROW} => (0, 9), report_format => 'JSON') FROM data",
        OptionError,
        "has no report_format",
    ),
    (DP + "COUNT(*, epsilon => '1') FROM data", OptionError, "positive and finite, got '1'"),
    (DP + "COUNT(*, epsilon => age) FROM data", OptionError, "epsilon must be a literal"),
    (DP + "COUNT(*, epsilon => 0.1, epsilon => 0.1) FROM data", OptionError, "epsilon must be given once"),
    (
        DP + f"SUM(age, {BOUNDS} => (0, 9), report_format => 'PROTO') FROM data",
        OptionError,
        "report_format must be 'JSON', got 'PROTO'",
    ),
    (DP + "SUM(age, bounds => (0, 9)) FROM data", OptionError, f"write {BOUNDS} => (lower, upper)"),
    (DP + f"SUM(state, {BOUNDS} => (0, 9)) FROM data", SchemaError, "use CAST(... AS INT64)"),
    (DP + f"SUM(married, {BOUNDS} => (0, 1)) FROM data", SchemaError, "write IF(condition, 1, 0)"),
]

FROM = [
    (DP + "COUNT(*) FROM nobody", SchemaError, "'nobody' is not part of this session"),
    (DP + "COUNT(*) FROM vists", SchemaError, "did you mean 'visits'?"),
    (DP + "COUNT(*) FROM 'people.csv'", SchemaError, "'people.csv' is not part of this session"),
    (DP + "COUNT(*) FROM `/etc/passwd`", SchemaError, "'/etc/passwd' is not part of this session"),
    (DP + "COUNT(*) FROM information_schema.tables", SchemaError, "not part of this session"),
    (DP + "COUNT(*) FROM main.data", SchemaError, "did you mean 'data'?"),
    (DP + "COUNT(*) FROM read_csv('people.csv')", UnsupportedSql, "a table function is not answered"),
    (DP + "COUNT(*) FROM parquet_scan('a', 'b')", UnsupportedSql, "a table function is not answered"),
    (DP + "COUNT(*) FROM states", UnsupportedSql, "reads public data only"),
    (DP + "COUNT(*) FROM UNNEST([1, 2]) AS k", UnsupportedSql, "reads public data only"),
    (DP + "COUNT(*) FROM data TABLESAMPLE SYSTEM (10 PERCENT)", UnsupportedSql, "must not carry SAMPLE"),
    (DP + "COUNT(*) FROM data PIVOT(SUM(age) FOR sex IN ('F'))", UnsupportedSql, "must not carry PIVOTS"),
    (DP + "COUNT(*) FROM data FOR SYSTEM_TIME AS OF '2020-01-01'", UnsupportedSql, "must not carry VERSION"),
    (DP + "COUNT(*) FROM data, visits", UnsupportedSql, "must equate their privacy units"),
    (DP + "COUNT(*) FROM data CROSS JOIN visits", UnsupportedSql, "must equate their privacy units"),
    (DP + "COUNT(*) FROM data JOIN visits USING (state)", UnsupportedSql, "must equate their privacy units"),
    (DP + "COUNT(*) FROM data, data AS d", UnsupportedSql, "must equate their privacy units"),
    (
        DP + "COUNT(*) FROM data d JOIN visits v ON d.person_id >= v.person_id",
        UnsupportedSql,
        "must equate their privacy units",
    ),
    (
        DP + "COUNT(*) FROM data d JOIN visits v ON d.person_id = v.person_id OR d.age = v.age",
        UnsupportedSql,
        "must equate their privacy units",
    ),
    (
        DP + "COUNT(*) FROM data d JOIN visits v ON d.person_id = v.age",
        UnsupportedSql,
        "must equate their privacy units",
    ),
    (
        DP + "COUNT(*) FROM data d JOIN (SELECT person_id AS age, age AS person_id FROM visits) v "
        "USING (person_id)",
        UnsupportedSql,
        "must equate their privacy units",
    ),
    (DP + "COUNT(*) FROM data JOIN lines USING (person_id)", UnsupportedSql, "each row is a unit"),
    (DP + "COUNT(*) FROM data FULL JOIN visits USING (person_id)", UnsupportedSql, "FULL JOIN is not"),
    (DP + "COUNT(*) FROM data NATURAL JOIN states", UnsupportedSql, "must not carry METHOD"),
    (DP + "COUNT(*) FROM data SEMI JOIN states USING (state)", UnsupportedSql, "SEMI JOIN is not supported"),
    (DP + "COUNT(*) FROM data JOIN states USING (code)", SchemaError, "the column 'code' does not exist"),
    (DP + "COUNT(*) FROM data JOIN states ON state = code", SchemaError, "is in both tables"),
    (DP + "COUNT(*) FROM data JOIN states ON data.age = states.code", SchemaError, "got INT64 and STRING"),
    (DP + "COUNT(*) FROM lines CROSS JOIN states", UnsupportedSql, "so that a row does not come twice"),
    (
        DP + "COUNT(*) FROM lines l JOIN states s ON l.state = s.state AND l.age > s.years",
        UnsupportedSql,
        "so that a row does not come twice",
    ),
    (
        DP + "COUNT(*) FROM lines l JOIN states s ON l.state = s.state OR l.state = s.code",
        UnsupportedSql,
        "so that a row does not come twice",
    ),
    (DP + "COUNT(*) FROM data RIGHT JOIN states USING (state)", UnsupportedSql, "must not keep public rows"),
    (DP + "COUNT(*) FROM states LEFT JOIN data USING (state)", UnsupportedSql, "must not keep public rows"),
    (DP + "COUNT(*) FROM data FULL JOIN states USING (state)", UnsupportedSql, "must not keep public rows"),
    (
        DP + "COUNT(*) FROM (data JOIN states USING (state)) AS d",
        UnsupportedSql,
        "a subquery must be a SELECT",
    ),
]

SUBQUERIES = [
    (DP + "COUNT(*) FROM (SELECT state FROM data)", UnsupportedSql, "add person_id to its SELECT list"),
    (
        DP + "COUNT(*) FROM (SELECT person_id + 1 AS person_id FROM data)",
        UnsupportedSql,
        "keep the privacy unit",
    ),
    (DP + "COUNT(*) FROM (SELECT DISTINCT state FROM data)", UnsupportedSql, "keep the privacy unit"),
    (DP + "COUNT(*) FROM (SELECT DISTINCT state FROM lines)", UnsupportedSql, "DISTINCT where each row"),
    (DP + "COUNT(*) FROM (SELECT * FROM data LIMIT 9)", UnsupportedSql, "LIMIT in a subquery"),
    (DP + "COUNT(*) FROM (SELECT * FROM data ORDER BY age)", UnsupportedSql, "ORDER BY in a subquery"),
    (
        DP + "COUNT(*) FROM (SELECT state, COUNT(*) AS n FROM data GROUP BY 1)",
        UnsupportedSql,
        "must not mix the rows of several units; write GROUP BY person_id",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM data GROUP BY person_id, 'a')",
        UnsupportedSql,
        "a GROUP BY item must name a column",
    ),
    (
        DP + "COUNT(*) FROM (SELECT COUNT(*) AS n FROM data GROUP BY person_id + 1)",
        UnsupportedSql,
        "must not mix the rows of several units",
    ),
    (
        DP + "COUNT(*) FROM (SELECT COUNT(*) AS n FROM data GROUP BY person_id)",
        UnsupportedSql,
        "must keep the privacy unit",
    ),
    (DP + "COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM data)", UnsupportedSql, "write GROUP BY"),
    (
        DP + "COUNT(*) FROM (SELECT person_id, age, COUNT(*) AS n FROM data GROUP BY person_id)",
        UnsupportedSql,
        "'age' is neither a GROUP BY item nor an aggregate",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id, ANY_VALUE(age) AS n FROM data GROUP BY person_id)",
        UnsupportedSql,
        "ANY_VALUE over rows of a unit is not supported",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id, SUM(state) AS n FROM data GROUP BY person_id)",
        SchemaError,
        "the argument of SUM must be INT64 or FLOAT64",
    ),
    (
        DP + "COUNT(*) FROM (SELECT state, COUNT(*) AS n FROM lines GROUP BY state)",
        UnsupportedSql,
        "where each row is a unit, a subquery must not put several rows together",
    ),
    (
        DP + "COUNT(*) FROM data JOIN (SELECT state, RANK() OVER (ORDER BY size) AS n FROM states) "
        "USING (state)",
        UnsupportedSql,
        "a subquery over public tables must not have windows",
    ),
    (DP + "COUNT(DISTINCT) FROM data", UnsupportedSql, "must name one value, got 0"),
    *(
        (f"{DP} COUNT(*) FROM (SELECT person_id, {window} AS r FROM data)", UnsupportedSql, phrase)
        for window, phrase in (
            ("MAX(age) OVER (PARTITION BY state)", "write OVER (PARTITION BY person_id)"),
            ("MAX(age) OVER (PARTITION BY -person_id)", "write OVER (PARTITION BY person_id)"),
            ("MAX(age) OVER ()", "write OVER (PARTITION BY person_id)"),
            ("SUM(age) OVER (PARTITION BY person_id ORDER BY age)", "may have an ORDER BY"),
            ("ROW_NUMBER() OVER (PARTITION BY person_id)", "need an ORDER BY"),
            ("COUNT(*) OVER (PARTITION BY person_id ROWS CURRENT ROW)", "have no frame"),
            ("LAG(age) OVER (PARTITION BY person_id ORDER BY age)", "LAG over rows of a unit is not"),
            ("COUNT(DISTINCT age) OVER (PARTITION BY person_id)", "must not have a window"),
            ("MAX(age) OVER w", "written in place"),
        )
    ),
    (
        DP + "COUNT(*) FROM (SELECT age, MAX(age) OVER (PARTITION BY age) AS m FROM lines)",
        UnsupportedSql,
        "where each row is a unit",
    ),
    (
        DP + "COUNT(*) FROM (SELECT * FROM data QUALIFY age > 3)",
        UnsupportedSql,
        "QUALIFY must name a window",
    ),
    (
        DP + "COUNT(*) FROM (SELECT * FROM data UNION ALL SELECT * FROM lines)",
        UnsupportedSql,
        "cannot be united",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id, age FROM data UNION ALL SELECT years, 3 FROM states)",
        UnsupportedSql,
        "must not put public rows among private ones",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id, age FROM data UNION ALL SELECT age, person_id FROM visits)",
        UnsupportedSql,
        "in the same position",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id, age FROM data UNION ALL SELECT person_id, state FROM visits)",
        SchemaError,
        "columns of the same types",
    ),
    (
        DP + "COUNT(*) FROM (SELECT * FROM data INTERSECT ALL SELECT * FROM visits)",
        UnsupportedSql,
        "INTERSECT ALL is not supported",
    ),
    (DP + "COUNT(*) FROM data WHERE age IN (SELECT age FROM visits)", UnsupportedSql, "not read a private"),
    (DP + "COUNT(*) FROM data WHERE age IN (SELECT * FROM states)", SchemaError, "must have one column"),
    (DP + "COUNT(*) FROM data WHERE age IN (SELECT code FROM states)", SchemaError, "INT64 and STRING"),
    (
        DP + "COUNT(*) FROM data WHERE age > 3 OR age IN (SELECT years FROM states)",
        UnsupportedSql,
        "IN with a subquery must be a condition of its own",
    ),
    (
        DP + "COUNT(*) FROM data WHERE NOT (EXISTS (SELECT 1 FROM states) OR age > 3)",
        UnsupportedSql,
        "a subquery in an",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id, RANK() OVER (ORDER BY age) AS r FROM data)",
        UnsupportedSql,
        "a window function",
    ),
    (
        DP + "COUNT(f1_) FROM (SELECT person_id, age + 1 FROM data)",
        SchemaError,
        "the columns are f0_, person_id",
    ),
    (
        DP + "COUNT(*) FROM (SELECT person_id FROM data INTERSECT DISTINCT SELECT state FROM states)",
        UnsupportedSql,
        "INTERSECT must be of private rows",
    ),
    (
        DP
        + "COUNT(*) FROM (SELECT person_id, age FROM data EXCEPT DISTINCT SELECT age, person_id FROM visits)",
        UnsupportedSql,
        "the privacy unit in the same position",
    ),
    (DP + "COUNT(*) FROM (SELECT person_id, age AS Person_Id FROM data)", SchemaError, "twice"),
    (DP + "COUNT(*) FROM (SELECT * EXCEPT (age) FROM data)", UnsupportedSql, "without EXCEPT"),
    ("WITH RECURSIVE a AS (SELECT 1) " + DP + "COUNT(*) FROM a", UnsupportedSql, "WITH RECURSIVE"),
    (
        DP + "COUNT(*) FROM data WHERE age IN (SELECT age FROM visits)",
        UnsupportedSql,
        "IN must not read a private table",
    ),
    (
        DP + "COUNT(*) FROM data WHERE EXISTS (SELECT 1 FROM visits)",
        UnsupportedSql,
        "EXISTS must not read a private table",
    ),
    (
        DP + "COUNT(*) FROM data WHERE age > (SELECT MAX(age) FROM data)",
        UnsupportedSql,
        "a subquery in an expression must not read a private table",
    ),
    (DP + "(SELECT COUNT(*) FROM data) FROM data", UnsupportedSql, "a subquery in an expression"),
]

EXPRESSIONS = [
    ("RAND() < 0.5", UnsupportedSql, "RAND is not determined by the row"),
    ("born < CURRENT_DATE()", UnsupportedSql, "CURRENT_DATE is not determined by the row"),
    ("SINH(age) < 1", UnsupportedSql, "the function SINH is not supported"),
    ("UPER(state) = 'A'", UnsupportedSql, "did you mean UPPER?"),
    ("REGEXP_CONTAINS(state, sex)", UnsupportedSql, "must be a string literal; write REGEXP_CONTAINS(s"),
    ("REGEXP_CONTAINS(state, '(?i)a')", UnsupportedSql, "must have no flags"),
    ("REGEXP_EXTRACT(state, '(a+)a') = 'a'", UnsupportedSql, "deterministic for REGEXP_EXTRACT"),
    ("REGEXP_EXTRACT(state, 'a', 1, 2) = 'a'", UnsupportedSql, "is of the first match"),
    ("REGEXP_REPLACE(state, 'a', 'b') = 'a'", UnsupportedSql, "only REGEXP_CONTAINS and REGEXP_EXTRACT"),
    ("FORMAT_DATE('%C', born) = 'A'", UnsupportedSql, "FORMAT_DATE has no element '%C'"),
    ("FORMAT_DATE('%H', born) = 'A'", UnsupportedSql, "a DATE has no time of day"),
    ("FORMAT_DATE('on', born) = 'A'", UnsupportedSql, "must name a part of the date"),
    ("FORMAT_DATE(, born) = 'A'", UnsupportedSql, "must take a format and a date"),
    ("FORMAT_DATE('%Y') = 'A'", UnsupportedSql, "must take a format and a date"),
    ("FORMAT_DATE(state, born) = 'A'", UnsupportedSql, "must be a string literal"),
    ("FORMAT_DATE('%Y', age) = 'A'", SchemaError, "the argument of FORMAT_DATE must be DATE or TIMESTAMP"),
    (
        "DATE(age, 2) = born",
        UnsupportedSql,
        "DATE must not carry ZONE; timestamps are in UTC; write TIMESTAMP_ADD",
    ),
    (
        "EXTRACT(DAY FROM born AT TIME ZONE 'UTC') = 3",
        UnsupportedSql,
        "ZONE is not supported; timestamps are in UTC",
    ),
    ("DATE(Income, 2, 3) = born", SchemaError, "the year of DATE must be INT64"),
    ("DATE_ADD(born, INTERVAL Income DAY) = born", SchemaError, "the span of DATE_ADD must be INT64"),
    ("DATE_ADD(born, INTERVAL age MONTH) = born", UnsupportedSql, "must be a whole number as a literal"),
    ("EXTRACT(WEEK(MOONDAY) FROM born) = 3", UnsupportedSql, "the first day of a WEEK must be one of"),
    ("net.host(state) = 'A'", UnsupportedSql, "not supported"),
    ("age & 1 = 1", UnsupportedSql, "the operator BITWISEAND"),
    ("age = @limit", OptionError, "@limit must have a value, got none; pass params"),
    ("age = @@limit", UnsupportedSql, "a query parameter"),
    ("age = ?", UnsupportedSql, "a query parameter"),
    ("[1, 2][OFFSET(0)] = 1", UnsupportedSql, "arrays, structs and JSON"),
    ("COUNT(*) > 3", UnsupportedSql, "the aggregate COUNT cannot stand here"),
    ("state LIKE sex", UnsupportedSql, "must be a string literal without backslash"),
    ("state LIKE 'a\\\\%'", UnsupportedSql, "must be a string literal without backslash"),
    ("age IN (1, sex)", UnsupportedSql, "IN must list literals"),
    ("age IN (1, NULL)", UnsupportedSql, "IN must list literals"),
    ("age IN UNNEST(state)", UnsupportedSql, "must have an array of literals"),
    (f"age IN ({', '.join(map(str, range(20_000)))})", UnsupportedSql, "put them into a public table"),
    ("YEAR(born) = 3", UnsupportedSql, "write EXTRACT(YEAR FROM d)"),
    ("STRPOS(state, 'a') = 3", UnsupportedSql, "REGEXP_CONTAINS(s, 'ab')"),
    ("TRUNC(Income) = 3", UnsupportedSql, "write SIGN(x) * FLOOR(ABS(x))"),
    ("age IS TRUE", SchemaError, "the left side of IS must be BOOL"),
    ("CAST(age AS NUMERIC) = 3", SchemaError, "got INT64 and NUMERIC; use CAST"),
    ("CAST(age AS NUMERIC(9, 2)) IS NULL", UnsupportedSql, "neither precision nor scale"),
    ("CAST(age AS UINT64(3)) IS NULL", UnsupportedSql, "CAST to UINT64 must have no size"),
    ("CAST(Income AS NUMERIC) IS NULL", SchemaError, "write CAST(CAST(`Income` AS INT64) AS NUMERIC), with"),
    ("CAST(Income AS UINT64) IS NULL", SchemaError, "write CAST(CAST(`Income` AS INT64) AS UINT64)"),
    ("CAST(born AS UINT64) IS NULL", SchemaError, "CAST cannot turn DATE into UINT64"),
    ("CAST(age > 3 AS NUMERIC) IS NULL", SchemaError, "CAST cannot turn BOOL into NUMERIC"),
    ("CAST(age AS UINT32) = 3", UnsupportedSql, "CAST must go to one of UINT64, BOOL, INT64"),
    ("CAST(state AS STRING(3)) = 'a'", UnsupportedSql, "without a size"),
    ("EXTRACT(FORTNIGHT FROM born) = 3", UnsupportedSql, "the part of EXTRACT of a DATE must be one of"),
    ("EXTRACT(DATE FROM born) = born", UnsupportedSql, "write DATE(t)"),
    ("EXTRACT(HOUR FROM born) = 3", UnsupportedSql, "the part of EXTRACT of a DATE must be one of"),
    ("SUBSTR(state, age) = 'a'", UnsupportedSql, "must be an integer literal"),
    ("TRIM(state, 'x') = 'a'", UnsupportedSql, "write TRIM(x)"),
    ("LOG(age, 2) = 3", UnsupportedSql, "LN(x) / LN(base)"),
    ("born > INTERVAL 1 DAY", UnsupportedSql, "an INTERVAL"),
    ("age", SchemaError, "the condition of WHERE must be BOOL, got INT64"),
    ("age = '3'", SchemaError, "got INT64 and STRING; use CAST"),
    ("age = NULL", SchemaError, "write IS NULL"),
    ("born > 'yesterday'", SchemaError, "written as 'YYYY-MM-DD'"),
    ("born > DATE '2020-02-30'", SchemaError, "must be a real moment"),
    ("born + 1 > born", SchemaError, "use EXTRACT"),
    ("state + 1 = 2", SchemaError, "an operand of + must be INT64 or FLOAT64, got STRING"),
    ("state || age = 'a1'", SchemaError, "use CAST(... AS STRING)"),
    ("CAST(born AS INT64) = 3", SchemaError, "CAST cannot turn DATE into INT64"),
    ("age = 99999999999999999999", SchemaError, "must fit in 64 bits"),
    ("income < 1e999", SchemaError, "a number must be finite"),
    ("state = 'a\0b'", SchemaError, "characters only"),
    ("agee > 3", SchemaError, "did you mean 'age'?"),
    ("zzz > 3", SchemaError, "the columns are"),
    ("nope > 3", SchemaError, "the columns are"),
    ("d.age > 3", SchemaError, "the qualifier 'd' names no table"),
    ("photo IS NULL", SchemaError, "has a type that a query cannot use"),
    ("IF(married, 1, 'a') = 1", SchemaError, "IF must have values of one type"),
]

GROUPS = [
    (PUBLIC + f"sex, COUNT(*) FROM data {LISTED}, sex", UnsupportedSql, "'sex' is not in the public list"),
    (
        DP + f"state, COUNT(*) FROM data {LISTED}",
        OptionError,
        "must be PUBLIC_GROUPS where the groups are listed",
    ),
    (PUBLIC + f"state FROM data {LISTED}", UnsupportedSql, "nothing to release but the listed groups"),
    (PUBLIC + f"COUNT(*) FROM data {LISTED[: -len(' GROUP BY state')]}", UnsupportedSql, "add GROUP BY"),
    (
        PUBLIC
        + "state, COUNT(*) FROM data RIGHT JOIN (SELECT state FROM states) USING (state) GROUP BY state",
        UnsupportedSql,
        "write RIGHT JOIN (SELECT DISTINCT",
    ),
    (
        PUBLIC + "state, COUNT(*) FROM data "
        "RIGHT JOIN (SELECT DISTINCT state FROM states LIMIT 3) USING (state) GROUP BY state",
        UnsupportedSql,
        "LIMIT in a subquery",
    ),
    (
        PUBLIC + "state, COUNT(*) FROM data "
        "RIGHT JOIN (SELECT DISTINCT state, code AS sex FROM states) USING (state, sex) GROUP BY state",
        UnsupportedSql,
        "GROUP BY must name every column of the public list",
    ),
    (
        PUBLIC + "state, COUNT(*) FROM data "
        "RIGHT JOIN (SELECT DISTINCT state, code FROM states) USING (state) GROUP BY state",
        UnsupportedSql,
        "add 'code' to USING",
    ),
    (
        PUBLIC + "age, COUNT(*) FROM data "
        "RIGHT JOIN (SELECT DISTINCT state AS age FROM states) USING (age) GROUP BY age",
        SchemaError,
        "must have the type of its key",
    ),
    (
        PUBLIC + "code, COUNT(*) FROM data RIGHT JOIN (SELECT DISTINCT code FROM states) p "
        "ON data.state > p.code GROUP BY code",
        UnsupportedSql,
        "must be an equality",
    ),
    (
        PUBLIC + "state, COUNT(*) FROM data RIGHT JOIN (SELECT DISTINCT state FROM states) p "
        "ON sex = state GROUP BY state",
        SchemaError,
        "is in both tables",
    ),
    (
        PUBLIC + "k, COUNT(*) FROM data RIGHT JOIN UNNEST(['a', 'a']) AS k ON state = k GROUP BY k",
        OptionError,
        "list each group once",
    ),
    (
        PUBLIC + "k, COUNT(*) FROM data RIGHT JOIN UNNEST([state]) AS k ON state = k GROUP BY k",
        UnsupportedSql,
        "a literal is needed here",
    ),
]

TABLE = [
    *SYNTAX,
    *STATEMENTS,
    *OPTIONS,
    *SHAPE,
    *AGGREGATES,
    *FROM,
    *SUBQUERIES,
    *(
        (f"{DP} COUNT(*) FROM data WHERE {condition}", kind, phrase)
        for condition, kind, phrase in EXPRESSIONS
    ),
    *GROUPS,
]


@cases(("text", "kind", "phrase"), TABLE, ids=[phrase[:40] for _, _, phrase in TABLE])
def test_each_mistake_has_its_error(text: str, kind: type[QueryError], phrase: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(text, CATALOG)
    assert type(caught.value) is kind, str(caught.value)
    assert phrase in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_text_must_be_a_string() -> None:
    with pytest.raises(SqlSyntaxError, match="must be a string of SQL"):
        read(b"SELECT 1", CATALOG)  # type: ignore[arg-type]


def test_a_default_is_checked_like_an_option() -> None:
    query = "SELECT COUNT(*) FROM data"
    with pytest.raises(OptionError, match="epsilon must be positive"):
        read(query, CATALOG, defaults={"epsilon": -1.0})
    with pytest.raises(OptionError, match="'eps' is not an option of the session's defaults"):
        read(query, CATALOG, defaults={"eps": 1.0})


def test_a_tower_of_joins_is_refused_at_once() -> None:
    floors = [f"f{n} AS (SELECT a.* FROM f{n - 1} a{f', f{n - 1} b' * 9})" for n in range(1, 15)]
    with pytest.raises(UnsupportedSql, match="at most 256 tables and subqueries"):
        read(f"WITH f0 AS (SELECT * FROM states), {', '.join(floors)} {DP} COUNT(*) FROM f14", CATALOG)
