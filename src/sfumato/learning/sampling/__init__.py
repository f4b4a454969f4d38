"""Which examples each step of training sees, drawn so that its loss is known."""
