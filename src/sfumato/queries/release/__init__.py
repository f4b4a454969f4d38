"""From exact integers to the released table: noise, estimates, intervals, record, explanation."""
