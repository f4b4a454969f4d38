"""``sfumato demo``: real people, asked, attacked, and asked on their own devices."""
