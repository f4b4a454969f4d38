"""From SQL to a checked plan: parser, options, catalog, scopes, and the analysis that joins them."""
