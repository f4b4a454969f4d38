"""The Markov quilt mechanism: how far a record's influence reaches, and the noise that covers it."""
