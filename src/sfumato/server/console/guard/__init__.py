"""What is let in: hosts, origins and form tokens, sizes, rates and times; and the headers of every answer."""
