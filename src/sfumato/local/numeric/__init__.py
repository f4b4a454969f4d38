"""Means and distributions of numbers between two bounds, as protocols; `sfumato.local` exports them."""
