"""What is let in: hosts, origins and form tokens, sizes, rates and times; and what browsers are told."""
