"""Tables of counts by some columns: which are wanted, how they are measured, and what was released."""
