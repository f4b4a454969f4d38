"""Private training inside other people's loops: Hugging Face's Trainer, Lightning's."""
