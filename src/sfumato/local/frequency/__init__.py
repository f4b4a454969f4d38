"""Frequency oracles, one a file; `sfumato.local` exports them."""
