"""Client halves of the protocols for means and distributions of numbers between two bounds."""
