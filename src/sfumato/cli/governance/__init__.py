"""Who may do what with a ledger, and how a release becomes public."""
