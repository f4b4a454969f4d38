"""Releases as a ledger stores them."""
