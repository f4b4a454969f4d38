"""Mean vectors, as protocols; `sfumato.local` exports them."""
