"""Deployments: the report of a whole ledger, and the checklist of what such a report should answer."""
