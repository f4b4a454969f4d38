"""What the command line reads: columns of files, and protocols by their names."""
