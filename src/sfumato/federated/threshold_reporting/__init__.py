"""Values that enough clients report: sample-and-threshold, heavy hitters in a trie, and STAR."""
