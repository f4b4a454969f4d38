"""Client halves of the protocols that find frequent strings: by fragments, by prefixes, in rounds."""
