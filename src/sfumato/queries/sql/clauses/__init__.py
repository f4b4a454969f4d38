"""The clauses of SELECT: FROM, joins, subqueries, GROUP BY, the SELECT list, HAVING, ORDER BY."""
