"""The typed plan of a query: relations, expressions, aggregates, options, and the key it is found by."""
