"""The interface for programs, beside the pages: a table of operations, from which all else follows.

`operation` is what one is, `catalog` lists them, `api_routes` answers requests by them, and `openapi` writes
them down. Who may do what is the permission table's to say, as for pages.
"""
