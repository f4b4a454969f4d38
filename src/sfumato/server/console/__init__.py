"""The curator's console: who may see and do what with a ledger, on pages and through an API."""
