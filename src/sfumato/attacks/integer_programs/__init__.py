"""Integer programs: a reader of CPLEX LP files, exact checks of solutions, variability and contradictions."""
