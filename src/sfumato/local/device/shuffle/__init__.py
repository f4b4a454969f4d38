"""Client halves of the shuffle model: decoys, split and mix, and the envelope of a collection."""
