"""Who asks: members of the ledger, recognised by tokens, a sign-in, OpenID Connect or a trusted proxy."""
